package evidence_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"ggufreap/manifest/evidence"
)

// TestEvidenceSchema holds the JSON Schema of evidence against another reader of schemas: the
// published rows pass it, and faults of form do not.
func TestEvidenceSchema(t *testing.T) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(evidence.JSONSchema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("evidence.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("evidence.json")
	if err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(paths) < 2 {
		t.Fatal(paths, err)
	}
	texts := map[string]string{"template": string(evidence.Template())}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		texts[path] = string(text)
	}
	for name, text := range texts {
		if err := schema.Validate(tree(t, text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	three := texts[paths[len(paths)-1]]
	for from, to := range map[string]string{
		"total: 50":                     "total: fifty",
		"kind: approximate":             "kind: guessed",
		"decode_tokens_per_second: 2.9": "tokens_per_second: 2.9",
		"pin_digest: Not specified":     "pin_digest: a label",
		"failed_ids: [2, 7]":            "failed_ids: [2, 2]",
		"evidence/v1":                   "evidence/v9",
		"{label: 8K}":                   "{name: 8K}",
	} {
		if !strings.Contains(three, from) {
			t.Fatalf("no %q in %s", from, paths[len(paths)-1])
		}
		if err := schema.Validate(tree(t, strings.Replace(three, from, to, 1))); err == nil {
			t.Errorf("%q passes", to)
		}
	}
}

// tree reads YAML into what a JSON document would be.
func tree(t *testing.T, text string) any {
	t.Helper()
	var value any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	asJSON, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
	if err != nil {
		t.Fatal(err)
	}
	return v
}
