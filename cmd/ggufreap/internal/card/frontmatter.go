package card

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// front returns the front matter of a card, without its fences, and what follows.
func front(text string) (matter, rest string, err error) {
	body, ok := strings.CutPrefix(text, "---\n")
	if !ok {
		return "", text, nil
	}
	if after, ok := strings.CutPrefix(body, "---\n"); ok {
		return "", after, nil
	}
	matter, rest, ok = strings.Cut(body, "\n---\n")
	if !ok {
		return "", "", fmt.Errorf("line 1: the front matter does not end: no line \"---\" follows")
	}
	return matter + "\n", rest, nil
}

// A field of front matter that is known. One with several values keeps those that a person
// added; any other is replaced.
type frontField struct {
	key    string
	values []string
	list   bool
}

// renewFront puts the fields into front matter. What has them already stays as it is, to the
// byte.
func renewFront(matter string, fields []frontField) (string, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(matter), &doc); err != nil {
		return "", fmt.Errorf("front matter: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	root := &yaml.Node{Kind: yaml.MappingNode}
	if len(doc.Content) > 0 {
		root = doc.Content[0]
	}
	if root.Kind != yaml.MappingNode {
		return "", fmt.Errorf("front matter: want names with values")
	}
	changed := false
	for _, f := range fields {
		changed = f.put(root) || changed
	}
	if !changed {
		return matter, nil
	}
	if len(root.Content) == 0 {
		return "", nil
	}
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	err := e.Encode(root)
	return b.String(), err
}

// put sets the field and reports whether that changed anything.
func (f frontField) put(root *yaml.Node) bool {
	if len(f.values) == 0 {
		return false
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value == f.key {
			return f.merge(root.Content[i+1])
		}
	}
	root.Content = append(root.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: f.key}, f.node())
	return true
}

func (f frontField) node() *yaml.Node {
	if !f.list && len(f.values) == 1 {
		return scalar(f.values[0])
	}
	n := &yaml.Node{Kind: yaml.SequenceNode}
	for _, v := range f.values {
		n.Content = append(n.Content, scalar(v))
	}
	return n
}

func scalar(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s} }

// merge makes a node say what the field does.
func (f frontField) merge(n *yaml.Node) bool {
	have := []string{n.Value}
	if n.Kind == yaml.SequenceNode {
		have = nil
		for _, item := range n.Content {
			have = append(have, item.Value)
		}
	}
	if !f.list {
		if slices.Equal(have, f.values) {
			return false
		}
		*n = *f.node()
		return true
	}
	var missing []string
	for _, v := range f.values {
		if !slices.Contains(have, v) {
			missing = append(missing, v)
		}
	}
	if missing == nil {
		return false
	}
	if n.Kind != yaml.SequenceNode {
		*n = *frontField{f.key, append(slices.DeleteFunc(have, func(s string) bool { return s == "" }), missing...), true}.node()
		return true
	}
	for _, v := range missing {
		n.Content = append(n.Content, scalar(v))
	}
	return true
}
