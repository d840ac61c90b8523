// Package jsondoc reads the JSON documents of strangers strictly and writes our own in
// one form.
//
// A document is checked whole before anything is taken from it: encoding/json would take
// the last of two equal keys, ignore letter case, and drop what it does not know. Its
// values are then views of its bytes, so that it takes no more memory for many small
// values than for few.
package jsondoc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf8"
)

const (
	// maxDepth is more than any plan or score file needs.
	maxDepth = 16
	// maxKeys, of one object, is more than the 93 x 896 experts of Kimi-K3 as keys. They are
	// remembered while the object is checked.
	maxKeys = 1 << 17
)

// Parse reads one JSON value and nothing after it, with at most so many values in it, which
// bounds the time. Keys must not repeat, and an object has at most 131072 of them. The data must stay as it is while nodes are used.
func Parse(data []byte, most int) (*Node, error) {
	if !utf8.Valid(data) {
		return nil, fmt.Errorf("not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	p := &parser{d, most, most}
	if err := p.value(0); err != nil {
		return nil, fmt.Errorf("JSON, byte %d: %w", d.InputOffset(), noEOF(err))
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("JSON, byte %d: more text after the document", d.InputOffset())
	}
	return newNode(bytes.TrimSpace(data)), nil
}

func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// A parser checks a document.
type parser struct {
	*json.Decoder
	most int // values allowed
	left int // of them
}

func (p *parser) value(depth int) error {
	p.left--
	switch {
	case depth > maxDepth:
		return fmt.Errorf("nested deeper than %d", maxDepth)
	case p.left < 0:
		return fmt.Errorf("more than %d values, which no such document needs", p.most)
	}
	switch token, err := p.Token(); {
	case err != nil:
		return err
	case token == json.Delim('{'):
		return p.object(depth)
	case token == json.Delim('['):
		return p.list(depth)
	}
	return nil
}

func (p *parser) object(depth int) error {
	var seen map[string]bool
	for p.More() {
		token, err := p.Token()
		if err != nil {
			return err
		}
		key := token.(string) // the decoder lets nothing else stand here
		if seen[key] {
			return fmt.Errorf("key %s stands twice", describeText(key))
		}
		if len(seen) == maxKeys {
			return fmt.Errorf("an object of more than %d keys, which no such document needs", maxKeys)
		}
		if seen == nil {
			seen = map[string]bool{} // there can be many empty objects
		}
		seen[key] = true
		if err := p.value(depth + 1); err != nil {
			return err
		}
	}
	_, err := p.Token() // the closing brace
	return err
}

func (p *parser) list(depth int) error {
	for p.More() {
		if err := p.value(depth + 1); err != nil {
			return err
		}
	}
	_, err := p.Token() // the closing bracket
	return err
}
