package evidence

import (
	"maps"
	"slices"
)

// link finds what names of setups, sources and rows stand for.
func (d *Document) link(fs *Faults) {
	d.byID = map[string]*Row{}
	for _, r := range d.Rows {
		if first := d.byID[r.ID]; first != nil && r.ID != "" {
			fs.add(r.Line, "row %q stands twice, first in line %d", r.ID, first.Line)
		}
		d.byID[r.ID] = r
		d.linkSetup(r, fs)
		d.linkSources(r.Facts, fs)
	}
	for _, s := range d.Setups {
		d.linkSources(s.Facts, fs)
	}
	for _, r := range d.Rows {
		if other := d.row(r.word("retries")); r.word("pass") == "retry" && other != r {
			r.first = other
		}
	}
	for _, p := range d.Pairs {
		for _, id := range []string{p.A, p.B} {
			if d.row(id) == nil {
				fs.add(p.Line, "no row %q to compare", id)
			}
		}
	}
	for _, s := range d.Sources {
		if s.Address == "" {
			fs.add(s.line, "source %q has no address", s.Name)
		}
	}
}

func (d *Document) linkSetup(r *Row, fs *Faults) {
	if r.setupName == "" {
		return
	}
	i := slices.IndexFunc(d.Setups, func(s *Setup) bool { return s.Name == r.setupName })
	if i < 0 {
		fs.add(r.Line, "row %q has the setup %q, which is not there", r.ID, r.setupName)
		return
	}
	r.Setup = d.Setups[i]
	for _, name := range slices.Sorted(maps.Keys(r.Values)) {
		if r.Setup.Values[name] != nil {
			fs.add(r.Line, "row %q and its setup %q both state %s: where they differ, both belong into one list with their sources", r.ID, r.setupName, name)
		}
	}
}

func (d *Document) linkSources(f Facts, fs *Faults) {
	if f.Source != "" && d.source(f.Source) == nil {
		fs.add(f.Line, "no source %q", f.Source)
	}
	for _, name := range slices.Sorted(maps.Keys(f.Values)) {
		for _, s := range f.Values[name].Statements {
			if s.Source != "" && s.Source != f.Source && d.source(s.Source) == nil {
				fs.add(s.Line, "no source %q", s.Source)
			}
		}
	}
}

// check holds the document to the rules that are about more than one value.
func (d *Document) check(fs *Faults) {
	for _, r := range d.Rows {
		r.checkResults(fs)
		d.checkPass(r, fs)
		d.checkControl(r, fs)
		d.checkContext(r)
	}
	d.checkRetries(fs)
	d.checkClaims()
	switch {
	case len(d.Rows) == 0 && len(d.Setups) == 0:
		fs.add(0, "neither rows nor setups: nothing is stated")
	case d.Blank():
		d.Warnings.add(0, "it is not filled in: there are no rows, and no setup says anything")
	}
}

// Blank reports whether the document is a template that nobody filled in.
func (d *Document) Blank() bool {
	return len(d.Rows) == 0 && !slices.ContainsFunc(d.Setups, func(s *Setup) bool { return s.says() })
}

// says reports whether any value is specified.
func (f Facts) says() bool {
	for _, v := range f.Values {
		if len(v.Statements) > 0 {
			return true
		}
	}
	return false
}

// checkResults wants a row to have come to something.
func (r *Row) checkResults(fs *Faults) {
	for _, f := range fields {
		if f.part == result && r.said(f.name) {
			return
		}
	}
	fs.add(r.Line, "row %q has no result: conditions alone belong to a setup", r.ID)
}

// checkContext warns of a prompt that its own limit does not allow.
func (d *Document) checkContext(r *Row) {
	input, known := r.number("input_tokens")
	limit, limited := r.number("context_limit_tokens")
	if known && limited && input > limit {
		d.Warnings.add(r.Line, "row %q has %d input tokens, its context limit is %d", r.ID, input, limit)
	}
}

// checkControl wants the control of a row to be one.
func (d *Document) checkControl(r *Row, fs *Faults) {
	id := r.word("unpruned_control")
	if id == "" {
		return
	}
	other := d.row(id)
	if other == nil || other == r {
		fs.add(r.Line, "row %q has the control %q, which is no other row", r.ID, id)
		return
	}
	if c := compare(r, other); !c.Equal() {
		d.Warnings.add(r.Line, "row %q and its control %q do not match: %s", r.ID, id, c.Verdict())
	}
}

// matched reports whether the row has an unpruned control under the same conditions.
func (d *Document) matched(r *Row) bool {
	other := d.row(r.word("unpruned_control"))
	return other != nil && other != r && compare(r, other).Equal()
}

// TestedContext returns the row with the most input tokens that were counted, nil when none
// has any. A configured limit is not a tested one.
func (d *Document) TestedContext() (r *Row, tokens int64) {
	for _, row := range d.Rows {
		s, _ := row.one("input_tokens")
		if s.hasCount && s.count > tokens && (s.Kind == Measured || s.Kind == Reported) {
			r, tokens = row, s.count
		}
	}
	return r, tokens
}
