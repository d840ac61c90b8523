package main

import (
	"fmt"
	"strconv"
	"strings"

	"ggufreap/gguf"
)

// A value is a metadata value as a document has it.
type value struct{ gguf.Value }

// text returns the bytes of a string.
func (v value) text() (string, error) {
	raw, err := v.Raw()
	if err != nil {
		return "", err
	}
	return string(raw[8:]), nil
}

// maxPrinted is the greatest text, or list in a list, that is printed: each is held in
// memory, see [gguf.Value.Raw].
const maxPrinted = 64 << 20

// checkPrintable refuses a value that could not be printed to its end.
func (v value) checkPrintable() error {
	switch {
	case v.Size() <= maxPrinted:
		return nil
	case v.Type() == gguf.Text:
		return fmt.Errorf("a string of %s, at most %s can be printed", count(v.Len(), "byte"), grouped(maxPrinted-8))
	case v.Elem() != gguf.Text && v.Elem() != gguf.Array:
		return nil
	}
	return v.Each(func(i int64, e gguf.Value) error {
		if e.Size() > maxPrinted {
			return fmt.Errorf("item %s of the list has %s, at most %s can be printed", grouped(i), count(e.Size(), "byte"), grouped(maxPrinted))
		}
		return nil
	})
}

// line writes the whole value on one line.
func (v value) line() (string, error) {
	switch v.Type() {
	case gguf.Text:
		s, err := v.text()
		return safe(s), err
	case gguf.Array:
		var b strings.Builder
		w := jsonWriter{w: &b}
		err := w.metadata(v)
		return b.String(), err
	}
	return v.scalar(), nil
}

func (v value) number() number {
	f, _ := v.Float()
	if v.Type() == gguf.Float32 {
		return number{f, 32}
	}
	return number{f, 64}
}

// scalar writes a number or a bool; a bool that is neither true nor false is its byte.
func (v value) scalar() string {
	if b, ok := v.Bool(); ok {
		if raw, err := v.Raw(); err == nil && raw[0] > 1 {
			return strconv.Itoa(int(raw[0]))
		}
		return strconv.FormatBool(b)
	}
	if u, ok := v.Uint(); ok {
		return strconv.FormatUint(u, 10)
	}
	if i, ok := v.Int(); ok {
		return strconv.FormatInt(i, 10)
	}
	return v.number().String()
}

// What fits a line of the screen, and what a document says of a value inline.
const (
	shortText  = 60 // bytes
	shortItems = 8
	longText   = 64 << 10 // bytes
	longItems  = 256
)

// short writes a value in a few words.
func (v value) short() string {
	switch v.Type() {
	case gguf.Text:
		if v.Len() > longText {
			return count(v.Len(), "byte") + " of text"
		}
		s, _ := v.Text()
		return shorten(s)
	case gguf.Array:
		return v.shortArray()
	}
	return v.scalar()
}

func (v value) shortArray() string {
	if v.Len() > shortItems || v.Elem() == gguf.Array {
		return fmt.Sprintf("%s of %s", count(v.Len(), "item"), v.Elem())
	}
	items := make([]string, 0, shortItems)
	v.Each(func(_ int64, e gguf.Value) error { // an element that cannot be read is left out
		items = append(items, value{e}.short())
		return nil
	})
	return shorten(strings.Join(items, ", "))
}

// shorten makes s safe and cuts it to fit a line.
func shorten(s string) string { return shortenTo(s, shortText) }

// shortenTo makes s safe and cuts it to a number of columns.
func shortenTo(s string, most int) string {
	if enough := 20 * most; len(s) > enough {
		s = s[:enough] // a rune has at most 4 bytes, and few marks stand on it
	}
	s = safe(s)
	if columns(s) <= most {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if columns(b.String())+4 > most {
			break
		}
		b.WriteRune(r)
	}
	return b.String() + "..."
}

// A pair is a metadata pair as a document has it.
type pair struct {
	key string
	gguf.Value
}

// metadataDocument yields the pairs in file order, {"type": ..., "value": ...} by key.
// A list or string that is long has its length in place of the value. A key that stands
// twice has its later values under "repeats". See objectKey for keys that JSON lacks.
func metadataDocument(md *gguf.Metadata) members {
	return func(yield func(string, any) error) error {
		repeats := repeatedValues(md)
		for key, v := range md.All() {
			again := repeats[key]
			if again.told {
				continue
			}
			if len(again.values) > 0 {
				repeats[key] = laterValues{told: true}
			}
			if err := yield(objectKey(key), pairValue{v, again.values}); err != nil {
				return fmt.Errorf("key %q: %w", key, err)
			}
		}
		return nil
	}
}

// laterValues has the later values of a key that stands more than once.
type laterValues struct {
	values []pairValue
	told   bool
}

func repeatedValues(md *gguf.Metadata) map[string]laterValues {
	seen := make(map[string]struct{}, md.Len())
	repeats := map[string]laterValues{}
	for key, v := range md.All() {
		if _, again := seen[key]; again {
			repeats[key] = laterValues{values: append(repeats[key].values, pairValue{Value: v})}
		}
		seen[key] = struct{}{}
	}
	return repeats
}

// pairValue is the value side of a pair.
type pairValue struct {
	gguf.Value
	repeats []pairValue
}

// A pairDocument is a value with its type. One that is long has its length in its place.
type pairDocument struct {
	Type    string      `json:"type"`
	Length  *int64      `json:"length,omitempty"`
	Value   *value      `json:"value,omitempty"`
	Repeats []pairValue `json:"repeats,omitempty"`
}

func (p pairValue) document() pairDocument {
	doc := pairDocument{Type: p.TypeName(), Repeats: p.repeats}
	length := p.Len()
	long := p.Size() > longText || p.Type() == gguf.Array && length > longItems
	if long || p.Type() == gguf.Array {
		doc.Length = &length
	}
	if !long {
		doc.Value = &value{p.Value}
	}
	return doc
}
