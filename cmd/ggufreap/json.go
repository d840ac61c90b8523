package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"regexp"
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

// json writes a document, the fields of a struct. Long lists are written element by
// element, so that they are not held in memory as text.
func (con *console) json(document any) error {
	v := reflect.ValueOf(document)
	separator := "{\n"
	for i := range v.NumField() {
		name, options, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		field := v.Field(i)
		if name == "" || name == "-" || options == "omitempty" && field.IsZero() {
			continue
		}
		con.printf("%s  %q: ", separator, name)
		if err := con.jsonField(field); err != nil {
			return err
		}
		separator = ",\n"
	}
	con.printf("\n}\n")
	return nil
}

func (con *console) jsonField(v reflect.Value) error {
	switch field := v.Interface().(type) {
	case elements:
		return con.jsonElements(field)
	case members:
		return con.jsonMembers(field)
	case json.Marshaler:
		return con.jsonValue(field, "  ")
	}
	if v.Kind() != reflect.Slice {
		return con.jsonValue(v.Interface(), "  ")
	}
	return con.jsonElements(func(yield func(any) error) error {
		for i := range v.Len() {
			if err := yield(v.Index(i).Interface()); err != nil {
				return err
			}
		}
		return nil
	})
}

func (con *console) jsonElements(list elements) error {
	return con.jsonBracket("[", "]", func(next func()) error {
		return list(func(element any) error {
			next()
			return con.jsonValue(element, "    ")
		})
	})
}

func (con *console) jsonMembers(list members) error {
	return con.jsonBracket("{", "}", func(next func()) error {
		return list(func(name string, value any) error {
			next()
			key, err := marshal(name)
			if err != nil {
				return err
			}
			con.printf("%s: ", escapeJSON(string(key)))
			return con.jsonValue(value, "    ")
		})
	})
}

// jsonBracket writes what stands inside a bracket; next begins each part of it.
func (con *console) jsonBracket(open, end string, inside func(next func()) error) error {
	con.printf("%s", open)
	separator := ""
	err := inside(func() {
		con.printf("%s\n    ", separator)
		separator = ","
	})
	if separator != "" {
		con.printf("\n  ")
	}
	con.printf("%s", end)
	return err
}

func (con *console) jsonValue(v any, indent string) error {
	compact, err := marshal(v)
	if err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, compact, indent, "  "); err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	con.out.WriteString(escapeJSON(inlineNumbers(indented.String())))
	return nil
}

// numberList matches an indented list of nothing but numbers. A line break cannot stand
// in a string, so this is never part of one.
var numberList = regexp.MustCompile(`\[\n[-+0-9.eE,\s]+\]`)

// inlineNumbers puts lists of numbers, such as shapes, on one line.
func inlineNumbers(s string) string {
	return numberList.ReplaceAllStringFunc(s, func(list string) string {
		return "[" + strings.Join(strings.Fields(strings.Trim(list, "[]")), " ") + "]"
	})
}

// escapeJSON spells out what encoding/json leaves as it is and a terminal acts on:
// such runes can stand in strings only.
func escapeJSON(s string) string {
	if unsafeAt(s, "\n") < 0 {
		return s
	}
	var b strings.Builder
	marks := 0
	for _, r := range s {
		marks = countMarks(marks, r)
		switch {
		case r == '\n' || !hidden(r) && marks <= maxMarks:
			b.WriteRune(r)
		case r > 0xffff:
			high, low := (r-0x10000)>>10+0xd800, (r-0x10000)&0x3ff+0xdc00
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// text is a string of a file, which need not be UTF-8.
type text string

// MarshalJSON writes a string, or its bytes in base64.
func (t text) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(t)) {
		return marshal(string(t))
	}
	return marshal(struct {
		Base64 string `json:"base64"`
	}{base64.StdEncoding.EncodeToString([]byte(t))})
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

// marshal is json.Marshal without the escapes that HTML needs.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
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

// MarshalJSON writes a number, or its name as a string.
func (n number) MarshalJSON() ([]byte, error) {
	s := n.String()
	if math.IsNaN(n.value) || math.IsInf(n.value, 0) {
		s = strconv.Quote(s)
	}
	return []byte(s), nil
}
