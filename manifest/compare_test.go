package manifest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/manifest/internal/modeltest"
)

func TestCompareTensors(t *testing.T) {
	const exps = "blk.1.ffn_up_exps.weight"
	slab := int64(64 / 32 * 34 * 50)
	for _, tc := range []struct {
		name string
		edit func(c *gguf.Contents)
		want string // name, change and slabs of each
	}{
		{"nothing", func(*gguf.Contents) {}, ""},
		{"metadata", func(c *gguf.Contents) { c.Metadata.Set("x", gguf.BoolValue(true)) }, ""},
		{"order", func(c *gguf.Contents) { slices.Reverse(c.Views) }, ""},
		{"removed", func(c *gguf.Contents) { c.Views = c.Views[1:] }, "token_embd.weight removed []\n"},
		{"added", func(c *gguf.Contents) {
			c.Views = append(c.Views, gguf.View{Name: "new", Type: gguf.F32, Shape: []uint64{0}})
		}, "new added []\n"},
		{"two added", func(c *gguf.Contents) {
			c.Views = append(c.Views, gguf.View{Name: "new", Type: gguf.F32, Shape: []uint64{0}}, gguf.View{Name: "newer", Type: gguf.F32, Shape: []uint64{0}})
		}, "new added []\nnewer added []\n"},
		{"renamed", func(c *gguf.Contents) { modeltest.View(*c, "blk.0.empty").Name = "other" }, "blk.0.empty removed []\nother added []\n"},
		{"retyped", func(c *gguf.Contents) { modeltest.View(*c, "blk.0.attn_norm.weight").Type = gguf.I32 }, "blk.0.attn_norm.weight retyped []\n"},
		{"reshaped", func(c *gguf.Contents) { modeltest.View(*c, "token_embd.weight").Shape = []uint64{7, 33} }, "token_embd.weight reshaped []\n"},
		{"a byte", func(c *gguf.Contents) { modeltest.Flip(t, modeltest.View(*c, "output.weight"), 17) }, "output.weight changed []\n"},
		{"a byte of a slab", func(c *gguf.Contents) { modeltest.Flip(t, modeltest.View(*c, exps), 4*slab) }, exps + " changed [4]\n"},
		{"two slabs", func(c *gguf.Contents) {
			modeltest.Flip(t, modeltest.View(*c, exps), 0)
			modeltest.Flip(t, modeltest.View(*c, exps), 6*slab-1)
		}, exps + " changed [0 5]\n"},
		{"a small slab", func(c *gguf.Contents) { modeltest.Flip(t, modeltest.View(*c, "blk.1.exp_probs_b.bias"), 4*3) }, "blk.1.exp_probs_b.bias changed [3]\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			edited := modeltest.Contents(1)
			tc.edit(&edited)
			a := mustPin(t, modeltest.New(t, modeltest.Contents(1), gguf.Split{}), BuildOptions{Slabs: gguftest.MixedSlabs})
			b := mustPin(t, modeltest.New(t, edited, gguf.Split{Shards: 3}), BuildOptions{Slabs: gguftest.MixedSlabs})
			var got strings.Builder
			for _, c := range CompareTensors(a, b) {
				fmt.Fprintln(&got, c.Name, c.Change, c.Slabs)
			}
			if got.String() != tc.want {
				t.Errorf("got %q, want %q", got.String(), tc.want)
			}
			if same := a.WeightsDigest == b.WeightsDigest; same != (tc.want == "") {
				t.Errorf("equal weights digests: %v", same)
			}
			if same := SameOrder(a, b); same != (tc.name != "order") {
				t.Errorf("same order: %v", same)
			}
		})
	}
}

func TestCompareMetadata(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	base := func() *gguf.Metadata {
		md := modeltest.Contents(1).Metadata
		md.Set("long", gguf.TextValue(long))
		return md
	}
	for _, tc := range []struct {
		name string
		edit func(md *gguf.Metadata) *gguf.Metadata
		want string
	}{
		{"nothing", func(md *gguf.Metadata) *gguf.Metadata { return md }, ""},
		{"order", func(md *gguf.Metadata) *gguf.Metadata {
			out := gguf.NewMetadata()
			for _, key := range slices.Backward(md.Keys()) {
				v, _ := md.Get(key)
				out.Set(key, v)
			}
			return out
		}, ""},
		{"split keys", func(md *gguf.Metadata) *gguf.Metadata {
			md.Set("split.no", gguf.Uint16Value(0))
			return md
		}, ""},
		{"removed", func(md *gguf.Metadata) *gguf.Metadata {
			return md.Without(func(key string) bool { return key == "tokenizer.ggml.model" })
		}, "tokenizer.ggml.model removed"},
		{"added", func(md *gguf.Metadata) *gguf.Metadata { md.Set("x", gguf.Int8Value(1)); return md }, "x added"},
		{"changed", func(md *gguf.Metadata) *gguf.Metadata {
			md.Set("test.expert_count", gguf.Uint32Value(5))
			return md
		}, "test.expert_count changed"},
		{"retyped", func(md *gguf.Metadata) *gguf.Metadata {
			md.Set("test.expert_count", gguf.Int32Value(gguftest.MixedExperts))
			return md
		}, "test.expert_count retyped"},
		{"retyped list", func(md *gguf.Metadata) *gguf.Metadata {
			md.Set("tokenizer.ggml.tokens", gguf.Int32sValue(1, 2, 3))
			return md
		}, "tokenizer.ggml.tokens retyped"},
		{"last byte", func(md *gguf.Metadata) *gguf.Metadata {
			md.Set("long", gguf.TextValue(long[1:]+"y"))
			return md
		}, "long changed"},
		{"shorter", func(md *gguf.Metadata) *gguf.Metadata {
			md.Set("long", gguf.TextValue(long[1:]))
			return md
		}, "long changed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			stored := func(md *gguf.Metadata) *gguf.Metadata { // long values stay in the file
				return modeltest.New(t, gguf.Contents{Version: 3, Metadata: md}, gguf.Split{}).Metadata()
			}
			a, b := stored(base()), stored(tc.edit(base()))
			var got []string
			for c, err := range CompareMetadata(a, b) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, c.Key+" "+string(c.Change))
			}
			if text := strings.Join(got, ", "); text != tc.want {
				t.Errorf("got %q, want %q", text, tc.want)
			}
			if same := SameKeyOrder(a, b); same != (tc.name != "order") {
				t.Errorf("same order of keys: %v", same)
			}
			split := 0
			for c, err := range CompareSplitKeys(a, b) {
				if split++; err != nil || c.Key != "split.no" || c.Change != Added {
					t.Errorf("split key: %+v, %v", c, err)
				}
			}
			if (split == 1) != (tc.name == "split keys") {
				t.Errorf("split keys that differ: %d", split)
			}
			digestA, errA := MetadataDigest(a)
			digestB, errB := MetadataDigest(b)
			if errA != nil || errB != nil || (digestA == digestB) != (tc.want == "") {
				t.Errorf("digests %s and %s (%v, %v)", digestA, digestB, errA, errB)
			}
		})
	}
}
