package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"os"
	"strings"
	"testing"

	"ggufreap/gguf"
	"ggufreap/manifest/verify"
)

// written returns what a jsonWriter makes of v.
func written(t *testing.T, indent string, v any) string {
	t.Helper()
	var b strings.Builder
	w := &jsonWriter{w: &b, indent: indent}
	if err := w.any(v); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestJSONAsTheLibrary writes what holds nothing odd, and wants what encoding/json writes.
func TestJSONAsTheLibrary(t *testing.T) {
	type part struct {
		Name string   `json:"name"`
		None *int     `json:"none"`
		Some *float64 `json:"some"`
		Left string   `json:"left,omitempty"`
		Skip string   `json:"-"`
	}
	half := 0.5
	v := struct {
		Text     string            `json:"text"`
		Parts    []part            `json:"parts"`
		Nil      []part            `json:"nil"`
		Empty    []part            `json:"empty"`
		Any      any               `json:"any"`
		Big      uint64            `json:"big"`
		Small    float64           `json:"small"`
		Yes      bool              `json:"yes"`
		Severity gguf.Severity     `json:"severity"`
		Finding  verify.Finding    `json:"finding"`
		Texts    []string          `json:"texts"`
		Map      map[string]string `json:"map"`
	}{
		"a\"b\\c\n\t\b\f\x01 <&> 模", []part{{Name: "x", Some: &half}, {Left: "y"}}, nil, []part{}, part{}, math.MaxUint64, 1e-9, true,
		gguf.Error, verify.Finding{Kind: verify.KindDigest, File: "f", Expert: 7, What: "x"}, []string{"a", ""}, map[string]string{"k": "v", "a": "b"},
	}
	var want strings.Builder
	e := json.NewEncoder(&want)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	if got := written(t, "\n", v) + "\n"; got != want.String() {
		t.Errorf("got:\n%s\nwant:\n%s", got, want.String())
	}
}

func TestJSONOfValues(t *testing.T) {
	array := func(items ...gguf.Value) gguf.Value { return gguf.ArrayValue(gguf.Array, items...) }
	for _, tc := range []struct {
		value            gguf.Value
		indented, inLine string
	}{
		{gguf.Int64Value(math.MinInt64), `"-9223372036854775808"`, `"-9223372036854775808"`},
		{gguf.Uint8Value(7), "7", "7"},
		{gguf.BoolValue(true), "true", "true"},
		{gguf.Float32Value(0.1), "0.1", "0.1"},
		{gguf.Float64Value(math.Inf(-1)), `"-Infinity"`, `"-Infinity"`},
		{gguf.TextValue("a\u202e\U000e0041\n"), `"a\u202e\udb40\udc41\n"`, `"a\u202e\udb40\udc41\n"`},
		{gguf.TextValue("\xff"), "{\n  \"base64\": \"/w==\"\n}", `{"base64":"/w=="}`},
		{gguf.Int32sValue(1, -2), "[1, -2]", "[1,-2]"},
		{gguf.Int32sValue(), "[]", "[]"},
		{gguf.Float32sValue(1.5, 2), "[1.5, 2]", "[1.5,2]"},
		{gguf.Float32sValue(1.5, float32(math.NaN())), "[\n  1.5,\n  \"NaN\"\n]", `[1.5,"NaN"]`},
		{gguf.TextsValue("a", "b"), "[\n  \"a\",\n  \"b\"\n]", `["a","b"]`},
		{array(gguf.Uint32sValue(1, 2), gguf.TextsValue()), "[\n  [1, 2],\n  []\n]", "[[1,2],[]]"},
	} {
		if got := written(t, "\n", value{tc.value}); got != tc.indented {
			t.Errorf("got %s, want %s", got, tc.indented)
		}
		if got := written(t, "", value{tc.value}); got != tc.inLine {
			t.Errorf("in one line got %s, want %s", got, tc.inLine)
		}
	}
}

// FuzzJSONText reads back what was written of any bytes.
func FuzzJSONText(f *testing.F) {
	for _, s := range []string{"", "a\"\\/\x00\x7f", "\ufffd", "e\u0301\u0301\u0301\u0301\u0301", "\u2028\U0010ffff", "\xff模"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var back any
		out := written(t, "", text(s))
		if err := json.Unmarshal([]byte(out), &back); err != nil {
			t.Fatal(err)
		}
		if unsafeAt(out, "") >= 0 {
			t.Errorf("%q is written as %q, which acts on a terminal", s, out)
		}
		if m, ok := back.(map[string]any); ok {
			var bytes []byte
			if err := json.Unmarshal([]byte(written(t, "", m["base64"])), &bytes); err != nil || string(bytes) != s {
				t.Errorf("%q is written as %s (%v)", s, out, err)
			}
		} else if back != s {
			t.Errorf("%q is written as %s", s, out)
		}
	})
}

// TestKeyTooLong has a text, and one in a list, that are longer than what is printed.
func TestKeyTooLong(t *testing.T) {
	t.Chdir(t.TempDir())
	const size = 70 << 20
	word := func(n uint64, size int) []byte { return binary.LittleEndian.AppendUint64(nil, n)[:size] }
	pair := func(key string, parts ...[]byte) []byte {
		b := append(word(uint64(len(key)), 8), key...)
		for _, part := range parts {
			b = append(b, part...)
		}
		return b
	}
	begin := append([]byte("GGUF"), append(word(3, 4), append(word(0, 8), word(1, 8)...)...)...)
	for name, tc := range map[string]struct {
		pair []byte
		want string
	}{
		"text.gguf": {pair("general.name", word(uint64(gguf.Text), 4), word(size, 8)),
			`text.gguf: key "general.name": a string of 73,400,320 bytes, at most 67,108,856 can be printed`},
		"list.gguf": {pair("general.name", word(uint64(gguf.Array), 4), word(uint64(gguf.Text), 4), word(1, 8), word(size, 8)),
			`list.gguf: key "general.name": item 0 of the list has 73,400,328 bytes, at most 67,108,864 can be printed`},
	} {
		writeFile(t, name, append(begin, tc.pair...))
		if err := os.Truncate(name, int64(len(begin)+len(tc.pair)+size)); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"inspect", "--key", "general.name", name}, {"inspect", "--json", "--key", "general.name", name}} {
			if r := ggufreap(t, args...); r != (result{"", "ggufreap: error: " + tc.want + "\n", exitFailed}) {
				t.Errorf("%q gives %+v", args, r)
			}
		}
	}
	r := ggufreap(t, "inspect", "text.gguf")
	if want := `key "general.name": is a text of 73,400,320 bytes, too long to be shown`; !strings.Contains(r.stdout, want) {
		t.Errorf("%q is missing in\n%s", want, r.stdout)
	}
}

// TestJSONStopsAtAnError writes a list that cannot be read to its end.
func TestJSONStopsAtAnError(t *testing.T) {
	broken := errors.New("broken")
	var b strings.Builder
	w := &jsonWriter{w: &b}
	err := w.any(elements(func(yield func(any) error) error { return errors.Join(yield(1), broken) }))
	if !errors.Is(err, broken) || b.String() != "[1]" {
		t.Errorf("got %q, %v", b.String(), err)
	}
}
