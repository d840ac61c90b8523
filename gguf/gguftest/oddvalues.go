package gguftest

import (
	"math"

	"ggufreap/gguf"
)

// addOddValues adds values that llama.cpp does not look at and that copying gets wrong:
// every type at an end of its range, arrays of them, what is empty, and bytes that are not
// UTF-8.
func addOddValues(md *gguf.Metadata) {
	set := func(key string, v gguf.Value) { md.Set("fixture."+key, v) }
	array := func(key string, items ...gguf.Value) { set(key, gguf.ArrayValue(items[0].Type(), items...)) }

	set("u8", gguf.Uint8Value(math.MaxUint8))
	set("i8", gguf.Int8Value(math.MinInt8))
	set("u16", gguf.Uint16Value(math.MaxUint16))
	set("i16", gguf.Int16Value(math.MinInt16))
	set("i32", gguf.Int32Value(math.MinInt32))
	set("u64", gguf.Uint64Value(math.MaxUint64))
	set("i64", gguf.Int64Value(math.MinInt64))
	set("f32_nan", gguf.Float32Value(math.Float32frombits(0x7fc00001)))
	set("f64", gguf.Float64Value(0.1))
	set("bool", gguf.BoolValue(false))
	set("empty", gguf.TextValue(""))
	set("not_utf8", gguf.TextValue("K3 \xff\xfe\x80"))

	array("u8s", gguf.Uint8Value(0), gguf.Uint8Value(math.MaxUint8))
	array("i8s", gguf.Int8Value(-1), gguf.Int8Value(math.MinInt8), gguf.Int8Value(0))
	array("u16s", gguf.Uint16Value(math.MaxUint16))
	array("i16s", gguf.Int16Value(math.MinInt16), gguf.Int16Value(1))
	array("u64s", gguf.Uint64Value(math.MaxUint64))
	array("i64s", gguf.Int64Value(math.MinInt64), gguf.Int64Value(math.MaxInt64))
	array("f64s", gguf.Float64Value(math.Inf(-1)), gguf.Float64Value(math.SmallestNonzeroFloat64))
	array("bools", gguf.BoolValue(true), gguf.BoolValue(false), gguf.BoolValue(true))
	set("texts", gguf.TextsValue("▁", "", "\x80", "\xff\xfe"))
	set("no_texts", gguf.TextsValue())
}
