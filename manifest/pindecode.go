package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"

	"github.com/klauspost/compress/zstd"
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
	// as many experts as a split could number has 3 MB.
	maxPinPart = 4 << 20
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
// of it: what JSON forgives (a key twice, other letter case, text behind the end) would
// let two readers see two pins in one document.
func (p *Pin) readJSON(text *comparedText) error {
	d := pinDecoder{in: json.NewDecoder(text), out: newDocumentWriter(text)}
	d.in.DisallowUnknownFields()
	for name, member := range p.members() {
		var err error
		if name == schemaMember {
			err = d.schema(member)
		} else {
			err = d.member(name, member)
		}
		if err != nil {
			return err
		}
	}
	if err := d.token(json.Delim('}')); err != nil {
		return err
	}
	if d.out.end(); d.out.err != nil {
		return d.out.err
	}
	return text.ended()
}

// schemaMember is the first member of a document.
const schemaMember = "schema"

// A pinDecoder reads a pin document and writes at once what it has read.
type pinDecoder struct {
	in  *json.Decoder
	out *documentWriter
}

// schema reads the beginning of the document, before anything else is believed.
func (d *pinDecoder) schema(member reflect.Value) error {
	var tokens [3]json.Token
	for i := range tokens {
		var err error
		if tokens[i], err = d.in.Token(); err != nil {
			return fmt.Errorf("not a JSON document with a schema: %w", err)
		}
	}
	if tokens[0] != json.Delim('{') || tokens[1] != schemaMember {
		return fmt.Errorf("document does not begin with %q", schemaMember)
	}
	if tokens[2] != PinSchema {
		return fmt.Errorf("schema is %q, want %q", fmt.Sprint(tokens[2]), PinSchema)
	}
	member.SetString(PinSchema)
	d.out.name(schemaMember)
	d.out.value(member)
	return d.out.err
}

// member reads the next member, which must have that name.
func (d *pinDecoder) member(name string, member reflect.Value) error {
	if err := d.token(name); err != nil {
		return err
	}
	d.out.name(name)
	if member.Kind() == reflect.Slice {
		return d.list(member)
	}
	if err := d.in.Decode(member.Addr().Interface()); err != nil {
		return err
	}
	d.out.value(member)
	return d.out.err
}

// list reads a member that is a list.
func (d *pinDecoder) list(member reflect.Value) error {
	if err := d.token(json.Delim('[')); err != nil {
		return err
	}
	member.Set(reflect.MakeSlice(member.Type(), 0, 0))
	for d.in.More() {
		element := reflect.New(member.Type().Elem())
		if err := d.in.Decode(element.Interface()); err != nil {
			return err
		}
		if d.out.element(element.Elem()); d.out.err != nil {
			return d.out.err
		}
		member.Set(reflect.Append(member, element.Elem()))
	}
	d.out.endList()
	return d.token(json.Delim(']'))
}

// token reads the next token, which must be want.
func (d *pinDecoder) token(want json.Token) error {
	at := d.in.InputOffset()
	t, err := d.in.Token()
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	if err != nil {
		return err
	}
	if t != want {
		return fmt.Errorf("behind byte %d: %q where %q should stand: not written as this tool writes pins", at, fmt.Sprint(t), fmt.Sprint(want))
	}
	return nil
}

// A comparedText is a text that is read, and compared with what is written.
type comparedText struct {
	r      io.Reader
	packed *countedReader // what it is decompressed from
	read   []byte         // and not compared yet
	at     int            // position of that
}

// Read reads on, but not far beyond what was compared.
func (c *comparedText) Read(p []byte) (int, error) {
	if len(c.read) > maxPinPart {
		return 0, fmt.Errorf("at byte %d: no part of a pin has more than %d bytes", c.at, maxPinPart)
	}
	n, err := c.r.Read(p)
	c.read = append(c.read, p[:n]...)
	switch size := int64(c.at + len(c.read)); {
	case size > maxPinBytes:
		return 0, fmt.Errorf("document is larger than %d bytes", maxPinBytes)
	case size > smallPinBytes+pinRatio*c.packed.n:
		return 0, fmt.Errorf("%d bytes are compressed in %d, better than digests of real data can be: decompress it first if it can be trusted", size, c.packed.n)
	}
	return n, err
}

// Write compares p with what comes next of what was read.
func (c *comparedText) Write(p []byte) (int, error) {
	for i, b := range p {
		if i >= len(c.read) || c.read[i] != b {
			return i, fmt.Errorf("at byte %d: not written as this tool writes pins", c.at+i)
		}
	}
	c.read = c.read[len(p):]
	c.at += len(p)
	return len(p), nil
}

// ended returns an error when there is more to read.
func (c *comparedText) ended() error {
	n, err := c.Read(make([]byte, 1))
	if len(c.read) > 0 || n > 0 {
		return fmt.Errorf("at byte %d: text behind the end", c.at)
	}
	if err != io.EOF {
		return err
	}
	return nil
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
