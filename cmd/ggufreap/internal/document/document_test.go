package document

import (
	"bufio"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
)

// written returns the document of v.
func written(t *testing.T, v any) string {
	t.Helper()
	var b strings.Builder
	w := bufio.NewWriter(&b)
	if err := Write(w, v); err != nil {
		t.Fatal(err)
	}
	w.Flush()
	return b.String()
}

// line returns a value of a file on one line.
func line(t *testing.T, v gguf.Value) string {
	t.Helper()
	s, err := Line(v)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestJSONAsTheLibrary writes what holds nothing odd, and wants what encoding/json writes.
func TestJSONAsTheLibrary(t *testing.T) {
	type part struct {
		Name string   `json:"name"`
		None *int     `json:"none"`
		Some *float64 `json:"some"`
		Left string   `json:"left,omitzero"`
		Skip string   `json:"-"`
	}
	half := 0.5
	v := struct {
		Text     string            `json:"text"`
		Parts    []part            `json:"parts"`
		Empty    []part            `json:"empty"`
		Any      any               `json:"any"`
		Big      uint64            `json:"big"`
		Small    float64           `json:"small"`
		Yes      bool              `json:"yes"`
		Severity gguf.Severity     `json:"severity"`
		Texts    []string          `json:"texts"`
		Map      map[string]string `json:"map"`
	}{
		"a\"b\\c\n\t\b\f\x01 <&> 模", []part{{Name: "x", Some: &half}, {Left: "y"}}, nil, part{}, math.MaxUint64, 1e-9, true,
		gguf.Error, []string{"a", ""}, map[string]string{"k": "v", "a": "b"},
	}
	var want strings.Builder
	e := json.NewEncoder(&want)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	if got := written(t, v); got != strings.Replace(want.String(), `"empty": null`, `"empty": []`, 1) {
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
		{gguf.Float32sValue(1.5, float32(math.NaN())), `[1.5, "NaN"]`, `[1.5,"NaN"]`},
		{gguf.TextsValue("a", "b"), "[\n  \"a\",\n  \"b\"\n]", `["a","b"]`},
		{array(gguf.Uint32sValue(1, 2), gguf.TextsValue()), "[\n  [1, 2],\n  []\n]", "[[1,2],[]]"},
	} {
		const head, tail = "{\n  \"in\": {\n    \"it\": ", "\n  }\n}\n"
		got := written(t, map[string]any{"in": map[string]any{"it": Value{tc.value}}})
		if want := head + strings.ReplaceAll(tc.indented, "\n", "\n    ") + tail; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if got := line(t, tc.value); got != tc.inLine {
			t.Errorf("in one line got %s, want %s", got, tc.inLine)
		}
	}
}

// A list that is a member of the document has a line for each element, be they numbers.
func TestListOfADocument(t *testing.T) {
	got := written(t, struct {
		Value Elements `json:"value"`
	}{Items(gguf.Int32sValue(1, -2))})
	if want := "{\n  \"value\": [\n    1,\n    -2\n  ]\n}\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// FuzzJSONText reads back what was written of any bytes.
func FuzzJSONText(f *testing.F) {
	for _, s := range []string{"", "a\"\\/\x00\x7f", "\ufffd", "e\u0301\u0301\u0301\u0301\u0301", "\u2028\U0010ffff", "\xff模"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		out := line(t, gguf.TextValue(s))
		if text.UnsafeAt(out, "") >= 0 {
			t.Errorf("%q is written as %q, which acts on a terminal", s, out)
		}
		var back string
		if utf8.ValidString(s) {
			if err := json.Unmarshal([]byte(out), &back); err != nil || back != s {
				t.Errorf("%q is written as %s (%v)", s, out, err)
			}
			return
		}
		var object struct{ Base64 []byte }
		if err := json.Unmarshal([]byte(out), &object); err != nil || string(object.Base64) != s {
			t.Errorf("%q is written as %s (%v)", s, out, err)
		}
	})
}

// TestLongText has a text that is passed on in parts, which end within runes or not.
func TestLongText(t *testing.T) {
	long := "x" + strings.Repeat("模\u202e", 50_000)
	if got, want := written(t, map[string]Text{"a": Text(long)}), "{\n  \"a\": \"x"+strings.Repeat(`模\u202e`, 50_000)+"\"\n}\n"; got != want {
		t.Errorf("got %d bytes, want %d", len(got), len(want))
	}
}

// A list that cannot be read to its end gives that error, and no document that looks whole.
func TestErrorOfWhatIsRead(t *testing.T) {
	broken := errors.New("broken")
	var b strings.Builder
	w := bufio.NewWriter(&b)
	err := Write(w, struct {
		List any `json:"list"`
	}{Elements(func(yield func(any) error) error { return errors.Join(yield(1), broken) })})
	w.Flush()
	if err == nil || err.Error() != "broken" || !errors.Is(err, broken) || json.Valid([]byte(b.String())) {
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
		got := line(t, gguf.TextValue(in))
		var back string
		if err := json.Unmarshal([]byte(got), &back); err != nil || back != in || got != `"`+want+`"` {
			t.Errorf("in JSON %q is %s (%v), want %q", in, got, err, want)
		}
	}
}
