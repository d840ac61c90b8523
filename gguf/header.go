package gguf

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

const (
	magic       = "GGUF"
	fixedHeader = 24 // magic, version, two counts

	// maxRepeats is how many repeated keys or tensor names are put up with. A part of
	// a file that was never written reads as endless pairs or tensors without a name.
	maxRepeats = 1000

	tensorRoom  = 1 << 15 // tensors for which room is made at once
	tensorChunk = 512     // tensors that are read at a time
)

// readHeader reads everything before the data section.
func (f *File) readHeader(s *scanner, found *problems) {
	f.readVersion(s)
	tensors := s.length(minTensorInfoBytes, "number of tensors")
	pairs := s.length(minPairBytes, "number of metadata pairs")
	f.readMetadata(s, pairs, found)
	f.readTensors(s, tensors, found)
}

// readVersion reads magic and version word, and settles the byte order by it: a small
// number is written in the order that makes it small.
func (f *File) readVersion(s *scanner) {
	if s.size == 0 {
		s.refuse("the file is empty")
		return
	}
	if !s.fill(fixedHeader) {
		return
	}
	if kind := foreignKind(s.buf); kind != "" {
		s.refuse("%s", kind)
		return
	}
	if s.size >= 8 {
		s.skip(4, "magic")
		f.readVersionWord(s)
	}
	f.Order = s.order
	if s.size < fixedHeader {
		s.refuse("the file is truncated: it has %d bytes, a GGUF header begins with %d", s.size, fixedHeader)
	}
}

func (f *File) readVersionWord(s *scanner) {
	at := s.offset()
	v := s.u32("version")
	note := ""
	if v != 0 && v&0xffff == 0 {
		s.order = binary.BigEndian
		v = bits.ReverseBytes32(v)
		note = ", big endian,"
	}
	f.Version = v
	switch {
	case v == 1:
		s.fail(at, "GGUF version 1%s is not supported: its counts are 32-bit; convert the file to version 3", note)
	case v < 2 || v > 3:
		s.fail(at, "GGUF version %d%s is not known; versions 2 and 3 are", v, note)
	}
}

// readMetadata reads the pairs. A key that stands twice is kept, and noted.
func (f *File) readMetadata(s *scanner, pairs int64, found *problems) {
	repeats := 0
	f.Metadata.grow(int(min(pairs, pairRoom)))
	for i := int64(0); i < pairs && s.err == nil; i++ {
		start := s.offset()
		key := s.text(maxNameLength, "key")
		at := s.offset()
		v := s.typedValue()
		if s.err != nil {
			s.within("metadata pair %d of %d %s", i+1, pairs, quoted(key))
			return
		}
		if first, repeated := f.Metadata.index[key]; repeated {
			found.errorf(f.whereKey(key), "key stands twice, as pair %d and as pair %d", first+1, i+1)
			if repeats++; repeats > maxRepeats {
				s.fail(start, "metadata pair %d of %d: more than %d keys are repeated: this part of the file is damaged", i+1, pairs, maxRepeats)
			}
		} else if key == KeyAlignment {
			f.setAlignment(s, at, v, found)
		}
		f.Metadata.add(key, v)
	}
}

// setAlignment takes general.alignment, which the data section's place depends on.
func (f *File) setAlignment(s *scanner, at int64, v Value, found *problems) {
	if v.Type() != Uint32 {
		found.errorf(f.whereKey(KeyAlignment), "stored as %s, want u32: llama.cpp stops at it", v.TypeName())
	}
	n, ok := v.Int()
	switch {
	case !ok:
		return
	case n <= 0 || n&(n-1) != 0 || n > maxAlignment:
		s.fail(at, "%s is %d, want a power of two up to %d", KeyAlignment, n, int64(maxAlignment))
		return
	case n > maxWriteAlignment:
		found.warnf(f.whereKey(KeyAlignment), "%d is suspiciously large; at most %d can be written", n, maxWriteAlignment)
	}
	f.Alignment = n
}

// readTensors reads the table of tensor infos. Little is set aside for tensors that
// have not been seen yet: in a file of many gigabytes, that the bytes could hold as
// many as are declared says nothing.
func (f *File) readTensors(s *scanner, count int64, found *problems) {
	if s.err == nil && count > s.remaining()/minTensorInfoBytes {
		s.fail(s.offset(), "%d tensors declared, but only %d bytes remain: the file is truncated or damaged", count, s.remaining())
	}
	if s.err != nil {
		return
	}
	f.names = newNameIndex(min(count, tensorRoom))
	repeats := 0
	for done := int64(0); done < count && s.err == nil; {
		chunk := make([]Tensor, min(count-done, tensorChunk))
		s.tensors(chunk, done, count)
		done += int64(len(chunk))
		for i := range chunk {
			chunk[i].file = f
			if first := f.names.add(&chunk[i]); first >= 0 {
				found.errorf(chunk[i].where(), "name stands twice, as tensor %d and as tensor %d", first+1, len(f.names.list))
				repeats++
			}
		}
		if repeats > maxRepeats {
			s.fail(s.offset(), "more than %d tensor names are repeated up to here: this part of the file is damaged", maxRepeats)
		}
	}
	f.Tensors = f.names.list
}

// tensors reads a chunk of tensor infos, of which done were read before. The names of
// a chunk share one string, and the shapes one array.
func (s *scanner) tensors(chunk []Tensor, done, count int64) {
	names, dims := s.names[:0], s.dims[:0]
	var ends [tensorChunk]struct{ name, dim int }
	for i := range chunk {
		start := len(names)
		names = s.appendText(names, maxNameLength, "name")
		if dims = s.tensor(&chunk[i], dims); s.err != nil {
			s.within("tensor %d of %d %s", done+int64(i)+1, count, quoted(string(names[start:])))
			return
		}
		ends[i].name, ends[i].dim = len(names), len(dims)
	}
	s.names, s.dims = names, dims
	allNames, allDims := string(names), slices.Clone(dims)
	name, dim := 0, 0
	for i := range chunk {
		end := ends[i]
		chunk[i].Name, chunk[i].Shape = allNames[name:end.name], allDims[dim:end.dim:end.dim]
		name, dim = end.name, end.dim
	}
}

// tensor reads what follows a tensor's name, and appends its shape to dims.
func (s *scanner) tensor(t *Tensor, dims []uint64) []uint64 {
	at := s.offset()
	count := s.u32("number of dims")
	if count > maxDims {
		s.fail(at, "%d dims, at most %d are possible", count, maxDims)
		return dims
	}
	at = s.offset()
	rest := s.next(8*int(count)+4+8, "dims, type and offset")
	if rest == nil {
		return dims
	}
	start := len(dims)
	for ; count > 0; count-- {
		dims = append(dims, s.order.Uint64(rest))
		rest = rest[8:]
	}
	offset := s.order.Uint64(rest[4:])
	if _, ok := elements(dims[start:]); !ok {
		s.fail(at, "shape %v has more elements than a signed 64-bit count holds", dims[start:])
	} else if offset > maxOffset {
		s.fail(at, "offset %d is beyond any file", offset)
	}
	t.Type, t.Offset = Type(s.order.Uint32(rest)), int64(offset)
	return dims
}
