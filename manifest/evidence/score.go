package evidence

import (
	"fmt"
	"slices"
	"strings"

	"ggufreap/gguf/words"
)

// scored reports whether the row is a pass of a benchmark.
func (r *Row) scored() bool {
	return r.said("benchmark") || r.said("correct") || r.said("total") || r.said("pass")
}

// failures is how many items a pass did not get right, time outs among them.
func (r *Row) failures() (n int64, known bool) {
	total, ok := r.number("total")
	correct, known := r.number("correct")
	return total - correct, ok && known
}

// missed returns the ids of those items.
func (r *Row) missed() (ids []string, known bool) {
	failed, f := r.list("failed_ids")
	timedOut, t := r.list("timed_out_ids")
	return slices.Concat(failed, timedOut), f && t
}

// checkPass holds a pass to what a score needs: a denominator and ids.
func (d *Document) checkPass(r *Row, fs *Faults) {
	if !r.scored() {
		return
	}
	for _, name := range []string{"benchmark", "pass", "total", "correct"} {
		if _, ok := r.one(name); !ok {
			fs.add(r.Line, "row %q is a score without %s", r.ID, name)
		}
	}
	for _, name := range []string{"subset_ids", "failed_ids", "timed_out_ids"} {
		if !r.said(name) {
			fs.add(r.Line, "row %q is a score without %s: list them, or write %q", r.ID, name, NotSpecified)
		}
	}
	r.checkCounts(fs)
	r.checkIDs(fs)
	switch pass := r.word("pass"); {
	case pass == "first" && r.said("retries"):
		fs.add(r.Line, "row %q is a first pass and retries %q", r.ID, r.word("retries"))
	case pass == "retry":
		d.checkRetry(r, fs)
	}
}

func (r *Row) checkCounts(fs *Faults) {
	total, ok := r.number("total")
	correct, known := r.number("correct")
	switch {
	case !ok || !known:
	case total == 0:
		fs.add(r.Line, "row %q has a total of 0", r.ID)
	case correct > total:
		fs.add(r.Line, "row %q has %d of %d correct", r.ID, correct, total)
	}
}

// checkIDs holds the lists of ids against the counts, and against each other.
func (r *Row) checkIDs(fs *Faults) {
	failures, counted := r.failures()
	total, _ := r.number("total")
	missed, all := r.missed()
	switch n := int64(len(missed)); {
	case !counted:
	case all && n != failures:
		fs.add(r.Line, "row %q lists %d items that failed or timed out, but %d of %d were not correct", r.ID, n, failures, total)
	case n > failures:
		fs.add(r.Line, "row %q lists %d items that failed or timed out, but only %d of %d were not correct", r.ID, n, failures, total)
	}
	if twice := firstTwice(missed); twice != "" {
		fs.add(r.Line, "row %q: item %q has both failed and timed out", r.ID, twice)
	}
	subset, known := r.list("subset_ids")
	if !known {
		return
	}
	if counted && int64(len(subset)) != total {
		fs.add(r.Line, "row %q lists %d items and has a total of %d", r.ID, len(subset), total)
	}
	if stray := without(missed, subset); len(stray) > 0 {
		fs.add(r.Line, "row %q: items %s are not in its subset", r.ID, strings.Join(stray, ", "))
	}
}

func firstTwice(list []string) string {
	seen := map[string]bool{}
	for _, s := range list {
		if seen[s] {
			return s
		}
		seen[s] = true
	}
	return ""
}

// without returns the items of a list that another one lacks.
func without(list, other []string) []string {
	has := map[string]bool{}
	for _, s := range other {
		has[s] = true
	}
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return has[s] })
}

// checkRetry wants a retry to name the pass that it retries, to cover only what failed
// there, and to say what was changed for it.
func (d *Document) checkRetry(r *Row, fs *Faults) {
	if !r.said("limits_changed") {
		fs.add(r.Line, "row %q is a retry: limits_changed says what it was allowed beyond the pass before it, or none", r.ID)
	}
	first := r.first
	switch {
	case first == nil:
		fs.add(r.Line, "row %q is a retry of %q, which is no other row", r.ID, r.word("retries"))
		return
	case first.word("benchmark") != r.word("benchmark"):
		fs.add(r.Line, "row %q is of the benchmark %q and retries %q, which is of %q", r.ID, r.word("benchmark"), first.ID, first.word("benchmark"))
	}
	total, _ := r.number("total")
	if failures, ok := first.failures(); ok && total > failures {
		fs.add(r.Line, "row %q retries %d items, but only %d of %q were not correct: is %q a first pass, or what came of the retries too?",
			r.ID, total, failures, first.ID, first.ID)
	}
	subset, known := r.list("subset_ids")
	if missed, all := first.missed(); known && all {
		if stray := without(subset, missed); len(stray) > 0 {
			fs.add(r.Line, "row %q retries the items %s, which %q lists neither as failed nor as timed out", r.ID, strings.Join(stray, ", "), first.ID)
		}
	}
}

// checkRetries wants retries to form chains that can be added up: no cycles, and no item
// retried twice from the same pass.
func (d *Document) checkRetries(fs *Faults) {
	all := map[*Row]*retried{}
	for _, r := range d.Rows {
		if r.first == nil {
			continue
		}
		if all[r.first] == nil {
			all[r.first] = &retried{items: map[string]*Row{}}
		}
		if other := all[r.first].add(r); other != nil {
			fs.add(r.Line, "rows %q and %q both retry %q, and not plainly different items: what was tried a third time retries the second", other.ID, r.ID, r.first.ID)
		}
		if r.circular(len(d.Rows)) {
			fs.add(r.Line, "row %q retries itself by way of others", r.ID)
		}
	}
}

// retried are the items of a pass that were tried again.
type retried struct {
	items map[string]*Row
	blind *Row // a retry that does not list its items
	some  *Row
}

// add takes note of a retry and returns another one that may have had the same items.
func (t *retried) add(r *Row) *Row {
	ids, known := r.list("subset_ids")
	other := t.blind
	if !known {
		other, t.blind = t.some, r
	}
	for _, id := range ids {
		if t.items[id] != nil {
			other = t.items[id]
		}
		t.items[id] = r
	}
	t.some = r
	return other
}

// circular reports whether the way back from a retry, which has at most so many steps, comes
// to itself.
func (r *Row) circular(steps int) bool {
	at := r.first
	for range steps {
		if at == nil || at == r {
			break
		}
		at = at.first
	}
	return at == r
}

// A Composite is what a first pass and its retries came to together. It is computed.
type Composite struct {
	First   *Row
	Retries []*Row // in the order of the document
	Correct int64
	Total   int64
}

// Composites returns one for each first pass that was retried.
func (d *Document) Composites() []Composite {
	var list []Composite
	for _, r := range d.Rows {
		if r.word("pass") != "first" {
			continue
		}
		c := Composite{First: r}
		c.Total, _ = r.number("total")
		c.Correct, _ = r.number("correct")
		chain := map[*Row]bool{r: true}
		for grew := true; grew; {
			grew = d.extend(&c, chain)
		}
		if len(c.Retries) > 0 {
			list = append(list, c)
		}
	}
	return list
}

// extend adds the retries of what is in the chain, and reports whether there were any.
func (d *Document) extend(c *Composite, chain map[*Row]bool) bool {
	before := len(c.Retries)
	for _, r := range d.Rows {
		if r.first != nil && chain[r.first] && !chain[r] {
			chain[r] = true
			correct, _ := r.number("correct")
			c.Correct += correct
			c.Retries = append(c.Retries, r)
		}
	}
	return len(c.Retries) > before
}

// String gives the history with the result: it is never shown without.
func (c Composite) String() string {
	var b strings.Builder
	first, _ := c.First.number("correct")
	fmt.Fprintf(&b, "%s: %s of %s in the first pass", c.First.word("benchmark"), words.Group(first), words.Group(c.Total))
	for _, r := range c.Retries {
		correct, _ := r.number("correct")
		total, _ := r.number("total")
		fmt.Fprintf(&b, "; %s of %s right in a retry (limits changed: %s)", words.Group(correct), r.retried(total), r.shown("limits_changed"))
	}
	fmt.Fprintf(&b, "; %s of %s in the end, which is not a first pass", words.Group(c.Correct), words.Group(c.Total))
	return b.String()
}

// retried says how many items of what kind were tried again.
func (r *Row) retried(total int64) string {
	ids, known := r.list("subset_ids")
	for _, kind := range []struct{ field, word string }{{"timed_out_ids", "timed-out"}, {"failed_ids", "failed"}} {
		if list, listed := r.first.list(kind.field); known && listed && len(without(ids, list)) == 0 {
			return words.Group(total) + " " + kind.word + " items"
		}
	}
	return words.Count(total, "item")
}
