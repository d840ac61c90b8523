package gguf

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

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

// Reader returns a reader of the encoded bytes, as they stand in the file, in its byte order.
func (v Value) Reader() io.Reader {
	if v.span != nil {
		return io.NewSectionReader(v.span, 0, v.span.Size())
	}
	return bytes.NewReader(v.raw)
}

// ReadAt reads encoded bytes, as [io.ReaderAt]; off counts from the first of them.
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

// Raw returns the encoded bytes, as they stand in the file, in its byte order, for values of at most
// 64 MiB. A longer one, which is to be read in parts, and one that cannot be read are errors. They
// must not be changed.
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
