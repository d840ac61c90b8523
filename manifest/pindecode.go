package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"ggufreap/manifest/internal/strict"
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

// ZstdMagic begins a file that zstd has compressed.
var ZstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}

// ReadPin reads the pin document at path, a regular file, as [DecodePin] does. Its errors name the
// path.
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
	kind := strict.Kind{Noun: "pin", Schema: PinSchema, Bytes: maxPinBytes, Part: maxPinPart, Allowed: packed.allow}
	p := &Pin{}
	if err := kind.Decode(unpacked, p); err != nil {
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

// allow refuses to unpack many bytes from few.
func (c *countedReader) allow(size int64) error {
	if size <= smallPinBytes+pinRatio*c.n {
		return nil
	}
	return fmt.Errorf("%d bytes are compressed in %d, better than digests of real data can be: decompress it first if it can be trusted", size, c.n)
}
