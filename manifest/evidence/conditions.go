package evidence

import (
	"slices"
	"strings"
)

// conditions returns a table for each set of conditions that rows ran under, and for each
// setup that no row has. All fields of the format are there, specified or not.
func (d *Document) conditions() []Table {
	var list []Table
	used := map[*Setup]bool{}
	for _, group := range d.grouped() {
		used[group[0].Setup] = true
		list = append(list, conditionTable("Conditions of "+rowNames(group), group[0]))
	}
	for _, s := range d.Setups {
		if !used[s] && s.says() {
			list = append(list, conditionTable("Setup "+s.Name+", which no row ran under", &Row{Setup: s, Facts: Facts{Kind: s.Kind, Source: s.Source}}))
		}
	}
	return list
}

// grouped puts rows together of which all conditions are the same.
func (d *Document) grouped() [][]*Row {
	var groups [][]*Row
	at := map[string]int{}
	for _, r := range d.Rows {
		key := ""
		for _, cells := range conditionTable("", r).Rows {
			key += strings.Join(cells, "\x00") + "\x01"
		}
		if i, ok := at[key]; ok {
			groups[i] = append(groups[i], r)
			continue
		}
		at[key] = len(groups)
		groups = append(groups, []*Row{r})
	}
	return groups
}

func rowNames(rows []*Row) string {
	names := make([]string, len(rows))
	for i, r := range rows {
		names[i] = r.ID
	}
	if len(names) == 1 {
		return "row " + names[0]
	}
	return "rows " + strings.Join(names, ", ")
}

// shownWithRate are the conditions that stand beside a rate in its table.
var shownWithRate = map[string]bool{"input_tokens": true, "actual_output_tokens": true, "concurrency": true, "repetitions": true, "cache_state": true}

// rated reports whether the row has a rate, and thereby a table with the conditions of it.
func (r *Row) rated() bool {
	return slices.ContainsFunc(rates, func(x rate) bool { return r.said(x.field) })
}

func conditionTable(title string, r *Row) Table {
	t := Table{Title: title, Columns: []string{"field", "value", "known"}}
	add := func(name string) {
		v := r.Value(name)
		if v == nil || len(v.Statements) == 0 {
			t.Rows = append(t.Rows, []string{name, NotSpecified, NotSpecified})
			return
		}
		for _, s := range v.Statements {
			t.Rows = append(t.Rows, []string{name, s.shown(s.Kind, s.Source), s.Kind.words(s.Source)})
		}
	}
	for _, f := range fields {
		switch {
		case f.name == "network":
			for _, name := range r.networkNames() {
				add(name)
			}
		case (f.part == condition || f.part == setting) && !(shownWithRate[f.name] && r.rated()):
			add(f.name)
		}
	}
	for _, name := range r.ownNames() {
		add(name)
	}
	return t
}

// networkNames returns the names of the network settings, or that of all when there are none.
func (r *Row) networkNames() []string {
	var names []string
	for _, f := range r.facts() {
		for name := range f.Values {
			if strings.HasPrefix(name, "network.") {
				names = append(names, name)
			}
		}
	}
	if names == nil {
		return []string{"network"}
	}
	slices.Sort(names)
	return names
}

func (r *Row) ownNames() []string {
	var names []string
	for _, f := range r.facts() {
		names = append(names, f.Own...)
	}
	return names
}

// facts returns those of the row's setup and of the row.
func (r *Row) facts() []Facts {
	if r.Setup == nil {
		return []Facts{r.Facts}
	}
	return []Facts{r.Setup.Facts, r.Facts}
}
