// Package jsondoc reads the JSON documents of strangers strictly and writes our own in
// one form.
//
// A document is checked whole before anything is taken from it. Its values are then views
// of its bytes, so that it takes no more memory for many small values than for few; only
// the keys of the objects that are open at a place are remembered while it is checked.
package jsondoc

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	// maxDepth is more than any plan or score file needs.
	maxDepth = 16
	// maxKeys, of one object, is more than the 93 x 896 experts of Kimi-K3 as keys.
	maxKeys = 1 << 17
)

// Parse reads one JSON value and nothing after it, with at most so many values in it, which
// bounds the time. Keys must not repeat, and an object has at most 131072 of them. The data
// must stay as it is while nodes are used. An error says at which byte, and where in the
// document in the form of RFC 6901.
func Parse(data []byte, most int) (*Node, error) {
	p := &parser{Decoder: jsontext.NewDecoder(bytes.NewBuffer(data)), most: most}
	for done := false; !done; done = p.StackDepth() == 0 {
		if err := p.token(); err != nil {
			return nil, p.fault(err)
		}
	}
	if _, err := p.ReadToken(); err != io.EOF {
		return nil, fmt.Errorf("JSON, byte %d: more text after the document", p.InputOffset())
	}
	return newNode(bytes.TrimSpace(data)), nil
}

// A parser checks a document.
type parser struct {
	*jsontext.Decoder
	most   int // values allowed
	values int // so far
}

// token reads the next token.
func (p *parser) token() error {
	token, err := p.ReadToken()
	if err != nil {
		return err
	}
	depth := p.StackDepth()
	container, length := p.StackIndex(depth)
	switch kind := token.Kind(); {
	case kind == '}' || kind == ']':
	case depth > maxDepth:
		return fmt.Errorf("nested deeper than %d", maxDepth)
	case container == '{' && length%2 == 1: // a key
		if length/2 >= maxKeys {
			return fmt.Errorf("an object of more than %d keys, which no such document needs", maxKeys)
		}
	default:
		p.values++
		if p.values > p.most {
			return fmt.Errorf("more than %d values, which no such document needs", p.most)
		}
	}
	return nil
}

// fault says what is wrong, and where.
func (p *parser) fault(err error) error {
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		return ReadError(err)
	}
	return fmt.Errorf("JSON, byte %d: %s%w", p.InputOffset(), within(p.StackPointer()), ReadError(err))
}
