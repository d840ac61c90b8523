package evidence

import (
	"fmt"
	"slices"
	"strings"

	"ggufreap/gguf/words"
)

// A Comparison says how far two rows were run under the same conditions.
type Comparison struct {
	A, B *Row
	Said string // what the document says of the two, "" for nothing
	// Differ are the controls in which they differ, each with both values; Open those that
	// one or both do not specify.
	Differ, Open []string
}

// Equal reports whether all controls are known and the same.
func (c Comparison) Equal() bool { return len(c.Differ) == 0 && len(c.Open) == 0 }

// Verdict says in a line what may be made of the comparison.
func (c Comparison) Verdict() string {
	var parts []string
	if len(c.Differ) > 0 {
		parts = append(parts, "unequal controls: "+strings.Join(c.Differ, "; "))
	}
	if len(c.Open) > 0 {
		parts = append(parts, "not known to be equal: "+strings.Join(c.Open, "; "))
	}
	if parts == nil {
		return "equal controls"
	}
	return strings.Join(parts, ". ")
}

// What must be the same for two results to be compared.
var (
	scoreControls = []string{"pass", "temperature", "top_p", "thinking", "output_tokens_cap", "timeout_seconds", "retry_policy"}
	rateControls  = []string{"cache_state", "input_tokens", "actual_output_tokens", "concurrency", "temperature", "top_p", "thinking", "output_tokens_cap"}
)

// compare holds the controls of two rows against each other.
func compare(a, b *Row) Comparison {
	c := Comparison{A: a, B: b}
	controls := rateControls
	if a.scored() || b.scored() {
		controls = scoreControls
		c.control("benchmark", a.shown("benchmark"), b.shown("benchmark"))
		c.control("total", a.shown("total"), b.shown("total"))
		c.items()
	}
	for _, name := range controls {
		c.control(name, a.shown(name), b.shown(name))
	}
	return c
}

func (c *Comparison) control(name, a, b string) {
	switch {
	case a == NotSpecified || b == NotSpecified:
		c.Open = append(c.Open, fmt.Sprintf("%s (%s / %s)", name, a, b))
	case a != b:
		c.Differ = append(c.Differ, fmt.Sprintf("%s (%s / %s)", name, a, b))
	}
}

// items holds the ids of the items that both were asked against each other, in any order.
func (c *Comparison) items() {
	mine, known := c.A.list("subset_ids")
	theirs, also := c.B.list("subset_ids")
	switch only, other := len(without(mine, theirs)), len(without(theirs, mine)); {
	case !known || !also:
		c.Open = append(c.Open, fmt.Sprintf("subset_ids (%s / %s)", c.A.shown("subset_ids"), c.B.shown("subset_ids")))
	case only > 0 || other > 0:
		c.Differ = append(c.Differ, fmt.Sprintf("subset_ids (%s asked of the first alone, %s of the second)", words.Count(only, "item"), words.Count(other, "item")))
	}
}

// Comparisons returns those that the document asks for, and for each benchmark with several
// first passes each later one against the first.
func (d *Document) Comparisons() []Comparison {
	var list []Comparison
	for _, p := range d.Pairs {
		c := compare(d.row(p.A), d.row(p.B))
		c.Said = p.Said
		list = append(list, c)
	}
	first := map[string]*Row{}
	for _, r := range d.Rows {
		if r.word("pass") != "first" {
			continue
		}
		name := r.word("benchmark")
		if other := first[name]; other != nil && !d.paired(other, r) {
			list = append(list, compare(other, r))
		} else if other == nil {
			first[name] = r
		}
	}
	return list
}

func (d *Document) paired(a, b *Row) bool {
	return slices.ContainsFunc(d.Pairs, func(p Pair) bool {
		return p.A == a.ID && p.B == b.ID || p.A == b.ID && p.B == a.ID
	})
}
