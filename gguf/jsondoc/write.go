package jsondoc

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Write writes v as a document: members in the order of a struct's fields, the keys of a
// map in ascending order, an indent of two spaces, a newline at the end. A list of numbers
// stands on one line, unless it is a member of the document. Equal values give equal bytes.
// Text that is not UTF-8 is an error.
func Write(w io.Writer, v any) error {
	if err := json.MarshalWrite(NewLayout(w), v, json.Deterministic(true), jsontext.EscapeForJS(true)); err != nil {
		return writeError(err)
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// TextOrNull is a string, null when it is empty.
type TextOrNull string

// MarshalJSONTo writes the string or null.
func (t TextOrNull) MarshalJSONTo(e *jsontext.Encoder) error {
	if t == "" {
		return e.WriteToken(jsontext.Null)
	}
	return e.WriteToken(jsontext.String(string(t)))
}

// Numbered is an object whose keys are numbers, in their order.
type Numbered[V any] map[int]V

// MarshalJSONTo writes the object.
func (n Numbered[V]) MarshalJSONTo(e *jsontext.Encoder) error {
	if err := e.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	for _, i := range slices.Sorted(maps.Keys(n)) {
		if err := e.WriteToken(jsontext.String(strconv.Itoa(i))); err != nil {
			return err
		}
		if err := json.MarshalEncode(e, n[i]); err != nil {
			return err
		}
	}
	return e.WriteToken(jsontext.EndObject)
}

// Floats is a list of numbers, each with the fewest digits that give it back. JSON has no
// NaN and no infinity.
type Floats []float64

// MarshalJSONTo writes the list.
func (f Floats) MarshalJSONTo(e *jsontext.Encoder) error {
	if err := e.WriteToken(jsontext.BeginArray); err != nil {
		return err
	}
	for i, x := range f {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("entry %d: JSON has no number %v", i, x)
		}
		if err := e.WriteValue(strconv.AppendFloat(e.AvailableBuffer(), x, 'g', -1, 64)); err != nil {
			return err
		}
	}
	return e.WriteToken(jsontext.EndArray)
}
