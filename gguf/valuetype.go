package gguf

import "fmt"

// A ValueType is the stored type of a metadata value.
type ValueType uint32

// The value types of the format, by their stored ids.
const (
	Uint8   ValueType = 0
	Int8    ValueType = 1
	Uint16  ValueType = 2
	Int16   ValueType = 3
	Uint32  ValueType = 4
	Int32   ValueType = 5
	Float32 ValueType = 6
	Bool    ValueType = 7
	Text    ValueType = 8
	Array   ValueType = 9
	Uint64  ValueType = 10
	Int64   ValueType = 11
	Float64 ValueType = 12
)

var valueTypes = [...]struct {
	name string
	size int64 // bytes of one value; 0 when it varies
}{
	Uint8: {"u8", 1}, Int8: {"i8", 1}, Uint16: {"u16", 2}, Int16: {"i16", 2},
	Uint32: {"u32", 4}, Int32: {"i32", 4}, Float32: {"f32", 4}, Bool: {"bool", 1},
	Text: {"str", 0}, Array: {"arr", 0},
	Uint64: {"u64", 8}, Int64: {"i64", 8}, Float64: {"f64", 8},
}

func (t ValueType) known() bool { return uint64(t) < uint64(len(valueTypes)) }

// ParseValueType reads what [ValueType.String] returns of a type that the format has. Anything else
// is an error.
func ParseValueType(name string) (ValueType, error) {
	for t := range valueTypes {
		if valueTypes[t].name == name {
			return ValueType(t), nil
		}
	}
	return 0, fmt.Errorf("%q is not a type of value", name)
}

// fixedSize returns the bytes of one value of t, 0 for strings and arrays.
func (t ValueType) fixedSize() int64 { return valueTypes[t].size }

// minSize is the fewest bytes that a value of t can take.
func (t ValueType) minSize() int64 {
	switch t {
	case Text:
		return 8 // length
	case Array:
		return 12 // element type, count
	}
	return t.fixedSize()
}

// String returns the short name used in documents: "u8", "i32", "str", "arr".
func (t ValueType) String() string {
	if !t.known() {
		return fmt.Sprintf("type(%d)", uint32(t))
	}
	return valueTypes[t].name
}
