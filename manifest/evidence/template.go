package evidence

import (
	_ "embed"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

//go:embed template.yaml
var template []byte

// Template returns a document to fill in, with comments.
func Template() []byte { return template }

// JSONSchema returns the JSON Schema (2020-12) of documents.
// It holds forms and names; the rules that are about several values are [Read]'s alone.
func JSONSchema() []byte {
	type object = map[string]any
	ref := func(name string) object { return object{"$ref": "#/$defs/" + name} }
	facts := object{"kind": ref("kind"), "source": ref("text"), "network": object{"type": "object", "additionalProperties": ref("text-value")}}
	for _, f := range fields {
		if f.name != "network" {
			facts[f.name] = object{"description": f.about, "$ref": "#/$defs/" + string(f.form) + "-value"}
		}
	}
	closed := func(required []string, properties object) object {
		return object{"type": "object", "required": required, "properties": properties, "additionalProperties": false}
	}
	row := object{"id": ref("text"), "workload": ref("text"), "setup": ref("text"),
		"imported": object{"type": "array", "items": closed([]string{"tool", "file", "sha256"}, object{"tool": ref("text"), "file": ref("text"), "sha256": ref("sum")})}}
	for name, schema := range facts {
		row[name] = schema
	}
	var banned []any
	for _, name := range sortedNames(refused) {
		banned = append(banned, name)
	}
	names := object{"not": object{"enum": banned}}
	defs := object{
		"text": object{"type": []string{"string", "number", "boolean"}, "minLength": 1, "maxLength": maxText},
		"sum":  object{"anyOf": []any{object{"const": NotSpecified}, object{"type": "string", "pattern": sha256Form.String()}}},
		"kind": object{"enum": kinds},
		"row":  object{"type": "object", "required": []string{"id", "workload", "kind"}, "properties": row, "propertyNames": names, "additionalProperties": ref("text-value")},
		"setup": object{"type": "object", "required": []string{"kind"}, "properties": facts, "propertyNames": names,
			"additionalProperties": ref("text-value")},
	}
	plain := map[form]object{
		text: ref("text"), bytesize: ref("text"), day: ref("text"),
		integer: {"type": "integer", "minimum": 0},
		number:  {"type": "number"},
		digest:  {"type": "string", "pattern": "^(blake3|sha256):[0-9a-f]{64}$"},
		ids:     {"type": "array", "items": ref("text"), "uniqueItems": true},
	}
	for as, schema := range plain {
		with := closed(nil, object{"value": schema, "label": ref("text"), "kind": ref("kind"), "source": ref("text"), "method": ref("text"),
			"unit": ref("text"), "convention": object{"enum": []string{"decimal", "binary", NotSpecified}}, "spread": ref("text"), "note": ref("text")})
		delete(with, "required")
		with["anyOf"] = []any{object{"required": []string{"value"}}, object{"required": []string{"label"}}}
		defs[string(as)+"-statement"] = with
		defs[string(as)+"-value"] = object{"anyOf": []any{object{"const": NotSpecified}, schema, ref(string(as) + "-statement"),
			object{"type": "array", "minItems": 2, "items": ref(string(as) + "-statement")}}}
	}
	list := func(items object) object { return object{"type": "array", "maxItems": maxRows, "items": items} }
	root := closed([]string{"schema"}, object{
		"schema":  object{"const": Schema},
		"release": closed([]string{}, object{"name": ref("text"), "pin_digest": object{"anyOf": []any{object{"const": NotSpecified}, plain[digest]}}}),
		"sources": object{"type": "object", "additionalProperties": closed([]string{"address"}, object{"title": ref("text"), "address": ref("text"),
			"revision": ref("text"), "sha256": ref("sum"), "read_on": ref("text")})},
		"setups":      object{"type": "object", "additionalProperties": ref("setup")},
		"rows":        list(ref("row")),
		"comparisons": list(closed([]string{"rows"}, object{"rows": object{"type": "array", "minItems": 2, "maxItems": 2, "items": ref("text")}, "claim": ref("text")})),
		"notes":       list(ref("text")),
	})
	root["$schema"], root["title"], root["$defs"] = "https://json-schema.org/draft/2020-12/schema", Schema, defs
	text, err := json.Marshal(root, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		panic(err) // a tree that we made
	}
	return append(text, '\n')
}
