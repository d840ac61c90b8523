package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"ggufreap/cmd/ggufreap/internal/document"
)

// A schemaNode is a JSON Schema as far as the page about documents tells it.
type schemaNode struct {
	Title       string                `json:"title"`
	Description string                `json:"description"`
	Type        jsontext.Value        `json:"type"`
	Const       jsontext.Value        `json:"const"`
	Enum        []any                 `json:"enum"`
	Ref         string                `json:"$ref"`
	AnyOf       []schemaNode          `json:"anyOf"`
	Items       *schemaNode           `json:"items"`
	Properties  jsontext.Value        `json:"properties"`
	Required    []string              `json:"required"`
	Patterns    map[string]schemaNode `json:"patternProperties"`
	Additional  jsontext.Value        `json:"additionalProperties"`
	Defs        map[string]schemaNode `json:"$defs"`
}

// members yields the members of an object in the order of the schema.
func (n *schemaNode) members(t *testing.T) []namedSchema {
	t.Helper()
	if n.Properties == nil {
		return nil
	}
	var list []namedSchema
	d := jsontext.NewDecoder(strings.NewReader(string(n.Properties)))
	d.ReadToken()
	for d.PeekKind() == '"' {
		name, _ := d.ReadToken()
		member := namedSchema{name: name.String()}
		if err := json.UnmarshalDecode(d, &member.schemaNode); err != nil {
			t.Fatal(err)
		}
		list = append(list, member)
	}
	return list
}

type namedSchema struct {
	name string
	schemaNode
}

// A schemaPage makes the tables of one kind.
type schemaPage struct {
	t    *testing.T
	defs map[string]schemaNode
	b    strings.Builder
}

// named are parts that several documents have, told once for all of them.
var named = []string{"text", "digest", "hash", "shape", "plain", "value", "sum"}

// resolve follows a reference, but for that to a named part.
func (p *schemaPage) resolve(n schemaNode) schemaNode {
	if name := strings.TrimPrefix(n.Ref, "#/$defs/"); n.Ref != "" && !slices.Contains(named, name) {
		def := p.defs[name]
		if n.Description != "" {
			def.Description = n.Description
		}
		return def
	}
	return n
}

// word names the type of a value.
func (p *schemaPage) word(n schemaNode) string {
	n = p.resolve(n)
	switch {
	case n.Ref != "":
		return strings.TrimPrefix(n.Ref, "#/$defs/")
	case n.Const != nil:
		return "`" + string(n.Const) + "`"
	case n.Enum != nil:
		var words []string
		for _, e := range n.Enum {
			words = append(words, fmt.Sprintf("`%q`", e))
		}
		return strings.Join(words, ", ")
	case n.AnyOf != nil:
		var words []string
		for _, each := range n.AnyOf {
			words = append(words, p.word(each))
		}
		return strings.Join(words, " or ")
	}
	var types []string
	if json.Unmarshal(n.Type, &types) != nil {
		types = []string{strings.Trim(string(n.Type), `"`)}
	}
	words := strings.ReplaceAll(strings.Join(types, " or "), "boolean", "true or false")
	if n.Items != nil {
		words = strings.Replace(words, "array", "list of "+plural(p.word(*n.Items)), 1)
	}
	return words
}

func plural(word string) string {
	if strings.ContainsAny(word, " `") || word == "text" || word == "plain" {
		return word
	}
	if word == "hash" {
		return "hashes"
	}
	return word + "s"
}

// rows writes a line for each field below a value.
func (p *schemaPage) rows(path string, n schemaNode) {
	n = p.resolve(n)
	for _, m := range n.members(p.t) {
		full := p.resolve(m.schemaNode)
		meaning := full.Description
		if !slices.Contains(n.Required, m.name) && !strings.Contains(meaning, "only") && !strings.Contains(meaning, "left out") {
			meaning = strings.TrimPrefix(meaning+"; may be left out", "; ")
		}
		fmt.Fprintf(&p.b, "| `%s` | %s | %s |\n", path+m.name, strings.ReplaceAll(p.word(m.schemaNode), "|", `\|`), strings.ReplaceAll(meaning, "|", `\|`))
		p.below(path+m.name, full)
	}
}

// below writes the lines for what stands in a list, an object, or either.
func (p *schemaPage) below(path string, n schemaNode) {
	n = p.resolve(n)
	p.rows(path+".", n)
	if n.Items != nil {
		p.below(path+"[]", *n.Items)
	}
	for _, each := range n.Patterns {
		p.below(path+".N", each)
	}
	for _, each := range n.AnyOf {
		p.below(path, each)
	}
}

// documentTables has a table of the fields of every kind.
func documentTables(t *testing.T) string {
	var b strings.Builder
	for _, kind := range document.Kinds() {
		var n schemaNode
		if err := json.Unmarshal(document.Schema(kind), &n); err != nil {
			t.Fatal(err)
		}
		p := &schemaPage{t: t, defs: n.Defs}
		p.rows("", n)
		fmt.Fprintf(&b, "\n## %s\n\n%s From: %s.\n\n| field | type | meaning |\n| --- | --- | --- |\n%s", kind, n.Description, n.Title, p.b.String())
	}
	return b.String()
}

// TestDocumentsPage holds the tables of the page to the schemas. With -update they are
// written anew.
func TestDocumentsPage(t *testing.T) {
	const path, mark = "DOCUMENTS.md", "<!-- From here on the page is made from the schemas. -->\n"
	page := readPage(t, path)
	head, shown, found := strings.Cut(page, mark)
	if !found {
		t.Fatalf("%s lacks %q", path, mark)
	}
	tables := documentTables(t)
	if *update {
		if err := os.WriteFile(path, []byte(head+mark+tables), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if shown != tables {
		t.Errorf("the page is not made from the schemas; with -update it is written anew\n%s", firstDifference(tables, shown))
	}
}
