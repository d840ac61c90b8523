package document

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
	"ggufreap/manifest/verify"
)

// written returns what a jsonWriter makes of v.
func written(t *testing.T, indent string, v any) string {
	t.Helper()
	var b strings.Builder
	w := &jsonWriter{W: &b, indent: indent}
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
		if got := written(t, "\n", Value{tc.value}); got != tc.indented {
			t.Errorf("got %s, want %s", got, tc.indented)
		}
		if got := written(t, "", Value{tc.value}); got != tc.inLine {
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
		out := written(t, "", Text(s))
		if err := json.Unmarshal([]byte(out), &back); err != nil {
			t.Fatal(err)
		}
		if text.UnsafeAt(out, "") >= 0 {
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

// TestJSONStopsAtAnError writes a list that cannot be read to its end.
func TestJSONStopsAtAnError(t *testing.T) {
	broken := errors.New("broken")
	var b strings.Builder
	w := &jsonWriter{W: &b}
	err := w.any(Elements(func(yield func(any) error) error { return errors.Join(yield(1), broken) }))
	if !errors.Is(err, broken) || b.String() != "[1]" {
		t.Errorf("got %q, %v", b.String(), err)
	}
}

// TestHiddenRunes are escaped in text and in JSON, and what people write is not.
func TestHiddenRunes(t *testing.T) {
	for in, want := range map[string]string{
		"a\u3164b": `a\u3164b`, "a\u115fb": `a\u115fb`, "a\uffa0b": `a\uffa0b`, "a\u2800b": `a\u2800b`, "a\u034fb": `a\u034fb`, "a\ufe0fb": `a\ufe0fb`,
		"e" + strings.Repeat("\u0301", 4):      "e" + strings.Repeat("\u0301", 4),
		"e" + strings.Repeat("\u0301", 5):      "e" + strings.Repeat("\u0301", 4) + `\u0301`,
		"\u0e17\u0e35\u0e48 שָּׁ 模型 é x\u0301": "\u0e17\u0e35\u0e48 שָּׁ 模型 é x\u0301",
	} {
		if got := text.Safe(in); got != want {
			t.Errorf("safe(%q) is %q, want %q", in, got, want)
		}
		var b strings.Builder
		(&jsonWriter{W: &b}).text(in)
		got := b.String()
		var back string
		if err := json.Unmarshal([]byte(got), &back); err != nil || back != in || got != `"`+want+`"` {
			t.Errorf("in JSON %q is %s (%v), want %q", in, got, err, want)
		}
	}
}
