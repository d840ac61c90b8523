package manifest

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/zeebo/blake3"

	"ggufreap/gguf"
)

// check compares a tensor's fields with each other.
func (t *Tensor) check() error {
	if err := checkText("tensor name", t.Name); err != nil {
		return err
	}
	typ, err := gguf.ParseType(t.Type)
	if err != nil {
		return err
	}
	if typ.String() != t.Type {
		return fmt.Errorf("type is %q, want %q", t.Type, typ)
	}
	if t.Size < 0 {
		return fmt.Errorf("size is %d", t.Size)
	}
	if want, err := gguf.TypeSize(typ, t.Shape); err == nil && want != t.Size {
		return fmt.Errorf("size is %d, type %s and shape %v have %d", t.Size, t.Type, t.Shape, want)
	}
	if t.Shape == nil {
		return errors.New("shape is missing")
	}
	if err := gguf.CheckShape(t.Shape); err != nil {
		return err
	}
	if empty := Sum(blake3.Sum256(nil)); (t.BLAKE3 == empty) != (t.Size == 0) {
		return fmt.Errorf("size is %d, and blake3 %s", t.Size, t.BLAKE3)
	}
	if err := t.IDs.check(t); err != nil {
		return err
	}
	if t.Slabs == nil {
		return nil
	}
	return t.Slabs.check(t)
}

// check compares a table of ids with the tensor that it is, and wants of each expert all
// others in some order.
func (d *IDs) check(t *Tensor) error {
	if d == nil {
		return nil
	}
	if len(d.Table) > maxIDTable || Sum(blake3.Sum256(d.Table)) != t.BLAKE3 {
		return fmt.Errorf("the table of ids is not the tensor's data: blake3 of its %d bytes is %x, want %s", len(d.Table), blake3.Sum256(d.Table), t.BLAKE3)
	}
	n := 0
	for n*(n-1)*2 < len(d.Nearest) {
		n++
	}
	if n*(n-1)*2 != len(d.Nearest) {
		return fmt.Errorf("the order of experts has %d bytes, want 2 for each of their pairs", len(d.Nearest))
	}
	for i := range n {
		seen := make([]bool, n)
		seen[i] = true
		for _, id := range d.Others(i, n) {
			if id >= n || seen[id] {
				return fmt.Errorf("the order of experts names expert %d beside expert %d, want each other once", id, i)
			}
			seen[id] = true
		}
	}
	return nil
}

// check compares slabs with the tensor that they are of.
func (s *Slabs) check(t *Tensor) error {
	if s.Count < 1 || s.Axis != expertAxis(t.Shape, s.Count) {
		return fmt.Errorf("%d experts on axis %d do not fit the shape %v", s.Count, s.Axis, t.Shape)
	}
	if t.Size == 0 || t.Size%int64(s.Count) != 0 {
		return fmt.Errorf("%d bytes do not divide into %d experts", t.Size, s.Count)
	}
	sums, small := int64(s.Count)*int64(len(Sum{})), int64(0)
	if t.Size/int64(s.Count) <= smallSlab {
		sums, small = 0, t.Size
	}
	if int64(len(s.BLAKE3)) != sums || int64(len(s.Bytes)) != small {
		return fmt.Errorf("experts have %d bytes of digests and %d of data, want %d and %d", len(s.BLAKE3), len(s.Bytes), sums, small)
	}
	switch {
	case small > 0 && Sum(blake3.Sum256(s.Bytes)) != t.BLAKE3:
		return fmt.Errorf("the experts are all of the data, and blake3 of them is %x, want %s", blake3.Sum256(s.Bytes), t.BLAKE3)
	case sums > 0 && s.Count == 1 && !bytes.Equal(s.BLAKE3, t.BLAKE3[:]):
		return fmt.Errorf("the only expert is all of the data, and its digest is %x, want %s", s.BLAKE3, t.BLAKE3)
	}
	return nil
}
