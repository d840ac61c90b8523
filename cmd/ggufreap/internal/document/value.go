package document

import (
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"ggufreap/gguf"
)

// A Value is a metadata value as a document has it.
type Value struct{ gguf.Value }

// TextOf returns the bytes of a string.
func TextOf(v gguf.Value) (string, error) {
	raw, err := v.Raw()
	if err != nil {
		return "", err
	}
	return string(raw[8:]), nil
}

// numberOf returns a floating-point number.
func numberOf(v gguf.Value) Number {
	f, _ := v.Float()
	if v.Type() == gguf.Float32 {
		return Number{f, 32}
	}
	return Number{f, 64}
}

// What a document says of a value inline.
const (
	longText  = 64 << 10 // bytes
	LongItems = 256
)

// MarshalJSONTo writes the value.
func (v Value) MarshalJSONTo(e *jsontext.Encoder) error {
	switch v.Type() {
	case gguf.Text:
		s, err := TextOf(v.Value)
		if err != nil {
			return err
		}
		return Text(s).MarshalJSONTo(e)
	case gguf.Array:
		return Items(v.Value).MarshalJSONTo(e)
	case gguf.Uint64, gguf.Int64:
		return e.WriteToken(jsontext.String(Scalar(v.Value)))
	case gguf.Float32, gguf.Float64:
		return numberOf(v.Value).MarshalJSONTo(e)
	}
	if u, ok := v.Uint(); ok {
		return e.WriteToken(jsontext.Uint(u))
	}
	return e.WriteValue(append(e.AvailableBuffer(), Scalar(v.Value)...))
}

// Scalar writes a number or a bool; a bool that is neither true nor false is its byte.
func Scalar(v gguf.Value) string {
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
	return numberOf(v).String()
}

// Metadata yields the pairs in file order, {"type": ..., "value": ...} by key.
// A list or string that is long has its length in place of the value. A key that stands
// twice has its later values under "repeats". See objectKey for keys that JSON lacks.
func Metadata(md *gguf.Metadata) Members {
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
			if err := yield(objectKey(key), PairValue{v, again.values}); err != nil {
				return fmt.Errorf("key %q: %w", key, err)
			}
		}
		return nil
	}
}

// laterValues has the later values of a key that stands more than once.
type laterValues struct {
	values []PairValue
	told   bool
}

func repeatedValues(md *gguf.Metadata) map[string]laterValues {
	seen := make(map[string]struct{}, md.Len())
	repeats := map[string]laterValues{}
	for key, v := range md.All() {
		if _, again := seen[key]; again {
			repeats[key] = laterValues{values: append(repeats[key].values, PairValue{Value: v})}
		}
		seen[key] = struct{}{}
	}
	return repeats
}

// PairValue is the value side of a pair.
type PairValue struct {
	gguf.Value
	repeats []PairValue
}

// A pairDocument is a value with its type. One that is long has its length in its place.
type pairDocument struct {
	Type    string      `json:"type"`
	Length  *int64      `json:"length,omitzero"`
	Value   *Value      `json:"value,omitzero"`
	Repeats []PairValue `json:"repeats,omitzero"`
}

// MarshalJSONTo writes the value with its type.
func (p PairValue) MarshalJSONTo(e *jsontext.Encoder) error {
	return json.MarshalEncode(e, p.document())
}

func (p PairValue) document() pairDocument {
	doc := pairDocument{Type: p.TypeName(), Repeats: p.repeats}
	length := p.Len()
	long := p.Size() > longText || p.Type() == gguf.Array && length > LongItems
	if long || p.Type() == gguf.Array {
		doc.Length = &length
	}
	if !long {
		doc.Value = &Value{p.Value}
	}
	return doc
}

// Items lists an array, an element to a line.
func Items(v gguf.Value) Elements {
	return func(yield func(any) error) error {
		return v.Each(func(_ int64, e gguf.Value) error { return yield(Value{e}) })
	}
}
