// Package jsondoc reads the JSON documents of strangers strictly and writes our own in
// one form.
//
// A document is read into a tree first: encoding/json would take the last of two equal
// keys, ignore letter case, and drop what it does not know.
package jsondoc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"unicode/utf8"
)

// maxDepth is more than any plan or score file needs.
const maxDepth = 16

// maxDescribed bounds the text that [Node.Describe] shows, in bytes.
const maxDescribed = 80

// A Node is one JSON value.
type Node struct {
	Kind    byte     // '{', '[', '"', '0', 't' (true or false), 'n' (null)
	Text    string   // of a string, without quotes; else as written
	Members []Member // of an object, in order
	Items   []*Node  // of an array
}

// A Member is a key of an object with its value.
type Member struct {
	Key   string
	Value *Node
}

// Get returns the member with the given key, or nil.
func (n *Node) Get(key string) *Node {
	for _, m := range n.Members {
		if m.Key == key {
			return m.Value
		}
	}
	return nil
}

// Int reads a number that is written without fraction or exponent.
func (n *Node) Int() (int, bool) {
	if n == nil || n.Kind != '0' {
		return 0, false
	}
	i, err := strconv.Atoi(n.Text)
	return i, err == nil && n.Text != "-0"
}

// Float reads a number. One that is too large is not a number.
func (n *Node) Float() (float64, bool) {
	if n == nil || n.Kind != '0' {
		return 0, false
	}
	x, err := strconv.ParseFloat(n.Text, 64)
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
	case n.Kind == '"' && len(n.Text) > maxDescribed:
		return fmt.Sprintf("a string of %d bytes", len(n.Text))
	case n.Kind == '"':
		return strconv.Quote(n.Text)
	case len(n.Text) > maxDescribed:
		return fmt.Sprintf("a number of %d digits", len(n.Text))
	}
	return n.Text
}

// Parse reads one JSON value and nothing after it, with at most so many values in it, which
// bounds the memory: each takes about two hundred bytes. Keys must not repeat.
func Parse(data []byte, most int) (*Node, error) {
	if !utf8.Valid(data) {
		return nil, fmt.Errorf("not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	p := &parser{d, most, most}
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

type parser struct {
	*json.Decoder
	most int // values allowed
	left int // of them
}

func (p *parser) value(depth int) (*Node, error) {
	p.left--
	switch {
	case depth > maxDepth:
		return nil, fmt.Errorf("nested deeper than %d", maxDepth)
	case p.left < 0:
		return nil, fmt.Errorf("more than %d values, which no such document needs", p.most)
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
		return &Node{Kind: '"', Text: t}, nil
	case json.Number:
		return &Node{Kind: '0', Text: t.String()}, nil
	case bool:
		return &Node{Kind: 't', Text: strconv.FormatBool(t)}, nil
	}
	return &Node{Kind: 'n', Text: "null"}, nil
}

func (p *parser) object(depth int) (*Node, error) {
	n := &Node{Kind: '{'}
	seen := map[string]bool{}
	for p.More() {
		token, err := p.Token()
		if err != nil {
			return n, err
		}
		key := token.(string) // the decoder lets nothing else stand here
		if seen[key] {
			return n, fmt.Errorf("key %q stands twice", key)
		}
		seen[key] = true
		value, err := p.value(depth + 1)
		if err != nil {
			return n, err
		}
		n.Members = append(n.Members, Member{key, value})
	}
	_, err := p.Token() // the closing brace
	return n, err
}

func (p *parser) list(depth int) (*Node, error) {
	n := &Node{Kind: '['}
	for p.More() {
		item, err := p.value(depth + 1)
		if err != nil {
			return n, err
		}
		n.Items = append(n.Items, item)
	}
	_, err := p.Token() // the closing bracket
	return n, err
}
