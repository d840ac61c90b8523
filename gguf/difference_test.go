package gguf

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
)

// stored writes a value into a file and reads it back, so that a long one stays there.
func stored(t *testing.T, v Value) Value {
	t.Helper()
	back, _ := mustParse(t, fileWith(t, v)).Metadata.Get("v")
	return back
}

// fileWith returns a file whose one value is v.
func fileWith(t *testing.T, v Value) []byte {
	t.Helper()
	md := NewMetadata()
	md.Set("v", v)
	layout, err := NewLayout(Contents{Version: 3, Metadata: md}, Split{})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := layout.Shards[0].Write(t.Context(), &b, make([]byte, 4096), nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func count(n int) []uint32 {
	list := make([]uint32, n)
	for i := range list {
		list[i] = uint32(i)
	}
	return list
}

func with(list []uint32, at int, n uint32) Value {
	list[at] = n
	return Uint32sValue(list...)
}

func TestCompare(t *testing.T) {
	nan := math.Float32frombits
	long := strings.Repeat("x", 200_000)
	nested := func(lists ...Value) Value { return ArrayValue(Array, lists...) }
	for _, tc := range []struct {
		name string
		a, b Value
		want string // items, path, byte and what stands there; "" for equal values
	}{
		{"numbers", Uint32Value(7), Uint32Value(7), ""},
		{"other numbers", Uint32Value(7), Uint32Value(8), "1 [] 0: u32 7, u32 8"},
		{"other types", Uint32Value(7), Int32Value(7), "1 [] 0: u32 7, i32 7"},
		{"one NaN", Float32Value(nan(0x7fc00001)), Float32Value(nan(0x7fc00001)), ""},
		{"two NaNs", Float32Value(nan(0x7fc00001)), Float32Value(nan(0x7fc00002)), "1 [] 0: f32 NaN, f32 NaN"},
		{"zeros", Float64Value(0), Float64Value(math.Copysign(0, -1)), "1 [] 0: f64 0, f64 -0"},
		{"text", TextValue("abc"), TextValue("abc"), ""},
		{"other text", TextValue("abc"), TextValue("abd"), `1 [] 2: "abc", "abd"`},
		{"more text", TextValue("ab"), TextValue("abd"), `1 [] 2: "ab", "abd"`},
		{"no text", TextValue(""), TextValue("a"), `1 [] 0: "", "a"`},
		{"long text", TextValue(long), TextValue(long), ""},
		{"last byte of long text", TextValue("<" + long[1:] + ">"), TextValue("<" + long[1:] + "]"), fmt.Sprintf(`1 [] 200000: "<%s>", "<%s]"`, long[1:], long[1:])},
		{"list", Uint32sValue(1, 2), Uint32sValue(1, 2), ""},
		{"empty lists", Uint32sValue(), Uint32sValue(), ""},
		{"empty lists of two types", Uint32sValue(), TextsValue(), "1 [] 0: u32[]{}, str[]{}"},
		{"two items", Uint32sValue(1, 2, 3, 4), Uint32sValue(1, 5, 3, 6), "2 [1] 0: u32 2, u32 5"},
		{"shorter list", Uint32sValue(1, 2, 3), Uint32sValue(1), "2 [1] 0: u32 2, -"},
		{"longer list", Uint32sValue(), Uint32sValue(4), "1 [0] 0: -, u32 4"},
		{"last of many items", Uint32sValue(count(100_000)...), with(count(100_000), 99_999, 7), "1 [99999] 0: u32 99999, u32 7"},
		{"texts", TextsValue("a", "bcd", "e"), TextsValue("a", "bce", "e"), `1 [1] 2: "bcd", "bce"`},
		{"texts of other lengths", TextsValue("a", "b", "c"), TextsValue("ab", "b", "d"), `2 [0] 1: "a", "ab"`},
		{"bytes that are shifted", TextsValue("a", ""), TextsValue("", "a"), `2 [0] 0: "a", ""`},
		{"bool", BoolValue(true), newValue(Bool, []byte{2}), "1 [] 0: true, true"},
		{"nested", nested(Uint32sValue(1, 2), Uint32sValue(3)), nested(Uint32sValue(1, 2), Uint32sValue(4)), "1 [1 0] 0: u32 3, u32 4"},
		{"nested types", nested(Uint32sValue(1)), nested(Int32sValue(1)), "1 [0] 0: u32[]{u32 1}, i32[]{i32 1}"},
		{"deep", nested(nested(Uint32sValue(), Uint32sValue(8, 9))), nested(nested(Uint32sValue(), Uint32sValue(8))), "1 [0 1 1] 0: u32 9, -"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, pair := range [][2]Value{{tc.a, tc.b}, {stored(t, tc.a), stored(t, tc.b)}, {tc.a, stored(t, tc.b)}} {
				d, err := Compare(pair[0], pair[1])
				if err != nil {
					t.Fatal(err)
				}
				if got := spellDifference(d); got != tc.want {
					t.Errorf("got %.200q, want %.200q", got, tc.want)
				}
			}
		})
	}
}

func spellDifference(d Difference) string {
	if d.Same() {
		return ""
	}
	side := func(v Value) string {
		if v.isUnset() {
			return "-"
		}
		return spell(v)
	}
	return fmt.Sprintf("%d %v %d: %s, %s", d.Items, d.Path, d.Byte, side(d.A), side(d.B))
}

// TestCompareAcrossByteOrders compares what is written in both orders, value by value.
func TestCompareAcrossByteOrders(t *testing.T) {
	a, b := mustParse(t, everyType(little())).Metadata, mustParse(t, everyType(big())).Metadata
	for key, v := range a.All() {
		for other, w := range b.All() {
			d, err := Compare(v, w)
			if err != nil || d.Same() != (key == other) {
				t.Errorf("%s and %s: %+v, %v", key, other, d, err)
			}
		}
	}
	number := func(b *builder) Value {
		v, _ := mustParse(t, b.head(0, 1).pair("n", Array, uint32(Uint16), uint64(2), uint16(0x0102), uint16(0x0304)).b).Metadata.Get("n")
		return v
	}
	swapped := ArrayValue(Uint16, Uint16Value(0x0102), Uint16Value(0x0403))
	for name, v := range map[string]Value{"little": number(little()), "big": number(big())} {
		d, err := Compare(v, swapped)
		if got, want := spellDifference(d), "1 [1] 0: u16 772, u16 1027"; err != nil || got != want {
			t.Errorf("%s: got %q, want %q (%v)", name, got, want, err)
		}
	}
}

// TestCompareTellsWhatCannotBeRead cuts the file behind a value's back.
func TestCompareTellsWhatCannotBeRead(t *testing.T) {
	list := Uint32sValue(count(50_000)...)
	r := &cutReader{fileWith(t, list)}
	f, err := NewFile("m.gguf", r, int64(len(r.b)))
	if err != nil {
		t.Fatal(err)
	}
	v, _ := f.Metadata.Get("v")
	r.b = r.b[:len(r.b)/2]
	for _, other := range []Value{list, with(count(50_000), 3, 0)} {
		if d, err := Compare(v, other); err == nil {
			t.Errorf("got %+v, want an error", d)
		}
	}
}

type cutReader struct{ b []byte }

func (r *cutReader) ReadAt(p []byte, off int64) (int, error) {
	return bytes.NewReader(r.b).ReadAt(p, off)
}
