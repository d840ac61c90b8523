// Package document writes the documents of --json, from structs and from lists that are not
// held in memory. It knows JSON and how values of a model's metadata stand in it. What a
// document says is the business of those who make one; what a screen says, of package ui.
package document

import (
	"encoding/base64"
	"io"
	"math"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
)

// JSON documents: UTF-8, two-space indent, keys in the order of the struct's fields,
// a newline at the end. Four rules keep them free of loss:
//
//   - a string that is not UTF-8 is {"base64": "..."} in place of the string
//   - u64 and i64 values of metadata are strings of digits; sizes, offsets, dims and
//     counts are numbers, which a reader must take as 64-bit integers
//   - numbers that JSON does not have are "NaN", "Infinity" and "-Infinity"
//   - a bool of metadata whose byte is neither 1 nor 0 is that byte, a number

// Elements yields the elements of a list that is not held in memory.
type Elements func(yield func(element any) error) error

// Members yields the members of an object that is not held in memory.
type Members func(yield func(name string, value any) error) error

// A writer is where documents go. Its errors stick to it.
type writer interface {
	io.Writer
	io.StringWriter
	io.ByteWriter
}

// Write writes a document, the fields of a struct. Nothing of it is held in memory as
// text: its lists and texts can be as long as the files that they are read from. Errors of
// writing stick to w; those that it returns are errors of reading what is written.
func Write(to writer, document any) error {
	w := &jsonWriter{W: to, indent: "\n"}
	err := w.structure(reflect.ValueOf(document), true)
	w.raw("\n")
	return err
}

// Text is a string of a file, which need not be UTF-8.
type Text string

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

// json writes a number, or its name as a string.
func (n Number) json() string {
	if !n.plain() {
		return strconv.Quote(n.String())
	}
	return n.String()
}
