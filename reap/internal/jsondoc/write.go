package jsondoc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
)

// A Writer writes JSON with an indent of two spaces, keys in the order of its calls, a
// list of numbers on one line. Equal calls give equal bytes.
type Writer struct {
	buf   bytes.Buffer
	depth int
	empty bool // nothing yet inside the innermost bracket
	err   error
}

// Document returns what was written, with a newline at its end.
func (w *Writer) Document() ([]byte, error) {
	w.buf.WriteByte('\n')
	return w.buf.Bytes(), w.err
}

// Open writes a "{" or "[".
func (w *Writer) Open(bracket string) {
	w.buf.WriteString(bracket)
	w.depth++
	w.empty = true
}

// Close writes the bracket that ends what Open began.
func (w *Writer) Close(bracket string) {
	w.depth--
	if !w.empty {
		w.line()
	}
	w.buf.WriteString(bracket)
	w.empty = false
}

func (w *Writer) line() {
	w.buf.WriteByte('\n')
	for range w.depth {
		w.buf.WriteString("  ")
	}
}

// Item begins the next element of the innermost bracket.
func (w *Writer) Item() *Writer {
	if !w.empty {
		w.buf.WriteByte(',')
	}
	w.line()
	w.empty = false
	return w
}

// Key begins the next member of the innermost object.
func (w *Writer) Key(key string) *Writer {
	w.Item().quote(key)
	w.buf.WriteString(": ")
	return w
}

// Text writes a member that is a string.
func (w *Writer) Text(key, value string) { w.Key(key).quote(value) }

// TextOrNull writes a member that is a string, or null in place of an empty one.
func (w *Writer) TextOrNull(key, value string) {
	if value == "" {
		w.Key(key).buf.WriteString("null")
		return
	}
	w.Text(key, value)
}

// Int writes a member that is a whole number.
func (w *Writer) Int(key string, n int) { w.Key(key).buf.WriteString(strconv.Itoa(n)) }

// Ints writes a member that is a list of whole numbers.
func (w *Writer) Ints(key string, list []int) {
	w.Key(key).numbers(len(list), func(i int) string { return strconv.Itoa(list[i]) })
}

// Floats writes a member that is a list of numbers, each with the fewest digits that
// give it back. JSON has no NaN and no infinity.
func (w *Writer) Floats(key string, list []float64) {
	w.Key(key).numbers(len(list), func(i int) string {
		if (math.IsNaN(list[i]) || math.IsInf(list[i], 0)) && w.err == nil {
			w.err = fmt.Errorf("%s[%d]: JSON has no number %v", key, i, list[i])
		}
		return strconv.FormatFloat(list[i], 'g', -1, 64)
	})
}

func (w *Writer) numbers(n int, text func(i int) string) {
	w.buf.WriteByte('[')
	for i := range n {
		if i > 0 {
			w.buf.WriteString(", ")
		}
		w.buf.WriteString(text(i))
	}
	w.buf.WriteByte(']')
}

// quote writes a JSON string. Text that is not UTF-8 has no exact form in JSON.
func (w *Writer) quote(s string) {
	if !utf8.ValidString(s) && w.err == nil {
		w.err = fmt.Errorf("%q is not UTF-8", s)
	}
	e := json.NewEncoder(&w.buf)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil && w.err == nil {
		w.err = err
	}
	w.buf.Truncate(w.buf.Len() - 1) // the encoder's newline
}
