package gguf

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// inlineValue is the greatest encoded size that is held in memory; a longer value
// stays a span of its file and is read again when asked for.
const inlineValue = 4 << 10

// A Value is one typed metadata value. It keeps the exact encoded bytes, so that a
// value which is written again is the same bytes, and decodes them on demand.
type Value struct {
	typ   ValueType
	elem  ValueType // of an array
	count int64     // of an array
	order binary.ByteOrder
	raw   []byte            // the encoded bytes after the type word, or
	span  *io.SectionReader // where they are in the file
}

// Type returns the stored type.
func (v Value) Type() ValueType { return v.typ }

// Elem returns the element type of an array.
func (v Value) Elem() ValueType { return v.elem }

// Len returns the number of elements of an array, the bytes of a string, and 1 for any
// other value.
func (v Value) Len() int64 {
	switch v.typ {
	case Array:
		return v.count
	case Text:
		return v.Size() - 8
	}
	return 1
}

// TypeName spells the type with that of an array's elements: "u32", "str[]".
func (v Value) TypeName() string {
	if v.typ == Array {
		return v.elem.String() + "[]"
	}
	return v.typ.String()
}

// Size returns the number of encoded bytes, the type word excluded.
func (v Value) Size() int64 {
	if v.span != nil {
		return v.span.Size()
	}
	return int64(len(v.raw))
}

// Reader returns a reader of the encoded bytes.
func (v Value) Reader() io.Reader { return io.NewSectionReader(v, 0, v.Size()) }

// ReadAt reads encoded bytes, as [io.ReaderAt].
func (v Value) ReadAt(p []byte, off int64) (int, error) {
	if v.span != nil {
		return v.span.ReadAt(p, off)
	}
	if off < 0 || off > int64(len(v.raw)) {
		return 0, io.EOF
	}
	n := copy(p, v.raw[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Raw returns the encoded bytes.
func (v Value) Raw() ([]byte, error) {
	if v.span == nil {
		return v.raw, nil
	}
	return io.ReadAll(v.Reader())
}

// Int returns the value of any integer type that fits an int64.
func (v Value) Int() (int64, bool) {
	if u, ok := v.unsigned(); ok {
		return int64(u), u <= math.MaxInt64
	}
	return v.signed()
}

// Uint returns the value of any integer type that is not negative.
func (v Value) Uint() (uint64, bool) {
	if u, ok := v.unsigned(); ok {
		return u, true
	}
	i, ok := v.signed()
	return uint64(i), ok && i >= 0
}

func (v Value) unsigned() (uint64, bool) {
	switch v.typ {
	case Uint8:
		return uint64(v.raw[0]), true
	case Uint16:
		return uint64(v.order.Uint16(v.raw)), true
	case Uint32:
		return uint64(v.order.Uint32(v.raw)), true
	case Uint64:
		return v.order.Uint64(v.raw), true
	}
	return 0, false
}

func (v Value) signed() (int64, bool) {
	switch v.typ {
	case Int8:
		return int64(int8(v.raw[0])), true
	case Int16:
		return int64(int16(v.order.Uint16(v.raw))), true
	case Int32:
		return int64(int32(v.order.Uint32(v.raw))), true
	case Int64:
		return int64(v.order.Uint64(v.raw)), true
	}
	return 0, false
}

// Float returns the value of a floating-point type.
func (v Value) Float() (float64, bool) {
	switch v.typ {
	case Float32:
		return float64(math.Float32frombits(v.order.Uint32(v.raw))), true
	case Float64:
		return math.Float64frombits(v.order.Uint64(v.raw)), true
	}
	return 0, false
}

// Bool returns the value of a bool; any byte but 0 is true.
func (v Value) Bool() (value, ok bool) {
	if v.typ != Bool {
		return false, false
	}
	return v.raw[0] != 0, true
}

// Text returns the bytes of a string, which need not be UTF-8.
func (v Value) Text() (string, bool) {
	if v.typ != Text {
		return "", false
	}
	raw, err := v.Raw()
	if err != nil {
		return "", false
	}
	return string(raw[8:]), true
}

// Each calls fn for every element of an array, in order, until fn returns an error.
func (v Value) Each(fn func(i int64, e Value) error) error {
	if v.typ != Array {
		return fmt.Errorf("value is %s, not an array", v.typ)
	}
	s := newScanner("array", v, v.Size())
	s.order = v.order
	s.skip(12, "array head")
	for i := range v.count {
		e := s.value(v.elem, 1, "element")
		if s.err != nil {
			return s.err
		}
		if err := fn(i, e); err != nil {
			return err
		}
	}
	return nil
}

// Uints returns the elements of an integer array, or one integer as a list of one.
// It reports false for another type, a negative element, or a read error.
func (v Value) Uints() ([]uint64, bool) {
	if u, ok := v.Uint(); ok {
		return []uint64{u}, true
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

// WithInt returns a value of the same integer type, byte order included, that holds n.
func (v Value) WithInt(n int64) (Value, error) {
	w := Value{typ: v.typ, order: v.order, raw: make([]byte, len(v.raw))}
	switch v.typ {
	case Uint8, Int8:
		w.raw[0] = byte(n)
	case Uint16, Int16:
		w.order.PutUint16(w.raw, uint16(n))
	case Uint32, Int32:
		w.order.PutUint32(w.raw, uint32(n))
	case Uint64, Int64:
		w.order.PutUint64(w.raw, uint64(n))
	default:
		return Value{}, fmt.Errorf("value is %s, not an integer", v.typ)
	}
	if got, ok := w.Int(); !ok || got != n {
		return Value{}, fmt.Errorf("%d does not fit %s", n, v.typ)
	}
	return w, nil
}

// maxNesting bounds arrays of arrays; llama.cpp reads none at all.
const maxNesting = 8

// value reads one value of type t. Values that are short are copied, long ones stay
// in the file.
func (s *scanner) value(t ValueType, depth int, what string) Value {
	v := Value{typ: t, order: s.order}
	start := s.offset()
	switch {
	case t == Text:
		s.skip(s.length(1, what), what)
	case t == Array:
		v.elem, v.count = s.array(depth, what)
	default:
		s.skip(t.fixedSize(), what)
	}
	if s.err != nil {
		return Value{}
	}
	size := s.offset() - start
	if size > inlineValue {
		v.span = io.NewSectionReader(s.r, start, size)
		return v
	}
	v.raw = s.reread(start, size, what)
	return v
}

// reread returns a copy of the size bytes that were just passed over.
func (s *scanner) reread(start, size int64, what string) []byte {
	if start >= s.base && s.err == nil {
		at := int(start - s.base)
		return append([]byte(nil), s.buf[at:at+int(size)]...)
	}
	raw := make([]byte, size)
	if n, err := s.r.ReadAt(raw, start); int64(n) < size && s.err == nil {
		s.err = fmt.Errorf("%s: reading %s at byte %d: %w", printable(s.file), what, start, err)
	}
	return raw
}

// array passes over an array and returns its element type and count.
func (s *scanner) array(depth int, what string) (ValueType, int64) {
	at := s.offset()
	elem := ValueType(s.u32(what))
	if s.err == nil && !elem.known() {
		s.fail(at, "%s: array of unknown value type %d", what, uint32(elem))
	}
	if depth >= maxNesting {
		s.fail(at, "%s: arrays nested deeper than %d", what, maxNesting)
	}
	if s.err != nil {
		return 0, 0
	}
	count := s.length(elem.minSize(), what)
	switch elem {
	case Text:
		s.skipTexts(count, what)
	case Array:
		for i := int64(0); i < count && s.err == nil; i++ {
			s.array(depth+1, what)
		}
	default:
		s.skip(count*elem.fixedSize(), what)
	}
	return elem, count
}
