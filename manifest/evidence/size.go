package evidence

import (
	"slices"

	"go.yaml.in/yaml/v3"

	"ggufreap/gguf/pattern"
)

var (
	sizeForm    = pattern.Lazy(`^([0-9]+(?:\.[0-9]+)?)(?: to ([0-9]+(?:\.[0-9]+)?))?(?: ([A-Za-z]+))?$`)
	binaryUnits = []string{"KiB", "MiB", "GiB", "TiB"}
	mixedUnits  = []string{"kB", "KB", "MB", "GB", "TB"}
)

// size reads bytes: a number or "A to B" with a unit, in the value or beside it. What GB
// means is not guessed.
func (r *reader) size(s *Statement, name string, n *yaml.Node, unit, convention string) {
	m := sizeForm().FindStringSubmatch(s.Text)
	if m == nil {
		r.faults.add(n.Line, "%s is %q, want a number or \"A to B\", and a unit", name, s.Text)
		return
	}
	if unit == "" {
		unit = m[3]
	} else if m[3] != "" && m[3] != unit {
		r.faults.add(n.Line, "%s has the units %q and %q", name, m[3], unit)
	}
	s.Text = m[1]
	if m[2] != "" {
		s.Text += " to " + m[2]
		if s.Kind != Approximate {
			r.faults.add(n.Line, "%s is a range: its kind is approximate", name)
		}
	}
	s.Text += " " + r.unit(n, name, unit, convention)
}

// unit returns the unit as it is shown.
func (r *reader) unit(n *yaml.Node, name, unit, convention string) string {
	switch {
	case unit == "bytes" || slices.Contains(binaryUnits, unit):
		if convention != "" {
			r.faults.add(n.Line, "%s: %s needs no convention", name, unit)
		}
		return unit
	case !slices.Contains(mixedUnits, unit):
		r.faults.add(n.Line, "%s has the unit %q, want bytes, GB, GiB or the like", name, unit)
		return unit
	}
	switch convention {
	case "", NotSpecified:
		return unit + " (convention not specified)"
	case "decimal":
		return unit + " (powers of 1000)"
	case "binary":
		return unit + " (powers of 1024)"
	}
	r.faults.add(n.Line, "%s has the convention %q, want decimal, binary or %q", name, convention, NotSpecified)
	return unit
}
