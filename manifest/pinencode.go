package manifest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"
)

// EncodePin writes the document of p: UTF-8 JSON, indented by two spaces, keys in the
// order of the type's fields, a newline at the end. The same pin gives the same bytes.
// It is compressed with zstd when name, which is not used otherwise, ends in ".zst".
func EncodePin(w io.Writer, name string, p *Pin) error {
	if err := p.Validate(); err != nil {
		return err
	}
	if !strings.HasSuffix(name, ".zst") {
		return p.writeJSON(w)
	}
	// One goroutine: the cut into blocks must not depend on how many there are. Most of
	// the text is digests in base64, in which nothing repeats; entropy coding of all
	// literals takes 6 % off such a document, and a larger window nothing.
	z, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(2<<20), zstd.WithAllLitEntropyCompression(true))
	if err != nil {
		return err
	}
	return errors.Join(p.writeJSON(z), z.Close())
}

func (p *Pin) writeJSON(w io.Writer) error {
	b := bufio.NewWriterSize(w, 64<<10)
	d := newDocumentWriter(b)
	for name, member := range p.members() {
		d.name(name)
		if !isList(member) {
			d.value(member)
			continue
		}
		for i := range member.Len() {
			d.element(member.Index(i))
		}
		d.endList()
	}
	d.end()
	return errors.Join(d.err, b.Flush())
}

// members yields the name and the variable of each member of the document, in order.
func (p *Pin) members() iter.Seq2[string, reflect.Value] {
	return func(yield func(string, reflect.Value) bool) {
		for field, value := range reflect.ValueOf(p).Elem().Fields() {
			if !yield(field.Tag.Get("json"), value) {
				return
			}
		}
	}
}

// isList reports whether a member is written element by element.
func isList(member reflect.Value) bool { return member.Kind() == reflect.Slice && !member.IsNil() }

// A documentWriter writes a document as an indenting [json.Encoder] would, but a part at a
// time: there can be very many tensors and keys. The first error sticks.
type documentWriter struct {
	w        io.Writer
	part     bytes.Buffer  // what the encoders write to
	values   *json.Encoder // of members that are written whole
	elements *json.Encoder // of lists
	named    int           // members so far
	listed   int           // elements so far of the list that is being written
	err      error
}

func newDocumentWriter(w io.Writer) *documentWriter {
	d := &documentWriter{w: w}
	d.values, d.elements = partEncoder(&d.part, "  "), partEncoder(&d.part, "    ")
	return d
}

// partEncoder writes values whose lines but for the first begin with prefix.
func partEncoder(w io.Writer, prefix string) *json.Encoder {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent(prefix, "  ")
	return e
}

// name begins the next member.
func (d *documentWriter) name(name string) {
	d.write(separator(d.named, "{") + "\n  \"" + name + "\": ")
	d.named++
}

// value writes a member that is written whole.
func (d *documentWriter) value(v reflect.Value) { d.encode(d.values, v) }

// element writes the next element of a member that is a list.
func (d *documentWriter) element(v reflect.Value) {
	d.write(separator(d.listed, "[") + "\n    ")
	d.encode(d.elements, v)
	d.listed++
}

// endList ends the list, which may have no elements.
func (d *documentWriter) endList() {
	if d.listed == 0 {
		d.write("[]")
	} else {
		d.write("\n  ]")
	}
	d.listed = 0
}

// end ends the document.
func (d *documentWriter) end() { d.write("\n}\n") }

// separator stands between a part and the n parts before it.
func separator(n int, open string) string {
	if n == 0 {
		return open
	}
	return ","
}

func (d *documentWriter) encode(e *json.Encoder, v reflect.Value) {
	d.part.Reset()
	if err := e.Encode(v.Interface()); err != nil && d.err == nil {
		d.err = err
	}
	d.write(strings.TrimSuffix(d.part.String(), "\n"))
}

func (d *documentWriter) write(s string) {
	if d.err == nil {
		_, d.err = io.WriteString(d.w, s)
	}
}

// checkText refuses text that JSON cannot hold as it is.
func checkText(what, s string) error {
	if !utf8.ValidString(s) {
		return fmt.Errorf("pin: %s %q is not UTF-8", what, s)
	}
	return nil
}
