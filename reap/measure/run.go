package measure

import (
	"context"
	"fmt"
	"maps"

	"ggufreap/reap"
	"ggufreap/reap/scorefile"
	"ggufreap/reap/tally"
)

// A Run is a calibration under way. The sums are exact, so they depend on which chunks were
// measured and on nothing else: not on their order, nor on how many were measured side by side.
type Run struct {
	Kinds   []*Kind
	experts *reap.Experts
	groups  []group
	next    int               // the first group that was not measured
	sums    [][2]*tally.Tally // by kind and half
	blocks  []int
}

// NewRun prepares to measure all chunks of all kinds, so many side by side at most.
func NewRun(e *reap.Experts, kinds []*Kind, sideBySide int) *Run {
	r := &Run{Kinds: kinds, experts: e, groups: groups(kinds, max(sideBySide, 1)), blocks: Blocks(e)}
	for range kinds {
		r.sums = append(r.sums, [2]*tally.Tally{tally.New(r.blocks, e.Count), tally.New(r.blocks, e.Count)})
	}
	return r
}

// Blocks returns the blocks that are measured: those that route, without draft blocks, which
// llama.cpp does not compute.
func Blocks(e *reap.Experts) []int {
	var blocks []int
	for _, l := range e.Layers {
		if !l.Draft {
			blocks = append(blocks, l.Block)
		}
	}
	return blocks
}

// Done reports whether everything was measured.
func (r *Run) Done() bool { return r.next == len(r.groups) }

// Step measures the next group of chunks. Nothing of it is kept when it fails.
func (r *Run) Step(ctx context.Context, m Meter) error {
	g := r.groups[r.next]
	sums, err := m.Measure(ctx, g.chunks)
	if err != nil {
		return err
	}
	if want := uint64(len(g.chunks) * len(g.chunks[0])); sums.Tokens != want {
		return fmt.Errorf("sums of %d tokens, want %d", sums.Tokens, want)
	}
	if err := sums.Check(r.experts.UsedIn); err != nil {
		return err
	}
	if err := r.sums[g.kind][g.half].Merge(sums); err != nil {
		return err
	}
	r.next++
	return nil
}

// Tokens returns how many tokens were measured, and how many there are.
func (r *Run) Tokens() (done, all int) {
	for i, g := range r.groups {
		n := len(g.chunks) * len(g.chunks[0])
		all += n
		if i < r.next {
			done += n
		}
	}
	return done, all
}

// Chunks returns how many chunks were measured, and how many there are.
func (r *Run) Chunks() (done, all int) {
	for i, g := range r.groups {
		all += len(g.chunks)
		if i < r.next {
			done += len(g.chunks)
		}
	}
	return done, all
}

// Previous returns how many chunks were measured before the last step.
func (r *Run) Previous() int {
	n := 0
	for _, g := range r.groups[:max(r.next-1, 0)] {
		n += len(g.chunks)
	}
	return n
}

// Seen returns how many experts got a token, of how many.
func (r *Run) Seen() (seen, all int) {
	total := tally.New(r.blocks, r.experts.Count)
	for _, halves := range r.sums {
		for _, half := range halves {
			if err := total.Merge(half); err != nil {
				return 0, 0 // a sum beyond 2^64, which Step has not let through by kind
			}
		}
	}
	return total.Seen()
}

// Measurements returns what was measured, by kind and together.
func (r *Run) Measurements() (*scorefile.Measurements, error) {
	var kinds []PartKind
	var sums []*tally.Tally
	for i, kind := range r.Kinds {
		both, err := r.kindSums(i)
		if err != nil {
			return nil, err
		}
		kinds, sums = append(kinds, PartKind{kind.Label, kind.Weight, kind.Files, kind.Left}), append(sums, both)
	}
	m, _, _, err := measurements(kinds, sums)
	return m, err
}

// kindSums returns the sums of a kind, both halves together.
func (r *Run) kindSums(kind int) (*tally.Tally, error) {
	sums := r.sums[kind][0].Clone()
	return sums, sums.Merge(r.sums[kind][1])
}

// measurements makes measurements of exact sums by kind, and counts the experts that got a
// token. Sums of a kind are multiplied with its weight before they are added; where all
// weights are 1 they are added exactly.
func measurements(kinds []PartKind, sums []*tally.Tally) (m *scorefile.Measurements, seen, experts int, err error) {
	m = &scorefile.Measurements{Format: "saliency JSON"}
	total := &tally.Tally{Layers: map[int][]tally.Expert{}}
	plain := true
	for i, kind := range kinds {
		if i == 0 {
			total = sums[0].Clone()
		} else if err := total.Merge(sums[i]); err != nil {
			return nil, 0, 0, err
		}
		plain = plain && kind.Weight == 1
		m.Sources = append(m.Sources, scorefile.Source{
			Label: kind.Label, Tokens: int(sums[i].Tokens), Weight: kind.Weight, Layers: layers(sums[i]),
		})
		for _, f := range kind.Files {
			m.Inputs = append(m.Inputs, scorefile.Text{Label: kind.Label, File: f.Name, SHA256: f.SHA256})
		}
	}
	m.Tokens = int(total.Tokens)
	m.Layers = layers(total)
	if !plain {
		m.Layers = scorefile.Weighted(m.Sources)
	}
	seen, experts = total.Seen()
	return m, seen, experts, nil
}

// SettingsOf adds to how it was measured how much was.
func SettingsOf(settings map[string]string, chunks, allChunks, seen, experts int) map[string]string {
	all := maps.Clone(settings)
	all["chunks"] = fmt.Sprintf("%d of %d", chunks, allChunks)
	all["experts seen"] = fmt.Sprintf("%d of %d", seen, experts)
	return all
}

// layers turns exact sums into the nearest float64 numbers.
func layers(t *tally.Tally) map[int]*scorefile.Layer {
	list := make(map[int]*scorefile.Layer, len(t.Layers))
	for block, experts := range t.Layers {
		l := &scorefile.Layer{}
		for i := range experts {
			e := &experts[i]
			l.Count = append(l.Count, float64(e.Tokens))
			l.GateSum = append(l.GateSum, e.Gate.Float64())
			l.NormSum = append(l.NormSum, e.Norm.Float64())
			l.NormMax = append(l.NormMax, e.Greatest)
			l.ReapSum = append(l.ReapSum, e.Saliency.Float64())
			l.Energy = append(l.Energy, e.Energy.Float64())
		}
		list[block] = l
	}
	return list
}
