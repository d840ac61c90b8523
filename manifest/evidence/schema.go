package evidence

import (
	"maps"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A schema is a JSON Schema, or the properties of one.
type schema = map[string]any

// JSONSchema returns the JSON Schema (2020-12) of documents, indented, with a line end.
// It holds forms and names; the rules that are about several values are [Read]'s alone.
func JSONSchema() []byte {
	pair := schema{"type": "array", "minItems": 2, "maxItems": 2, "items": ref("text")}
	source := schema{"title": ref("text"), "address": ref("text"), "revision": ref("text"), "sha256": ref("sum"), "read_on": ref("text")}
	root := closed(schema{
		"schema":      schema{"const": Schema},
		"release":     closed(schema{"name": ref("text"), "pin_digest": orNotSpecified(formSchemas[digest])}),
		"sources":     schema{"type": "object", "additionalProperties": closed(source, "address")},
		"setups":      schema{"type": "object", "additionalProperties": ref("setup")},
		"rows":        listOf(ref("row")),
		"comparisons": listOf(closed(schema{"rows": pair, "claim": ref("text")}, "rows")),
		"notes":       listOf(ref("text")),
	}, "schema")
	root["$schema"], root["title"], root["$defs"] = "https://json-schema.org/draft/2020-12/schema", Schema, definitions()
	text, err := json.Marshal(root, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		panic(err) // a tree that we made
	}
	return append(text, '\n')
}

// formSchemas are the values of fields, by how they are written.
var formSchemas = map[form]schema{
	text: ref("text"), bytesize: ref("text"), day: ref("text"),
	integer: {"type": "integer", "minimum": 0},
	number:  {"type": "number"},
	digest:  {"type": "string", "pattern": "^(blake3|sha256):[0-9a-f]{64}$"},
	ids:     {"type": "array", "items": ref("text"), "uniqueItems": true},
}

// definitions are what the document refers to: texts, rows and setups, and for each form the
// statement of a value and the field that holds one or more of them.
func definitions() schema {
	defs := schema{
		"text":  schema{"type": []string{"string", "number", "boolean"}, "minLength": 1, "maxLength": maxText},
		"sum":   orNotSpecified(schema{"type": "string", "pattern": sha256Form.String()}),
		"kind":  schema{"enum": kinds},
		"row":   facts(rowProperties(), "id", "workload", "kind"),
		"setup": facts(setupProperties(), "kind"),
	}
	for as, value := range formSchemas {
		statement := string(as) + "-statement"
		defs[statement] = statementOf(value)
		defs[string(as)+"-value"] = orNotSpecified(value, ref(statement), schema{"type": "array", "minItems": 2, "items": ref(statement)})
	}
	return defs
}

// facts is an object with the fields that we define and others, but none of which a rule refuses
// the name.
func facts(properties schema, required ...string) schema {
	names := schema{"not": schema{"enum": slices.Sorted(maps.Keys(refused))}}
	return schema{"type": "object", "required": required, "properties": properties, "propertyNames": names, "additionalProperties": ref("text-value")}
}

func setupProperties() schema {
	properties := schema{"kind": ref("kind"), "source": ref("text"), "network": schema{"type": "object", "additionalProperties": ref("text-value")}}
	for _, f := range fields {
		if f.name != "network" {
			properties[f.name] = schema{"description": f.about, "$ref": "#/$defs/" + string(f.form) + "-value"}
		}
	}
	return properties
}

// rowProperties are those of a setup, and what only a row has.
func rowProperties() schema {
	imported := closed(schema{"tool": ref("text"), "file": ref("text"), "sha256": ref("sum")}, "tool", "file", "sha256")
	properties := schema{"id": ref("text"), "workload": ref("text"), "setup": ref("text"), "imported": schema{"type": "array", "items": imported}}
	maps.Copy(properties, setupProperties())
	return properties
}

// statementOf is a value with how it is known, or a label in its place.
func statementOf(value schema) schema {
	statement := closed(schema{"value": value, "label": ref("text"), "kind": ref("kind"), "source": ref("text"), "method": ref("text"),
		"unit": ref("text"), "convention": schema{"enum": []string{"decimal", "binary", NotSpecified}}, "spread": ref("text"), "note": ref("text")})
	statement["anyOf"] = []schema{{"required": []string{"value"}}, {"required": []string{"label"}}}
	return statement
}

func ref(name string) schema { return schema{"$ref": "#/$defs/" + name} }

// closed is an object without other properties.
func closed(properties schema, required ...string) schema {
	object := schema{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		object["required"] = required
	}
	return object
}

func listOf(items schema) schema { return schema{"type": "array", "maxItems": maxRows, "items": items} }

func orNotSpecified(others ...schema) schema {
	return schema{"anyOf": append([]schema{{"const": NotSpecified}}, others...)}
}
