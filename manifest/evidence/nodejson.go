package evidence

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"

	"ggufreap/gguf/jsondoc"
)

// jsonReader makes of JSON the tree that YAML is read as. A name that stands twice is left to
// who reads the tree, and says so with all other faults.
type jsonReader struct {
	data []byte
	d    *jsontext.Decoder
	line int
	upTo int64 // bytes whose line ends were counted
}

func parseJSON(data []byte) (*yaml.Node, error) {
	r := &jsonReader{data: data, d: jsontext.NewDecoder(bytes.NewBuffer(data), jsontext.AllowDuplicateNames(true)), line: 1}
	root, err := r.value()
	if err == nil {
		if _, end := r.d.ReadToken(); !errors.Is(end, io.EOF) {
			return nil, Faults{{r.where(), "something follows the document"}}
		}
		return root, nil
	}
	if fs, ok := errors.AsType[Faults](err); ok {
		return nil, fs
	}
	return nil, Faults{{r.where(), "no valid JSON: " + jsondoc.ReadError(err).Error()}}
}

// where returns the line that the decoder has come to.
func (r *jsonReader) where() int {
	at := r.d.InputOffset()
	r.line += bytes.Count(r.data[r.upTo:at], []byte("\n"))
	r.upTo = at
	return r.line
}

// scalarTags are those of values that are not made of others.
var scalarTags = map[jsontext.Kind]string{
	jsontext.KindString: "!!str", jsontext.KindNumber: "!!float", jsontext.KindTrue: "!!bool", jsontext.KindFalse: "!!bool", jsontext.KindNull: "!!null",
}

func (r *jsonReader) value() (*yaml.Node, error) {
	token, err := r.d.ReadToken()
	if err != nil {
		return nil, err
	}
	switch token.Kind() {
	case jsontext.KindBeginObject:
		return r.members(yaml.MappingNode)
	case jsontext.KindBeginArray:
		return r.members(yaml.SequenceNode)
	}
	n := &yaml.Node{Kind: yaml.ScalarNode, Line: r.where(), Tag: scalarTags[token.Kind()]}
	if token.Kind() != jsontext.KindNull {
		n.Value = token.String()
	}
	return n, nil
}

// members reads what a list or an object holds, names and values in turn, and its end.
func (r *jsonReader) members(kind yaml.Kind) (*yaml.Node, error) {
	n := &yaml.Node{Kind: kind, Line: r.where()}
	if r.d.StackDepth() > maxDepth {
		return nil, Faults{{n.Line, fmt.Sprintf("nested more than %d deep", maxDepth)}}
	}
	for r.d.PeekKind() != jsontext.KindEndArray && r.d.PeekKind() != jsontext.KindEndObject {
		child, err := r.value()
		if err != nil {
			return nil, err
		}
		n.Content = append(n.Content, child)
	}
	_, err := r.d.ReadToken()
	return n, err
}
