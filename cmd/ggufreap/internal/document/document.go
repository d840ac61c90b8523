// Package document writes the documents of --json, from structs and from lists that are not
// held in memory. It knows JSON and how values of a model's metadata stand in it. What a
// document says is the business of those who make one; what a screen says, of package ui.
package document

import (
	"bufio"
	"encoding/base64"
	"errors"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"ggufreap/gguf"
	"ggufreap/gguf/jsondoc"
)

// JSON documents: UTF-8, two-space indent, keys in the order of the struct's fields,
// a newline at the end. Four rules keep them free of loss:
//
//   - a string that is not UTF-8 is {"base64": "..."} in place of the string
//   - u64 and i64 values of metadata are strings of digits; sizes, offsets, dims and
//     counts are numbers, which a reader must take as 64-bit integers
//   - numbers that JSON does not have are "NaN", "Infinity" and "-Infinity"
//   - a bool of metadata whose byte is neither 1 nor 0 is that byte, a number

// Write writes a document, the fields of a struct. Nothing of it is held in memory but one
// text or number: its lists can be as long as the files that they are read from. What a
// terminal would act on is escaped. Errors of writing stick to w; those that it returns are
// errors of reading what is written.
func Write(w *bufio.Writer, document any) error {
	safe := &safeWriter{w: w}
	err := json.MarshalWrite(jsondoc.NewLayout(safe), document, form)
	if safe.failed {
		return nil
	}
	w.WriteByte('\n')
	return cause(err)
}

// Line writes a value on one line.
func Line(v gguf.Value) (string, error) {
	var b strings.Builder
	err := json.MarshalWrite(&safeWriter{w: &b}, Value{v}, form)
	return b.String(), cause(err)
}

// form lets text that is not UTF-8 pass, with U+FFFD for what is not, and remembers no names:
// text of a file is a [Text], and names that come from one are [objectKey]s.
var form = json.JoinOptions(json.Deterministic(true), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))

// cause returns the error of what is read while a document is written, as it was.
func cause(err error) error {
	for value := (*json.SemanticError)(nil); errors.As(err, &value) && value.Err != nil; {
		err = value.Err
	}
	return err
}

// Elements yields the elements of a list that is not held in memory.
type Elements func(yield func(element any) error) error

// MarshalJSONTo writes the list.
func (list Elements) MarshalJSONTo(e *jsontext.Encoder) error {
	if err := e.WriteToken(jsontext.BeginArray); err != nil {
		return err
	}
	err := list(func(element any) error {
		if v, ok := element.(Value); ok { // there can be very many of a vocabulary
			return v.MarshalJSONTo(e)
		}
		return json.MarshalEncode(e, element)
	})
	if err != nil {
		return err
	}
	return e.WriteToken(jsontext.EndArray)
}

// Members yields the members of an object that is not held in memory.
type Members func(yield func(name string, value any) error) error

// MarshalJSONTo writes the object.
func (list Members) MarshalJSONTo(e *jsontext.Encoder) error {
	if err := e.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	err := list(func(name string, value any) error {
		if err := e.WriteToken(jsontext.String(name)); err != nil {
			return err
		}
		return json.MarshalEncode(e, value)
	})
	if err != nil {
		return err
	}
	return e.WriteToken(jsontext.EndObject)
}

// ListOrNull is a list, null when it is nil: what is not known is not empty.
type ListOrNull[T any] []T

// MarshalJSONTo writes the list or null.
func (list ListOrNull[T]) MarshalJSONTo(e *jsontext.Encoder) error {
	if list == nil {
		return e.WriteToken(jsontext.Null)
	}
	return json.MarshalEncode(e, []T(list))
}

// Text is a string of a file, which need not be UTF-8.
type Text string

// MarshalJSONTo writes the string, or an object that has its bytes in base64.
func (t Text) MarshalJSONTo(e *jsontext.Encoder) error {
	if utf8.ValidString(string(t)) {
		return e.WriteToken(jsontext.String(string(t)))
	}
	return json.MarshalEncode(e, struct {
		Bytes []byte `json:"base64"`
	}{[]byte(t)})
}

// objectKey turns any bytes into the name of an object's member, and no two of them
// into the same.
func objectKey(s string) string {
	const prefix = "base64:"
	if utf8.ValidString(s) && !strings.HasPrefix(s, prefix) {
		return s
	}
	return prefix + base64.StdEncoding.EncodeToString([]byte(s))
}

// Number is a floating-point number, which JSON may lack.
type Number struct {
	Value float64
	bits  int // 32 or 64: how many digits say it exactly
}

// Float is a number of 64 bits.
func Float(x float64) *Number { return &Number{x, 64} }

// String writes the shortest digits that give the number back.
func (n Number) String() string {
	switch {
	case math.IsNaN(n.Value):
		return "NaN"
	case math.IsInf(n.Value, 1):
		return "Infinity"
	case math.IsInf(n.Value, -1):
		return "-Infinity"
	}
	return strconv.FormatFloat(n.Value, 'g', -1, n.bits)
}

// plain reports whether JSON has the number.
func (n Number) plain() bool { return !math.IsNaN(n.Value) && !math.IsInf(n.Value, 0) }

// MarshalJSONTo writes the number, or its name as a string.
func (n Number) MarshalJSONTo(e *jsontext.Encoder) error {
	if !n.plain() {
		return e.WriteToken(jsontext.String(n.String()))
	}
	return e.WriteValue(strconv.AppendFloat(e.AvailableBuffer(), n.Value, 'g', -1, n.bits))
}
