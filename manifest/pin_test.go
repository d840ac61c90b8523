package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/manifest/internal/modeltest"
	"ggufreap/manifest/internal/strict"
)

func encodePin(t testing.TB, name string, p *Pin) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := EncodePin(&b, name, p); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func smallPin(t *testing.T) *Pin {
	t.Helper()
	_, pin := mustDraft(t, "out", modeltest.Contents(1), gguftest.MixedSlabs, 3)
	license := `MIT <"&'` + "\u2028>"
	pin.Declared.License = &license
	return pin
}

func TestPinRoundTrip(t *testing.T) {
	pin := smallPin(t)
	for _, name := range []string{"pin.json", "pin.json.zst"} {
		text := encodePin(t, name, pin)
		got, err := DecodePin(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, pin) {
			t.Errorf("%s: got %+v, want %+v", name, got, pin)
		}
		if again := encodePin(t, name, got); !bytes.Equal(again, text) {
			t.Errorf("%s: the same pin gives other bytes", name)
		}
		if packed := bytes.HasPrefix(text, ZstdMagic); packed != strings.HasSuffix(name, ".zst") {
			t.Errorf("%s: compressed is %v", name, packed)
		}
	}
}

// TestPinDocument fixes the form that others read: names, order, null where nobody said.
func TestPinDocument(t *testing.T) {
	pin := smallPin(t)
	pin.Declared.License = nil
	text := string(encodePin(t, "pin.json", pin))
	for _, want := range []string{
		"{\n  \"schema\": \"ggufreap/pin/v1\",\n  \"pin_digest\": \"blake3:",
		"\",\n  \"artifact\": {\n    \"name\": \"out\",\n    \"architecture\": \"test\",\n    \"version\": 3,\n    \"byte_order\": \"little\",\n    \"shards\": 3,\n    \"file_bytes\": ",
		"\n  \"declared\": {\n    \"repo\": null,\n    \"revision\": null,\n    \"license\": null,\n    \"quantization_label\": null,\n    \"base_model\": null\n  },\n  \"files\": [\n    {\n      \"name\": \"out-00001-of-00003.gguf\",\n      \"size\": ",
		"\n  \"weights_digest\": \"blake3:",
		"\n  \"metadata_digest\": \"blake3:",
		"\",\n  \"metadata\": [\n    {\n      \"key\": \"general.architecture\",\n      \"type\": \"str\",\n      \"blake3\": \"",
		"\n      \"name\": \"blk.0.empty\",\n      \"type\": \"F32\",\n      \"shape\": [\n        0\n      ],\n      \"size\": 0,\n      \"blake3\": \"" + emptyBLAKE3 + "\"\n    },",
		"\n      \"slabs\": {\n        \"axis\": 0,\n        \"count\": 6,\n        \"bytes\": \"",
		"\n      \"slabs\": {\n        \"axis\": 2,\n        \"count\": 6,\n        \"blake3\": \"",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("document lacks\n%s\nin\n%s", want, text)
		}
	}
	if !strings.HasSuffix(text, "}\n") {
		t.Error("document does not end in a newline")
	}
}

func TestReadPinNamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.json")
	os.WriteFile(path, []byte("{}"), 0o666)
	if _, err := ReadPin(path); err == nil || !strings.HasPrefix(err.Error(), path) {
		t.Errorf("got %v", err)
	}
	pin := smallPin(t)
	os.WriteFile(path, encodePin(t, "x.zst", pin), 0o666)
	if got, err := ReadPin(path); err != nil || !reflect.DeepEqual(got, pin) {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestDecodePinRefuses(t *testing.T) {
	text := string(encodePin(t, "pin.json", smallPin(t)))
	edit := func(old, new string) string {
		if !strings.Contains(text, old) {
			t.Fatalf("document lacks %q", old)
		}
		return strings.Replace(text, old, new, 1)
	}
	tests := map[string]struct{ in, want string }{
		"empty":           {"", "not a JSON document"},
		"list":            {"[]", "not a JSON document"},
		"no schema first": {`{"artifact":{}}`, "does not begin with"},
		"plan":            {edit("ggufreap/pin/v1", "ggufreap/plan/v1"), `schema is "ggufreap/plan/v1"`},
		"version":         {edit("ggufreap/pin/v1", "ggufreap/pin/v2"), `want "ggufreap/pin/v1"`},
		"unknown member":  {edit(`"files"`, `"seal": 1, "files"`), `"seal" where "files" should stand`},
		"unknown field":   {edit(`"shards"`, `"seal": 1, "shards"`), `unknown field "seal"`},
		"member missing":  {edit(`"weights_digest"`, `"metadata_digest"`), `"metadata_digest" where "weights_digest" should stand`},
		"letter case":     {edit(`"files"`, `"Files"`), "not written as this tool"},
		"key twice":       {edit(`"shards": 3,`, `"shards": 2, "shards": 3,`), `at "/artifact": key "shards" stands twice`},
		"text behind":     {text + "{}", "text behind the end"},
		"spaces":          {edit("  \"files\"", "\"files\""), "not written as this tool"},
		"cut":             {text[:len(text)-10], "unexpected EOF"},
		"shards":          {edit(`"shards": 3`, `"shards": 4`), "4 shards, but 3 files"},
		"file name":       {edit("out-00001", "../out-00001"), "leaves the folder"},
		"file in folder":  {edit("out-00001", "d/out-00001"), "names a folder"},
		"file twice":      {edit("out-00001-", "out-00002-"), "a file name comes twice"},
		"file size":       {edit(`"size": `, `"size": 1`), "the model says"},
		"negative size":   {edit(`"size": `, `"size": -`), "bytes"},
		"type":            {edit(`"Q8_0"`, `"Q9_9"`), `"Q9_9" is not a ggml type`},
		"type's case":     {edit(`"Q8_0"`, `"q8_0"`), `want "Q8_0"`},
		"tensor name":     {edit(`"output.weight"`, `"blk.0.scale"`), "comes twice"},
		"forged line":     {edit(`"output.weight"`, `"output\tF32"`), "control character"},
		"slab count":      {edit(`"count": 6`, `"count": 7`), "7 experts on axis"},
		"slab axis":       {edit(`"axis": 2`, `"axis": 1`), "on axis 1"},
		"slab digests":    {edit(`"blake3": "`, `"blake3": "00`), "digest"},
		"other weights":   {edit(emptyBLAKE3, emptySHA256), "size is 0, and blake3"},
		"other pin":       {edit(`"pin_digest": "blake3:`, `"pin_digest": "sha256:`), `pin digest is "sha256:`},
		"other metadata":  {edit(`"type": "str"`, `"type": "u64"`), "metadata digest is"},
		"no value type":   {edit(`"type": "str"`, `"type": "text"`), `"text" is not a type of value`},
		"key twice in md": {edit(`"key": "test.expert_count"`, `"key": "general.architecture"`), "comes twice"},
		"keys unsorted":   {edit(`"key": "general.architecture"`, `"key": "zzz"`), "want them sorted"},
		"no metadata":     {text[:strings.Index(text, `"metadata": [`)] + `"metadata": null}`, `"null" where "[" should stand`},
		"digest algorithm": {edit(`"metadata_digest": "blake3:`, `"metadata_digest": "sha256:`),
			`metadata digest is "sha256:`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pin, err := DecodePin(strings.NewReader(test.in))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
			if pin != nil {
				t.Error("a pin came with the error")
			}
		})
	}
}

func TestEncodePinRefusesWhatJSONWouldChange(t *testing.T) {
	c := modeltest.Contents(1)
	modeltest.View(c, "output.weight").Name = "output\xff"
	pin := mustPin(t, modeltest.New(t, c, gguf.Split{}), BuildOptions{})
	if err := EncodePin(&bytes.Buffer{}, "p", pin); err == nil || !strings.Contains(err.Error(), "not UTF-8") {
		t.Errorf("got %v", err)
	}
}

// However small a compressed document is, reading it takes little memory, unless it is one
// that this tool writes.
func TestDecodePinBoundsItsMemory(t *testing.T) {
	text := string(encodePin(t, "pin.json", smallPin(t)))
	files := strings.Index(text, `"files": [`) + len(`"files": [`)
	tests := map[string]struct {
		head, repeated, want string
		most                 uint64
	}{
		"one long string": {text[:files] + `"`, strings.Repeat("x", 1<<20), "no part of a pin has more than 6291456 bytes", 80 << 20},
		"spaces":          {text[:files], strings.Repeat(" ", 1<<20), "no part of a pin has more than 6291456 bytes", 80 << 20},
		"empty objects":   {text[:files], strings.Repeat("{},", 1<<18), "not written as this tool writes pins", 12 << 20},
		"numbers":         {text[:files], strings.Repeat("0,", 1<<19), `at "/files/0": a number does not belong here`, 12 << 20},
		"nested lists":    {text[:files], strings.Repeat("[", 1<<20), `at "/files/0": a list does not belong here`, 48 << 20},
		"files":           {text[:files], longFile + ",", "better than digests of real data can be", 512 << 20},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var bomb bytes.Buffer
			z, err := zstd.NewWriter(&bomb)
			if err != nil {
				t.Fatal(err)
			}
			io.WriteString(z, test.head)
			for range maxPinBytes >> 20 {
				io.WriteString(z, test.repeated)
			}
			z.Close()
			if bomb.Len() > 1<<20 {
				t.Fatalf("the bomb has %d bytes", bomb.Len())
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err = DecodePin(&bomb)
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
			if total := after.TotalAlloc - before.TotalAlloc; total > test.most {
				t.Errorf("%d bytes allocated, want at most %d", total, test.most)
			}
		})
	}
}

// A document of very many equal digests, which compresses to next to nothing, can be read
// as it is, up to its own bound.
func TestDecodePinOfManyEqualDigests(t *testing.T) {
	pin := smallPin(t)
	last := pin.Tensors[len(pin.Tensors)-1]
	last.Size, last.Shape, last.Slabs, last.Type, last.BLAKE3 = 0, []uint64{0}, nil, "F32", DigestBytes(nil).Sum
	for i := range 90_000 {
		last.Name = fmt.Sprintf("empty.%d", i)
		pin.Tensors = append(pin.Tensors, last)
	}
	if err := pin.seal(); err != nil {
		t.Fatal(err)
	}
	text := encodePin(t, "pin.json", pin)
	if got, err := DecodePin(bytes.NewReader(text)); err != nil || len(got.Tensors) != len(pin.Tensors) {
		t.Errorf("got %v", err)
	}
	if _, err := DecodePin(bytes.NewReader(encodePin(t, "pin.zst", pin))); err == nil || !strings.Contains(err.Error(), "decompress it first") {
		t.Errorf("got %v", err)
	}
	head, tail, _ := strings.Cut(string(text), `"files": [`)
	large := head + `"files": [` + strings.Repeat(longFile+",", 65) + tail
	if _, err := DecodePin(strings.NewReader(large)); err == nil || !strings.Contains(err.Error(), "larger than 67108864 bytes") {
		t.Errorf("got %v", err)
	}
}

// longFile is a file of a pin document with a name of a MiB.
var longFile = "\n    {\n      \"name\": \"" + strings.Repeat("x", 1<<20) + "\",\n      \"size\": 0,\n      \"sha256\": \"" + emptySHA256 + "\"\n    }"

// The writer, which works part by part, writes what an encoder of the whole would.
func TestPinIsWrittenAsAWhole(t *testing.T) {
	empty := &Pin{Schema: PinSchema, PinDigest: DigestBytes(nil), Files: []File{}, WeightsDigest: DigestBytes(nil), MetadataDigest: DigestBytes(nil), Metadata: []Pair{}, Tensors: []Tensor{}}
	for _, pin := range []*Pin{smallPin(t), modelSizedPin(2, 8), empty} {
		var got, want bytes.Buffer
		if err := strict.Encode(&got, pin); err != nil {
			t.Fatal(err)
		}
		e := json.NewEncoder(&want)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		if err := e.Encode(pin); err != nil {
			t.Fatal(err)
		}
		if got.String() != want.String() {
			t.Errorf("got\n%s\nwant\n%s", &got, &want)
		}
	}
}

func FuzzDecodePin(f *testing.F) {
	c := modeltest.Contents(1)
	c.Views = []gguf.View{*modeltest.View(c, "blk.0.scale"), *modeltest.View(c, "blk.1.exp_probs_b.bias")}
	pin := mustPin(f, modeltest.New(f, c, gguf.Split{}), BuildOptions{Slabs: gguftest.MixedSlabs})
	f.Add(encodePin(f, "p.json", pin))
	f.Add(encodePin(f, "p.zst", pin))
	f.Fuzz(func(t *testing.T, in []byte) {
		pin, err := DecodePin(bytes.NewReader(in))
		if err != nil || bytes.HasPrefix(in, ZstdMagic) {
			return
		}
		if got := encodePin(t, "p.json", pin); !bytes.Equal(got, in) {
			t.Errorf("got %q, want %q", got, in)
		}
	})
}

// modelSizedPin returns the pin of a made-up model with the tensors of Kimi-K3: layers
// of which all but the first have experts, 28 tensors each. Digests are random, so they
// compress as badly as real ones.
func modelSizedPin(layers, experts int) *Pin {
	rng := rand.New(rand.NewPCG(1, 2))
	noise := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		return b
	}
	pin := &Pin{Schema: PinSchema, Artifact: Artifact{Name: "k", Architecture: "kimi-k3", Version: 3, ByteOrder: littleEndian, Shards: 1}, Tensors: []Tensor{}}
	add := func(name string, typ gguf.Type, slabs bool, shape ...uint64) {
		size, err := gguf.TypeSize(typ, shape)
		if err != nil {
			panic(err)
		}
		t := Tensor{Name: name, Type: typ.String(), Shape: shape, Size: size, BLAKE3: Sum(noise(32))}
		if slabs {
			t.Slabs = &Slabs{Axis: len(shape) - 1, Count: experts}
			if size/int64(experts) <= smallSlab {
				t.Slabs.Bytes = noise(int(size))
				t.BLAKE3 = DigestBytes(t.Slabs.Bytes).Sum
			} else {
				t.Slabs.BLAKE3 = noise(32 * experts)
			}
		}
		pin.Tensors = append(pin.Tensors, t)
		pin.Artifact.TensorBytes += size
	}
	for l := range layers {
		if l > 0 {
			e := uint64(experts)
			for _, p := range []string{"gate", "up"} {
				add(fmt.Sprintf("blk.%d.ffn_%s_exps.weight", l, p), gguf.IQ1_S, true, 3584, 3072, e)
			}
			add(fmt.Sprintf("blk.%d.ffn_down_exps.weight", l), gguf.IQ1_S, true, 3072, 3584, e)
			add(fmt.Sprintf("blk.%d.ffn_gate_inp.weight", l), gguf.F32, true, 7168, e)
			add(fmt.Sprintf("blk.%d.exp_probs_b.bias", l), gguf.F32, true, e)
		}
		for i := range 23 {
			add(fmt.Sprintf("blk.%d.attn_part_%d.weight", l, i), gguf.Q5_K, false, 7168, 7168)
		}
	}
	pin.Artifact.FileBytes = pin.Artifact.TensorBytes
	pin.Files = []File{{Name: "k.gguf", Size: pin.Artifact.FileBytes}}
	md := gguf.NewMetadata()
	md.Set(gguf.KeyArchitecture, gguf.TextValue(pin.Artifact.Architecture))
	if err := errors.Join(pin.describe(md), pin.seal()); err != nil {
		panic(err)
	}
	return pin
}

func TestPinOfTheLargestModelIsSmall(t *testing.T) {
	text := encodePin(t, "p.zst", modelSizedPin(93, 896))
	if len(text) >= 12e6 {
		t.Errorf("pin of 93 layers of 896 experts has %d bytes, want less than 12 MB", len(text))
	}
}

func BenchmarkDecodePin(b *testing.B) {
	text := encodePin(b, "p.zst", modelSizedPin(93, 896))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := DecodePin(bytes.NewReader(text)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncodePin(b *testing.B) {
	pin := modelSizedPin(93, 896)
	for b.Loop() {
		encodePin(b, "p.zst", pin)
	}
}
