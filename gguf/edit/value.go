package edit

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"ggufreap/gguf"
)

// value makes the value of a type.
func (t *Text) value(name string) (gguf.Value, error) {
	if name == "" {
		return gguf.Value{}, fmt.Errorf("%w, and nothing says what type it is to have", ErrMissing)
	}
	element, list := strings.CutSuffix(name, "[]")
	typ, err := gguf.ParseValueType(element)
	if err != nil {
		return gguf.Value{}, err
	}
	if typ == gguf.Array {
		return gguf.Value{}, errors.New("a list of lists cannot be typed")
	}
	if !list {
		return scalar(typ, t.Data)
	}
	return array(typ, t.Data)
}

// array makes a list from a JSON list.
func array(typ gguf.ValueType, text string) (gguf.Value, error) {
	var raw []jsontext.Value
	if err := json.Unmarshal([]byte(text), &raw, jsontext.AllowInvalidUTF8(true)); err != nil || raw == nil {
		return gguf.Value{}, fmt.Errorf("want a JSON list of %s, such as [%s]", typ, example(typ))
	}
	items := make([]gguf.Value, len(raw))
	for i, item := range raw {
		text := string(item)
		if typ == gguf.Text {
			if err := checkText(text); err != nil {
				return gguf.Value{}, fmt.Errorf("item %d: %w", i+1, err)
			}
			if text == "null" || json.Unmarshal(item, &text) != nil {
				return gguf.Value{}, fmt.Errorf("item %d is %s, want a string", i+1, item)
			}
		}
		var err error
		if items[i], err = scalar(typ, text); err != nil {
			return gguf.Value{}, fmt.Errorf("item %d: %w", i+1, err)
		}
	}
	return gguf.ArrayValue(typ, items...), nil
}

func example(typ gguf.ValueType) string {
	switch typ {
	case gguf.Text:
		return `"a", "b"`
	case gguf.Bool:
		return "true, false"
	}
	return "1, 2"
}

// scalar makes a value that is no list. A number that its type cannot hold is refused.
func scalar(typ gguf.ValueType, text string) (gguf.Value, error) {
	switch typ {
	case gguf.Text:
		return gguf.TextValue(text), checkText(text)
	case gguf.Bool:
		if text != "true" && text != "false" {
			return gguf.Value{}, fmt.Errorf("%q is no bool, want true or false", text)
		}
		return gguf.BoolValue(text == "true"), nil
	case gguf.Float32, gguf.Float64:
		return float(typ, text)
	case gguf.Uint64:
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return gguf.Value{}, fmt.Errorf("%q is no u64", text)
		}
		return gguf.Uint64Value(n), nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return gguf.Value{}, fmt.Errorf("%q is no %s", text, typ)
	}
	return zeros[typ].WithInt(n)
}

// checkText refuses bytes that are no UTF-8: a text of the format is, and JSON would replace
// them in silence.
func checkText(text string) error {
	for at, r := range text {
		if _, size := utf8.DecodeRuneInString(text[at:]); r == utf8.RuneError && size == 1 {
			return fmt.Errorf("byte %d of the text is no UTF-8", at)
		}
	}
	return nil
}

// zeros are values of the types that hold integers of at most 64 bits with a sign.
var zeros = map[gguf.ValueType]gguf.Value{
	gguf.Uint8: gguf.Uint8Value(0), gguf.Int8: gguf.Int8Value(0), gguf.Uint16: gguf.Uint16Value(0), gguf.Int16: gguf.Int16Value(0),
	gguf.Uint32: gguf.Uint32Value(0), gguf.Int32: gguf.Int32Value(0), gguf.Int64: gguf.Int64Value(0),
}

func float(typ gguf.ValueType, text string) (gguf.Value, error) {
	bits := 64
	if typ == gguf.Float32 {
		bits = 32
	}
	f, err := strconv.ParseFloat(text, bits)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return gguf.Value{}, fmt.Errorf("%q is no finite %s", text, typ)
	}
	if bits == 32 {
		return gguf.Float32Value(float32(f)), nil
	}
	return gguf.Float64Value(f), nil
}
