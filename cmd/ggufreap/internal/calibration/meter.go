// Package calibration runs the calibrate command: it gives the texts to the engine, saves what
// was measured as it goes, says how far it is, and writes the scores. What is measured, and
// how, is in packages reap/measure and reap/engine.
package calibration

import (
	"context"

	"ggufreap/reap"
	"ggufreap/reap/engine"
	"ggufreap/reap/measure"
	"ggufreap/reap/tally"
)

// A meter measures with the engine.
type meter struct {
	engine   *engine.Engine
	settings engine.Measure
}

// newMeter measures the layers of a model that llama.cpp computes.
func newMeter(e *engine.Engine, experts *reap.Experts, context, ubatch, streams int) *meter {
	used := map[int]int{}
	for _, block := range measure.Blocks(experts) {
		used[block] = experts.UsedIn(block)
	}
	return &meter{e, engine.Measure{Experts: experts.Count, Used: used, Context: context, Ubatch: ubatch, Streams: streams}}
}

func (m *meter) Measure(ctx context.Context, sequences [][]int) (*tally.Tally, error) {
	return m.engine.Measure(ctx, m.settings, sequences)
}

// A reader makes tokens with the engine.
type reader struct{ *engine.Engine }

func (r reader) Apply(ctx context.Context, template string, messages []measure.Message) ([]byte, error) {
	list := make([]engine.Message, len(messages))
	for i, m := range messages {
		list[i] = engine.Message(m)
	}
	return r.Template(ctx, template, list)
}
