package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/manifest"
	"ggufreap/reap"
)

// writePin pins a model into a file, as the library writes it.
func writePin(t *testing.T, name, artifact string) {
	t.Helper()
	m := openModel(t, artifact)
	experts, _ := reap.FindExperts(m)
	pin, err := manifest.BuildPin(t.Context(), m, manifest.BuildOptions{Slabs: routedSlabs(experts)})
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := manifest.EncodePin(f, name, pin); err != nil {
		t.Fatal(err)
	}
}

// TestDiffIsSymmetric wants the verdict not to depend on which artifact comes first.
func TestDiffIsSymmetric(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, smallMoE(), gguf.Split{})
	other := smallMoE()
	other.Name, other.Seed = "other", 2
	write(t, other, gguf.Split{})
	type verdict struct {
		SameWeights  bool `json:"same_weights"`
		SameMetadata bool `json:"same_metadata"`
		Tensors      []struct{ Change string }
	}
	var verdicts [2]verdict
	for i, args := range [][]string{{"small.gguf", "other.gguf"}, {"other.gguf", "small.gguf"}} {
		r := ggufreap(t, append([]string{"diff", "--json"}, args...)...)
		if r.code != exitDiffers {
			t.Fatalf("exit %d: %s", r.code, r.stderr)
		}
		if err := json.Unmarshal([]byte(r.stdout), &verdicts[i]); err != nil {
			t.Fatal(err)
		}
	}
	a, b := verdicts[0], verdicts[1]
	if a.SameWeights || !a.SameMetadata || b.SameWeights || !b.SameMetadata || len(a.Tensors) != len(b.Tensors) || len(a.Tensors) == 0 {
		t.Errorf("%+v and %+v", a, b)
	}
}

// TestDiffFitsTheTerminal wants no line cut by the terminal, and digests whole.
func TestDiffFitsTheTerminal(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, smallMoE(), gguf.Split{})
	write(t, smallMoE(), gguf.Split{Shards: 3})
	for _, width := range []int{80, 100, 200} {
		var out bytes.Buffer
		con := ui.New(nil, &out, &out)
		con.Width = width
		if err := newApp(con).RunContext(t.Context(), []string{"ggufreap", "diff", "small.gguf", "small-00001-of-00003.gguf"}); err != nil {
			t.Fatal(err)
		}
		con.Out.Flush()
		digests := 0
		for line := range strings.Lines(out.String()) {
			line = strings.TrimSuffix(line, "\n")
			if text.Columns(line) >= width {
				t.Errorf("%d columns of %d: %q", text.Columns(line), width, line)
			}
			if strings.HasSuffix(line, " blake3:41f153d1818ba64a416fbf01573afa763523fd5916c64d86e81c8681e018d7e2") {
				digests++
			}
		}
		if digests != 2 {
			t.Errorf("%d digests in\n%s", digests, out.String())
		}
	}
}

// A byteOrderWriter writes numbers.
type byteOrderWriter interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

// handmade writes a model field by field: keys of several types, and a tensor "a" of so
// many F32 elements, whose bytes are 0, 1, 2 and so on in either byte order.
func handmade(t *testing.T, order byteOrderWriter, number uint32, elements uint64) []byte {
	t.Helper()
	var b []byte
	add := func(fields ...any) {
		for _, field := range fields {
			if s, ok := field.(string); ok {
				field = append(order.AppendUint64(nil, uint64(len(s))), s...)
			}
			var err error
			if b, err = binary.Append(b, order, field); err != nil {
				t.Fatal(err)
			}
		}
	}
	const (
		u32, f32, isText, isArray, f64 = uint32(4), uint32(6), uint32(8), uint32(9), uint32(12)
	)
	add([]byte("GGUF"), uint32(3), uint64(1), uint64(6))
	add("general.architecture", isText, "made-up")
	add("number", u32, number, "half", f64, 0.5)
	add("texts", isArray, isText, uint64(2), "x", "yz")
	add("nested", isArray, isArray, uint64(2), u32, uint64(1), uint32(7), f32, uint64(1), float32(0.1))
	add("numbers", isArray, u32, uint64(3), uint32(1), uint32(2), number)
	add("a", uint32(1), elements, uint32(0), uint64(0))
	b = append(b, make([]byte, -len(b)&31)...)
	for i := range 4 * elements {
		b = append(b, byte(i))
	}
	return b
}

// plain writes a model whose bytes are the same in either byte order, but for the head: a key
// of one byte, and a tensor "a" of 8 F32 elements.
func plain(t *testing.T, order byteOrderWriter) []byte {
	t.Helper()
	var b []byte
	for _, field := range []any{[]byte("GGUF"), uint32(3), uint64(1), uint64(1), uint64(4), []byte("flag"), uint32(0), uint8(1),
		uint64(1), []byte("a"), uint32(1), uint64(8), uint32(0), uint64(0)} {
		var err error
		if b, err = binary.Append(b, order, field); err != nil {
			t.Fatal(err)
		}
	}
	b = append(b, make([]byte, -len(b)&31)...)
	return append(b, make([]byte, 32)...)
}

// TestPinsTellTheByteOrder takes files with the same bytes in both orders, which are other
// numbers: all digests but the pin digest are equal.
func TestPinsTellTheByteOrder(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, "little.gguf", plain(t, binary.LittleEndian))
	writeFile(t, "big.gguf", plain(t, binary.BigEndian))
	var pins []*manifest.Pin
	for _, name := range []string{"little", "big"} {
		succeed(t, "pin", "-o", name+".json", name+".gguf")
		pin, err := manifest.ReadPin(name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		if pin.Artifact.ByteOrder != name {
			t.Errorf("%s: byte order %q", name, pin.Artifact.ByteOrder)
		}
		pins = append(pins, pin)
	}
	if pins[0].WeightsDigest != pins[1].WeightsDigest || pins[0].MetadataDigest != pins[1].MetadataDigest || pins[0].PinDigest == pins[1].PinDigest {
		t.Errorf("digests %+v, %+v", pins[0], pins[1])
	}
	for _, args := range [][]string{{"pin", "--check", "little.json", "big.gguf"}, {"pin", "--check", "big.json", "little.gguf"}, {"pin", "--quick", "--check", "big.json", "little.gguf"}} {
		if r := ggufreap(t, args...); r.code != exitDiffers || !strings.Contains(r.stdout, "the same bytes are other numbers") {
			t.Errorf("%q: exit %d, %s%s", args, r.code, r.stdout, r.stderr)
		}
	}
	for _, sides := range [][2]string{{"little.json", "big.json"}, {"little.json", "big.gguf"}, {"little.gguf", "big.json"}} {
		if r := ggufreap(t, "diff", sides[0], sides[1]); r.code != exitDiffers || !strings.Contains(r.stdout, "stored in another byte order") {
			t.Errorf("diff of %q: exit %d, %s%s", sides, r.code, r.stdout, r.stderr)
		}
	}
	forged, err := os.ReadFile("big.json")
	if err != nil {
		t.Fatal(err)
	}
	writeText(t, "forged.json", strings.Replace(string(forged), `"byte_order": "big"`, `"byte_order": "little"`, 1))
	if r := ggufreap(t, "pin", "--check", "forged.json", "little.gguf"); r.code != exitFailed || !strings.Contains(r.stderr, "pin digest is") {
		t.Errorf("a pin with another order: exit %d, %s%s", r.code, r.stdout, r.stderr)
	}
}

// TestDiffOfByteOrders wants values compared, and no word of equal weights for equal
// bytes in different orders.
func TestDiffOfByteOrders(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, "little.gguf", handmade(t, binary.LittleEndian, 8, 8))
	writeFile(t, "big.gguf", handmade(t, binary.BigEndian, 8, 8))
	writeFile(t, "other.gguf", handmade(t, binary.BigEndian, 9, 16))
	writeFile(t, "empty-little.gguf", handmade(t, binary.LittleEndian, 8, 0))
	writeFile(t, "empty-big.gguf", handmade(t, binary.BigEndian, 8, 0))
	writePin(t, "little.json", "little.gguf")
	for _, tc := range []struct {
		name, a, b string
		code       int
	}{
		{"big-endian", "little.gguf", "big.gguf", exitDiffers},
		{"big-endian-other", "little.gguf", "other.gguf", exitDiffers},
		{"big-endian-both", "big.gguf", "big.gguf", exitOK},
		{"big-endian-empty", "empty-little.gguf", "empty-big.gguf", exitOK},
		{"big-endian-pin", "little.json", "big.gguf", exitDiffers},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := ggufreap(t, "diff", tc.a, tc.b)
			golden(t, "diff/"+tc.name+".txt", transcript(r, "diff", tc.a, tc.b))
			if r.code != tc.code {
				t.Errorf("exit %d, want %d", r.code, tc.code)
			}
		})
	}
	var doc struct {
		SameWeights  bool `json:"same_weights"`
		SameMetadata bool `json:"same_metadata"`
		DataCompared bool `json:"data_compared"`
		A, B         struct {
			ByteOrder string `json:"byte_order"`
		}
		Tensors, Keys []any
	}
	diffJSON(t, &doc, exitDiffers, "little.gguf", "big.gguf")
	if doc.SameWeights || !doc.SameMetadata || doc.DataCompared || doc.A.ByteOrder != "little" || doc.B.ByteOrder != "big" || len(doc.Tensors)+len(doc.Keys) > 0 {
		t.Errorf("%+v", doc)
	}
	diffJSON(t, &doc, exitDiffers, "big.gguf", "other.gguf")
	if doc.SameMetadata || !doc.DataCompared || len(doc.Tensors) != 1 || len(doc.Keys) != 2 {
		t.Errorf("%+v", doc)
	}
}

// diffJSON compares two artifacts and reads the document.
func diffJSON(t *testing.T, doc any, code int, args ...string) {
	t.Helper()
	r := ggufreap(t, append([]string{"diff", "--json"}, args...)...)
	if r.code != code {
		t.Fatalf("exit %d, want %d: %s", r.code, code, r.stderr)
	}
	if err := json.Unmarshal([]byte(r.stdout), doc); err != nil {
		t.Fatal(err)
	}
}

// TestDiffSaysWhere changes long values in one place.
func TestDiffSaysWhere(t *testing.T) {
	t.Chdir(t.TempDir())
	numbers := func(last uint32) gguf.Value {
		list := make([]uint32, 1000)
		for i := range list {
			list[i] = uint32(i)
		}
		list[999] = last
		return gguf.Uint32sValue(list...)
	}
	nested := func(n int32) gguf.Value {
		return gguf.ArrayValue(gguf.Array, gguf.TextsValue("x"), gguf.ArrayValue(gguf.Array, gguf.Int32sValue(1, 2, n)))
	}
	long := strings.Repeat("x", 500)
	huge := strings.Repeat("y", 70_000)
	save := func(name string, pairs ...gguf.Value) {
		s := bare(vector("a", 8))
		s.Name = name
		for i, key := range []string{"numbers", "text", "texts", "nested", "types", "huge", "accent", "shorter", "short", "one", "escaped"} {
			s.Metadata.Set(key, pairs[i])
		}
		write(t, s, gguf.Split{})
	}
	save("a", numbers(999), gguf.TextValue(long+"a"), gguf.TextsValue("p", long+"1", "q"), nested(3), gguf.ArrayValue(gguf.Array, gguf.Int32sValue(1)),
		gguf.TextValue(huge+"\xff"+huge), gguf.TextValue(long+"\u00e9!"), gguf.TextValue(long), gguf.TextsValue("r", "s"), gguf.Uint32Value(1), gguf.TextValue(strings.Repeat("\x1b", 40)+"a"))
	save("b", numbers(7), gguf.TextValue(long+"b"), gguf.TextsValue("p", long+"2", "r", "s"), nested(4), gguf.ArrayValue(gguf.Array, gguf.Uint32sValue(1)),
		gguf.TextValue(huge+"z"+huge), gguf.TextValue(long+"\u00e8!"), gguf.TextValue(long+"more"), gguf.TextsValue("r"), gguf.Uint32Value(2), gguf.TextValue(strings.Repeat("\x1b", 40)+"b"))
	r := ggufreap(t, "diff", "a.gguf", "b.gguf")
	golden(t, "diff/where.txt", transcript(r, "diff", "a.gguf", "b.gguf"))
	for _, want := range []string{
		"1 item differs, at [999]: 999 / 7\n",
		"differs from byte 500 on: a / b\n",
		"3 items differ, the first at [1] from byte 500 on: 1 / 2\n",
		"1 item differs, at [1][0][2]: 3 / 4\n",
		"1 item differs, at [0]: i32[] 1 / u32[] 1\n",
		"differs from byte 70,000 on: \\xffyyy",
		"differs from byte 501 on: \u00e9! / \u00e8!\n",
		"differs from byte 500 on: nothing / more\n",
		"1 item differs, at [1]: s / -\n",
		"differs from byte 40 on: a / b\n",
	} {
		if !strings.Contains(r.stdout, "                "+want) {
			t.Errorf("%q is not in\n%s", want, r.stdout)
		}
	}
	golden(t, "diff/where-json.txt", transcript(ggufreap(t, "diff", "--json", "a.gguf", "b.gguf"), "diff", "--json", "a.gguf", "b.gguf"))
}

// TestDiffOfPadding compares tensors of a type that nobody knows the size of.
func TestDiffOfPadding(t *testing.T) {
	t.Chdir(t.TempDir())
	save := func(name string, alignment uint32, edit func(file []byte) []byte) {
		s := bare(vector("a", 8), gguftest.Tensor{Name: "b", Type: 64, Shape: []uint64{256}, Data: bytes.Repeat([]byte{7}, 46)})
		s.Name = name
		if alignment > 0 {
			s.Metadata.Set("general.alignment", gguf.Uint32Value(alignment))
		}
		writeBytes(t, s, edit)
	}
	cut := func(file []byte) []byte { return file[:len(file)-18] } // the padding
	save("padded", 0, slices.Clone)
	save("bare", 0, cut)
	save("aligned", 256, slices.Clone)
	save("dirty", 0, func(file []byte) []byte { file[len(file)-1] = 1; return file })
	save("changed", 0, func(file []byte) []byte { file[len(file)-19] = 1; return cut(file) })
	succeed(t, "pin", "-o", "padded.json", "padded.gguf")
	succeed(t, "pin", "-o", "bare.json", "bare.gguf")
	for _, tc := range []struct {
		a, b string
		want string // on the screen
	}{
		{"padded.gguf", "bare.gguf", "weights         same\n"},
		{"bare.gguf", "padded.gguf", "weights         same\n"},
		{"bare.gguf", "aligned.gguf", "weights         same\n"},
		{"padded.json", "bare.gguf", "weights         same\n"},
		{"bare.json", "padded.gguf", "weights         same\n"},
		{"bare.gguf", "dirty.gguf", "b       changed  unknown(64) 256, 46 bytes  unknown(64) 256, 64 bytes\n"},
		{"padded.gguf", "dirty.gguf", "b       changed  unknown(64) 256  unknown(64) 256\n"},
		{"padded.gguf", "changed.gguf", "b       changed  unknown(64) 256, 64 bytes  unknown(64) 256, 46 bytes\n"},
		{"padded.json", "changed.gguf", "b       changed  unknown(64) 256, 64 bytes  unknown(64) 256, 46 bytes\n"},
		{"padded.json", "bare.json", "b       changed  unknown(64) 256, 64 bytes  unknown(64) 256, 46 bytes\n"},
	} {
		r := ggufreap(t, "diff", tc.a, tc.b)
		if !strings.Contains(r.stdout, tc.want) {
			t.Errorf("%s and %s: %q is not in\n%s", tc.a, tc.b, tc.want, r.stdout)
		}
		warned := strings.Count(r.stderr, "type unknown(64) (IQ1_XS in one fork, 46 bytes per 256) of 1 tensor has no known block size")
		if artifacts := strings.Count(tc.a+tc.b, ".gguf"); warned != artifacts {
			t.Errorf("%s and %s: %d warnings, want %d:\n%s", tc.a, tc.b, warned, artifacts, r.stderr)
		}
	}
	golden(t, "diff/padding.txt", transcript(ggufreap(t, "diff", "padded.gguf", "bare.gguf"), "diff", "padded.gguf", "bare.gguf"))
	var doc struct {
		SameWeights bool `json:"same_weights"`
		Padded      []string
		Tensors     []any
	}
	diffJSON(t, &doc, exitOK, "padded.gguf", "bare.gguf")
	if !doc.SameWeights || !slices.Equal(doc.Padded, []string{"b"}) || len(doc.Tensors) > 0 {
		t.Errorf("%+v", doc)
	}
}

// TestDiffNotes wants everything named that does not make a model another one.
func TestDiffNotes(t *testing.T) {
	t.Chdir(t.TempDir())
	save := func(name string, edit func(md *gguf.Metadata), file func([]byte) []byte) {
		s := bare(vector("a", 8), vector("b", 8))
		s.Name = name
		s.Metadata.Set("k", gguf.Uint32Value(1))
		edit(s.Metadata)
		writeBytes(t, s, file)
	}
	none := func(*gguf.Metadata) {}
	save("base", none, slices.Clone)
	save("keys", func(md *gguf.Metadata) {
		for _, key := range slices.Backward(md.Keys()) {
			v, _ := md.Get(key)
			*md = *md.Without(func(k string) bool { return k == key })
			md.Set(key, v)
		}
	}, slices.Clone)
	save("split", func(md *gguf.Metadata) {
		md.Set(gguf.KeySplitCount, gguf.Uint16Value(1))
		md.Set("split.other", gguf.Uint8Value(1))
	}, slices.Clone)
	save("version", none, func(file []byte) []byte { file[4] = 2; return file })
	save("trailing", none, func(file []byte) []byte { return append(file, bytes.Repeat([]byte{1}, 1050)...) })
	for name, want := range map[string]string{
		"base":     "",
		"keys":     "the keys that both have stand in another order",
		"split":    "split keys that differ: split.count, split.other",
		"version":  "GGUF version 3, and version 2",
		"trailing": "bytes behind the last tensor, which were not compared: 0, and 1,050",
	} {
		r := ggufreap(t, "diff", "base.gguf", name+".gguf")
		if want != "" {
			want = "note            " + want + "\n"
		}
		if !strings.HasSuffix(r.stdout, "\nweights         same\nmetadata        same\n"+want) || r.code != exitOK {
			t.Errorf("%s: exit %d, want %q at the end of\n%s", name, r.code, want, r.stdout)
		}
	}
	var doc struct {
		SameKeyOrder bool `json:"same_key_order"`
		B            struct {
			Version       int
			TrailingBytes int `json:"trailing_bytes"`
		}
		SplitKeys []struct{ Key, Change string } `json:"split_keys"`
	}
	diffJSON(t, &doc, exitOK, "base.gguf", "keys.gguf")
	if doc.SameKeyOrder || len(doc.SplitKeys) > 0 {
		t.Errorf("keys: %+v", doc)
	}
	diffJSON(t, &doc, exitOK, "base.gguf", "split.gguf")
	if !doc.SameKeyOrder || len(doc.SplitKeys) != 2 || doc.SplitKeys[1].Key != "split.other" || doc.SplitKeys[1].Change != "added" {
		t.Errorf("split: %+v", doc)
	}
	diffJSON(t, &doc, exitOK, "base.gguf", "version.gguf")
	if doc.B.Version != 2 {
		t.Errorf("version: %+v", doc)
	}
	diffJSON(t, &doc, exitOK, "base.gguf", "trailing.gguf")
	if doc.B.TrailingBytes != 1050 {
		t.Errorf("trailing: %+v", doc)
	}
}
