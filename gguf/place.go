package gguf

import (
	"cmp"
	"slices"
)

// align rounds n up to a multiple of alignment, a power of two.
func align(n, alignment int64) int64 { return (n + alignment - 1) &^ (alignment - 1) }

// place settles where the data section begins and how large each tensor is, and
// notes everything that is odd about their places.
func (f *File) place(headerEnd int64, o options, found *problems) {
	f.DataOffset = align(headerEnd, f.Alignment)
	if len(f.Tensors) == 0 {
		f.DataOffset = min(f.DataOffset, f.Size)
	}
	f.sizeTensors(o, found)
	sorted := slices.Clone(f.Tensors)
	slices.SortStableFunc(sorted, func(a, b *Tensor) int { return cmp.Compare(a.Offset, b.Offset) })
	f.measureSpans(sorted, found)
	f.checkOrder(sorted, found)
	f.checkOverlap(sorted, found)
	f.checkEnd(found)
}

// sizeTensors computes sizes from types and shapes, and marks as opaque what has none.
func (f *File) sizeTensors(o options, found *problems) {
	unknown := map[Type]int{}
	for _, t := range f.Tensors {
		if len(t.Name) > loaderNameLength {
			found.warnf(t.where(), "name has %d bytes, llama.cpp refuses more than %d", len(t.Name), loaderNameLength)
		}
		if t.Offset%f.Alignment != 0 {
			found.errorf(t.where(), "offset %d is not a multiple of the alignment %d", t.Offset, f.Alignment)
		}
		info, known := o.info(t.Type)
		size, fault := dataSize(info, known, t.Shape)
		t.Size = size
		switch fault {
		case shapeUnknownType:
			unknown[t.Type]++
			t.Opaque = t.Elements() > 0
		case shapePartialBlock:
			t.Opaque = t.Elements() > 0
			found.errorf(t.where(), "row of %d elements is not a whole number of %s blocks of %d", rowLength(t.Shape), info.Name, info.Elements)
		case shapeTooLarge:
			found.errorf(t.where(), "shape %v takes more bytes than a signed 64-bit size holds", t.Shape)
		}
	}
	for _, t := range sortedKeys(unknown) {
		note := ""
		if hint := t.Hint(); hint != "" {
			note = " (" + hint + ")"
		}
		found.warnf(printable(f.Name), "type %s%s of %d tensors has no known block size; their sizes are the spans to the next tensor", t, note, unknown[t])
	}
}

func rowLength(shape []uint64) uint64 {
	if len(shape) == 0 {
		return 1
	}
	return shape[0]
}

// measureSpans measures the bytes up to the next tensor or the file's end, which are
// all that is known of the size of an opaque tensor.
func (f *File) measureSpans(sorted []*Tensor, found *problems) {
	next := f.Size - f.DataOffset
	for _, t := range slices.Backward(sorted) {
		t.Span = max(next-t.Offset, 0)
		if t.Opaque {
			t.Size = t.Span
			if t.Size == 0 {
				found.errorf(t.where(), "no bytes lie between its offset %d and the next tensor", t.Offset)
			}
		}
		next = t.Offset
	}
}

// checkOrder notes data that does not lie in the order of the table, or with gaps.
// llama.cpp wants each offset to be the running sum of padded sizes.
func (f *File) checkOrder(sorted []*Tensor, found *problems) {
	for i, t := range sorted {
		if t != f.Tensors[i] {
			found.warnf(f.Tensors[i].where(), "data does not lie in the order of the table from here on; llama.cpp refuses such a file")
			break
		}
	}
	var end, gaps, bytes int64
	var first *Tensor
	for _, t := range sorted {
		if gap := t.Offset - align(end, f.Alignment); gap > 0 {
			if first == nil {
				first = t
			}
			gaps++
			bytes += gap
		}
		end = max(end, t.Offset+t.Size)
	}
	if first != nil {
		found.warnf(first.where(), "%d bytes before it belong to no tensor (%d gaps in the file); llama.cpp refuses such a file", bytes, gaps)
	}
}

// checkOverlap notes tensors whose bytes are shared.
func (f *File) checkOverlap(sorted []*Tensor, found *problems) {
	var last *Tensor
	for _, t := range sorted {
		if t.Size == 0 {
			continue
		}
		if last != nil && t.Offset < last.Offset+last.Size {
			found.errorf(t.where(), "overlaps tensor %q by %d bytes", last.Name, min(last.Offset+last.Size, t.Offset+t.Size)-t.Offset)
		}
		if last == nil || t.Offset+t.Size > last.Offset+last.Size {
			last = t
		}
	}
}

// checkEnd compares where the data ends with where the file does.
func (f *File) checkEnd(found *problems) {
	have := f.Size - f.DataOffset
	var end int64
	var cut []*Tensor
	for _, t := range f.Tensors {
		end = max(end, t.Offset+t.Size)
		if t.Size > 0 && t.Offset+t.Size > have {
			cut = append(cut, t)
		}
	}
	if len(cut) > 0 {
		t := cut[0]
		found.errorf(t.where(), "data ends at byte %d of %d; the file is truncated: it has %d bytes, %d more are needed (tensors affected: %d)",
			min(max(have-t.Offset, 0), t.Size), t.Size, f.Size, end-have, len(cut))
		return
	}
	if extra := have - align(end, f.Alignment); extra > 0 {
		found.warnf(printable(f.Name), "%d bytes after the last tensor belong to no tensor", extra)
	}
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
