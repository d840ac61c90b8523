package reap

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// A jsonWriter writes indented JSON in the order of its calls.
type jsonWriter struct {
	buf   bytes.Buffer
	depth int
	empty bool // nothing yet inside the innermost bracket
	err   error
}

func (w *jsonWriter) open(bracket string) {
	w.buf.WriteString(bracket)
	w.depth++
	w.empty = true
}

func (w *jsonWriter) close(bracket string) {
	w.depth--
	if !w.empty {
		w.line()
	}
	w.buf.WriteString(bracket)
	w.empty = false
}

func (w *jsonWriter) line() {
	w.buf.WriteByte('\n')
	for range w.depth {
		w.buf.WriteString("  ")
	}
}

// item begins the next element of the innermost bracket.
func (w *jsonWriter) item() *jsonWriter {
	if !w.empty {
		w.buf.WriteByte(',')
	}
	w.line()
	w.empty = false
	return w
}

func (w *jsonWriter) key(key string) *jsonWriter {
	w.item().quote(key)
	w.buf.WriteString(": ")
	return w
}

func (w *jsonWriter) text(key, value string) { w.key(key).quote(value) }

func (w *jsonWriter) textOrNull(key, value string) {
	if value == "" {
		w.key(key).buf.WriteString("null")
		return
	}
	w.text(key, value)
}

func (w *jsonWriter) number(key string, n int) { fmt.Fprintf(&w.key(key).buf, "%d", n) }

func (w *jsonWriter) numbers(key string, list []int) {
	w.key(key).buf.WriteByte('[')
	for i, n := range list {
		if i > 0 {
			w.buf.WriteString(", ")
		}
		w.buf.WriteString(strconv.Itoa(n))
	}
	w.buf.WriteByte(']')
}

// quote writes a JSON string. Text that is not UTF-8 has no exact form in JSON.
func (w *jsonWriter) quote(s string) {
	if !utf8.ValidString(s) && w.err == nil {
		w.err = fmt.Errorf("plan: %q is not UTF-8", s)
	}
	e := json.NewEncoder(&w.buf)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil && w.err == nil {
		w.err = err
	}
	w.buf.Truncate(w.buf.Len() - 1) // the encoder's newline
}
