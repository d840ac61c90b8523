package manifest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/klauspost/compress/zstd"

	"ggufreap/gguf/jsondoc"
)

const (
	// maxPinBytes bounds a pin document once decompressed. The pin of a model with 93
	// layers of 896 experts has 15 MB.
	maxPinBytes = 64 << 20
	// smallPinBytes bounds what a few bytes may decompress to, and pinRatio what each
	// further byte may: a small file cannot ask for much memory. A tensor has 220
	// bytes of text and a digest that does not compress below 32.
	smallPinBytes = 16 << 20
	pinRatio      = 8
	// maxPinPart bounds what is read before it is compared: a tensor with digests of
	// as many experts as a split could number has 3 MB, one with a table of ids 6.
	maxPinPart = 6 << 20
	// maxPinWindow bounds what the decompressor remembers. Ours writes with less.
	maxPinWindow = 16 << 20
)

var ZstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}

// ReadPin reads the pin document at path.
func ReadPin(path string) (*Pin, error) {
	f, _, err := OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p, err := DecodePin(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// DecodePin reads a pin document, compressed or not. It refuses another schema, a field
// that it does not know, a document that differs in any byte from what EncodePin writes
// of the same pin, and a pin that contradicts itself. A document larger than 64 MiB once
// decompressed is an error, as is one of more than 16 MiB that compressed far better than
// digests do.
func DecodePin(r io.Reader) (*Pin, error) {
	packed := &countedReader{r: r}
	unpacked, err := unpack(packed)
	if err != nil {
		return nil, fmt.Errorf("pin: %w", err)
	}
	defer unpacked.Close()
	p := &Pin{}
	if err := p.readJSON(&comparedText{r: unpacked, packed: packed}); err != nil {
		return nil, fmt.Errorf("pin: %w", err)
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return p, nil
}

// unpack returns the text of a document, decompressed when it has to be.
func unpack(r io.Reader) (io.ReadCloser, error) {
	head := make([]byte, len(ZstdMagic))
	n, err := io.ReadFull(r, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	r = io.MultiReader(bytes.NewReader(head[:n]), r)
	if !bytes.Equal(head, ZstdMagic) {
		return io.NopCloser(r), nil
	}
	z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxPinWindow), zstd.WithDecoderMaxMemory(maxPinBytes))
	if err != nil {
		return nil, err
	}
	return z.IOReadCloser(), nil
}

// readJSON fills the pin from its text. Each part is compared with what would be written
// of it: what JSON forgives (spaces, escapes, the order of members, text behind the end)
// would let one pin have many documents.
func (p *Pin) readJSON(text *comparedText) error {
	d := pinDecoder{jsontext.NewDecoder(text), jsontext.NewEncoder(text, pinForm)}
	err := d.document(p)
	if text.err != nil {
		return text.err
	}
	if err != nil {
		return jsondoc.ReadError(err)
	}
	return text.ended()
}

// A pinDecoder reads a pin document and writes at once what it has read.
type pinDecoder struct {
	in  *jsontext.Decoder
	out *jsontext.Encoder
}

func (d *pinDecoder) document(p *Pin) error {
	if err := d.schema(p); err != nil {
		return err
	}
	for field, member := range reflect.ValueOf(p).Elem().Fields() {
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
func (d *pinDecoder) schema(p *Pin) error {
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
	if p.Schema = begin[2]; p.Schema != PinSchema {
		return fmt.Errorf("schema is %q, want %q", p.Schema, PinSchema)
	}
	return cmp.Or(
		d.out.WriteToken(jsontext.BeginObject),
		d.out.WriteToken(jsontext.String(schemaMember)),
		d.out.WriteToken(jsontext.String(PinSchema)),
	)
}

// member reads the value of a member, a list element by element.
func (d *pinDecoder) member(member reflect.Value) error {
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
func (d *pinDecoder) value(v reflect.Value) error {
	if err := json.UnmarshalDecode(d.in, v.Interface(), json.RejectUnknownMembers(true)); err != nil {
		return err
	}
	return json.MarshalEncode(d.out, v.Interface())
}

// token reads the next token, which must be want.
func (d *pinDecoder) token(want jsontext.Token) error {
	at := d.in.InputOffset()
	got, err := d.in.ReadToken()
	if err != nil {
		return err
	}
	if got.Kind() != want.Kind() || got.String() != want.String() {
		return fmt.Errorf("behind byte %d: %q where %q should stand: not written as this tool writes pins", at, got, want)
	}
	return d.out.WriteToken(want)
}

// A comparedText is a text that is read, and compared with what is written.
type comparedText struct {
	r      io.Reader
	packed *countedReader // what it is decompressed from
	read   []byte         // and not compared yet
	at     int            // position of that
	err    error          // the first one, but for the end
}

// Read reads on, but not far beyond what was compared.
func (c *comparedText) Read(p []byte) (int, error) {
	if len(c.read) > maxPinPart {
		return 0, c.fail("at byte %d: no part of a pin has more than %d bytes", c.at, maxPinPart)
	}
	n, err := c.r.Read(p)
	c.read = append(c.read, p[:n]...)
	switch size := int64(c.at + len(c.read)); {
	case size > maxPinBytes:
		return 0, c.fail("document is larger than %d bytes", maxPinBytes)
	case size > smallPinBytes+pinRatio*c.packed.n:
		return 0, c.fail("%d bytes are compressed in %d, better than digests of real data can be: decompress it first if it can be trusted", size, c.packed.n)
	case err != nil && err != io.EOF:
		return n, c.fail("%w", err)
	}
	return n, err
}

// Write compares p with what comes next of what was read.
func (c *comparedText) Write(p []byte) (int, error) {
	for i, b := range p {
		if i >= len(c.read) || c.read[i] != b {
			return i, c.fail("at byte %d: not written as this tool writes pins", c.at+i)
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

// A countedReader counts the bytes that were read.
type countedReader struct {
	r io.Reader
	n int64
}

func (c *countedReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}
