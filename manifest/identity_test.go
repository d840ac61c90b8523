package manifest

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/manifest/internal/modeltest"
)

// lines and their digests, which another BLAKE3 implementation gave for the text
//
//	a TAB F32 TAB 4 [TAB emptyBLAKE3] LF
//	a.b TAB IQ1_S TAB 256,2,3 [TAB emptyBLAKE3] LF
//	z TAB I8 TAB 1 [TAB emptyBLAKE3] LF
var handLines = []tensorLine{{"z", "I8", nil}, {"a", "F32", []uint64{4}}, {"a.b", "IQ1_S", []uint64{256, 2, 3}}}

const (
	handStructure = "blake3:c4bf9194e6b0385dcb6b24831e01534f1fa72663aeae60bf2f38bb0995a19903"
	handWeights   = "blake3:3310e7b3fde8362bde68ca92fe6b815bf7b30d04b1366ebe577c628a972ad9c7"
)

// digestLines returns the digest of lines, sums being that of each, nil for none.
func digestLines(lines []tensorLine, sums []Sum) (Digest, error) {
	line := func(i int) tensorLine { return lines[i] }
	if sums == nil {
		return digestTensors(len(lines), line, nil)
	}
	return digestTensors(len(lines), line, func(i int) Sum { return sums[i] })
}

func TestDigestTensorsByHand(t *testing.T) {
	empty := mustSum(t, emptyBLAKE3)
	for want, sums := range map[string][]Sum{handStructure: nil, handWeights: {empty, empty, empty}} {
		got, err := digestLines(handLines, sums)
		if err != nil {
			t.Fatal(err)
		}
		if got.String() != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestDigestsLeaveOuterOnesOut writes the same data under the dims that ggml's tools give
// it, and under others.
func TestDigestsLeaveOuterOnesOut(t *testing.T) {
	for _, name := range []string{"blk.0.scale", "token_embd.weight", "blk.1.ffn_up_exps.weight", "blk.1.exp_probs_b.bias"} {
		pinOf := func(shape ...uint64) *Pin {
			c := modeltest.Contents(1)
			modeltest.View(c, name).Shape = shape
			return mustPin(t, modeltest.New(t, c, gguf.Split{}), BuildOptions{Slabs: gguftest.MixedSlabs})
		}
		shape := modeltest.View(modeltest.Contents(1), name).Shape
		plain := pinOf(shape...)
		structure, err := plain.StructureDigest()
		if err != nil {
			t.Fatal(err)
		}
		for _, ones := range [][]uint64{{1}, []uint64{1, 1}[:min(2, 4-len(shape))]} {
			stored := slices.Concat(shape, ones)
			pin := pinOf(stored...)
			if s, err := pin.StructureDigest(); err != nil || s != structure || pin.WeightsDigest != plain.WeightsDigest {
				t.Errorf("%s %v: digests are others than those of %v: %v", name, stored, shape, err)
			}
			if changes := CompareTensors(plain, pin); len(changes) > 0 {
				t.Errorf("%s %v: got %+v", name, stored, changes[0])
			}
			if names := OtherDims(plain, pin); !slices.Equal(names, []string{name}) {
				t.Errorf("%s %v: other dims of %q", name, stored, names)
			}
			if err := pin.Validate(); err != nil {
				t.Errorf("%s %v: %v", name, stored, err)
			}
		}
		if shape == nil || gguftest.MixedSlabs(name) > 0 {
			continue
		}
		inner := pinOf(slices.Concat(shape[:1], []uint64{1}, shape[1:])...)
		if s, _ := inner.StructureDigest(); s == structure {
			t.Errorf("%s: a dim of 1 that is not the outermost makes no difference", name)
		}
	}
}

func TestDigestTensorsRefuses(t *testing.T) {
	for _, name := range []string{"a\tF32", "a\nb", "a\x00", "\x1b[2J"} {
		if _, err := digestLines([]tensorLine{{name, "F32", nil}}, nil); err == nil || !strings.Contains(err.Error(), "control character") {
			t.Errorf("name %q: got %v", name, err)
		}
	}
	if _, err := digestLines([]tensorLine{{"a", "F32", nil}, {"b", "F32", nil}, {"a", "F16", nil}}, nil); err == nil {
		t.Error("a name twice was accepted")
	}
}

func TestStructureDigestRestsOnStructureOnly(t *testing.T) {
	structure := func(c gguf.Contents, s gguf.Split) Digest {
		t.Helper()
		d, err := StructureDigest(modeltest.New(t, c, s))
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	want := structure(modeltest.Contents(1), gguf.Split{})

	reordered := modeltest.Contents(1)
	slices.Reverse(reordered.Views)
	aligned := modeltest.Contents(1)
	aligned.Metadata.Set(gguf.KeyAlignment, gguf.Uint32Value(4096))
	same := map[string]Digest{
		"three shards": structure(modeltest.Contents(1), gguf.Split{Shards: 3}),
		"other data":   structure(modeltest.Contents(2), gguf.Split{}),
		"reordered":    structure(reordered, gguf.Split{Shards: 2}),
		"alignment":    structure(aligned, gguf.Split{}),
	}
	for name, got := range same {
		if got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}

	shape, typ, name := modeltest.Contents(1), modeltest.Contents(1), modeltest.Contents(1)
	modeltest.View(shape, "token_embd.weight").Shape = []uint64{7, 33}
	modeltest.View(typ, "token_embd.weight").Type = gguf.BF16
	modeltest.View(name, "token_embd.weight").Name = "tok"
	fewer := modeltest.Contents(1)
	fewer.Views = fewer.Views[1:]
	for what, c := range map[string]gguf.Contents{"shape": shape, "type": typ, "name": name, "fewer": fewer} {
		if structure(c, gguf.Split{}) == want {
			t.Errorf("another %s gives the same digest", what)
		}
	}
}

func TestMetadataDigest(t *testing.T) {
	digest := func(md *gguf.Metadata) Digest {
		t.Helper()
		d, err := MetadataDigest(md)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	want := digest(modeltest.Contents(1).Metadata)

	split := modeltest.New(t, modeltest.Contents(1), gguf.Split{Shards: 3}).Metadata()
	if _, ok := split.Get(gguf.KeySplitCount); !ok {
		t.Fatal("the split model has no split.count to leave out")
	}
	if got := digest(split); got != want {
		t.Errorf("split model has %s, want %s", got, want)
	}

	turned := gguf.NewMetadata()
	for _, key := range slices.Backward(modeltest.Contents(1).Metadata.Keys()) {
		v, _ := modeltest.Contents(1).Metadata.Get(key)
		turned.Set(key, v)
	}
	if got := digest(turned); got != want {
		t.Errorf("keys in another order have %s, want %s", got, want)
	}

	for what, v := range map[string]gguf.Value{"type": gguf.Uint64Value(gguftest.MixedExperts), "value": gguf.Uint32Value(5)} {
		md := modeltest.Contents(1).Metadata
		md.Set("test.expert_count", v)
		if digest(md) == want {
			t.Errorf("another %s gives the same digest", what)
		}
	}
}

func TestMetadataDigestByHand(t *testing.T) {
	// b TAB u8 TAB BLAKE3(07) LF, b.a TAB arr TAB BLAKE3(06000000 01.. 00000000) LF,
	// taken with another BLAKE3 implementation.
	const want = "blake3:ba199c393b8753797ff3dfa44a1acf9eeaf91010bcb774d5d09f94340e244030"
	md := gguf.NewMetadata()
	md.Set("b.a", gguf.Float32sValue(0))
	md.Set("split.no", gguf.Uint16Value(1))
	md.Set("b", gguf.Uint8Value(7))
	got, err := MetadataDigest(md)
	if err != nil || got.String() != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

func TestMetadataDigestRefusesForgedLines(t *testing.T) {
	md := gguf.NewMetadata()
	md.Set("a\tu8\tx\nb", gguf.Uint8Value(1))
	if _, err := MetadataDigest(md); err == nil {
		t.Error("a key with TAB and LF was accepted")
	}
}

// A name that has no digest is refused before the first byte, by whatever would take a
// digest of it, and its file named. What is only written has no digest then.
func TestNamesWithoutADigest(t *testing.T) {
	const tensor, key = "blk.0\nscale", "test.\x1f"
	for want, edit := range map[string]func(c *gguf.Contents){
		`: tensor "blk.0\nscale": the name has the control character "\n", so no digest is defined for it`: func(c *gguf.Contents) {
			modeltest.View(*c, "blk.0.scale").Name = tensor
		},
		`: key "test.\x1f": the name has the control character "\x1f", so no digest is defined for it`: func(c *gguf.Contents) {
			c.Metadata.Set(key, gguf.Uint8Value(1))
		},
		`: tensor "\x00b": the name has the control character "\x00", so no digest is defined for it; 3 tensors have such names`: func(c *gguf.Contents) {
			for i, name := range []string{"\x00b", tensor, "\x1fa"} {
				c.Views[2*i].Name = name
			}
		},
		`: key "\ta": the name has the control character "\t", so no digest is defined for it; 2 keys have such names`: func(c *gguf.Contents) {
			c.Metadata.Set("\ta", gguf.Uint8Value(1))
			c.Metadata.Set(key, gguf.Uint8Value(1))
		},
	} {
		c := modeltest.Contents(1)
		edit(&c)
		layout, err := gguf.NewLayout(c, gguf.Split{Shards: 3})
		if err != nil {
			t.Fatal(err)
		}
		draft, err := NewDraft("out", layout, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		pin, err := draft.Finish(make([]Sum, 3))
		if err != nil || !pin.WeightsDigest.IsZero() || !pin.MetadataDigest.IsZero() || len(pin.Metadata) > 0 || len(pin.Files) != 3 {
			t.Errorf("a draft: %v, %+v", err, pin)
		}
		if _, ok := errors.AsType[*NameError](CheckPinnable("out", layout)); !ok {
			t.Errorf("the layout is taken for one that has a pin")
		}
		m := modeltest.New(t, c, gguf.Split{})
		want := m.Files[0].Name + want
		read := int64(0)
		o := BuildOptions{Progress: func(done, _ int64) { read = done }}
		_, err = BuildPin(t.Context(), m, o)
		if _, ok := errors.AsType[*NameError](err); !ok || err.Error() != want || read > 0 {
			t.Errorf("a pin: got %v after %d bytes, want %s", err, read, want)
		}
		if _, err := NewRecorder(t.Context(), m, o); err == nil || err.Error() != want {
			t.Errorf("a recorder: got %v, want %s", err, want)
		}
		if _, err := StructureDigest(m); strings.Contains(want, "tensor") && (err == nil || err.Error() != want) {
			t.Errorf("a structure digest: got %v, want %s", err, want)
		}
		if warnings := NameWarnings(m); len(warnings) != 1 || warnings[0].Severity != gguf.Warning || warnings[0].Where+": "+warnings[0].What != want {
			t.Errorf("warnings %+v, want %s", warnings, want)
		}
	}
}
