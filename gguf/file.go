package gguf

import (
	"encoding/binary"
	"fmt"
	"io"
)

// maxOffset keeps sums of an offset, a data offset and a size within 64 bits.
const maxOffset = 1 << 61

// A File is one parsed GGUF file: its header, with readers on the rest.
type File struct {
	Name       string // as the caller named it
	Version    uint32
	Order      binary.ByteOrder
	Alignment  int64 // general.alignment, 32 when absent
	Metadata   *Metadata
	Tensors    []*Tensor // in the order of the file's table
	DataOffset int64     // where the data section begins
	Size       int64     // bytes of the whole file
	Problems   []Problem

	r io.ReaderAt
}

// An Option changes how files are read.
type Option func(*options)

type options struct {
	types map[Type]TypeInfo
}

// WithType teaches the block size of a type id, and takes precedence over what the
// package knows. The name is used in documents in place of "unknown(ID)".
func WithType(t Type, info TypeInfo) Option {
	return func(o *options) {
		if o.types == nil {
			o.types = map[Type]TypeInfo{}
		}
		o.types[t] = info
	}
}

func (o options) info(t Type) (TypeInfo, bool) {
	if info, ok := o.types[t]; ok {
		return info, true
	}
	return t.Info()
}

func newOptions(list []Option) options {
	var o options
	for _, option := range list {
		option(&o)
	}
	return o
}

// NewFile parses the header of a GGUF file of size bytes. The name is used in
// messages only. It returns a [*FormatError] when the bytes are not a header that can
// be read to its end; anything else that is wrong is listed in Problems. Every
// declared count is checked against the bytes that remain before it is believed.
func NewFile(name string, r io.ReaderAt, size int64, opts ...Option) (*File, error) {
	s := newScanner(name, r, size)
	f := &File{Name: name, Size: size, Metadata: NewMetadata(), r: r}
	tensors, pairs := f.readCounts(s)
	found := &problems{}
	f.readMetadata(s, pairs, found)
	f.readAlignment(s, found)
	f.readTensors(s, tensors, found)
	if s.err != nil {
		return nil, s.err
	}
	f.place(s.offset(), newOptions(opts), found)
	f.Problems = *found
	return f, nil
}

// Err joins the problems that are errors; it is nil for a sound file.
func (f *File) Err() error { return problems(f.Problems).err() }

// ReadAt reads bytes of the whole file, header included, as [io.ReaderAt].
func (f *File) ReadAt(p []byte, off int64) (int, error) { return f.r.ReadAt(p, off) }

// readCounts reads the fixed part of the header.
func (f *File) readCounts(s *scanner) (tensors, pairs int64) {
	if kind := diagnose(s.r, s.size); kind != "" {
		s.fail(0, "%s", kind)
		return 0, 0
	}
	s.skip(4, "magic")
	f.Version = s.version()
	f.Order = s.order
	tensors = s.length(minTensorInfoBytes, "number of tensors")
	pairs = s.length(minPairBytes, "number of metadata pairs")
	return tensors, pairs
}

// version reads the version word and settles the byte order by it: a small number is
// written in the order that makes it small.
func (s *scanner) version() uint32 {
	at := s.offset()
	v := s.u32("version")
	if s.err != nil {
		return 0
	}
	if v&0xffff == 0 && v != 0 {
		s.order = binary.BigEndian
		v = swap32(v)
	}
	switch {
	case v == 1:
		s.fail(at, "GGUF version 1%s is not supported: its counts are 32-bit; convert the file to version 3", orderNote(s.order))
	case v < 2 || v > 3:
		s.fail(at, "GGUF version %d%s is not known; versions 2 and 3 are", v, orderNote(s.order))
	}
	return v
}

func swap32(v uint32) uint32 {
	return v>>24 | v>>8&0xff00 | v<<8&0xff0000 | v<<24
}

func orderNote(order binary.ByteOrder) string {
	if order == binary.BigEndian {
		return ", big endian,"
	}
	return ""
}

func (f *File) readMetadata(s *scanner, pairs int64, found *problems) {
	for i := range pairs {
		if s.err != nil {
			return
		}
		key := s.text(maxNameLength, fmt.Sprintf("key %d of %d", i+1, pairs))
		if s.err != nil {
			return
		}
		what := fmt.Sprintf("value of key %q", key)
		at := s.offset()
		t := ValueType(s.u32(what))
		if s.err == nil && !t.known() {
			s.fail(at, "%s: unknown value type %d", what, uint32(t))
		}
		if s.err != nil {
			return
		}
		v := s.value(t, 0, what)
		if first, repeated := f.Metadata.index[key]; repeated {
			found.errorf(f.whereKey(key), "key stands twice, as pair %d and as pair %d", first+1, i+1)
		}
		f.Metadata.add(key, v)
	}
}

func (f *File) whereKey(key string) string {
	return fmt.Sprintf("%s: key %q", printable(f.Name), key)
}

// readAlignment takes general.alignment, which the data section's place depends on.
func (f *File) readAlignment(s *scanner, found *problems) {
	f.Alignment = defaultAlignment
	v, ok := f.Metadata.Get(KeyAlignment)
	if !ok || s.err != nil {
		return
	}
	if v.Type() != Uint32 {
		found.errorf(f.whereKey(KeyAlignment), "stored as %s, want u32: llama.cpp stops at it", v.TypeName())
	}
	n, ok := v.Int()
	if !ok {
		return
	}
	if n <= 0 || n&(n-1) != 0 {
		s.fail(s.offset(), "%s is %d, want a power of two", KeyAlignment, n)
		return
	}
	if n > maxWriteAlignment {
		found.warnf(f.whereKey(KeyAlignment), "%d is suspiciously large; at most %d can be written", n, maxWriteAlignment)
	}
	f.Alignment = n
}

// readTensors reads the table of tensor infos.
func (f *File) readTensors(s *scanner, count int64, found *problems) {
	if s.err != nil {
		return
	}
	if count > s.remaining()/minTensorInfoBytes {
		s.fail(s.offset(), "%d tensors declared, but only %d bytes remain", count, s.remaining())
		return
	}
	tensors := make([]Tensor, count)
	f.Tensors = make([]*Tensor, count)
	first := make(map[string]int64, count)
	for i := range count {
		t := &tensors[i]
		s.tensor(t, i, count)
		if s.err != nil {
			return
		}
		t.file = f
		f.Tensors[i] = t
		if j, repeated := first[t.Name]; repeated {
			found.errorf(t.where(), "name stands twice, as tensor %d and as tensor %d", j+1, i+1)
			continue
		}
		first[t.Name] = i
	}
}

// tensor reads one tensor info.
func (s *scanner) tensor(t *Tensor, i, count int64) {
	t.Name = s.name(i, count)
	at := s.offset()
	dims := s.u32("number of dims")
	if s.err == nil && dims > maxDims {
		s.fail(at, "tensor %q: %d dims, at most %d are possible", t.Name, dims, maxDims)
		return
	}
	t.Shape = make([]uint64, dims)
	for d := range t.Shape {
		t.Shape[d] = s.u64("dim")
	}
	if _, ok := elements(t.Shape); s.err == nil && !ok {
		s.fail(at, "tensor %q: shape %v has more elements than a signed 64-bit count holds", t.Name, t.Shape)
		return
	}
	t.Type = Type(s.u32("type"))
	at = s.offset()
	offset := s.u64("offset")
	if s.err == nil && offset > maxOffset {
		s.fail(at, "tensor %q: offset %d is beyond any file", t.Name, offset)
		return
	}
	t.Offset = int64(offset)
}

// name reads a tensor name. The message is made only when it is wanted: there can be
// a hundred thousand names.
func (s *scanner) name(i, count int64) string {
	if len(s.buf)-s.pos >= 8 {
		if n := s.order.Uint64(s.buf[s.pos:]); n <= uint64(min(len(s.buf)-s.pos-8, maxNameLength)) {
			start := s.pos + 8
			s.pos = start + int(n)
			return string(s.buf[start:s.pos])
		}
	}
	return s.text(maxNameLength, fmt.Sprintf("name of tensor %d of %d", i+1, count))
}
