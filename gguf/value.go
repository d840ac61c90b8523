package gguf

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// inlineValue is the greatest encoded size that is held in memory, enough for a chat
// template. A longer value stays a span of its file and is read again when asked for.
const inlineValue = 64 << 10

// maxWhole is the greatest encoded size that is given as a whole, larger than any
// tokenizer. A file full of holes can hold a string of a terabyte.
const maxWhole = 64 << 20

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
func (v Value) Reader() io.Reader {
	if v.span != nil {
		return io.NewSectionReader(v.span, 0, v.span.Size())
	}
	return bytes.NewReader(v.raw)
}

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

// Raw returns the encoded bytes, for values of at most 64 MiB. Longer ones are to be
// read in parts.
func (v Value) Raw() ([]byte, error) {
	if v.span == nil {
		return v.raw, nil
	}
	if v.Size() > maxWhole {
		return nil, fmt.Errorf("value has %d bytes, at most %d can be read as a whole", v.Size(), maxWhole)
	}
	raw := make([]byte, v.Size())
	if err := readFull(v.span, "metadata value", raw, 0); err != nil {
		return nil, err
	}
	return raw, nil
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
	switch {
	case v.isUnset():
	case v.typ == Uint8:
		return uint64(v.raw[0]), true
	case v.typ == Uint16:
		return uint64(v.order.Uint16(v.raw)), true
	case v.typ == Uint32:
		return uint64(v.order.Uint32(v.raw)), true
	case v.typ == Uint64:
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

// isUnset tells the zero Value, which [Metadata.Get] returns for an absent key, from
// a u8.
func (v Value) isUnset() bool { return v.order == nil }

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

// Describe writes a number with its type, and of anything else the type, for a message.
func (v Value) Describe() string {
	if n, ok := v.Uint(); ok {
		return fmt.Sprintf("%d (%s)", n, v.TypeName())
	}
	if n, ok := v.Int(); ok {
		return fmt.Sprintf("%d (%s)", n, v.TypeName())
	}
	if x, ok := v.Float(); ok {
		return fmt.Sprintf("%v (%s)", x, v.TypeName())
	}
	if s, ok := v.Text(); ok && len(s) <= maxDescribed {
		return quoted(s)
	}
	return fmt.Sprintf("%s of %d bytes", v.TypeName(), v.Size())
}

// maxDescribed is the longest string that a message shows.
const maxDescribed = 100

// equal reports whether two values are the same. Values that [Value.Raw] cannot give are
// taken to be equal when their sizes are.
func (v Value) equal(w Value) bool {
	if v.Size() != w.Size() || v.Size() > maxWhole {
		return v.Size() == w.Size()
	}
	d, err := Compare(v, w)
	return err == nil && d.Same()
}

// Text returns the bytes of a string, which need not be UTF-8. It reports false for one
// that [Value.Raw] cannot give.
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

// WithInt returns a value of the same integer type, byte order included, that holds n.
func (v Value) WithInt(n int64) (Value, error) {
	if _, ok := v.Int(); !ok && v.typ != Uint64 {
		return Value{}, fmt.Errorf("value is %s, not an integer", v.TypeName())
	}
	w := Value{typ: v.typ, order: v.order, raw: make([]byte, len(v.raw))}
	switch len(w.raw) {
	case 1:
		w.raw[0] = byte(n)
	case 2:
		w.order.PutUint16(w.raw, uint16(n))
	case 4:
		w.order.PutUint32(w.raw, uint32(n))
	case 8:
		w.order.PutUint64(w.raw, uint64(n))
	}
	if got, ok := w.Int(); !ok || got != n {
		return Value{}, fmt.Errorf("%d does not fit %s", n, v.typ)
	}
	return w, nil
}

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
