package card

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
)

// IsCard reports whether what a file has can be renewed as a card: text in a file that is named
// like Markdown, or that has a section of ours.
func IsCard(path string, data []byte) bool {
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return false
	}
	named := slices.Contains([]string{".md", ".markdown"}, strings.ToLower(filepath.Ext(path)))
	return named || bytes.Contains(data, []byte("<!-- ggufreap:begin "))
}

// IsBOM reports whether a text is a bill of materials that this program wrote. That of another
// tool may be of anything.
func IsBOM(data []byte) bool {
	var bom struct {
		Format   string `json:"bomFormat"`
		Metadata struct {
			Tools struct {
				Components []struct {
					Name string `json:"name"`
				} `json:"components"`
			} `json:"tools"`
		} `json:"metadata"`
	}
	if json.Unmarshal(data, &bom) != nil || bom.Format != "CycloneDX" {
		return false
	}
	for _, tool := range bom.Metadata.Tools.Components {
		if tool.Name == "ggufreap" {
			return true
		}
	}
	return false
}

// IsRecipe reports whether a text is a launch script that this program wrote.
func IsRecipe(data []byte) bool {
	const shell = "#!/bin/sh\n"
	return bytes.HasPrefix(data, []byte(shell+serves)) || bytes.HasPrefix(data, []byte(shell+lends))
}
