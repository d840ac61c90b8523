package document

import (
	"embed"
	"path"
	"strings"
)

// Documents of every kind have a JSON Schema (2020-12): folder schema has a file for each,
// KIND.json. A document begins with "schema": "ggufreap/KIND/v1".
//
//go:embed schema
var schemas embed.FS

// Kinds returns the kinds of documents, sorted.
func Kinds() []string {
	entries, _ := schemas.ReadDir("schema") // in memory
	kinds := make([]string, len(entries))
	for i, e := range entries {
		kinds[i] = strings.TrimSuffix(e.Name(), path.Ext(e.Name()))
	}
	return kinds
}

// Schema returns the schema of the documents of a kind, nil for one that does not exist.
func Schema(kind string) []byte {
	text, _ := schemas.ReadFile("schema/" + kind + ".json")
	return text
}
