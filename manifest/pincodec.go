package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"
)

const (
	// maxPinBytes bounds a pin document once decompressed, so that a small file cannot
	// ask for all memory. The pin of a model with 93 layers of 896 experts has 15 MB.
	maxPinBytes = 64 << 20
	// maxPinWindow bounds what the decompressor remembers. Ours writes with less.
	maxPinWindow = 16 << 20
)

var zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}

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
	// literals takes 6 % off such a document.
	z, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithAllLitEntropyCompression(true))
	if err != nil {
		return err
	}
	return errors.Join(p.writeJSON(z), z.Close())
}

func (p *Pin) writeJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(p)
}

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
// of the same pin, and a pin that contradicts itself. A document larger than 64 MiB,
// once decompressed, is an error.
func DecodePin(r io.Reader) (*Pin, error) {
	text, err := readDocument(r)
	if err != nil {
		return nil, err
	}
	if err := checkSchema(text); err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	p := &Pin{}
	if err := d.Decode(p); err != nil {
		return nil, fmt.Errorf("pin: %w", err)
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	// What JSON forgives (a key twice, other letter case, text behind the end) would
	// let two readers see two pins in one document.
	same := &comparingWriter{want: text}
	if err := p.writeJSON(same); err != nil {
		return nil, err
	}
	if same.at != len(text) {
		return nil, fmt.Errorf("pin: at byte %d: text behind the end", same.at)
	}
	return p, nil
}

// readDocument returns the whole text, decompressed, within the bounds.
func readDocument(r io.Reader) ([]byte, error) {
	head := make([]byte, len(zstdMagic))
	n, err := io.ReadFull(r, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	r = io.MultiReader(bytes.NewReader(head[:n]), r)
	if bytes.Equal(head, zstdMagic) {
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxPinWindow), zstd.WithDecoderMaxMemory(maxPinBytes))
		if err != nil {
			return nil, err
		}
		defer z.Close()
		r = z
	}
	text, err := io.ReadAll(io.LimitReader(r, maxPinBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("pin: after %d bytes: %w", len(text), err)
	case len(text) > maxPinBytes:
		return nil, fmt.Errorf("pin: document is larger than %d bytes", maxPinBytes)
	}
	return text, nil
}

// checkSchema reads the first member of the document, before anything else is believed.
func checkSchema(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	var tokens [3]json.Token
	for i := range tokens {
		var err error
		if tokens[i], err = d.Token(); err != nil {
			return fmt.Errorf("pin: not a JSON document with a schema: %w", err)
		}
	}
	if tokens[0] != json.Delim('{') || tokens[1] != "schema" {
		return errors.New(`pin: document does not begin with "schema"`)
	}
	if tokens[2] != PinSchema {
		return fmt.Errorf("pin: schema is %q, want %q", tokens[2], PinSchema)
	}
	return nil
}

// comparingWriter errs at the first byte that is not the wanted one.
type comparingWriter struct {
	want []byte
	at   int
}

func (c *comparingWriter) Write(p []byte) (int, error) {
	for i, b := range p {
		if c.at+i >= len(c.want) || c.want[c.at+i] != b {
			return i, fmt.Errorf("pin: at byte %d: not written as this tool writes pins", c.at+i)
		}
	}
	c.at += len(p)
	return len(p), nil
}

// checkText refuses text that JSON cannot hold as it is.
func checkText(what, s string) error {
	if !utf8.ValidString(s) {
		return fmt.Errorf("pin: %s %q is not UTF-8", what, s)
	}
	return nil
}
