package reap

import (
	"fmt"
	"strings"
)

// A Preset is a named way to prune one kind of model.
type Preset struct {
	Name      string
	Experts   int // routed experts that the model must have
	Keep      int
	Shards    int
	Criterion string
}

// Presets are the known presets.
var Presets = []Preset{
	{Name: "reap568", Experts: 896, Keep: 568, Shards: 14, Criterion: DefaultCriterion},
}

// FindPreset returns the preset with the given name.
func FindPreset(name string) (Preset, error) {
	for _, p := range Presets {
		if p.Name == name {
			return p, nil
		}
	}
	known := make([]string, len(Presets))
	for i, p := range Presets {
		known[i] = p.Name
	}
	return Preset{}, fmt.Errorf("no preset %q, want %s", name, strings.Join(known, " or "))
}

// Check returns an error that says what to use instead when the preset is not made
// for the model.
func (p Preset) Check(e *Experts) error {
	if e.Count == p.Experts {
		return nil
	}
	same := (2*p.Keep*e.Count + p.Experts) / (2 * p.Experts) // the same share, rounded
	return fmt.Errorf("preset %q keeps %d of %d experts, but the model has %d: choose a keep count instead, the same share is %d",
		p.Name, p.Keep, p.Experts, e.Count, max(same, e.Used))
}
