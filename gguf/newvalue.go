package gguf

import (
	"encoding/binary"
	"fmt"
	"math"
)

// The functions in this file make values for writing, in little endian.

func newValue(t ValueType, raw []byte) Value {
	return Value{typ: t, order: binary.LittleEndian, raw: raw}
}

// Uint8Value makes a u8.
func Uint8Value(n uint8) Value { return newValue(Uint8, []byte{n}) }

// Int8Value makes an i8.
func Int8Value(n int8) Value { return newValue(Int8, []byte{byte(n)}) }

// Uint16Value makes a u16.
func Uint16Value(n uint16) Value {
	return newValue(Uint16, binary.LittleEndian.AppendUint16(nil, n))
}

// Int16Value makes an i16.
func Int16Value(n int16) Value {
	return newValue(Int16, binary.LittleEndian.AppendUint16(nil, uint16(n)))
}

// Uint32Value makes a u32.
func Uint32Value(n uint32) Value {
	return newValue(Uint32, binary.LittleEndian.AppendUint32(nil, n))
}

// Int32Value makes an i32.
func Int32Value(n int32) Value {
	return newValue(Int32, binary.LittleEndian.AppendUint32(nil, uint32(n)))
}

// Uint64Value makes a u64.
func Uint64Value(n uint64) Value {
	return newValue(Uint64, binary.LittleEndian.AppendUint64(nil, n))
}

// Int64Value makes an i64.
func Int64Value(n int64) Value {
	return newValue(Int64, binary.LittleEndian.AppendUint64(nil, uint64(n)))
}

// Float32Value makes an f32.
func Float32Value(f float32) Value {
	return newValue(Float32, binary.LittleEndian.AppendUint32(nil, math.Float32bits(f)))
}

// Float64Value makes an f64.
func Float64Value(f float64) Value {
	return newValue(Float64, binary.LittleEndian.AppendUint64(nil, math.Float64bits(f)))
}

// BoolValue makes a bool.
func BoolValue(b bool) Value {
	if b {
		return newValue(Bool, []byte{1})
	}
	return newValue(Bool, []byte{0})
}

// TextValue makes a string. The bytes need not be UTF-8.
func TextValue(s string) Value {
	raw := binary.LittleEndian.AppendUint64(make([]byte, 0, 8+len(s)), uint64(len(s)))
	return newValue(Text, append(raw, s...))
}

// ArrayValue makes an array of elem from values of that type. An array may be empty,
// and may hold arrays. It panics when an item has another type or byte order.
func ArrayValue(elem ValueType, items ...Value) Value {
	raw := binary.LittleEndian.AppendUint32(nil, uint32(elem))
	raw = binary.LittleEndian.AppendUint64(raw, uint64(len(items)))
	for i, item := range items {
		if item.typ != elem || item.order != binary.ByteOrder(binary.LittleEndian) || item.span != nil {
			panic(fmt.Sprintf("gguf: array item %d is %s, want %s", i, item.typ, elem))
		}
		raw = append(raw, item.raw...)
	}
	return Value{typ: Array, elem: elem, count: int64(len(items)), order: binary.LittleEndian, raw: raw}
}

// TextsValue makes an array of strings.
func TextsValue(list ...string) Value { return arrayOf(Text, TextValue, list) }

// Int32sValue makes an array of i32.
func Int32sValue(list ...int32) Value { return arrayOf(Int32, Int32Value, list) }

// Uint32sValue makes an array of u32.
func Uint32sValue(list ...uint32) Value { return arrayOf(Uint32, Uint32Value, list) }

// Float32sValue makes an array of f32.
func Float32sValue(list ...float32) Value { return arrayOf(Float32, Float32Value, list) }

func arrayOf[T any](elem ValueType, one func(T) Value, list []T) Value {
	items := make([]Value, len(list))
	for i, x := range list {
		items[i] = one(x)
	}
	return ArrayValue(elem, items...)
}
