package reap

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"
)

// The JSON documents of strangers are read into a tree first: encoding/json would
// take the last of two equal keys, ignore letter case, and drop what it does not know.

// maxDepth is deeper than any document of this package or of those it reads.
const maxDepth = 16

// A node is one JSON value.
type node struct {
	kind    byte // '{', '[', '"', '0', 't' (true or false), 'n' (null)
	text    string
	members []member // of an object, in order
	items   []*node  // of an array
}

type member struct {
	key   string
	value *node
}

// get returns the member with the given key, or nil.
func (n *node) get(key string) *node {
	for _, m := range n.members {
		if m.key == key {
			return m.value
		}
	}
	return nil
}

// integer reads a number that is written without fraction or exponent.
func (n *node) integer() (int, bool) {
	if n == nil || n.kind != '0' {
		return 0, false
	}
	i, err := strconv.Atoi(n.text)
	return i, err == nil && n.text != "-0"
}

// describe names the value in a message.
func (n *node) describe() string {
	switch n.kind {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return strconv.Quote(n.text)
	}
	return n.text
}

// parseJSON reads one JSON value and nothing after it. Keys must not repeat.
func parseJSON(data []byte) (*node, error) {
	if !utf8.Valid(data) {
		return nil, fmt.Errorf("not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	p := jsonParser{d}
	n, err := p.value(0)
	if err != nil {
		return nil, fmt.Errorf("JSON, byte %d: %w", d.InputOffset(), noEOF(err))
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("JSON, byte %d: more text after the document", d.InputOffset())
	}
	return n, nil
}

func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

type jsonParser struct{ *json.Decoder }

func (p jsonParser) value(depth int) (*node, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nested deeper than %d", maxDepth)
	}
	token, err := p.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case json.Delim:
		if t == '{' {
			return p.object(depth)
		}
		return p.list(depth)
	case string:
		return &node{kind: '"', text: t}, nil
	case json.Number:
		return &node{kind: '0', text: t.String()}, nil
	case bool:
		return &node{kind: 't', text: strconv.FormatBool(t)}, nil
	}
	return &node{kind: 'n', text: "null"}, nil
}

func (p jsonParser) object(depth int) (*node, error) {
	n := &node{kind: '{'}
	seen := map[string]bool{}
	for p.More() {
		token, err := p.Token()
		if err != nil {
			return nil, err
		}
		key := token.(string) // the decoder lets nothing else stand here
		if seen[key] {
			return nil, fmt.Errorf("key %q stands twice", key)
		}
		seen[key] = true
		value, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		n.members = append(n.members, member{key, value})
	}
	_, err := p.Token() // the closing brace
	return n, err
}

func (p jsonParser) list(depth int) (*node, error) {
	n := &node{kind: '['}
	for p.More() {
		item, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		n.items = append(n.items, item)
	}
	_, err := p.Token() // the closing bracket
	return n, err
}
