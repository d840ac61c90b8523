package gguf

import (
	"bytes"
	"io"
)

// inlineValue is the greatest encoded size that is held in memory, enough for a chat
// template. A longer value stays a span of its file and is read again when asked for.
const inlineValue = 64 << 10

const (
	maxNesting = 8 // of arrays of arrays; llama.cpp reads none at all

	// maxSteps bounds the strings and arrays in the arrays of a file, which have to be
	// gone through one by one: eight million tokens and as many merges. A hole of a
	// terabyte reads as endless empty ones.
	maxSteps = 1 << 24
)

// typedValue reads a type word and a value of that type.
func (s *scanner) typedValue() Value {
	t := s.valueType("value type")
	return s.value(t, 0)
}

// valueType reads a type word.
func (s *scanner) valueType(what string) ValueType {
	at := s.offset()
	t := ValueType(s.u32(what))
	if !t.known() {
		s.fail(at, "%s %d is not known", what, uint32(t))
		return 0
	}
	return t
}

// value reads one value of type t. Values that are short are copied, long ones stay
// in the file.
func (s *scanner) value(t ValueType, depth int) Value {
	v := Value{typ: t, order: s.order()}
	start := s.offset()
	switch t {
	case Text:
		s.skip(s.length(1, "string"), "string")
	case Array:
		v.elem, v.count = s.array(depth)
	default:
		v.raw = bytes.Clone(s.next(int(t.fixedSize()), t.String()))
	}
	if s.err != nil {
		return Value{}
	}
	if v.raw != nil {
		return v
	}
	size := s.offset() - start
	if size > inlineValue {
		v.span = io.NewSectionReader(s.r, start, size)
		return v
	}
	v.raw = s.reread(start, size)
	return v
}

// reread returns a copy of the size bytes that were just passed over.
func (s *scanner) reread(start, size int64) []byte {
	raw := make([]byte, size)
	if at := start - s.base; at >= 0 && at+size <= int64(len(s.buf)) {
		copy(raw, s.buf[at:])
		return raw
	}
	s.read(raw, start)
	return raw
}

// array passes over an array and returns its element type and count.
func (s *scanner) array(depth int) (ValueType, int64) {
	if depth >= maxNesting {
		s.fail(s.offset(), "arrays are nested deeper than %d", maxNesting)
	}
	elem := s.valueType("array element type")
	at := s.offset()
	count := s.length(elem.minSize(), "array")
	if elem.fixedSize() == 0 {
		if s.steps += count; s.steps > maxSteps {
			s.fail(at, "with this array of %d, more than %d strings and arrays stand in arrays", count, maxSteps)
			return 0, 0
		}
	}
	switch elem {
	case Text:
		s.skipTexts(count, "string")
	case Array:
		for i := int64(0); i < count && s.err == nil; i++ {
			s.array(depth + 1)
		}
	default:
		s.skip(count*elem.fixedSize(), "array")
	}
	return elem, count
}
