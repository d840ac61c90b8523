package gguf

import (
	"fmt"
	"io"
	"math"
	"math/bits"
)

const (
	maxDims = 4 // of a ggml tensor

	// maxOffset bounds offsets and sizes, far above any file, so that their sums stay
	// within 64 bits.
	maxOffset = 1 << 60
)

// AddSize adds two sizes, neither negative. A sum that no 64-bit size holds is the greatest
// one: each size is that of a file at most, but a file can declare any number of them.
func AddSize(a, b int64) int64 {
	if sum := a + b; sum >= 0 {
		return sum
	}
	return math.MaxInt64
}

// A Tensor is one named array of a file. Its data is not read until asked for.
type Tensor struct {
	Name string
	Type Type
	// Opaque says that the type's block size is not known, or that a row is not a
	// whole number of blocks, so that only the span can be told.
	Opaque bool
	Shape  []uint64 // as stored, innermost dim first; none for a scalar
	Offset int64    // of the data, from the start of the file's data section
	// Size is the bytes of data without padding. When Opaque is set it is the
	// distance to the next tensor or to the end of the file, padding included. Of a
	// shape that takes more bytes than any file has, which is an error, it is 2^60.
	Size int64
	// Span is the bytes from the tensor's offset to that of the next one in the file,
	// or to the end of the file.
	Span int64

	file *File
}

// File returns the file that holds the tensor.
func (t *Tensor) File() *File { return t.file }

// Shard returns the index of the file within its model, from 0.
func (t *Tensor) Shard() int { return t.file.shard }

// Elements returns the product of the dims: 1 for a scalar.
func (t *Tensor) Elements() uint64 {
	n, _ := elements(t.Shape)
	return n
}

// CanonicalShape returns dims, innermost first, without those of 1 at the outer end; at
// least one dim stays, and a scalar has one of 1. ggml counts dims so: tools made of it
// write what they have read as [4,1,64,1] as [4,1,64], the same data.
func CanonicalShape(shape []uint64) []uint64 {
	for len(shape) > 1 && shape[len(shape)-1] == 1 {
		shape = shape[:len(shape)-1]
	}
	if len(shape) == 0 {
		return []uint64{1}
	}
	return shape
}

// DataOffset returns where the data begins, in bytes from the beginning of the file.
func (t *Tensor) DataOffset() int64 { return t.file.DataOffset + t.Offset }

// Reader returns a fresh reader of the data: Size bytes, as they stand in the file, in its byte order.
func (t *Tensor) Reader() *io.SectionReader {
	return io.NewSectionReader(t.file.r, t.DataOffset(), t.Size)
}

// Announce tells a source far away, a [Fetcher], that the data will be read once from its
// beginning to its end. For a file of this machine it does nothing.
func (t *Tensor) Announce() {
	if far, ok := t.file.r.(Fetcher); ok {
		far.Prefetch(t.DataOffset(), t.Size)
	}
}

// View returns the view that copies the whole tensor.
func (t *Tensor) View() View {
	v := View{Name: t.Name, Type: t.Type, Shape: t.Shape}
	if t.Size > 0 {
		v.Extents = []Extent{{Source: t.file.r, Offset: t.DataOffset(), Length: t.Size}}
	}
	return v
}

// where names the tensor in messages.
func (t *Tensor) where() place {
	return place{fmt.Sprintf("%s: tensor %s", printable(t.file.Name), quoted(t.Name)), t.Name}
}

// elements multiplies dims; it reports false beyond what a signed 64-bit count holds.
func elements(shape []uint64) (uint64, bool) {
	n := uint64(1)
	for _, d := range shape {
		hi, lo := bits.Mul64(n, d)
		if hi != 0 || lo > math.MaxInt64 {
			return 0, false
		}
		n = lo
	}
	return n, true
}

// CheckShape refuses dims that no tensor of a file has: more than four, or more elements than
// a signed 64-bit count holds.
func CheckShape(shape []uint64) error {
	if len(shape) > maxDims {
		return fmt.Errorf("%d dims, at most %d are possible", len(shape), maxDims)
	}
	if _, ok := elements(shape); !ok {
		return fmt.Errorf("shape %v has more elements than any tensor", shape)
	}
	return nil
}

// rowLength returns the innermost dim: 1 for a scalar.
func rowLength(shape []uint64) uint64 {
	if len(shape) == 0 {
		return 1
	}
	return shape[0]
}

// A shapeFault says why no size can be computed from a type and a shape.
type shapeFault int

const (
	shapeFine shapeFault = iota
	shapeTooLarge
	shapeUnknownType
	shapePartialBlock
)

// dataSize computes the bytes of a tensor: whole blocks along each row, and what a row has
// besides.
func dataSize(info TypeInfo, known bool, shape []uint64) (int64, shapeFault) {
	n, ok := elements(shape)
	if !ok {
		return 0, shapeTooLarge
	}
	if !known {
		return 0, shapeUnknownType
	}
	if rowLength(shape)%uint64(info.Elements) != 0 {
		return 0, shapePartialBlock
	}
	hi, blocks := bits.Mul64(n/uint64(info.Elements), uint64(info.Bytes))
	if hi != 0 || blocks > maxOffset {
		return 0, shapeTooLarge
	}
	if n == 0 {
		return 0, shapeFine
	}
	hi, besides := bits.Mul64(n/rowLength(shape), uint64(info.Row))
	if hi != 0 || besides > maxOffset || blocks+besides > maxOffset {
		return 0, shapeTooLarge
	}
	return int64(blocks + besides), shapeFine
}

// TypeSize returns the bytes of a tensor of type t and the given shape, innermost dim
// first. It errs for an unknown type, a row that is not whole blocks, and overflow.
func TypeSize(t Type, shape []uint64) (int64, error) {
	info, known := t.Info()
	size, fault := dataSize(info, known, shape)
	switch fault {
	case shapeTooLarge:
		return 0, fmt.Errorf("shape %v of type %s takes more bytes than any file has", shape, t)
	case shapeUnknownType:
		return 0, fmt.Errorf("type %s: block size is not known", t)
	case shapePartialBlock:
		return 0, fmt.Errorf("type %s: row of %d elements is not a whole number of blocks of %d", t, rowLength(shape), info.Elements)
	}
	return size, nil
}
