package gguf

import (
	"cmp"
	"maps"
	"slices"

	"ggufreap/gguf/words"
)

// align rounds n up to a multiple of alignment, a power of two.
func align(n, alignment int64) int64 { return (n + alignment - 1) &^ (alignment - 1) }

// end is where the tensor's data ends, from the start of the data section.
func (t *Tensor) end() int64 { return t.Offset + t.Size }

// place settles how large each tensor is, and notes everything that is odd about their
// places.
func (f *File) place(o options, found *problems) {
	endless := f.sizeTensors(o, found)
	sorted := f.byOffset(found)
	f.measureSpans(sorted, found)
	f.checkGaps(sorted, found)
	f.checkOverlap(sorted, found)
	f.checkEnd(found)
	for _, t := range endless {
		t.Size = maxOffset
	}
}

// sizeTensors computes sizes from types and shapes, and marks as opaque what has none. It
// returns the tensors that take more bytes than any file has.
func (f *File) sizeTensors(o options, found *problems) (endless []*Tensor) {
	unknown := map[Type]int{}
	for _, t := range f.Tensors {
		if len(t.Name) > loaderNameLength {
			found.warnf(t.where(), "name has %d bytes, llama.cpp refuses more than %d", len(t.Name), loaderNameLength)
		}
		if t.Offset&(f.Alignment-1) != 0 {
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
			found.errorf(t.where(), "row of %d elements is not a whole number of %s blocks of %d", rowLength(t.Shape), t.Type, info.Elements)
		case shapeTooLarge:
			endless = append(endless, t)
			found.errorf(t.where(), "shape %v of type %s takes more bytes than any file has", t.Shape, t.Type)
		}
	}
	for _, t := range slices.Sorted(maps.Keys(unknown)) {
		note := ""
		if hint := t.Hint(); hint != "" {
			note = " (" + hint + ")"
		}
		found.warnf(at(f.Name), "type %s%s of %s has no known block size; a tensor's size is taken to be the span to the next one", t, note, words.Count(unknown[t], "tensor"))
	}
	return endless
}

// byOffset returns the tensors in the order of their data. The file's own list is
// returned when that is its order, as it should be.
func (f *File) byOffset(found *problems) []*Tensor {
	byOffset := func(a, b *Tensor) int { return cmp.Compare(a.Offset, b.Offset) }
	if slices.IsSortedFunc(f.Tensors, byOffset) {
		return f.Tensors
	}
	sorted := slices.Clone(f.Tensors)
	slices.SortStableFunc(sorted, byOffset)
	for i, t := range sorted {
		if t != f.Tensors[i] {
			found.warnf(f.Tensors[i].where(), "data does not lie in the order of the table from here on; llama.cpp refuses such a file")
			break
		}
	}
	return sorted
}

// measureSpans measures the bytes up to the next data or the file's end, which are all
// that is known of the size of an opaque tensor.
func (f *File) measureSpans(sorted []*Tensor, found *problems) {
	next := f.Size - f.DataOffset
	for _, t := range slices.Backward(sorted) {
		t.Span = max(next-t.Offset, 0)
		if t.Opaque {
			if t.Size = t.Span; t.Size == 0 {
				found.errorf(t.where(), "no bytes lie between its offset %d and the next tensor or the end of the file", t.Offset)
			}
		}
		if t.Opaque || t.Size > 0 {
			next = t.Offset
		}
	}
}

// checkGaps notes bytes before tensors that belong to none. llama.cpp wants each
// offset to be the running sum of padded sizes.
func (f *File) checkGaps(sorted []*Tensor, found *problems) {
	var end, gaps, bytes int64
	var first *Tensor
	for _, t := range sorted {
		if gap := t.Offset - align(end, f.Alignment); gap > 0 {
			if first == nil {
				first = t
			}
			gaps++
			bytes = AddSize(bytes, gap)
		}
		end = max(end, t.end())
	}
	switch {
	case gaps == 1:
		found.warnf(first.where(), "%s before it %s to no tensor; llama.cpp refuses such a file", words.Count(bytes, "byte"), words.Verb(bytes, "belongs", "belong"))
	case gaps > 1:
		found.warnf(first.where(), "here is the first of %s, %s in all, that belong to no tensor; llama.cpp refuses such a file", words.Count(gaps, "gap"), words.Count(bytes, "byte"))
	}
}

// checkOverlap notes tensors whose bytes are shared.
func (f *File) checkOverlap(sorted []*Tensor, found *problems) {
	var last *Tensor
	for _, t := range sorted {
		if t.Size == 0 {
			continue
		}
		if last != nil && t.Offset < last.end() {
			found.errorf(t.where(), "overlaps tensor %s by %s", quoted(last.Name), words.Count(min(last.end(), t.end())-t.Offset, "byte"))
		}
		if last == nil || t.end() > last.end() {
			last = t
		}
	}
}

// dataEnd returns where the last data ends, from the start of the data section.
func (f *File) dataEnd() int64 {
	var end int64
	for _, t := range f.Tensors {
		end = max(end, t.end())
	}
	return end
}

// Trailing returns the number of bytes behind the last tensor and its padding.
func (f *File) Trailing() int64 {
	return max(f.Size-f.DataOffset-align(f.dataEnd(), f.Alignment), 0)
}

// checkEnd compares where the data ends with where the file does.
func (f *File) checkEnd(found *problems) {
	have := f.Size - f.DataOffset
	end := f.dataEnd()
	var first *Tensor
	cut := 0
	for _, t := range f.Tensors {
		if t.Size > 0 && t.end() > have {
			if cut++; first == nil {
				first = t
			}
		}
	}
	if first != nil {
		found.errorf(first.where(), "data ends at byte %d of %d: the file is truncated: it has %s, %s more %s needed (tensors affected: %s)",
			min(max(have-first.Offset, 0), first.Size), first.Size, words.Count(f.Size, "byte"), words.Group(end-have), words.Verb(end-have, "is", "are"), words.Group(cut))
		return
	}
	if extra := f.Trailing(); extra > 0 {
		behind := "last tensor"
		if len(f.Tensors) == 0 {
			behind = "header"
		}
		found.warnf(at(f.Name), "%s after the %s %s to no tensor", words.Count(extra, "byte"), behind, words.Verb(extra, "belongs", "belong"))
	}
}
