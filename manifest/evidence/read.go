package evidence

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"ggufreap/gguf/pattern"
	"ggufreap/manifest"
)

// Read reads a document in YAML or JSON and holds it to the rules. The error is [Faults]
// when something is wrong with it; what is only to be warned of is in the document.
func Read(data []byte) (*Document, error) {
	root, err := parse(data)
	if err != nil {
		return nil, err
	}
	r := &reader{doc: &Document{}}
	if other := r.document(root); other != nil {
		return r.doc, Faults{*other}
	}
	r.doc.link(&r.faults)
	r.doc.check(&r.faults)
	r.faults.sort()
	r.doc.Warnings.sort()
	return r.doc, r.faults.Err()
}

// A reader turns a tree into a document and notes all that is wrong.
type reader struct {
	doc    *Document
	faults Faults
}

// maxRows bounds the rows of a document.
const maxRows = 4096

// document reads the whole. Where it is one of ours of another kind, that is all there is to say
// of it.
func (r *reader) document(root *yaml.Node) *Fault {
	schema := ""
	r.members(root, "the document", map[string]func(*yaml.Node){
		"schema":      func(n *yaml.Node) { schema = r.text(n, "schema") },
		"release":     r.release,
		"sources":     func(n *yaml.Node) { r.named(n, "sources", r.source) },
		"setups":      func(n *yaml.Node) { r.named(n, "setups", r.setup) },
		"rows":        func(n *yaml.Node) { r.items(n, "rows", r.row) },
		"comparisons": func(n *yaml.Node) { r.items(n, "comparisons", r.pair) },
		"notes":       func(n *yaml.Node) { r.items(n, "notes", r.note) },
	}, nil)
	if schema != Schema {
		r.faults.add(root.Line, "schema is %q, want %q", schema, Schema)
	}
	if strings.HasPrefix(schema, "ggufreap/") && !strings.HasPrefix(schema, "ggufreap/evidence/") {
		return &r.faults[len(r.faults)-1]
	}
	return nil
}

// members calls a function for each member of a mapping; other takes the names that none is
// for, which are faults when it is nil.
func (r *reader) members(n *yaml.Node, what string, known map[string]func(*yaml.Node), other func(key, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		r.faults.add(n.Line, "%s is %s, want names with values", what, describe(n))
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if first, twice := seen[key.Value]; twice {
			r.faults.add(key.Line, "%q stands twice, first in line %d", key.Value, first)
			continue
		}
		seen[key.Value] = key.Line
		switch read, ok := known[key.Value]; {
		case key.Kind != yaml.ScalarNode || key.Value == "" || !clean(key.Value):
			r.faults.add(key.Line, "a name in %s is %q, want one of plain letters", what, key.Value)
		case ok:
			read(value)
		case other != nil:
			other(key, value)
		default:
			r.faults.add(key.Line, "%s has %q, want %s", what, key.Value, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
	}
}

// items calls read for each item of a list.
func (r *reader) items(n *yaml.Node, what string, read func(*yaml.Node)) {
	switch {
	case n.Kind != yaml.SequenceNode:
		r.faults.add(n.Line, "%s is %s, want a list", what, describe(n))
	case len(n.Content) > maxRows:
		r.faults.add(n.Line, "%d %s, at most %d are read", len(n.Content), what, maxRows)
	default:
		for _, item := range n.Content {
			read(item)
		}
	}
}

// named calls read for each member of a mapping.
func (r *reader) named(n *yaml.Node, what string, read func(key, value *yaml.Node)) {
	r.members(n, what, nil, read)
}

// describe says what a node is, for an error.
func describe(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Tag == "!!null" || n.Value == "":
		return "empty"
	}
	return fmt.Sprintf("%q", n.Value)
}

// clean reports whether a text can be shown as it is: no control characters, and none that
// turn the order of letters.
func clean(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool {
		return c < 0x20 && c != '\n' || c >= 0x7f && c < 0xa0 || c == 0xfffd ||
			c == 0x061c || c >= 0x200e && c <= 0x200f || c >= 0x202a && c <= 0x202e || c >= 0x2066 && c <= 0x2069 || c == 0xfeff
	})
}

// maxText bounds one text.
const maxText = 4096

// text reads a text that says something.
func (r *reader) text(n *yaml.Node, what string) string {
	s := strings.TrimSpace(n.Value)
	switch {
	case n.Kind != yaml.ScalarNode:
		r.faults.add(n.Line, "%s is %s, want a text", what, describe(n))
	case n.Tag == "!!null" || s == "":
		r.faults.add(n.Line, "%s is empty: leave it out, or write %q", what, NotSpecified)
	case len(s) > maxText:
		r.faults.add(n.Line, "%s has %d bytes, at most %d are read", what, len(s), maxText)
	case !clean(s):
		r.faults.add(n.Line, "%s has characters that do not show, or turn the order of others", what)
	case shrug(s):
		r.faults.add(n.Line, "%s is %q: write %q", what, s, NotSpecified)
	default:
		return s
	}
	return ""
}

// shrug reports whether a text is a way to say that something is not known, other than the
// one that is used everywhere.
func shrug(s string) bool {
	switch strings.ToLower(strings.Trim(s, ". ")) {
	case "unknown", "n/a", "na", "tbd", "todo", "?", "??", "-", "--", "–", "—", "none given", "not known", "unspecified", "not stated", "null", "nil":
		return true
	}
	return s != NotSpecified && strings.EqualFold(s, NotSpecified)
}

// say reads a text that may be not specified, which is "".
func (r *reader) say(n *yaml.Node, what string) string {
	if s := r.text(n, what); s != NotSpecified {
		return s
	}
	return ""
}

func (r *reader) release(n *yaml.Node) {
	r.members(n, "release", map[string]func(*yaml.Node){
		"name": func(n *yaml.Node) { r.doc.Release.Name = r.say(n, "name") },
		"pin_digest": func(n *yaml.Node) {
			if s := r.say(n, "pin_digest"); s != "" && r.digest(n, "pin_digest", s) {
				r.doc.Release.PinDigest = s
			}
		},
	}, nil)
}

func (r *reader) digest(n *yaml.Node, what, s string) bool {
	if _, err := manifest.ParseDigest(s); err != nil {
		r.faults.add(n.Line, "%s: %v", what, err)
		return false
	}
	return true
}

var sha256Form = regexp.MustCompile(`^[0-9a-f]{64}$`)

func (r *reader) sum(n *yaml.Node) string {
	s := r.say(n, "sha256")
	if s != "" && !sha256Form.MatchString(s) {
		r.faults.add(n.Line, "sha256 is %q, want 64 lower-case hexadecimal digits", s)
	}
	return s
}

func (r *reader) source(key, n *yaml.Node) {
	s := &Source{Name: key.Value, line: key.Line}
	r.members(n, "source "+key.Value, map[string]func(*yaml.Node){
		"title":    func(n *yaml.Node) { s.Title = r.say(n, "title") },
		"address":  func(n *yaml.Node) { s.Address = r.say(n, "address") },
		"revision": func(n *yaml.Node) { s.Revision = r.say(n, "revision") },
		"sha256":   func(n *yaml.Node) { s.SHA256 = r.sum(n) },
		"read_on":  func(n *yaml.Node) { s.ReadOn = r.day(n, "read_on", r.say(n, "read_on")) },
	}, nil)
	r.doc.Sources = append(r.doc.Sources, s)
}

var dayForm = pattern.Lazy(`^\d{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01]))?)?$`)

func (r *reader) day(n *yaml.Node, what, s string) string {
	if s != "" && !dayForm().MatchString(s) {
		r.faults.add(n.Line, "%s is %q, want YYYY-MM-DD, or a year and month of it", what, s)
	}
	return s
}

func (r *reader) pair(n *yaml.Node) {
	p := Pair{Line: n.Line}
	var rows []string
	r.members(n, "a comparison", map[string]func(*yaml.Node){
		"rows": func(n *yaml.Node) {
			r.items(n, "rows", func(n *yaml.Node) { rows = append(rows, r.text(n, "a row")) })
		},
		"claim": func(n *yaml.Node) { p.Said = r.say(n, "claim") },
	}, nil)
	if len(rows) != 2 || rows[0] == rows[1] {
		r.faults.add(n.Line, "a comparison is of two rows")
		return
	}
	p.A, p.B = rows[0], rows[1]
	r.doc.Pairs = append(r.doc.Pairs, p)
}

func (r *reader) note(n *yaml.Node) {
	if s := r.text(n, "a note"); s != "" {
		r.doc.Notes = append(r.doc.Notes, Note{n.Line, s})
	}
}
