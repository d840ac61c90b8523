package manifest

import (
	"bytes"
	"fmt"
	"io"

	"ggufreap/gguf"
)

// SlabCount says how many slabs a tensor carries, 0 for none.
type SlabCount func(tensor string) int

// IDTables says whether a tensor is a table of expert ids whose data a pin keeps, and what
// [IDs.Nearest] is for it.
type IDTables func(tensor string) (nearest []byte, ok bool)

// maxIDTable bounds a table that a pin keeps: 8 ids for each of 131,072 tokens.
const maxIDTable = 4 << 20

// A describer says which tensors of an artifact are more than data.
type describer struct {
	slabs   SlabCount // nil for none
	ids     IDTables  // nil for none
	digests int       // of slabs, so far
}

// maxSlabDigests bounds the digests of experts that a pin has, which are most of its bytes:
// three times those of Kimi-K3.
const maxSlabDigests = 1 << 20

// describe returns a Tensor without its digests, and refuses a slab count that does not
// fit: the expert dim is the last, and slabs are equal.
func (d *describer) describe(name string, typ gguf.Type, shape []uint64, size int64) (Tensor, error) {
	t := Tensor{Name: name, Type: typ.String(), Shape: shape, Size: size}
	if t.Shape == nil {
		t.Shape = []uint64{}
	}
	if d.ids != nil && size <= maxIDTable {
		if nearest, ok := d.ids(name); ok {
			t.IDs = &IDs{Nearest: nearest}
		}
	}
	count := 0
	if d.slabs != nil {
		count = d.slabs(name)
	}
	axis := expertAxis(shape, count)
	switch {
	case count == 0:
		return t, nil
	case axis < 0:
		return t, fmt.Errorf("tensor %q: shape %v does not end in %d experts", name, shape, count)
	case size == 0 || size%int64(count) != 0:
		return t, fmt.Errorf("tensor %q: %d bytes do not divide into %d experts", name, size, count)
	}
	t.Slabs = &Slabs{Axis: axis, Count: count}
	if size/int64(count) > smallSlab {
		d.digests += count
	}
	if d.digests > maxSlabDigests {
		return t, fmt.Errorf("tensor %q: with its %d experts a pin would have more than %d digests of experts", name, count, maxSlabDigests)
	}
	return t, nil
}

// expertAxis returns the index of the dim that counts so many experts: the last but for
// outer dims of 1, which may themselves be left out. It is -1 when no dim does.
func expertAxis(shape []uint64, count int) int {
	for axis := len(shape) - 1; axis >= 0 && count > 0; axis-- {
		if shape[axis] == uint64(count) {
			return axis
		}
		if shape[axis] != 1 {
			break
		}
	}
	if count == 1 && len(shape) > 0 {
		return len(shape)
	}
	return -1
}

// SlabCount returns how many slabs t has, 0 for none.
func (t *Tensor) SlabCount() int {
	if t.Slabs == nil {
		return 0
	}
	return t.Slabs.Count
}

// SlabText says what identifies a slab of t.
func SlabText(t *Tensor, id []byte) string {
	if t.Slabs.Bytes != nil {
		return fmt.Sprintf("bytes are %x", id)
	}
	return fmt.Sprintf("blake3 is %x", id)
}

// tensorListener takes the digests of tensors that pass by one after the other, with
// one hasher for all.
type tensorListener struct {
	hasher *TensorHasher
	check  func(*Tensor) error // of each tensor that has passed; nil for none
	now    *Tensor             // which passes by, nil before the first
	table  bytes.Buffer        // its data, of a table of expert ids
	err    error               // the first; it sticks
}

func newTensorListener(check func(*Tensor) error) *tensorListener {
	return &tensorListener{hasher: NewTensorHasher(), check: check}
}

// begin ends the tensor before and returns the writer that wants the bytes of t.
func (l *tensorListener) begin(t *Tensor) io.Writer {
	l.end()
	if l.err != nil {
		return nil
	}
	if err := l.hasher.Reset(t.Size, t.SlabCount()); err != nil {
		l.err = fmt.Errorf("tensor %q: %w", t.Name, err)
		return nil
	}
	l.now = t
	if t.IDs != nil {
		l.table.Reset()
		return io.MultiWriter(l.hasher, &l.table)
	}
	return l.hasher
}

// end puts the digests into the tensor that passed by, and returns the first error.
func (l *tensorListener) end() error {
	if l.now == nil || l.err != nil {
		return l.err
	}
	sums, err := l.hasher.Sums()
	if err != nil {
		l.err = fmt.Errorf("tensor %q: %w", l.now.Name, err)
		return l.err
	}
	l.now.BLAKE3 = sums.BLAKE3
	if l.now.Slabs != nil {
		l.now.Slabs.BLAKE3, l.now.Slabs.Bytes = sums.SlabSums, sums.SlabBytes
	}
	if l.now.IDs != nil {
		l.now.IDs.Table = bytes.Clone(l.table.Bytes())
	}
	if l.check != nil {
		l.err = l.check(l.now)
	}
	l.now = nil
	return l.err
}
