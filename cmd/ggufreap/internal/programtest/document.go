package programtest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"ggufreap/cmd/ggufreap/internal/document"
	"ggufreap/manifest"
)

// Schemas has the compiled schema of every kind of document.
var Schemas = sync.OnceValues(func() (map[string]*jsonschema.Schema, error) {
	schemas := map[string]*jsonschema.Schema{}
	for _, kind := range document.Kinds() {
		text, err := jsonschema.UnmarshalJSON(bytes.NewReader(document.Schema(kind)))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", kind, err)
		}
		c := jsonschema.NewCompiler()
		c.AssertContent()
		if err := c.AddResource(kind, text); err != nil {
			return nil, fmt.Errorf("%s: %w", kind, err)
		}
		if schemas[kind], err = c.Compile(kind); err != nil {
			return nil, fmt.Errorf("%s: %w", kind, err)
		}
	}
	return schemas, nil
})

var schemaName = regexp.MustCompile(`^ggufreap/([a-z]+)/v[0-9]+$`)

// Validate holds a document to the schema of its kind, which it returns. Nil is no document.
func Validate(text []byte) (kind string, err error) {
	if text == nil {
		return "", nil
	}
	schemas, err := Schemas()
	if err != nil {
		return "", err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return "", err
	}
	object, _ := doc.(map[string]any)
	name, _ := object["schema"].(string)
	found := schemaName.FindStringSubmatch(name)
	if found == nil || schemas[found[1]] == nil {
		return "", fmt.Errorf("no schema for documents that say %q: it needs a file in internal/document/schema", name)
	}
	return found[1], schemas[found[1]].Validate(doc)
}

// CheckDocuments holds what a run of the program printed and wrote, as far as it is a
// document, to its schema.
func CheckDocuments(r Result, args []string) error {
	if r.Code == Failed || len(args) == 0 {
		return nil
	}
	if strings.HasPrefix(r.Stdout, "{") && !slices.Contains(args, "schema") {
		if _, err := Validate([]byte(r.Stdout)); err != nil {
			return fmt.Errorf("%q prints what its schema does not allow: %w", args, err)
		}
	}
	for i, arg := range args[1:] {
		if args[i] != "-o" {
			continue
		}
		for _, path := range []string{arg, filepath.Join(arg, "plan.json"), filepath.Join(arg, manifest.PinName)} {
			if _, err := Validate(DocumentText(path)); err != nil {
				return fmt.Errorf("%q writes %s, which its schema does not allow: %w", args, path, err)
			}
		}
	}
	return nil
}

// DocumentText returns the text of a document in a file, nil for anything else.
func DocumentText(path string) []byte {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	if bytes.HasPrefix(text, manifest.ZstdMagic) {
		if text, err = unpacked.DecodeAll(text, nil); err != nil {
			return nil
		}
	}
	if !bytes.HasPrefix(text, []byte("{")) {
		return nil
	}
	return text
}

var unpacked, _ = zstd.NewReader(nil) // without options there is no error
