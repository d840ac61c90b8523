// Package metadata writes values of a model's metadata for people: in a few words for a line
// of a screen, or whole on one line. How they stand in documents, package document knows.
package metadata

import (
	"fmt"
	"strings"

	"ggufreap/cmd/ggufreap/internal/document"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
)

// maxPrinted is the greatest text, or list in a list, that is printed: each is held in
// memory, see [gguf.Value.Raw].
const maxPrinted = 64 << 20

// CheckPrintable refuses a value that could not be printed to its end.
func CheckPrintable(v gguf.Value) error {
	switch {
	case v.Size() <= maxPrinted:
		return nil
	case v.Type() == gguf.Text:
		return fmt.Errorf("a string of %s, at most %s can be printed", text.Count(v.Len(), "byte"), text.Grouped(maxPrinted-8))
	case v.Elem() != gguf.Text && v.Elem() != gguf.Array:
		return nil
	}
	return v.Each(func(i int64, e gguf.Value) error {
		if e.Size() > maxPrinted {
			return fmt.Errorf("item %s of the list has %s, at most %s can be printed", text.Grouped(i), text.Count(e.Size(), "byte"), text.Grouped(maxPrinted))
		}
		return nil
	})
}

// Line writes the whole value on one line.
func Line(v gguf.Value) (string, error) {
	switch v.Type() {
	case gguf.Text:
		s, err := document.TextOf(v)
		return text.Safe(s), err
	case gguf.Array:
		return document.Line(v)
	}
	return document.Scalar(v), nil
}

// What is read for a line of the screen.
const (
	longestRead = 64 << 10 // bytes of a text
	shortItems  = 8
)

// Short writes a value in a few words.
func Short(v gguf.Value) string {
	switch v.Type() {
	case gguf.Text:
		if v.Len() > longestRead {
			return text.Count(v.Len(), "byte") + " of text"
		}
		s, _ := v.Text()
		return text.Shorten(s)
	case gguf.Array:
		return shortArray(v)
	}
	return document.Scalar(v)
}

func shortArray(v gguf.Value) string {
	if v.Len() > shortItems || v.Elem() == gguf.Array {
		return fmt.Sprintf("%s of %s", text.Count(v.Len(), "item"), v.Elem())
	}
	items := make([]string, 0, shortItems)
	v.Each(func(_ int64, e gguf.Value) error { // an element that cannot be read is left out
		items = append(items, Short(e))
		return nil
	})
	return text.Shorten(strings.Join(items, ", "))
}
