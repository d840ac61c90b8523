package document

import (
	"bytes"
	"encoding"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
)

// A jsonWriter writes values as encoding/json does, but for the rules of documents, and
// straight to where they go. Errors of writing stick to w; those that it returns are
// errors of reading what is written.
type jsonWriter struct {
	W      writer
	indent string // a line break and what the line begins with; "" writes all on one line
}

func (w *jsonWriter) raw(s string) { w.W.WriteString(s) }

// bracket writes what stands inside a bracket; next begins each part of it.
func (w *jsonWriter) bracket(open, end string, inside func(next func()) error) error {
	w.raw(open)
	outer, separator := w.indent, ""
	if outer != "" {
		w.indent += "  "
	}
	err := inside(func() {
		w.raw(separator)
		w.raw(w.indent)
		separator = ","
	})
	w.indent = outer
	if separator != "" {
		w.raw(outer)
	}
	w.raw(end)
	return err
}

// name writes the name of a member.
func (w *jsonWriter) name(s string) {
	w.text(s)
	w.raw(":")
	if w.indent != "" {
		w.raw(" ")
	}
}

// structure writes the fields of a struct. In the one that is the document, a list that is
// nil is an empty one, and numbers stand on lines of their own.
func (w *jsonWriter) structure(v reflect.Value, document bool) error {
	return w.bracket("{", "}", func(next func()) error {
		for i := range v.NumField() {
			name, options, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			field := v.Field(i)
			if name == "" || name == "-" || options == "omitempty" && field.IsZero() {
				continue
			}
			next()
			w.name(name)
			write := w.value
			if document && field.Kind() == reflect.Slice {
				write = w.list
			}
			if err := write(field); err != nil {
				return err
			}
		}
		return nil
	})
}

// any writes a value of any type.
func (w *jsonWriter) any(v any) error { return w.value(reflect.ValueOf(v)) }

func (w *jsonWriter) value(v reflect.Value) error {
	if !v.IsValid() {
		w.raw("null")
		return nil
	}
	switch x := v.Interface().(type) {
	case Text:
		return w.bytes(string(x))
	case Value:
		return w.metadata(x)
	case PairValue:
		return w.any(x.document())
	case Elements:
		return w.elements(x)
	case Members:
		return w.members(x)
	case Number:
		w.raw(x.json())
		return nil
	case json.Marshaler, encoding.TextMarshaler:
		if v.Kind() != reflect.Pointer || !v.IsNil() {
			return w.marshaled(x)
		}
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			w.raw("null")
			return nil
		}
		return w.value(v.Elem())
	case reflect.Struct:
		return w.structure(v, false)
	case reflect.Slice:
		if v.IsNil() {
			w.raw("null")
			return nil
		}
		if isNumber(v.Type().Elem()) {
			return w.inline(v)
		}
		return w.list(v)
	case reflect.String:
		w.text(v.String())
		return nil
	case reflect.Bool:
		w.raw(strconv.FormatBool(v.Bool()))
		return nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		w.raw(strconv.FormatInt(v.Int(), 10))
		return nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		w.raw(strconv.FormatUint(v.Uint(), 10))
		return nil
	}
	return w.marshaled(v.Interface())
}

func isNumber(t reflect.Type) bool { return t.Kind() >= reflect.Int && t.Kind() <= reflect.Float64 }

func (w *jsonWriter) list(v reflect.Value) error {
	return w.elements(func(yield func(any) error) error {
		for i := range v.Len() {
			if err := yield(v.Index(i).Interface()); err != nil {
				return err
			}
		}
		return nil
	})
}

// inline writes a list of numbers, such as a shape, on one line.
func (w *jsonWriter) inline(v reflect.Value) error {
	w.raw("[")
	for i := range v.Len() {
		if i > 0 {
			w.separate()
		}
		if err := w.value(v.Index(i)); err != nil {
			return err
		}
	}
	w.raw("]")
	return nil
}

// separate writes what stands between numbers on one line.
func (w *jsonWriter) separate() {
	w.raw(",")
	if w.indent != "" {
		w.raw(" ")
	}
}

func (w *jsonWriter) elements(list Elements) error {
	return w.bracket("[", "]", func(next func()) error {
		return list(func(element any) error {
			next()
			return w.any(element)
		})
	})
}

func (w *jsonWriter) members(list Members) error {
	return w.bracket("{", "}", func(next func()) error {
		return list(func(name string, value any) error {
			next()
			w.name(name)
			return w.any(value)
		})
	})
}

// marshaled writes what encoding/json makes of a floating-point number, a map, or a type of
// another package.
func (w *jsonWriter) marshaled(v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	d := json.NewDecoder(&b)
	d.UseNumber()
	return w.tokens(d)
}

// tokens writes the next value of a decoder.
func (w *jsonWriter) tokens(d *json.Decoder) error {
	t, err := d.Token()
	if err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	switch t := t.(type) {
	case string:
		w.text(t)
	case json.Delim:
		end := map[json.Delim]string{'[': "]", '{': "}"}[t]
		err = w.bracket(t.String(), end, func(next func()) error {
			for d.More() {
				next()
				if t == '{' {
					name, err := d.Token()
					if err != nil {
						return err
					}
					w.name(fmt.Sprint(name))
				}
				if err := w.tokens(d); err != nil {
					return err
				}
			}
			return nil
		})
		if err == nil {
			_, err = d.Token() // the end
		}
		return err
	case nil:
		w.raw("null")
	default:
		w.raw(fmt.Sprint(t))
	}
	return nil
}

// metadata writes a value of a file.
func (w *jsonWriter) metadata(v Value) error {
	switch v.Type() {
	case gguf.Text:
		s, err := TextOf(v.Value)
		if err != nil {
			return err
		}
		return w.bytes(s)
	case gguf.Array:
		return w.array(v)
	case gguf.Uint64, gguf.Int64:
		w.text(Scalar(v.Value))
	case gguf.Float32, gguf.Float64:
		w.raw(NumberOf(v.Value).json())
	default:
		w.raw(Scalar(v.Value))
	}
	return nil
}

// array writes an array of a file: numbers on one line, if JSON has all of them.
func (w *jsonWriter) array(v Value) error {
	plain, err := plainNumbers(v)
	if err != nil {
		return err
	}
	if !plain {
		return w.elements(Items(v.Value))
	}
	w.raw("[")
	err = v.Each(func(i int64, e gguf.Value) error {
		if i > 0 {
			w.separate()
		}
		return w.metadata(Value{e})
	})
	w.raw("]")
	return err
}

// plainNumbers reports whether an array holds nothing but what a document has as numbers.
func plainNumbers(v Value) (bool, error) {
	switch v.Elem() {
	case gguf.Text, gguf.Array, gguf.Bool, gguf.Uint64, gguf.Int64:
		return false, nil
	case gguf.Float32, gguf.Float64:
		plain := true
		err := v.Each(func(_ int64, e gguf.Value) error {
			plain = plain && NumberOf(e).plain()
			return nil
		})
		return plain, err
	}
	return true, nil
}

// bytes writes a text of a file, which need not be UTF-8: then it is an object that has
// the bytes in base64.
func (w *jsonWriter) bytes(s string) error {
	if utf8.ValidString(s) {
		w.text(s)
		return nil
	}
	return w.bracket("{", "}", func(next func()) error {
		next()
		w.name("base64")
		w.raw(`"`)
		b := base64.NewEncoder(base64.StdEncoding, w.W)
		io.WriteString(b, s)
		b.Close()
		w.raw(`"`)
		return nil
	})
}

// text writes a string. It spells out what JSON does not take as it is, and what a
// terminal would act on.
func (w *jsonWriter) text(s string) {
	w.raw(`"`)
	from, marks := 0, 0 // s[:from] is written
	for i, r := range s {
		if r >= ' ' && r < utf8.RuneSelf && r != '"' && r != '\\' && r != 0x7f {
			marks = 0
			continue
		}
		size := utf8.RuneLen(r)
		if r == utf8.RuneError {
			_, size = utf8.DecodeRuneInString(s[i:])
		}
		marks = text.CountMarks(marks, r)
		if broken := r == utf8.RuneError && size == 1; r != '"' && r != '\\' && !text.Hidden(r) && marks <= text.MaxMarks && !broken {
			continue
		}
		w.raw(s[from:i])
		w.escape(r)
		from = i + size
	}
	w.raw(s[from:])
	w.raw(`"`)
}

// shortEscapes are those that JSON has for single runes.
var shortEscapes = map[rune]string{'"': `\"`, '\\': `\\`, '\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`}

func (w *jsonWriter) escape(r rune) {
	const digits = "0123456789abcdef"
	if short := shortEscapes[r]; short != "" {
		w.raw(short)
		return
	}
	if r > 0xffff {
		w.escape((r-0x10000)>>10 + 0xd800)
		r = (r-0x10000)&0x3ff + 0xdc00
	}
	w.raw(`\u`)
	for shift := 12; shift >= 0; shift -= 4 {
		w.W.WriteByte(digits[r>>shift&15])
	}
}
