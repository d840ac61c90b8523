package jsondoc

import (
	"slices"
	"strconv"
)

// Fields takes members out of objects and reports what is wrong with them. What it cannot
// return it reports, and returns an empty value in its place. The path of an object stands
// before the keys of its members in a report, such as "source.".
type Fields struct {
	Fault func(where, format string, args ...any)
}

// Known reports the members that have none of the given names.
func (f Fields) Known(n *Node, path string, names ...string) {
	for m := range n.Members() {
		if !slices.Contains(names, m.Key) {
			f.Fault(path+m.Key, "unknown field")
		}
	}
}

// Text returns a member that is a string.
func (f Fields) Text(n *Node, key, path string) string {
	v := n.Get(key)
	if v == nil || v.Kind != '"' {
		f.Want(v, path+key, "a string")
		return ""
	}
	return v.Text()
}

// TextOrNull returns a member that is a string; "" for null.
func (f Fields) TextOrNull(n *Node, key, path string) string {
	if v := n.Get(key); v != nil && v.Kind == 'n' {
		return ""
	}
	return f.Text(n, key, path)
}

// Whole returns a member that is a whole number from 0 up.
func (f Fields) Whole(n *Node, key, path string) int {
	v := n.Get(key)
	i, ok := v.Int()
	if !ok || i < 0 {
		f.Want(v, path+key, "a whole number")
	}
	return i
}

// Object returns a member that is an object.
func (f Fields) Object(n *Node, key, path string) *Node {
	return f.bracket(n, key, path, "{}", "an object")
}

// List returns a member that is a list.
func (f Fields) List(n *Node, key, path string) *Node { return f.bracket(n, key, path, "[]", "a list") }

func (f Fields) bracket(n *Node, key, path, empty, what string) *Node {
	v := n.Get(key)
	if v == nil || v.Kind != empty[0] {
		f.Want(v, path+key, what)
		return newNode([]byte(empty))
	}
	return v
}

// Same wants a member, which may be missing, to be the model's number.
func (f Fields) Same(n *Node, key, path string, want int) {
	v := n.Get(key)
	if v == nil {
		return
	}
	if got, ok := v.Int(); !ok || got != want {
		f.Fault(path+key, "%s, the model has %d", v.Describe(), want)
	}
}

// Want reports that a value, nil for a missing one, is not what it should be.
func (f Fields) Want(v *Node, where, what string) {
	if v == nil {
		f.Fault(where, "missing, want %s", what)
		return
	}
	f.Fault(where, "%s, want %s", v.Describe(), what)
}

// Decimal reads a number in plain decimal: no sign, no leading zero, no spaces.
func Decimal(s string) (int, bool) {
	n, err := strconv.ParseUint(s, 10, 31)
	return int(n), err == nil && strconv.FormatUint(n, 10) == s
}
