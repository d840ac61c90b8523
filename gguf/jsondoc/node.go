package jsondoc

import (
	"bytes"
	"fmt"
	"iter"
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// maxDescribed bounds the text that [Node.Describe] shows, in bytes.
const maxDescribed = 80

// A Node is one JSON value: a view of its bytes in a document that [Parse] has checked.
type Node struct {
	Kind byte   // '{', '[', '"', '0', 't' (true or false), 'n' (null)
	raw  []byte // as written
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
		c := newCursor(n.raw)
		for c.more() {
			if key := c.key(); !yield(Member{key, newNode(c.next())}) {
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
	for m := range n.Members() {
		if m.Key == key {
			return m.Value
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
	s, _ := jsontext.AppendUnquote(nil, raw) // Parse lets no broken string pass
	return string(s)
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

// A cursor walks over what stands between the brackets of a value that Parse has checked.
type cursor struct {
	*jsontext.Decoder
	raw []byte
}

func newCursor(raw []byte) cursor {
	c := cursor{jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowDuplicateNames(true)), raw}
	c.ReadToken() // the bracket
	return c
}

// more reports whether the end is not reached.
func (c cursor) more() bool {
	kind := c.PeekKind()
	return kind != '}' && kind != ']' && kind != jsontext.KindInvalid
}

// key returns the next key.
func (c cursor) key() string {
	token, _ := c.ReadToken()
	return token.String()
}

// next returns the next value as it is written.
func (c cursor) next() []byte {
	value, _ := c.ReadValue()
	end := int(c.InputOffset())
	return c.raw[end-len(value) : end]
}
