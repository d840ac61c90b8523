package gguf

import (
	"encoding/binary"
	"fmt"
	"io"
)

// A File is one parsed GGUF file: its header, with readers on the rest.
type File struct {
	Name       string // as the caller named it
	Version    uint32
	Order      binary.ByteOrder
	Alignment  int64 // general.alignment, 32 when absent
	Metadata   *Metadata
	Tensors    []*Tensor // in the order of the file's table
	HeaderSize int64     // where the table of tensors ends; padding follows
	DataOffset int64     // where the data section begins
	Size       int64     // bytes of the whole file
	Problems   []Problem

	r     io.ReaderAt
	shard int // index in the model that the file was joined to
	names nameIndex
}

// NewFile parses the header of a GGUF file of size bytes. The name is used in
// messages only. It returns a [*FormatError] when the bytes are not a header that can
// be read to its end; anything else that is wrong is listed in Problems. Every
// declared count is checked against the bytes that remain before it is believed, and
// memory grows with the header that was read, not with what it declares.
func NewFile(name string, r io.ReaderAt, size int64, opts ...Option) (*File, error) {
	o, err := newOptions(opts)
	if err != nil {
		return nil, err
	}
	f := &File{Name: name, Size: size, Alignment: defaultAlignment, Metadata: NewMetadata(), r: r}
	s := newScanner(name, r, size)
	buf := scanBuffers.Get().(*[scanBuffer]byte)
	defer scanBuffers.Put(buf)
	s.buf = buf[:0]
	found := newProblems(printable(name))
	f.readHeader(s, found)
	if s.err != nil {
		return nil, s.err
	}
	f.place(o, found)
	f.Problems = found.all()
	return f, nil
}

// Err joins the problems that are errors; it is nil for a sound file.
func (f *File) Err() error { return joinErrors(f.Problems) }

// ReadAt reads bytes of the whole file, header included, as [io.ReaderAt].
func (f *File) ReadAt(p []byte, off int64) (int, error) { return f.r.ReadAt(p, off) }

// whereKey names a key of the file in messages.
func (f *File) whereKey(key string) place {
	return place{words: fmt.Sprintf("%s: key %s", printable(f.Name), quoted(key))}
}

// ByteOrder names the byte order of the file's numbers: "little" or "big".
func (f *File) ByteOrder() string {
	if f.Order == binary.BigEndian {
		return "big"
	}
	return "little"
}

// orderName spells a byte order for messages.
func orderName(order binary.ByteOrder) string {
	if order == binary.BigEndian {
		return "big endian"
	}
	return "little endian"
}

// An Option changes how files are read.
type Option func(*options)

type options struct {
	types map[Type]TypeInfo
}

// WithType teaches the block size of a type id, and takes precedence over what the
// package knows. Reading errs when a block has no elements or no bytes. The type is
// still spelled by [Type.String], since documents must not depend on what was taught.
func WithType(t Type, info TypeInfo) Option {
	return func(o *options) {
		if o.types == nil {
			o.types = map[Type]TypeInfo{}
		}
		o.types[t] = info
	}
}

func newOptions(list []Option) (options, error) {
	var o options
	for _, option := range list {
		option(&o)
	}
	for t, info := range o.types {
		if info.Elements < 1 || info.Bytes < 1 || info.Row < 0 {
			return o, fmt.Errorf("type %d cannot take %d bytes per %d elements and %d a row: both must be positive, and those of a row not negative", uint32(t), info.Bytes, info.Elements, info.Row)
		}
	}
	return o, nil
}

func (o options) info(t Type) (TypeInfo, bool) {
	if len(o.types) > 0 {
		if info, ok := o.types[t]; ok {
			return info, true
		}
	}
	return t.Info()
}
