package jsondoc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"strconv"
)

// maxDescribed bounds the text that [Node.Describe] shows, in bytes.
const maxDescribed = 80

// A Node is one JSON value: a view of its bytes in a document that [Parse] has checked.
type Node struct {
	Kind byte   // '{', '[', '"', '0', 't' (true or false), 'n' (null)
	raw  []byte // as written; nil stands for an empty object or list
}

// A Member is a key of an object with its value.
type Member struct {
	Key   string
	Value *Node
}

// newNode returns the value that is written so.
func newNode(raw []byte) *Node {
	switch kind := raw[0]; kind {
	case '{', '[', '"', 't', 'n':
		return &Node{kind, raw}
	case 'f':
		return &Node{'t', raw}
	}
	return &Node{'0', raw}
}

// Members yields the members of an object, in order.
func (n *Node) Members() iter.Seq[Member] {
	return func(yield func(Member) bool) {
		if n.Kind != '{' {
			return
		}
		for c := newCursor(n.raw); c.more(); {
			key, value := c.next(), c.next()
			if !yield(Member{unquote(key), newNode(value)}) {
				return
			}
		}
	}
}

// Items yields the elements of a list with their places.
func (n *Node) Items() iter.Seq2[int, *Node] {
	return func(yield func(int, *Node) bool) {
		if n.Kind != '[' {
			return
		}
		c := newCursor(n.raw)
		for i := 0; c.more(); i++ {
			if !yield(i, newNode(c.next())) {
				return
			}
		}
	}
}

// Get returns the member with the given key, or nil. It looks through the object anew.
func (n *Node) Get(key string) *Node {
	if n.Kind != '{' {
		return nil
	}
	for c := newCursor(n.raw); c.more(); {
		if name, value := c.next(), c.next(); unquote(name) == key {
			return newNode(value)
		}
	}
	return nil
}

// Text returns a string without its quotes, a number or word as written, and "" for an
// object or a list.
func (n *Node) Text() string {
	switch {
	case n.Kind == '{' || n.Kind == '[':
		return ""
	case n.Kind == '"':
		return unquote(n.raw)
	}
	return string(n.raw)
}

// unquote returns what a string says.
func unquote(raw []byte) string {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return string(raw) // Parse lets no such string pass
	}
	return s
}

// Int reads a number that is written without fraction or exponent.
func (n *Node) Int() (int, bool) {
	if n == nil || n.Kind != '0' {
		return 0, false
	}
	i, err := strconv.Atoi(string(n.raw))
	return i, err == nil && string(n.raw) != "-0"
}

// Float reads a number. One that is too large is not a number.
func (n *Node) Float() (float64, bool) {
	if n == nil || n.Kind != '0' {
		return 0, false
	}
	x, err := strconv.ParseFloat(string(n.raw), 64)
	return x, err == nil && !math.IsInf(x, 0)
}

// Describe names the value in a message.
func (n *Node) Describe() string {
	switch {
	case n == nil:
		return "nothing"
	case n.Kind == '{':
		return "an object"
	case n.Kind == '[':
		return "a list"
	case n.Kind == '"':
		return describeText(n.Text())
	case len(n.raw) > maxDescribed:
		return fmt.Sprintf("a number of %d digits", len(n.raw))
	}
	return n.Text()
}

func describeText(s string) string {
	if len(s) > maxDescribed {
		return fmt.Sprintf("a string of %d bytes", len(s))
	}
	return strconv.Quote(s)
}

// A cursor walks over what stands between the brackets of sound JSON.
type cursor struct{ rest []byte }

func newCursor(raw []byte) *cursor {
	if len(raw) == 0 {
		return &cursor{}
	}
	return &cursor{trimSeparators(raw[1 : len(raw)-1])}
}

func (c *cursor) more() bool { return len(c.rest) > 0 }

// next returns one value as it is written.
func (c *cursor) next() []byte {
	raw := c.rest[:valueLength(c.rest)]
	c.rest = trimSeparators(c.rest[len(raw):])
	return raw
}

// trimSeparators cuts off what stands between values.
func trimSeparators(data []byte) []byte { return bytes.TrimLeft(data, " \t\r\n,:") }

// valueLength returns how many bytes the value takes that data, which is sound JSON,
// begins with.
func valueLength(data []byte) int {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		case '"':
			i += stringLength(data[i:]) - 1
			if depth == 0 {
				return i + 1
			}
		default:
			if depth == 0 {
				return scalarLength(data)
			}
		}
	}
	return len(data)
}

func stringLength(data []byte) int {
	for i := 1; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(data)
}

func scalarLength(data []byte) int {
	if end := bytes.IndexAny(data, " \t\r\n,]}"); end >= 0 {
		return end
	}
	return len(data)
}
