package evidence

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"ggufreap/gguf/pattern"
	"ggufreap/gguf/words"
)

// value reads a field: a plain value, one with how it is known, or a list of statements that
// differ.
func (r *reader) value(f *Facts, name string, as form, n *yaml.Node) {
	v := &Value{}
	f.Values[name] = v
	if n.Kind == yaml.ScalarNode && n.Value == NotSpecified {
		return
	}
	if n.Kind != yaml.SequenceNode || as == ids && !statements(n) {
		r.statement(f, name, as, n, v)
		return
	}
	for _, item := range n.Content {
		if item.Kind != yaml.MappingNode {
			r.faults.add(item.Line, "%s has several values: each needs a source, as {value: ..., source: ...}", name)
			continue
		}
		r.statement(f, name, as, item, v)
	}
	r.checkStatements(n, name, v)
}

// statements reports whether a list is one of statements, not of ids.
func statements(n *yaml.Node) bool {
	return len(n.Content) > 0 && n.Content[0].Kind == yaml.MappingNode
}

// checkStatements wants those of one field to differ in what they say and in who says it.
func (r *reader) checkStatements(n *yaml.Node, name string, v *Value) {
	if len(n.Content) < 2 {
		r.faults.add(n.Line, "%s is a list of %s, which keeps several that differ", name, words.Count(len(n.Content), "statement"))
	}
	if f, ok := findField(name); ok && (f.part == result || f.part == scoring || name == "cache_state") {
		r.faults.add(n.Line, "%s has several values: give each a row of its own", name)
	}
	for _, s := range v.Statements {
		if s.Source == "" {
			r.faults.add(s.Line, "%s has several values: this one needs a source", name)
		}
	}
}

// statement reads one value with how it is known.
func (r *reader) statement(f *Facts, name string, as form, n *yaml.Node, v *Value) {
	s := Statement{Line: n.Line, Source: f.Source}
	value := n
	var unit, convention string
	if n.Kind == yaml.MappingNode {
		value = nil
		own := ""
		r.members(n, name, map[string]func(*yaml.Node){
			"value":      func(n *yaml.Node) { value = n },
			"label":      func(n *yaml.Node) { s.Label = r.text(n, "label") },
			"kind":       func(n *yaml.Node) { s.Kind = r.kind(n) },
			"source":     func(n *yaml.Node) { own = r.text(n, "source") },
			"method":     func(n *yaml.Node) { s.Method = r.text(n, "method") },
			"unit":       func(n *yaml.Node) { unit = r.text(n, "unit") },
			"convention": func(n *yaml.Node) { convention = r.text(n, "convention") },
			"spread":     func(n *yaml.Node) { s.Spread = r.say(n, "spread") },
			"note":       func(n *yaml.Node) { s.Note = r.say(n, "note") },
		}, nil)
		if own != "" {
			s.Source = own
		} else if s.Kind == Measured || s.Kind == Configured {
			s.Source = ""
		}
	}
	s.Kind = r.kindOf(f, name, s)
	switch {
	case value == nil && s.Label == "":
		r.faults.add(n.Line, "%s has no value", name)
		return
	case value != nil:
		r.read(&s, name, as, value, unit, convention)
	}
	r.checkStatement(s, name, as)
	v.Statements = append(v.Statements, s)
}

// kindOf settles how a value is known that does not say it. Settings of what was measured
// here were configured here.
func (r *reader) kindOf(f *Facts, name string, s Statement) Kind {
	if s.Kind != "" {
		return s.Kind
	}
	if s.Source != f.Source && (f.Kind == Measured || f.Kind == Configured) {
		return Reported
	}
	if known, ok := findField(name); ok && known.part == setting && f.Kind == Measured {
		return Configured
	}
	return f.Kind
}

func (r *reader) checkStatement(s Statement, name string, as form) {
	r.checkOrigin(s.Line, name, s.Kind, s.Source)
	known, _ := findField(name)
	switch {
	case s.Kind == Configured && known.part == result:
		r.faults.add(s.Line, "%s is a result, which cannot be configured", name)
	case s.Kind == Approximate && (name == "correct" || name == "total"):
		r.faults.add(s.Line, "%s is a count, which cannot be approximate", name)
	case s.Label != "" && s.Text == "" && (known.part == result || known.part == scoring):
		r.faults.add(s.Line, "%s has a label and no value", name)
	case name == "peak_runtime_RAM" && s.Method == "":
		r.faults.add(s.Line, "peak_runtime_RAM does not say how it was found: give the method, or %q; memory held at some time is occupied_RAM", NotSpecified)
	}
}

var (
	integerForm = pattern.Lazy(`^(0|[1-9][0-9]{0,17})$`)
	numberForm  = pattern.Lazy(`^-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,17})?([eE][-+]?[0-9]{1,3})?$`)
)

// read reads the value itself.
func (r *reader) read(s *Statement, name string, as form, n *yaml.Node, unit, convention string) {
	if (unit != "" || convention != "") && as != bytesize {
		r.faults.add(n.Line, "%s has a unit in its name", name)
	}
	if as == ids {
		s.IDs = r.ids(n, name)
		return
	}
	text := r.text(n, name)
	if text == "" {
		return
	}
	if as == form("text") {
		text = conventional(text)
	}
	switch s.Text = text; as {
	case integer:
		r.integer(s, name, n)
	case number:
		if !numberForm().MatchString(text) {
			r.faults.add(n.Line, "%s is %q, want a number; what a source calls it is a label", name, text)
		}
	case bytesize:
		r.size(s, name, n, unit, convention)
	case digest:
		r.digest(n, name, text)
	case day:
		r.day(n, name, text)
	}
	r.choice(name, n, text)
}

var mixedSize = pattern.Lazy(`[0-9] ?(kB|KB|MB|GB|TB)\b`)

// conventional says in a free text of each size that could be in powers of 1000 or of 1024 that
// this is not specified, unless the text says it itself. A rate is left alone.
func conventional(text string) string {
	if strings.Contains(text, "convention") || strings.Contains(text, "powers of") {
		return text
	}
	var b strings.Builder
	done := 0
	for _, at := range mixedSize().FindAllStringIndex(text, -1) {
		if !strings.HasPrefix(text[at[1]:], "/") {
			b.WriteString(text[done:at[1]] + " (convention not specified)")
			done = at[1]
		}
	}
	return b.String() + text[done:]
}

func (r *reader) integer(s *Statement, name string, n *yaml.Node) {
	if !integerForm().MatchString(s.Text) {
		r.faults.add(n.Line, "%s is %q, want a whole number in digits; what a source calls it is a label", name, s.Text)
		return
	}
	s.count, _ = strconv.ParseInt(s.Text, 10, 64)
	s.hasCount = true
	s.Text = words.Group(s.count)
}

// choice holds fields to the few words that they can have.
func (r *reader) choice(name string, n *yaml.Node, text string) {
	switch {
	case name == "pass" && text != "first" && text != "retry":
		r.faults.add(n.Line, "pass is %q, want first or retry: what is made of several passes is computed, never entered", text)
	case name == "cache_state" && text != "cold" && text != "warm":
		r.faults.add(n.Line, "cache_state is %q, want cold or warm: they are different metrics", text)
	}
}

// ids reads a list of ids, each of which stands once.
func (r *reader) ids(n *yaml.Node, name string) []string {
	list := []string{}
	if n.Kind != yaml.SequenceNode {
		r.faults.add(n.Line, "%s is %s, want a list of ids", name, describe(n))
		return list
	}
	seen := map[string]bool{}
	for _, item := range n.Content {
		id := r.text(item, name)
		if id != "" && seen[id] {
			r.faults.add(item.Line, "%s has %q twice", name, id)
		}
		seen[id] = true
		list = append(list, id)
	}
	return list
}
