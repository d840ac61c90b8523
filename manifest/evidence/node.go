package evidence

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"go.yaml.in/yaml/v3"

	"ggufreap/gguf/pattern"
	"ggufreap/gguf/words"
)

// Bounds on a document: far above any that a person writes, and any that [Import] makes.
const (
	maxDocument = 8 << 20 // bytes
	maxMarks    = 1 << 18 // of punctuation, each of which can begin a value
	maxDepth    = 16
)

// parse reads YAML, or JSON when it begins like an object, as a tree that knows its lines.
func parse(data []byte) (*yaml.Node, error) {
	switch {
	case len(data) > maxDocument:
		return nil, fmt.Errorf("%d bytes, at most %d are read", len(data), maxDocument)
	case punctuation(data) > maxMarks:
		return nil, fmt.Errorf("more than %s values", words.Group(maxMarks))
	case bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{")):
		return parseJSON(data)
	}
	root, err := parseYAML(data)
	if err != nil {
		return nil, err
	}
	return root, checkTree(root, maxDepth)
}

// punctuation counts what can begin a value, which takes a hundred times the memory of a byte.
func punctuation(data []byte) int {
	n := 0
	for _, mark := range []string{",", ":", "[", "{", "\n", "- ", "? "} {
		n += bytes.Count(data, []byte(mark))
	}
	return n
}

func parseYAML(data []byte) (*yaml.Node, error) {
	d := yaml.NewDecoder(bytes.NewReader(data))
	var doc, next yaml.Node
	switch err := d.Decode(&doc); {
	case errors.Is(err, io.EOF) || err == nil && len(doc.Content) == 0:
		return nil, Faults{{0, "empty, want a document that begins with \"schema: " + Schema + "\""}}
	case err != nil:
		return nil, yamlFault(err)
	}
	if err := d.Decode(&next); !errors.Is(err, io.EOF) {
		return nil, Faults{{next.Line, "a second document in one file"}}
	}
	return doc.Content[0], nil
}

var yamlLine = pattern.Lazy(`^yaml: (?:line (\d+): )?`)

// yamlFault says in our form what the parser said.
func yamlFault(err error) error {
	text := err.Error()
	m := yamlLine().FindStringSubmatch(text)
	if m == nil {
		return Faults{{0, text}}
	}
	line, _ := strconv.Atoi(m[1])
	return Faults{{line, "no valid YAML: " + text[len(m[0]):]}}
}

// checkTree refuses what would make a small text mean a large or an unclear document.
func checkTree(n *yaml.Node, depth int) error {
	switch {
	case depth == 0:
		return Faults{{n.Line, fmt.Sprintf("nested more than %d deep", maxDepth)}}
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return Faults{{n.Line, "anchors and aliases are not read: what rows share belongs to a setup"}}
	}
	for _, child := range n.Content {
		if err := checkTree(child, depth-1); err != nil {
			return err
		}
	}
	return nil
}
