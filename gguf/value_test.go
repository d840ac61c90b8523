package gguf

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
)

// everyType adds one pair of each value type, and of arrays of them, in the order in
// which the format numbers them.
func everyType(b *builder) []byte {
	b.head(0, 20)
	b.pair("u8", Uint8, uint8(0xfe)).pair("i8", Int8, int8(-2))
	b.pair("u16", Uint16, uint16(0xfedc)).pair("i16", Int16, int16(-300))
	b.pair("u32", Uint32, uint32(0xfedcba98)).pair("i32", Int32, int32(-70000))
	b.pair("f32", Float32, float32(0.1)).pair("bool", Bool, uint8(2)).pair("text", Text, "▁\x00\xff")
	b.pair("u64", Uint64, uint64(1<<64-1)).pair("i64", Int64, int64(math.MinInt64)).pair("f64", Float64, math.Inf(-1))
	b.pair("u8s", Array, uint32(Uint8), uint64(3), []byte{1, 2, 3}).pair("i16s", Array, uint32(Int16), uint64(2), int16(-1), int16(7))
	b.pair("i64s", Array, uint32(Int64), uint64(1), int64(-5)).pair("f64s", Array, uint32(Float64), uint64(1), 2.5)
	b.pair("bools", Array, uint32(Bool), uint64(2), []byte{0, 2}).pair("none", Array, uint32(Text), uint64(0))
	b.pair("texts", Array, uint32(Text), uint64(4), "\x80", "\xff\xfe", "▁", "")
	b.pair("nested", Array, uint32(Array), uint64(2), uint32(Int32), uint64(2), int32(1), int32(-1), uint32(Text), uint64(1), "x")
	return b.b
}

// spell writes a value in a plain way that shows its type.
func spell(v Value) string {
	switch v.Type() {
	case Array:
		var parts []string
		v.Each(func(_ int64, e Value) error {
			parts = append(parts, spell(e))
			return nil
		})
		return v.TypeName() + "{" + strings.Join(parts, " ") + "}"
	case Text:
		s, _ := v.Text()
		return fmt.Sprintf("%q", s)
	case Bool:
		b, _ := v.Bool()
		return fmt.Sprint(b)
	case Float32, Float64:
		f, _ := v.Float()
		return fmt.Sprintf("%s %.8g", v.Type(), f)
	}
	if i, ok := v.Int(); ok {
		return fmt.Sprintf("%s %d", v.Type(), i)
	}
	u, _ := v.Uint()
	return fmt.Sprintf("%s %d", v.Type(), u)
}

func TestEveryValueType(t *testing.T) {
	want := map[string]string{
		"u8": "u8 254", "i8": "i8 -2", "u16": "u16 65244", "i16": "i16 -300", "u32": "u32 4275878552", "i32": "i32 -70000",
		"f32": "f32 0.1", "bool": "true", "text": `"▁\x00\xff"`, "u64": "u64 18446744073709551615",
		"i64": "i64 -9223372036854775808", "f64": "f64 -Inf",
		"u8s": "u8[]{u8 1 u8 2 u8 3}", "i16s": "i16[]{i16 -1 i16 7}", "i64s": "i64[]{i64 -5}", "f64s": "f64[]{f64 2.5}",
		"bools": "bool[]{false true}", "none": "str[]{}", "texts": `str[]{"\x80" "\xff\xfe" "▁" ""}`,
		"nested": `arr[]{i32[]{i32 1 i32 -1} str[]{"x"}}`,
	}
	for _, b := range []*builder{little(), big()} {
		f := mustParse(t, everyType(b))
		if f.Metadata.Len() != len(want) {
			t.Errorf("%d pairs, want %d", f.Metadata.Len(), len(want))
		}
		for key, v := range f.Metadata.All() {
			if got := spell(v); got != want[key] {
				t.Errorf("%s %s: got %s, want %s", f.Order, key, got, want[key])
			}
		}
	}
}

// Values that are copied are the same bytes: Raw, Reader and ReadAt agree with what
// stands in the file.
func TestValuesKeepTheirBytes(t *testing.T) {
	file := everyType(little())
	at := fixedHeader
	for key, v := range mustParse(t, file).Metadata.All() {
		at += 8 + len(key) + 4
		want := file[at : at+int(v.Size())]
		at += len(want)
		raw, err := v.Raw()
		if err != nil || !bytes.Equal(raw, want) {
			t.Errorf("%s: Raw gives %x, %v; the file has %x", key, raw, err, want)
		}
		read, err := io.ReadAll(v.Reader())
		if err != nil || !bytes.Equal(read, want) {
			t.Errorf("%s: Reader gives %x, %v; the file has %x", key, read, err, want)
		}
	}
	if at != len(file) {
		t.Errorf("values end at byte %d of %d", at, len(file))
	}
}

// An accessor answers only for its own types, and for none when a key is absent.
func TestAccessorsOfOtherTypes(t *testing.T) {
	f := mustParse(t, everyType(little()))
	answers := map[string]string{
		"u8": "IU", "i8": "I", "u16": "IU", "i16": "I", "u32": "IU", "i32": "I", "u64": "U", "i64": "I",
		"f32": "F", "f64": "F", "bool": "B", "text": "T", "texts": "", "absent": "",
	}
	for key, want := range answers {
		v, _ := f.Metadata.Get(key)
		got := ""
		if _, ok := v.Int(); ok {
			got += "I"
		}
		if _, ok := v.Uint(); ok {
			got += "U"
		}
		if _, ok := v.Float(); ok {
			got += "F"
		}
		if _, ok := v.Bool(); ok {
			got += "B"
		}
		if _, ok := v.Text(); ok {
			got += "T"
		}
		if got != want {
			t.Errorf("%s: accessors %q answer, want %q", key, got, want)
		}
	}
	if err := (Value{}).Each(func(int64, Value) error { return nil }); err == nil {
		t.Error("Each on an absent value gives no error")
	}
}

func TestWithIntKeepsTheStoredType(t *testing.T) {
	f := mustParse(t, everyType(big()))
	tests := []struct {
		key  string
		n    int64
		want string
	}{
		{"u8", 255, "u8 255"}, {"u8", 256, "256 does not fit u8"}, {"u8", -1, "-1 does not fit u8"},
		{"i8", -128, "i8 -128"}, {"i8", 128, "128 does not fit i8"},
		{"u16", 65535, "u16 65535"}, {"u16", 65536, "65536 does not fit u16"},
		{"i16", -32768, "i16 -32768"}, {"i32", 568, "i32 568"}, {"i32", 1 << 31, "2147483648 does not fit i32"},
		{"u32", 1<<32 - 1, "u32 4294967295"}, {"u64", math.MaxInt64, "u64 9223372036854775807"},
		{"u64", -1, "-1 does not fit u64"}, {"i64", math.MinInt64, "i64 -9223372036854775808"},
		{"text", 1, "value is str, not an integer"}, {"u8s", 1, "value is u8[], not an integer"}, {"absent", 1, "not an integer"},
	}
	for _, test := range tests {
		v, _ := f.Metadata.Get(test.key)
		w, err := v.WithInt(test.n)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = spell(w)
		}
		if !strings.HasSuffix(got, test.want) {
			t.Errorf("%s with %d: got %q, want %q", test.key, test.n, got, test.want)
		}
	}
}

// Long arrays are not read when a file is opened, and are decoded from their place.
func TestLongArraysStayInTheFile(t *testing.T) {
	const n = 300_000
	b := little().head(1, 4)
	b.add("tokens", uint32(Array), uint32(Text), uint64(n))
	for i := range n {
		b.add(fmt.Sprint(i))
	}
	b.pair("types", Array, uint32(Int32), uint64(n), make([]int32, n))
	b.pair("general.architecture", Text, "late").pair("late.expert_count", Int64, int64(8))
	b.info("w", F32, 0, 1)
	file := b.pad().data(4).b
	r := &countingReader{r: bytes.NewReader(file)}
	f, err := NewFile("m.gguf", r, int64(len(file)))
	if err != nil || f.Err() != nil {
		t.Fatal(err, f.Err())
	}
	if n, _ := f.Metadata.ArchUint("expert_count"); n != 8 {
		t.Errorf("expert count behind the arrays is %d, want 8", n)
	}
	tokens, _ := f.Metadata.Get("tokens")
	types, _ := f.Metadata.Get("types")
	if tokens.Len() != n || types.Len() != n {
		t.Errorf("lengths %d and %d, want %d", tokens.Len(), types.Len(), n)
	}
	if saved := int64(len(file)) - r.n; saved < 4*n-scanBuffer {
		t.Errorf("only %d bytes were left out, of an array of %d", saved, 4*n)
	}
	seen := int64(0)
	err = tokens.Each(func(i int64, e Value) error {
		if s, _ := e.Text(); s != fmt.Sprint(i) || i != seen {
			return fmt.Errorf("element %d is %q", i, s)
		}
		seen++
		return nil
	})
	if err != nil || seen != n {
		t.Errorf("%d elements seen, %v", seen, err)
	}
	stop := errors.New("enough")
	if err := types.Each(func(i int64, _ Value) error { return stop }); err != stop {
		t.Errorf("Each returns %v, not the callback's error", err)
	}
	if list, ok := types.Uints(); !ok || len(list) != n {
		t.Errorf("Uints gives %d elements, %v", len(list), ok)
	}
	if _, ok := tokens.Uints(); ok {
		t.Error("Uints accepts strings")
	}
}

type countingReader struct {
	r io.ReaderAt
	n int64
}

func (c *countingReader) ReadAt(p []byte, off int64) (int, error) {
	c.n += int64(len(p))
	return c.r.ReadAt(p, off)
}

// Values that stand across the edge of a read step are whole. The step is moved over
// a chat template byte by byte.
func TestValuesAcrossReadSteps(t *testing.T) {
	text := strings.Repeat("▁template", 30)
	for shift := firstScan - 300; shift < firstScan+20; shift++ {
		b := little().head(0, 3).pair("fill", Text, strings.Repeat("x", shift)).pair("t", Text, text).pair("n", Array, uint32(Uint16), uint64(2), uint16(1), uint16(2))
		f := mustParse(t, b.b)
		v, _ := f.Metadata.Get("n")
		if got := f.Metadata.Text("t"); got != text || spell(v) != "u16[]{u16 1 u16 2}" {
			t.Fatalf("shift %d: template has %d bytes, array is %s", shift, len(got), spell(v))
		}
	}
}

func TestMetadataOrderAndChange(t *testing.T) {
	md := NewMetadata()
	for _, key := range []string{"b", "a", "c"} {
		md.Set(key, TextValue(key))
	}
	copied := md.Clone()
	copied.Set("a", Uint8Value(1))
	copied.Set("d", Uint8Value(2))
	less := copied.Without(func(key string) bool { return key == "b" })
	for _, test := range []struct {
		md   *Metadata
		want string
	}{{md, `b="b" a="a" c="c"`}, {copied, `b="b" a=u8 1 c="c" d=u8 2`}, {less, `a=u8 1 c="c" d=u8 2`}} {
		var got []string
		for key, v := range test.md.All() {
			got = append(got, key+"="+spell(v))
		}
		if s := strings.Join(got, " "); s != test.want {
			t.Errorf("got %s, want %s", s, test.want)
		}
	}
	if _, ok := less.Get("b"); ok {
		t.Error("a key that was left out is found")
	}
}

func TestConstructorsWriteTheFormat(t *testing.T) {
	tests := []struct {
		v    Value
		want *builder
	}{
		{Uint8Value(1), little().add(uint8(1))}, {Int8Value(-1), little().add(int8(-1))},
		{Uint16Value(1), little().add(uint16(1))}, {Int16Value(-1), little().add(int16(-1))},
		{Uint32Value(1), little().add(uint32(1))}, {Int32Value(-1), little().add(int32(-1))},
		{Uint64Value(1), little().add(uint64(1))}, {Int64Value(-1), little().add(int64(-1))},
		{Float32Value(0.1), little().add(float32(0.1))}, {Float64Value(0.1), little().add(0.1)},
		{BoolValue(true), little().add(uint8(1))}, {BoolValue(false), little().add(uint8(0))},
		{TextValue("a\xff"), little().add("a\xff")},
		{TextsValue("a", ""), little().add(uint32(8), uint64(2), "a", "")},
		{TextsValue(), little().add(uint32(8), uint64(0))},
		{Int32sValue(1, -1), little().add(uint32(5), uint64(2), int32(1), int32(-1))},
		{Uint32sValue(1), little().add(uint32(4), uint64(1), uint32(1))},
		{Float32sValue(1), little().add(uint32(6), uint64(1), float32(1))},
		{ArrayValue(Array, TextsValue("a")), little().add(uint32(9), uint64(1), uint32(8), uint64(1), "a")},
	}
	for _, test := range tests {
		if raw, _ := test.v.Raw(); !bytes.Equal(raw, test.want.b) {
			t.Errorf("%s: got %x, want %x", spell(test.v), raw, test.want.b)
		}
	}
}

// TestValueBounds reads values up to their last byte and no further, and shows texts up to a
// length.
func TestValueBounds(t *testing.T) {
	v := Uint32Value(0x01020304)
	for _, c := range []struct {
		off     int64
		into, n int
		err     error
	}{{0, 4, 4, nil}, {3, 1, 1, nil}, {3, 2, 1, io.EOF}, {4, 0, 0, nil}, {4, 1, 0, io.EOF}, {5, 0, 0, io.EOF}, {5, 1, 0, io.EOF}, {-1, 1, 0, io.EOF}} {
		if n, err := v.ReadAt(make([]byte, c.into), c.off); n != c.n || err != c.err {
			t.Errorf("%d bytes at %d: %d, %v, want %d, %v", c.into, c.off, n, err, c.n, c.err)
		}
	}
	if n := TextValue("four").Len(); n != 4 {
		t.Errorf("a text of 4 bytes has %d", n)
	}
	shown, hidden := strings.Repeat("a", 100), strings.Repeat("a", 101)
	if got := TextValue(shown).Describe(); got != `"`+shown+`"` {
		t.Errorf("100 bytes: %s", got)
	}
	if got := TextValue(hidden).Describe(); strings.Contains(got, "aa") {
		t.Errorf("101 bytes: %s", got)
	}
}

// TestWithoutSplit leaves out the three keys of a split, and no other that begins so.
func TestWithoutSplit(t *testing.T) {
	md := NewMetadata()
	for _, key := range []string{KeySplitNo, "a", KeySplitCount, "split.payload", KeySplitTensors, "split"} {
		md.Set(key, Uint16Value(1))
	}
	if got, want := md.WithoutSplit().Keys(), []string{"a", "split.payload", "split"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
