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
//	z TAB I8 TAB [TAB emptyBLAKE3] LF
var handLines = []tensorLine{{"z", "I8", nil}, {"a", "F32", []uint64{4}}, {"a.b", "IQ1_S", []uint64{256, 2, 3}}}

const (
	handStructure = "blake3:f688ddf9780191430c33978c10051f93c1663f571fc6b8ba8cb498c3ff383050"
	handWeights   = "blake3:256bc931a22f0597fd08268e91d0e89da829b48b5539e0f3ecbcac4c3164d7a7"
)

func TestDigestTensorsByHand(t *testing.T) {
	empty := mustSum(t, emptyBLAKE3)
	for want, sums := range map[string][]Sum{handStructure: nil, handWeights: {empty, empty, empty}} {
		got, err := digestTensors(handLines, sums)
		if err != nil {
			t.Fatal(err)
		}
		if got.String() != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestDigestTensorsRefuses(t *testing.T) {
	for _, name := range []string{"a\tF32", "a\nb", "a\x00", "\x1b[2J"} {
		if _, err := digestTensors([]tensorLine{{name, "F32", nil}}, nil); err == nil || !strings.Contains(err.Error(), "control character") {
			t.Errorf("name %q: got %v", name, err)
		}
	}
	if _, err := digestTensors([]tensorLine{{"a", "F32", nil}, {"b", "F32", nil}, {"a", "F16", nil}}, nil); err == nil {
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
		draft, err := NewDraft("out", layout, nil)
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
