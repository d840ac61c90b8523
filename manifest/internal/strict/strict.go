// Package strict reads JSON documents that this program wrote, and nothing else: each has one
// text. What JSON forgives (spaces, escapes, the order of members, text behind the end) would
// let one document have many.
package strict

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"ggufreap/gguf/jsondoc"
)

// form is how a document is written: indented, and with the escapes that encoding/json has.
var form = json.JoinOptions(jsontext.WithIndent("  "), jsontext.EscapeForJS(true))

// Encode writes the document of the fields of a struct, a newline at the end. It writes a
// part at a time: lists can be very long.
func Encode(w io.Writer, document any) error {
	b := bufio.NewWriterSize(w, 64<<10)
	err := json.MarshalEncode(jsontext.NewEncoder(b, form), document)
	return errors.Join(err, b.Flush())
}

// A Kind is what is read, and bounds it.
type Kind struct {
	Noun   string // for messages, in the singular
	Schema string
	Bytes  int64 // of a document
	// Part bounds what is read before it is compared: one field, or one element of a list.
	Part int
	// Allowed, unless nil, returns an error for so many bytes.
	Allowed func(size int64) error
}

// Decode fills the struct that document points to, whose first field is its schema, from its
// text. Lists are read element by element, and each part is compared with what would be
// written of it, so that memory is bounded by what the document really holds.
func (k Kind) Decode(r io.Reader, document any) error {
	text := &comparedText{r: r, kind: k}
	d := decoder{jsontext.NewDecoder(text), jsontext.NewEncoder(text, form), k}
	err := d.document(reflect.ValueOf(document).Elem())
	if text.err != nil {
		return text.err
	}
	if err != nil {
		return jsondoc.ReadError(err)
	}
	return text.ended()
}

// A decoder reads a document and writes at once what it has read.
type decoder struct {
	in   *jsontext.Decoder
	out  *jsontext.Encoder
	kind Kind
}

func (d *decoder) document(v reflect.Value) error {
	if err := d.schema(v); err != nil {
		return err
	}
	for field, member := range v.Fields() {
		name := field.Tag.Get("json")
		if name == schemaMember {
			continue
		}
		if err := d.token(jsontext.String(name)); err != nil {
			return err
		}
		if err := d.member(member); err != nil {
			return err
		}
	}
	return d.token(jsontext.EndObject)
}

// schemaMember is the first member of a document.
const schemaMember = "schema"

// schema reads the beginning of the document, before anything else is believed.
func (d *decoder) schema(v reflect.Value) error {
	var begin [3]string
	for i := range begin {
		token, err := d.in.ReadToken()
		if err != nil {
			return fmt.Errorf("not a JSON document with a schema: %w", jsondoc.ReadError(err))
		}
		begin[i] = token.String()
	}
	if begin[0] != "{" || begin[1] != schemaMember {
		return fmt.Errorf("document does not begin with %q", schemaMember)
	}
	if begin[2] != d.kind.Schema {
		return fmt.Errorf("schema is %q, want %q", begin[2], d.kind.Schema)
	}
	v.Field(0).SetString(d.kind.Schema)
	return cmp.Or(
		d.out.WriteToken(jsontext.BeginObject),
		d.out.WriteToken(jsontext.String(schemaMember)),
		d.out.WriteToken(jsontext.String(d.kind.Schema)),
	)
}

// member reads the value of a member, a list element by element.
func (d *decoder) member(member reflect.Value) error {
	if member.Kind() != reflect.Slice {
		return d.value(member.Addr())
	}
	if err := d.token(jsontext.BeginArray); err != nil {
		return err
	}
	member.Set(reflect.MakeSlice(member.Type(), 0, 0))
	for d.in.PeekKind() != jsontext.KindEndArray {
		element := reflect.New(member.Type().Elem())
		if err := d.value(element); err != nil {
			return err
		}
		member.Set(reflect.Append(member, element.Elem()))
	}
	return d.token(jsontext.EndArray)
}

// value reads a value into what v points to.
func (d *decoder) value(v reflect.Value) error {
	if err := json.UnmarshalDecode(d.in, v.Interface(), json.RejectUnknownMembers(true)); err != nil {
		return err
	}
	return json.MarshalEncode(d.out, v.Interface())
}

// token reads the next token, which must be want.
func (d *decoder) token(want jsontext.Token) error {
	at := d.in.InputOffset()
	got, err := d.in.ReadToken()
	if err != nil {
		return err
	}
	if got.Kind() != want.Kind() || got.String() != want.String() {
		return fmt.Errorf("behind byte %d: %q where %q should stand: not written as this tool writes %ss", at, got, want, d.kind.Noun)
	}
	return d.out.WriteToken(want)
}

// A comparedText is a text that is read, and compared with what is written.
type comparedText struct {
	r    io.Reader
	kind Kind
	read []byte // and not compared yet
	at   int    // position of that
	err  error  // the first one, but for the end
}

// Read reads on, but not far beyond what was compared.
func (c *comparedText) Read(p []byte) (int, error) {
	if len(c.read) > c.kind.Part {
		return 0, c.fail("at byte %d: no part of a %s has more than %d bytes", c.at, c.kind.Noun, c.kind.Part)
	}
	n, err := c.r.Read(p)
	c.read = append(c.read, p[:n]...)
	size := int64(c.at + len(c.read))
	if size > c.kind.Bytes {
		return 0, c.fail("document is larger than %d bytes", c.kind.Bytes)
	}
	if c.kind.Allowed != nil {
		if err := c.kind.Allowed(size); err != nil {
			return 0, c.fail("%w", err)
		}
	}
	if err != nil && err != io.EOF {
		return n, c.fail("%w", err)
	}
	return n, err
}

// Write compares p with what comes next of what was read.
func (c *comparedText) Write(p []byte) (int, error) {
	for i, b := range p {
		if i >= len(c.read) || c.read[i] != b {
			return i, c.fail("at byte %d: not written as this tool writes %ss", c.at+i, c.kind.Noun)
		}
	}
	c.read = c.read[len(p):]
	c.at += len(p)
	return len(p), nil
}

func (c *comparedText) fail(format string, args ...any) error {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
	return c.err
}

// ended returns an error when there is more to read.
func (c *comparedText) ended() error {
	n, err := c.Read(make([]byte, 1))
	switch {
	case len(c.read) > 0 || n > 0:
		return fmt.Errorf("at byte %d: text behind the end", c.at)
	case err == io.EOF:
		return nil
	}
	return err
}
