package gguf

import (
	"math/bits"
)

const (
	magic       = "GGUF"
	fixedHeader = 24 // magic, version, two counts

	// maxRepeats is how many repeated keys or tensor names are put up with. A part of
	// a file that was never written reads as endless pairs or tensors without a name.
	maxRepeats = 1000
)

// readHeader reads everything before the data section.
func (f *File) readHeader(s *scanner, found *problems) {
	f.readVersion(s)
	tensors := s.length(minTensorInfoBytes, "number of tensors")
	pairs := s.length(minPairBytes, "number of metadata pairs")
	s.ahead.pairs, s.ahead.tensors = pairs, tensors
	f.readMetadata(s, pairs, found)
	f.readTensors(s, tensors, found)
	f.findData(s)
}

// findData settles where the data section begins. Files without tensors end with the header
// or with zeros up to the alignment; anything else there is no padding, and is taken for
// data.
func (f *File) findData(s *scanner) {
	end := s.offset()
	f.HeaderSize = end
	f.DataOffset = align(end, f.Alignment)
	if len(f.Tensors) > 0 || s.err != nil {
		return
	}
	f.DataOffset = min(f.DataOffset, f.Size)
	if !s.zeros(f.DataOffset-end, "padding") {
		f.DataOffset = end
	}
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
		s.stop(&FormatError{File: s.file, Offset: -1, Msg: kind, Pointer: isPointer(s.buf)})
		return
	}
	if s.size >= 8 {
		s.skip(4, "magic")
		f.readVersionWord(s)
	}
	f.Order = s.order()
	if s.size < fixedHeader {
		s.refuse("the file is truncated: it has %d bytes, a GGUF header begins with %d", s.size, fixedHeader)
	}
}

func (f *File) readVersionWord(s *scanner) {
	at := s.offset()
	v := s.u32("version")
	note := ""
	if v != 0 && v&0xffff == 0 {
		s.big = true
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
		s.ahead.pairs = pairs - i
		key := s.text(maxNameLength, "key")
		at := s.offset()
		s.ahead.begin(key, f.Metadata)
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
