package gguf

import (
	"encoding/binary"
	"fmt"
)

// Each calls fn for every element of an array, counted from 0, in order, until fn returns an error,
// which it returns. A value that is no array is an error, and so is one that cannot be read.
func (v Value) Each(fn func(i int64, e Value) error) error {
	if v.typ != Array {
		return fmt.Errorf("value is %s, not an array", v.typ)
	}
	items := v.elements()
	for i := range v.count {
		e := items.next()
		if items.s.err != nil {
			return items.s.err
		}
		if err := fn(i, e); err != nil {
			return err
		}
	}
	return nil
}

// An elementReader reads the elements of an array one after the other.
type elementReader struct {
	s    *scanner
	elem ValueType
	left int64
}

func (v Value) elements() *elementReader {
	s := newScanner("array", v, v.Size())
	s.big = v.order == binary.ByteOrder(binary.BigEndian)
	s.skip(12, "array head")
	return &elementReader{s, v.elem, v.count}
}

// next returns the next element, and the zero Value behind the last one or after a fault
// of the scanner.
func (r *elementReader) next() Value {
	if r.left == 0 {
		return Value{}
	}
	r.left--
	return r.s.value(r.elem, 1)
}

// Uints returns the elements of an integer array, or one integer as a list of one.
// It reports false for another type, a negative element, a read error, and more than
// 64 MiB.
func (v Value) Uints() ([]uint64, bool) {
	if u, ok := v.Uint(); ok {
		return []uint64{u}, true
	}
	if v.Size() > maxWhole {
		return nil, false
	}
	var list []uint64
	err := v.Each(func(_ int64, e Value) error {
		u, ok := e.Uint()
		if !ok {
			return fmt.Errorf("element is %s", e.typ)
		}
		list = append(list, u)
		return nil
	})
	return list, err == nil
}
