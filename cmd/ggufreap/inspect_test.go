package main

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"ggufreap/cmd/ggufreap/internal/document"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
)

// writeBytes writes the model as one file, edited.
func writeBytes(t *testing.T, s gguftest.Spec, edit func(file []byte) []byte) {
	t.Helper()
	file, err := s.File()
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, s.Name+".gguf", edit(file))
}

func writeFile(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(name, data, 0o666); err != nil {
		t.Fatal(err)
	}
}

// TestInspectRealSize holds the figures of the published model, and of its 568 experts,
// against their exact sizes.
func TestInspectRealSize(t *testing.T) {
	t.Chdir(t.TempDir())
	if _, err := gguftest.K3Real(1536, gguf.IQ1_S).WriteSparse(".", gguf.Split{Shards: 9}); err != nil {
		t.Fatal(err)
	}
	r := ggufreap(t, "inspect", "--json", "--keep", "568", ".")
	var doc struct {
		TensorBytes int64 `json:"tensor_bytes"`
		TensorCount int   `json:"tensor_count"`
		Layers      struct{ Dense, MoE int }
		Experts     struct {
			Keep []struct {
				TensorBytes int64 `json:"tensor_bytes"`
			}
		}
	}
	if err := json.Unmarshal([]byte(r.stdout), &doc); err != nil || r.code != exitOK {
		t.Fatal(err, r.code, r.stderr)
	}
	if doc.TensorBytes != 330_160_710_016 || doc.TensorCount != 2573 || doc.Layers.Dense != 1 || doc.Layers.MoE != 92 {
		t.Errorf("got %+v", doc)
	}
	if len(doc.Experts.Keep) != 1 || doc.Experts.Keep[0].TensorBytes != 231_959_677_440 {
		t.Errorf("keeping 568 leaves %+v, want 231959677440 bytes", doc.Experts.Keep)
	}
}

// TestInspectPrintsNothingThatActs looks for anything that a terminal would not show.
func TestInspectPrintsNothingThatActs(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, hostile(), gguf.Split{})
	writeFile(t, "\x1b[2J\u202e.gguf", []byte("not a model"))
	for _, args := range [][]string{
		{"hostile.gguf"}, {"--tensors", "hostile.gguf"}, {"--json", "--tensors", "hostile.gguf"},
		{"--key", "list", "hostile.gguf"}, {"--key", "deep", "hostile.gguf"}, {"--json", "--key", "list", "hostile.gguf"},
		{"--key", "\x1b[2J", "hostile.gguf"}, {"\x1b[2J\u202e.gguf"}, {"\x1b.gguf"}, {"."}, {"--\x1b"},
	} {
		r := ggufreap(t, append([]string{"inspect"}, args...)...)
		for _, out := range []string{r.stdout, r.stderr} {
			if i := text.UnsafeAt(out, "\n"); i >= 0 {
				t.Errorf("%q prints %q", args, out[max(i-20, 0):i+1])
			}
		}
	}
}

// TestInspectJSONIsLossless encodes the values of a document again, by nothing but their
// stated types, and wants the bytes that are in the file.
func TestInspectJSONIsLossless(t *testing.T) {
	for _, s := range []gguftest.Spec{smallMoE(), hostile()} {
		t.Run(s.Name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			path := write(t, s, gguf.Split{})[0]
			r := ggufreap(t, "inspect", "--json", path)
			var doc struct {
				Metadata map[string]struct {
					Type   string
					Length int
					Value  any
				}
			}
			d := json.NewDecoder(strings.NewReader(r.stdout))
			d.UseNumber()
			if err := d.Decode(&doc); err != nil {
				t.Fatal(err)
			}
			if len(doc.Metadata) != s.Metadata.Len() {
				t.Errorf("%d keys, want %d", len(doc.Metadata), s.Metadata.Len())
			}
			for name, v := range doc.Metadata {
				key := keyOf(t, name)
				stored, ok := s.Metadata.Get(key)
				if !ok {
					t.Errorf("key %q is not in the file", key)
					continue
				}
				if v.Value == nil {
					if int64(v.Length) != stored.Len() || stored.Len() <= document.LongItems {
						t.Errorf("key %q: no value, length %d of %d", key, v.Length, stored.Len())
					}
					continue
				}
				want, err := stored.Raw()
				if err != nil {
					t.Fatal(err)
				}
				if stored.Elem() == gguf.Array {
					continue // the type of inner lists is not part of the document
				}
				if got := encode(t, v.Type, v.Value); !bytes.Equal(got, want) {
					t.Errorf("key %q: %s %v encodes as %x, the file has %x", key, v.Type, v.Value, got, want)
				}
			}
		})
	}
}

func keyOf(t *testing.T, name string) string {
	t.Helper()
	if encoded, ok := strings.CutPrefix(name, "base64:"); ok {
		raw, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	return name
}

// encode writes a value of a document as GGUF does.
func encode(t *testing.T, typ string, v any) []byte {
	t.Helper()
	if elem, ok := strings.CutSuffix(typ, "[]"); ok {
		ids := map[string]uint32{"u8": 0, "i8": 1, "u16": 2, "i16": 3, "u32": 4, "i32": 5, "f32": 6, "bool": 7, "str": 8, "u64": 10, "i64": 11, "f64": 12}
		list := v.([]any)
		raw := binary.LittleEndian.AppendUint32(nil, ids[elem])
		raw = binary.LittleEndian.AppendUint64(raw, uint64(len(list)))
		for _, e := range list {
			raw = append(raw, encode(t, elem, e)...)
		}
		return raw
	}
	switch typ {
	case "bool":
		if v.(bool) {
			return []byte{1}
		}
		return []byte{0}
	case "str":
		s, ok := v.(string)
		if !ok {
			raw, err := base64.StdEncoding.DecodeString(v.(map[string]any)["base64"].(string))
			if err != nil || utf8.Valid(raw) {
				t.Fatalf("base64 of %q: %v", raw, err)
			}
			s = string(raw)
		}
		return append(binary.LittleEndian.AppendUint64(nil, uint64(len(s))), s...)
	}
	return encodeNumber(t, typ, fmt.Sprint(v))
}

func encodeNumber(t *testing.T, typ, s string) []byte {
	t.Helper()
	size, err := strconv.Atoi(typ[1:])
	if err != nil {
		t.Fatal(err)
	}
	var bits uint64
	switch typ[0] {
	case 'u':
		bits, err = strconv.ParseUint(s, 10, size)
	case 'i':
		var i int64
		i, err = strconv.ParseInt(s, 10, size)
		bits = uint64(i)
	case 'f':
		var f float64
		f, err = strconv.ParseFloat(s, size)
		bits = math.Float64bits(f)
		if size == 32 {
			bits = uint64(math.Float32bits(float32(f)))
		}
		if math.IsNaN(f) {
			bits = 0x7fc00001 // a document does not tell NaNs apart; this is the fixture's
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return binary.LittleEndian.AppendUint64(nil, bits)[:size/8]
}

// TestInspectLongLists wants a line for each token, and the same from the document.
func TestInspectLongLists(t *testing.T) {
	t.Chdir(t.TempDir())
	tokens := make([]string, 5000)
	for i := range tokens {
		tokens[i] = fmt.Sprintf("token %d", i)
	}
	s := bare()
	s.Metadata.Set("tokenizer.ggml.tokens", gguf.TextsValue(tokens...))
	write(t, s, gguf.Split{})
	r := ggufreap(t, "inspect", "--key", "tokenizer.ggml.tokens", "bare.gguf")
	if got := strings.Split(strings.TrimSuffix(r.stdout, "\n"), "\n"); !slices.Equal(got, tokens) {
		t.Errorf("%d lines, want %d", len(got), len(tokens))
	}
	var doc struct {
		Length int
		Value  []string
	}
	r = ggufreap(t, "inspect", "--json", "--key", "tokenizer.ggml.tokens", "bare.gguf")
	if err := json.Unmarshal([]byte(r.stdout), &doc); err != nil || doc.Length != len(tokens) || !slices.Equal(doc.Value, tokens) {
		t.Errorf("%v, length %d, %d items", err, doc.Length, len(doc.Value))
	}
}

// TestInspectLeavesTheSourceAlone looks at the folder before and after.
func TestInspectLeavesTheSourceAlone(t *testing.T) {
	t.Chdir(t.TempDir())
	path := write(t, smallMoE(), gguf.Split{})[0]
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	ggufreap(t, "inspect", "--json", "--tensors", path)
	after, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file changed (%v)", err)
	}
	if names, _ := filepath.Glob("*"); len(names) != 1 {
		t.Errorf("the folder holds %q", names)
	}
}

// TestBoolsKeepTheirBytes wants bools that are neither true nor false told apart.
func TestBoolsKeepTheirBytes(t *testing.T) {
	t.Chdir(t.TempDir())
	save := func(name string, one byte, list ...byte) {
		s := bare(vector("a", 8))
		s.Name = name
		s.Metadata.Set("one", gguf.BoolValue(true))
		s.Metadata.Set("list", gguf.ArrayValue(gguf.Bool, gguf.BoolValue(true), gguf.BoolValue(true), gguf.BoolValue(true)))
		writeBytes(t, s, func(file []byte) []byte {
			set := func(key string, head int, values ...byte) {
				copy(file[bytes.Index(file, []byte(key))+len(key)+head:], values)
			}
			set("one", 4, one)
			set("list", 4+12, list...)
			return file
		})
	}
	save("a", 1, 0, 1, 2)
	save("b", 2, 0, 2, 255)
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"inspect", "--key", "one", "a.gguf"}, "true\n"},
		{[]string{"inspect", "--key", "one", "b.gguf"}, "2\n"},
		{[]string{"inspect", "--key", "list", "b.gguf"}, "false\n2\n255\n"},
		{[]string{"inspect", "--json", "--key", "one", "b.gguf"}, `"value": 2` + "\n"},
		{[]string{"inspect", "--json", "a.gguf"}, "[\n        false,\n        true,\n        2\n      ]"},
		{[]string{"diff", "a.gguf", "b.gguf"}, "a: bool true\n                b: bool 2\n"},
		{[]string{"diff", "a.gguf", "b.gguf"}, "2 items differ, the first at [1]: true / 2\n"},
	} {
		if r := ggufreap(t, tc.args...); !strings.Contains(r.stdout, tc.want) {
			t.Errorf("%q: %q is not in\n%s%s", tc.args, tc.want, r.stdout, r.stderr)
		}
	}
}
