package gguf

import (
	"bytes"
	"cmp"
	"slices"
)

// A Difference says where two metadata values differ. The zero Difference is that of
// equal values.
type Difference struct {
	// Items counts the elements of two arrays that differ, with those that only the
	// longer one has. Of other values that differ it is 1.
	Items int64
	// Path leads to the first difference: the index of an element, and where that is an
	// array the index in it, and so on. It is empty unless arrays are compared.
	Path []int64
	// A and B stand at Path. One is the zero Value, of size 0, where its array is shorter.
	A, B Value
	// Byte is the first byte by which A and B differ, when both are strings.
	Byte int64
}

// Same reports that nothing differs.
func (d Difference) Same() bool { return d.Items == 0 }

// Compare returns where two values differ: in type, element type included, or in what
// they hold. The byte orders that they are stored in do not count. Numbers are compared
// by their bits, so that a NaN equals itself. Long values are read in parts.
func Compare(a, b Value) (Difference, error) {
	if a.typ != b.typ || a.elem != b.elem {
		return Difference{Items: 1, A: a, B: b}, nil
	}
	switch a.typ {
	case Array:
		return compareArrays(a, b)
	case Text:
		at, err := firstDifference(a, b, 8)
		if err != nil || at < 0 {
			return Difference{}, err
		}
		return Difference{Items: 1, A: a, B: b, Byte: at}, nil
	}
	raw := b.raw
	if a.order != b.order {
		raw = slices.Clone(raw)
		slices.Reverse(raw)
	}
	if bytes.Equal(a.raw, raw) {
		return Difference{}, nil
	}
	return Difference{Items: 1, A: a, B: b}, nil
}

// compareArrays compares two arrays of one type element by element, unless all their
// bytes are equal.
func compareArrays(a, b Value) (Difference, error) {
	var d Difference
	if a.order == b.order {
		if at, err := firstDifference(a, b, 0); err != nil || at < 0 {
			return d, err
		}
	}
	itemsA, itemsB := a.elements(), b.elements()
	for i := range max(a.count, b.count) {
		x, y := itemsA.next(), itemsB.next()
		if err := cmp.Or(itemsA.s.err, itemsB.s.err); err != nil {
			return d, err
		}
		item, err := compareElements(x, y)
		if err != nil {
			return d, err
		}
		if item.Same() {
			continue
		}
		if d.Items++; d.Items == 1 {
			d.Path, d.A, d.B, d.Byte = append([]int64{i}, item.Path...), item.A, item.B, item.Byte
		}
	}
	return d, nil
}

// compareElements compares elements of arrays; one may be the zero Value.
func compareElements(a, b Value) (Difference, error) {
	if a.isUnset() || b.isUnset() {
		return Difference{Items: 1, A: a, B: b}, nil
	}
	return Compare(a, b)
}

// firstDifference returns the first byte by which two encoded values differ from byte
// from on, counted from there, or -1. The end of the shorter one is a difference.
func firstDifference(a, b Value, from int64) (int64, error) {
	const step = 32 << 10
	common := min(a.Size(), b.Size())
	size := min(common-from, step)
	bufA, bufB := make([]byte, size), make([]byte, size)
	for at := from; at < common; at += size {
		size = min(common-at, step)
		partA, partB := bufA[:size], bufB[:size]
		if err := cmp.Or(readFull(a, "metadata value", partA, at), readFull(b, "metadata value", partB, at)); err != nil {
			return 0, err
		}
		if bytes.Equal(partA, partB) {
			continue
		}
		for i := range partA {
			if partA[i] != partB[i] {
				return at - from + int64(i), nil
			}
		}
	}
	if a.Size() != b.Size() {
		return common - from, nil
	}
	return -1, nil
}
