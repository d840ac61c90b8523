package evidence

import (
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"
)

func (r *reader) setup(key, n *yaml.Node) {
	s := &Setup{Name: key.Value, Facts: newFacts(key.Line)}
	r.facts(n, "setup "+key.Value, &s.Facts, nil)
	for _, name := range slices.Sorted(maps.Keys(s.Values)) {
		if f, ok := findField(name); ok && (f.part == result || f.part == scoring) {
			r.faults.add(s.Line, "setup %q has %s, which belongs to a row", s.Name, name)
		}
	}
	r.doc.Setups = append(r.doc.Setups, s)
}

func (r *reader) row(n *yaml.Node) {
	row := &Row{Facts: newFacts(n.Line)}
	r.facts(n, "row", &row.Facts, map[string]func(*yaml.Node){
		"id":       func(n *yaml.Node) { row.ID = r.text(n, "id") },
		"workload": func(n *yaml.Node) { row.Workload = r.text(n, "workload") },
		"setup":    func(n *yaml.Node) { row.setupName = r.text(n, "setup") },
		"imported": func(n *yaml.Node) {
			r.items(n, "imported", func(n *yaml.Node) { row.Imported = append(row.Imported, r.imported(n)) })
		},
	})
	if row.ID == "" || row.ID == NotSpecified || row.Workload == "" {
		r.faults.add(n.Line, "a row needs an id and a workload")
	}
	if row.Kind == Configured {
		r.faults.add(n.Line, "row %q is configured: settings alone belong to a setup, a row has what came of them", row.ID)
	}
	r.doc.Rows = append(r.doc.Rows, row)
}

// imported reads where an import took a row from.
func (r *reader) imported(n *yaml.Node) Imported {
	i := Imported{}
	r.members(n, "imported", map[string]func(*yaml.Node){
		"tool":   func(n *yaml.Node) { i.Tool = r.text(n, "tool") },
		"file":   func(n *yaml.Node) { i.File = r.text(n, "file") },
		"sha256": func(n *yaml.Node) { i.SHA256 = r.sum(n) },
	}, nil)
	if i.Tool == "" || i.File == "" || i.SHA256 == "" {
		r.faults.add(n.Line, "imported needs tool, file and sha256")
	}
	return i
}

func newFacts(line int) Facts { return Facts{Line: line, Values: map[string]*Value{}} }

// facts reads the fields of a row or setup. The kind comes first, wherever it stands: values
// take it over.
func (r *reader) facts(n *yaml.Node, what string, f *Facts, known map[string]func(*yaml.Node)) {
	all := map[string]func(*yaml.Node){
		"kind":   func(*yaml.Node) {},
		"source": func(*yaml.Node) {},
		"network": func(n *yaml.Node) {
			r.members(n, "network", nil, func(key, value *yaml.Node) { r.value(f, "network."+key.Value, text, value) })
		},
	}
	for name, read := range known {
		all[name] = read
	}
	r.origin(n, what, f)
	r.members(n, what, all, func(key, value *yaml.Node) { r.field(f, key, value) })
}

// origin reads the kind and source of all values that have none of their own.
func (r *reader) origin(n *yaml.Node, what string, f *Facts) {
	for i := 0; i+1 < len(n.Content) && n.Kind == yaml.MappingNode; i += 2 {
		switch value := n.Content[i+1]; n.Content[i].Value {
		case "kind":
			f.Kind = r.kind(value)
		case "source":
			f.Source = r.text(value, "source")
		}
	}
	if f.Kind == "" {
		r.faults.add(f.Line, "%s does not say how it is known: kind measured, reported, configured or approximate", what)
	}
	r.checkOrigin(f.Line, what, f.Kind, f.Source)
}

func (r *reader) kind(n *yaml.Node) Kind {
	k := Kind(r.text(n, "kind"))
	if k != "" && !slices.Contains(kinds, k) {
		r.faults.add(n.Line, "kind is %q, want measured, reported, configured or approximate", k)
	}
	return k
}

func (r *reader) checkOrigin(line int, what string, k Kind, source string) {
	switch {
	case k == Reported && source == "":
		r.faults.add(line, "%s is reported: by which source?", what)
	case k == Measured && source != "":
		r.faults.add(line, "%s is measured here and has the source %q: what somebody else measured is reported", what, source)
	}
}

// field reads one field that a row or setup has.
func (r *reader) field(f *Facts, key, value *yaml.Node) {
	name := key.Value
	if known, ok := findField(name); ok && name != "network" {
		r.value(f, name, known.form, value)
		return
	}
	if why := refusal(name); why != "" {
		r.faults.add(key.Line, "%q: %s", name, why)
		return
	}
	if near := meant(name); near != "" {
		r.faults.add(key.Line, "%q is not a field, did you mean %q?", name, near)
		return
	}
	f.Own = append(f.Own, name)
	r.value(f, name, text, value)
}
