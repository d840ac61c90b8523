package main

import (
	"encoding/base64"
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

// elements yields the elements of a list that is not held in memory.
type elements func(yield func(element any) error) error

// members yields the members of an object that is not held in memory.
type members func(yield func(name string, value any) error) error

// json writes a document, the fields of a struct. Nothing of it is held in memory as text:
// its lists and texts can be as long as the files that they are read from.
func (con *console) json(document any) error {
	w := &jsonWriter{w: con.out, indent: "\n"}
	err := w.structure(reflect.ValueOf(document), true)
	w.raw("\n")
	return err
}

// text is a string of a file, which need not be UTF-8.
type text string

// objectKey turns any bytes into the name of an object's member, and no two of them
// into the same.
func objectKey(s string) string {
	const prefix = "base64:"
	if utf8.ValidString(s) && !strings.HasPrefix(s, prefix) {
		return s
	}
	return prefix + base64.StdEncoding.EncodeToString([]byte(s))
}

// number is a floating-point number, which JSON may lack.
type number struct {
	value float64
	bits  int // 32 or 64: how many digits say it exactly
}

// String writes the shortest digits that give the number back.
func (n number) String() string {
	switch {
	case math.IsNaN(n.value):
		return "NaN"
	case math.IsInf(n.value, 1):
		return "Infinity"
	case math.IsInf(n.value, -1):
		return "-Infinity"
	}
	return strconv.FormatFloat(n.value, 'g', -1, n.bits)
}

// plain reports whether JSON has the number.
func (n number) plain() bool { return !math.IsNaN(n.value) && !math.IsInf(n.value, 0) }

// json writes a number, or its name as a string.
func (n number) json() string {
	if !n.plain() {
		return strconv.Quote(n.String())
	}
	return n.String()
}
