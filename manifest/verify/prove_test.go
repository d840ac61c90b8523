package verify

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ggufreap/gguf"
	"ggufreap/manifest"
	"ggufreap/manifest/internal/modeltest"
)

// mayAdd allows the key that pruned adds.
func mayAdd(pair manifest.Pair) (*gguf.Value, bool) { return nil, pair.Key == "reap.criterion" }

func TestProve(t *testing.T) {
	source := pinContents(t, modeltest.MoE(), gguf.Split{Shards: 2}, modeltest.MoESlabs(modeltest.MoEExperts))
	release := pinContents(t, modeltest.PrunedMoE(), gguf.Split{Shards: 3}, modeltest.MoESlabs(4))
	for name, keep := range map[string]map[int][]int{"with the plan": modeltest.MoEKeep, "without": nil} {
		proof, findings := Prove(release, source, ProveOptions{Keep: keep, MayChange: mayAdd})
		checkFindings(t, findings, nil)
		if proof.Proven != release.Artifact.TensorBytes || proof.Unproven != 0 || proof.Experts != modeltest.MoEExperts || proof.WeightsDigest != source.WeightsDigest {
			t.Errorf("%s: proof is %+v", name, proof)
		}
		for _, b := range proof.Layers {
			var block int
			fmt.Sscanf(b.Layer, "blk.%d", &block)
			if !slices.Equal(b.Keep, modeltest.MoEKeep[block]) {
				t.Errorf("%s: %s keeps %v, want %v", name, b.Layer, b.Keep, modeltest.MoEKeep[block])
			}
		}
		if len(proof.Layers) != len(modeltest.MoEKeep) || len(proof.Tensors) != len(release.Tensors) {
			t.Errorf("%s: %d layers and %d tensors", name, len(proof.Layers), len(proof.Tensors))
		}
		for _, p := range proof.Tensors {
			want := ProvenIdentical
			if modeltest.MoESlabs(1)(p.Name) > 0 {
				want = ProvenExperts
			}
			if p.As != want || p.Proven != p.Size {
				t.Errorf("%s: %+v, want all of it as %s", name, p, want)
			}
		}
		if want := []MetadataProof{{"moe.expert_count", manifest.Changed, true}, {"reap.criterion", manifest.Added, true}}; !slices.Equal(proof.Metadata, want) {
			t.Errorf("%s: metadata %+v, want %+v", name, proof.Metadata, want)
		}
	}
	proof, findings := Prove(source, source, ProveOptions{})
	checkFindings(t, findings, nil)
	if proof.Unproven != 0 || len(proof.Layers) != 3 || proof.Layers[0].Keep[8] != 8 {
		t.Errorf("the source of itself: %+v", proof)
	}
}

// TestProveNamesEveryForgery makes releases that are sound by themselves, and wrong.
func TestProveNamesEveryForgery(t *testing.T) {
	source := pinContents(t, modeltest.MoE(), gguf.Split{}, modeltest.MoESlabs(modeltest.MoEExperts))
	up, router, bias := "blk.2.ffn_up_exps.weight", "blk.1.ffn_gate_inp.weight", "blk.10.exp_probs_b.bias"
	for name, test := range map[string]struct {
		edit     func(c *gguf.Contents)
		unproven int64
		want     []Finding
	}{
		"two experts' up slabs swapped": {func(c *gguf.Contents) { modeltest.SwapSlabs(*c, up, 0, 2) }, 2 * 170, []Finding{
			finding(KindExperts, "F", up, manifest.NoExpert, "experts 0 and 2 do not fit the other tensors of the layer; expert 0 is the source's expert 5, other tensors of the layer have expert 8 there")}},
		"two router rows swapped": {func(c *gguf.Contents) { modeltest.SwapSlabs(*c, router, 1, 3) }, 2 * 96, []Finding{
			finding(KindExperts, "F", router, manifest.NoExpert, "experts 1 and 3 do not fit the other tensors of the layer; expert 1 is the source's expert 7, other tensors of the layer have expert 2 there")}},
		"two biases swapped": {func(c *gguf.Contents) { modeltest.SwapSlabs(*c, bias, 0, 1) }, 2 * 4, []Finding{
			finding(KindExperts, "F", bias, manifest.NoExpert, "experts 0 and 1 do not fit the other tensors of the layer; expert 0 is the source's expert 5, other tensors of the layer have expert 4 there")}},
		"a dropped expert's slab": {func(c *gguf.Contents) {
			modeltest.PutSlab(*c, up, 4, 3, modeltest.SlabOf(modeltest.MoE(), up, modeltest.MoEExperts, 0))
		}, 170, []Finding{
			finding(KindExperts, "F", up, 3, "is the source's expert 0, other tensors of the layer have expert 4 there")}},
		"a slab of another layer": {func(c *gguf.Contents) {
			modeltest.PutSlab(*c, up, 4, 1, modeltest.SlabOf(modeltest.MoE(), "blk.10.ffn_up_exps.weight", modeltest.MoEExperts, 6))
		}, 170, []Finding{finding(KindDigest, "F", up, 1, `is expert 6 of the source's tensor "blk.10.ffn_up_exps.weight"`)}},
		"a slab of another projection": {func(c *gguf.Contents) {
			modeltest.PutSlab(*c, up, 4, 1, modeltest.SlabOf(modeltest.MoE(), "blk.2.ffn_gate_exps.weight", modeltest.MoEExperts, 1))
		}, 170, []Finding{finding(KindDigest, "F", up, 1, `is expert 1 of the source's tensor "blk.2.ffn_gate_exps.weight"`)}},
		"a flipped byte": {func(c *gguf.Contents) { modeltest.ChangedData(modeltest.View(*c, up), 170*3+5) }, 170, []Finding{
			finding(KindDigest, "F", up, 3, "is not among the source's")}},
		"an expert twice": {func(c *gguf.Contents) {
			for _, slabbed := range modeltest.MoESlabbed {
				tensor := "blk.2." + slabbed.Name
				modeltest.PutSlab(*c, tensor, 4, 3, modeltest.SlabOf(*c, tensor, 4, 0))
			}
		}, 0, []Finding{finding(KindExperts, "F", "blk.2.ffn_gate_inp.weight", 3, "is the source's expert 8 of blk.2, which is there already"),
			finding(KindPlan, "F", "blk.2.ffn_gate_inp.weight", manifest.NoExpert, "layer 2: expert 4 is not kept, which the plan keeps")}},
		"a tensor dropped": {func(c *gguf.Contents) {
			c.Views = slices.DeleteFunc(c.Views, func(v gguf.View) bool { return v.Name == bias })
		}, 0, []Finding{finding(KindMissing, "F", bias, manifest.NoExpert, "is a tensor of the source, and not there")}},
		"a tensor added": {func(c *gguf.Contents) {
			c.Views = append(c.Views, modeltest.DataView("blk.1.extra", gguf.I8, []uint64{3}, []byte("abc")))
		}, 3, []Finding{finding(KindExtra, "F", "blk.1.extra", manifest.NoExpert, "is no tensor of the source")}},
		"a tensor renamed": {func(c *gguf.Contents) { modeltest.View(*c, "token_embd.weight").Name = "x" }, 336, []Finding{
			finding(KindMissing, "F", "token_embd.weight", manifest.NoExpert, "not there"), finding(KindExtra, "F", "x", manifest.NoExpert, "no tensor of the source")}},
		"a tensor changed": {func(c *gguf.Contents) { modeltest.ChangedData(modeltest.View(*c, "token_embd.weight"), 7) }, 336, []Finding{
			finding(KindDigest, "F", "token_embd.weight", manifest.NoExpert, "the source has")}},
		"a tensor retyped": {func(c *gguf.Contents) {
			modeltest.View(*c, "token_embd.weight").Type = gguf.BF16
		}, 336, []Finding{
			finding(KindStructure, "F", "token_embd.weight", manifest.NoExpert, "type is BF16, the source has F16")}},
		"a tensor reshaped": {func(c *gguf.Contents) { modeltest.View(*c, "token_embd.weight").Shape = []uint64{7, 24} }, 336, []Finding{
			finding(KindStructure, "F", "token_embd.weight", manifest.NoExpert, "shape is [7 24], the source has [24 7]")}},
		"an expert less in one tensor": {func(c *gguf.Contents) {
			v := modeltest.View(*c, up)
			*v = modeltest.DataView(up, v.Type, []uint64{32, 5, 3}, modeltest.ViewData(*v)[:170*3])
		}, 4*(96+4+170+54) + 3*170, []Finding{
			finding(KindStructure, "F", up, manifest.NoExpert, `has 3 experts, tensor "blk.2.ffn_gate_inp.weight" of the layer has 4`),
			finding(KindPlan, "F", "blk.2.ffn_gate_inp.weight", manifest.NoExpert, "layer 2: no experts to compare, the plan keeps 4")}},
		"an expert less in one block": {func(c *gguf.Contents) {
			for _, slabbed := range modeltest.MoESlabbed {
				v := modeltest.View(*c, "blk.2."+slabbed.Name)
				data := modeltest.ViewData(*v)
				*v = modeltest.DataView(v.Name, v.Type, slices.Concat(slabbed.Shape, []uint64{3}), data[:len(data)/4*3])
			}
		}, 0, []Finding{
			finding(KindStructure, "F", "blk.2.ffn_gate_inp.weight", manifest.NoExpert, `has 3 experts, blk.1 has 4`),
			finding(KindPlan, "F", "blk.2.ffn_gate_inp.weight", manifest.NoExpert, "layer 2: 3 experts, the plan keeps 4")}},
		"two blocks swapped": {func(c *gguf.Contents) {
			for _, slabbed := range modeltest.MoESlabbed {
				a, b := modeltest.View(*c, "blk.1."+slabbed.Name), modeltest.View(*c, "blk.2."+slabbed.Name)
				a.Extents, b.Extents = b.Extents, a.Extents
			}
		}, 2 * 4 * (96 + 4 + 170 + 170 + 54), []Finding{
			finding(KindDigest, "", "", manifest.NoExpert, `layers 1 and 2, tensor "exp_probs_b.bias" of each: experts 0 to 3 are not among the source's`),
			finding(KindDigest, "", "", manifest.NoExpert, `layer 1, 4 tensors ("ffn_gate_inp.weight", "ffn_gate_exps.weight", "ffn_up_exps.weight", and 1 more): experts 0 to 3 are of the source's layer 2; expert 0 of tensor "blk.1.ffn_gate_inp.weight" is expert 8 of the source's tensor "blk.2.ffn_gate_inp.weight"`),
			finding(KindDigest, "", "", manifest.NoExpert, "experts 0 to 3 are of the source's layer 1")}},
		"the experts of another plan": {func(c *gguf.Contents) {
			for _, slabbed := range modeltest.MoESlabbed {
				tensor := "blk.2." + slabbed.Name
				modeltest.PutSlab(*c, tensor, 4, 3, modeltest.SlabOf(modeltest.MoE(), tensor, modeltest.MoEExperts, 0))
			}
		}, 0, []Finding{finding(KindPlan, "F", "blk.2.ffn_gate_inp.weight", manifest.NoExpert, "layer 2: expert 0 is kept, which the plan drops; expert 4 is not kept, which the plan keeps")}},
		"a chat template edited": {func(c *gguf.Contents) { c.Metadata.Set("tokenizer.chat_template", gguf.TextValue("evil")) }, 0, []Finding{
			finding(KindMetadata, "", "", manifest.NoExpert, `key "tokenizer.chat_template" has another value`)}},
		"a key added": {func(c *gguf.Contents) { c.Metadata.Set("x", gguf.Uint8Value(1)) }, 0, []Finding{
			finding(KindMetadata, "", "", manifest.NoExpert, `key "x" (u8) was added`)}},
		"a key removed": {func(c *gguf.Contents) {
			c.Metadata = c.Metadata.Without(func(key string) bool { return key == "tokenizer.chat_template" })
		}, 0, []Finding{finding(KindMetadata, "", "", manifest.NoExpert, `key "tokenizer.chat_template" (str) is missing`)}},
		"the count not changed": {func(c *gguf.Contents) { c.Metadata.Set("moe.expert_count", gguf.Uint32Value(modeltest.MoEExperts)) }, 0, []Finding{
			finding(KindMetadata, "", "", manifest.NoExpert, `key "moe.expert_count" is the source's, but 4 of 9 experts are there`)}},
		"another count": {func(c *gguf.Contents) { c.Metadata.Set("moe.expert_count", gguf.Uint32Value(5)) }, 0, []Finding{
			finding(KindMetadata, "", "", manifest.NoExpert, `key "moe.expert_count" has another value, and not the one`)}},
		"the count retyped": {func(c *gguf.Contents) { c.Metadata.Set("moe.expert_count", gguf.Uint64Value(4)) }, 0, []Finding{
			finding(KindMetadata, "", "", manifest.NoExpert, `key "moe.expert_count" has type u64, was u32`)}},
	} {
		t.Run(name, func(t *testing.T) {
			c := modeltest.PrunedMoE()
			test.edit(&c)
			m := modeltest.New(t, c, gguf.Split{})
			o := manifest.BuildOptions{}
			o.Follow(m, source)
			release := mustPin(t, m, o)
			proof, findings := Prove(release, source, ProveOptions{Keep: modeltest.MoEKeep, MayChange: mayAdd, File: func(tensor string) string {
				if tensor == "" {
					return ""
				}
				return "F"
			}})
			checkFindings(t, findings, test.want)
			if proof.Unproven != test.unproven || proof.Proven+proof.Unproven != release.Artifact.TensorBytes {
				t.Errorf("%d bytes are proven and %d are not, want %d", proof.Proven, proof.Unproven, test.unproven)
			}
		})
	}
}

// TestProveComparesByteOrders has equal bytes that are other numbers.
func TestProveComparesByteOrders(t *testing.T) {
	source := pinContents(t, modeltest.MoE(), gguf.Split{}, modeltest.MoESlabs(modeltest.MoEExperts))
	release := *source
	release.Artifact.ByteOrder = "big"
	_, findings := Prove(&release, source, ProveOptions{})
	checkFindings(t, findings, []Finding{finding(KindStructure, "", "", manifest.NoExpert, "stored big endian, the source's little endian")})
}

// TestProveCannotTellEqualExpertsApart gives two experts the same bytes: either may be
// meant, and the plan settles it.
func TestProveCannotTellEqualExpertsApart(t *testing.T) {
	twins := func(c gguf.Contents, n, i, j int) gguf.Contents {
		for _, slabbed := range modeltest.MoESlabbed {
			tensor := "blk.1." + slabbed.Name
			modeltest.PutSlab(c, tensor, n, j, bytes.Clone(modeltest.SlabOf(c, tensor, n, i)))
		}
		return c
	}
	source := pinContents(t, twins(modeltest.MoE(), modeltest.MoEExperts, 2, 8), gguf.Split{}, modeltest.MoESlabs(modeltest.MoEExperts))
	release := pinContents(t, modeltest.PrunedMoE(), gguf.Split{}, modeltest.MoESlabs(4)) // 0, 2, 3, 7
	for _, id := range []int{2, 8} {
		keep := maps.Clone(modeltest.MoEKeep)
		keep[1] = []int{0, id, 3, 7}
		proof, findings := Prove(release, source, ProveOptions{Keep: keep, MayChange: mayAdd})
		checkFindings(t, findings, nil)
		if !slices.Equal(proof.Layers[0].Keep, keep[1]) {
			t.Errorf("got %v, want %v", proof.Layers[0].Keep, keep[1])
		}
	}
	proof, findings := Prove(release, source, ProveOptions{MayChange: mayAdd})
	checkFindings(t, findings, nil)
	if !slices.Equal(proof.Layers[0].Keep, []int{0, 2, 3, 7}) {
		t.Errorf("got %v", proof.Layers[0].Keep)
	}
}

// TestProveTablesOfIDs takes a tensor for a table of expert ids: its values must change,
// and under the old numbers be those of the source.
func TestProveTablesOfIDs(t *testing.T) {
	const table = "blk.2.attn_norm.weight"
	source := pinContents(t, modeltest.MoE(), gguf.Split{}, modeltest.MoESlabs(modeltest.MoEExperts))
	was := manifest.ByName(source)[table].BLAKE3
	changed := modeltest.PrunedMoE()
	modeltest.ChangedData(modeltest.View(changed, table), 0)
	for name, test := range map[string]struct {
		contents gguf.Contents
		old      func(string, []int) (manifest.Sum, error)
		proven   string
		findings []Finding
	}{
		"new numbers":     {changed, func(string, []int) (manifest.Sum, error) { return was, nil }, ProvenIDs, nil},
		"replaced":        {changed, func(string, []int) (manifest.Sum, error) { return manifest.Sum{}, nil }, UnprovenOther, nil},
		"nobody can tell": {changed, nil, UnprovenOther, nil},
		"old numbers": {modeltest.PrunedMoE(), func(string, []int) (manifest.Sum, error) { return manifest.Sum{}, nil }, UnprovenOther,
			[]Finding{finding(KindExperts, "", table, manifest.NoExpert, "still has the source's expert numbers")}},
		"no numbers": {changed, func(string, []int) (manifest.Sum, error) { return manifest.Sum{}, modeltest.ErrInjected }, UnprovenOther,
			[]Finding{finding(KindExperts, "", table, manifest.NoExpert, modeltest.ErrInjected.Error())}},
	} {
		release := pinContents(t, test.contents, gguf.Split{}, modeltest.MoESlabs(4))
		old := test.old
		if old != nil {
			old = func(tensor string, keep []int) (manifest.Sum, error) {
				if tensor != table || !slices.Equal(keep, modeltest.MoEKeep[2]) {
					t.Errorf("%s: asked for %s with %v", name, tensor, keep)
				}
				return test.old(tensor, keep)
			}
		}
		proof, findings := Prove(release, source, ProveOptions{MayChange: mayAdd, ExpertIDs: func(name string) bool { return name == table }, OldIDs: old})
		checkFindings(t, findings, test.findings)
		for _, p := range proof.Tensors {
			if p.Name == table && (p.As != test.proven || (p.Proven == p.Size) != (test.proven == ProvenIDs)) {
				t.Errorf("%s: got %+v", name, p)
			}
		}
	}
}

// TestProveTablesByPruningAgain has the table in both pins: it must be what pruning makes of
// the source's.
func TestProveTablesByPruningAgain(t *testing.T) {
	const table = "blk.2.attn_norm.weight"
	was, is := []byte{0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0}, []byte{3, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0}
	for name, test := range map[string]struct {
		there []byte
		err   error
		want  string
	}{
		"what pruning makes": {is, nil, ""},
		"the source's":       {was, nil, "still has the source's expert numbers"},
		"another":            {[]byte{3, 0, 0, 0, 1, 0, 0, 0, 8, 0, 0, 0}, nil, "1 of 3 ids are not what pruning makes of the source's table; the first is entry 2"},
		"two others":         {[]byte{3, 0, 0, 0, 1, 1, 0, 0, 8, 0, 0, 0}, nil, "2 of 3 ids are not what pruning makes of the source's table; the first is entry 1"},
		"none can be made":   {is, modeltest.ErrInjected, "no table can be made of the source's"},
	} {
		source := pinContents(t, modeltest.MoE(), gguf.Split{}, modeltest.MoESlabs(modeltest.MoEExperts))
		release := pinContents(t, modeltest.PrunedMoE(), gguf.Split{}, modeltest.MoESlabs(4))
		manifest.ByName(source)[table].IDs = &manifest.IDs{Table: was}
		manifest.ByName(release)[table].IDs = &manifest.IDs{Table: test.there}
		proof, findings := Prove(release, source, ProveOptions{MayChange: mayAdd, ExpertIDs: func(name string) bool { return name == table },
			NewIDs: func(tensor string, ids *manifest.IDs, keep []int) ([]byte, error) {
				if tensor != table || !bytes.Equal(ids.Table, was) || !slices.Equal(keep, modeltest.MoEKeep[2]) {
					t.Errorf("%s: asked for %s with %v", name, tensor, keep)
				}
				return is, test.err
			}})
		var want []Finding
		if test.want != "" {
			want = []Finding{finding(KindExperts, "", table, manifest.NoExpert, test.want)}
		}
		checkFindings(t, findings, want)
		for _, p := range proof.Tensors {
			if p.Name == table && (p.As == ProvenIDs) != (want == nil) {
				t.Errorf("%s: got %+v", name, p)
			}
		}
	}
}

func TestProveWantsWhatKeysMustSay(t *testing.T) {
	source := pinContents(t, modeltest.MoE(), gguf.Split{}, modeltest.MoESlabs(modeltest.MoEExperts))
	c := modeltest.PrunedMoE()
	want := gguf.TextValue(source.WeightsDigest.String())
	may := func(pair manifest.Pair) (*gguf.Value, bool) {
		if pair.Key == "reap.source_weights_digest" {
			return &want, true
		}
		return mayAdd(pair)
	}
	for text, findings := range map[string][]Finding{
		source.WeightsDigest.String(): nil,
		"blake3:" + hexA:              {finding(KindMetadata, "", "", manifest.NoExpert, `key "reap.source_weights_digest" (str) was added and does not fit the source's pin: want `+source.WeightsDigest.String())},
	} {
		c.Metadata.Set("reap.source_weights_digest", gguf.TextValue(text))
		_, got := Prove(pinContents(t, c, gguf.Split{}, modeltest.MoESlabs(4)), source, ProveOptions{MayChange: may})
		checkFindings(t, got, findings)
	}
}

// TestProveOfAPinWithoutSlabs cannot follow experts.
func TestProveOfAPinWithoutSlabs(t *testing.T) {
	source := pinContents(t, modeltest.MoE(), gguf.Split{}, nil)
	release := pinContents(t, modeltest.PrunedMoE(), gguf.Split{}, nil)
	proof, findings := Prove(release, source, ProveOptions{MayChange: mayAdd})
	if len(findings) != 15+1 || !strings.Contains(findings[0].What, "its pin has no digests of its experts") || proof.Proven != 336*2+3*96 {
		t.Errorf("got %d findings, %+v", len(findings), proof)
	}
}

// noisyPin returns a pin with experts in so many layers whose digests are all random.
func noisyPin(rng *rand.Rand, layers, experts int) *manifest.Pin {
	noise := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		return b
	}
	pin := &manifest.Pin{}
	for l := range layers {
		for _, name := range []string{"ffn_gate_exps", "ffn_up_exps", "ffn_down_exps", "ffn_gate_inp"} {
			slabs := &manifest.Slabs{Axis: 2, Count: experts, BLAKE3: noise(32 * experts)}
			pin.Tensors = append(pin.Tensors, manifest.Tensor{Name: fmt.Sprintf("blk.%d.%s.weight", l, name), Type: "I8", Shape: []uint64{64, 2, uint64(experts)},
				Size: 128 * int64(experts), BLAKE3: manifest.Sum(noise(32)), Slabs: slabs})
		}
		bias := &manifest.Slabs{Count: experts, Bytes: noise(4 * experts)}
		pin.Tensors = append(pin.Tensors, manifest.Tensor{Name: fmt.Sprintf("blk.%d.exp_probs_b.bias", l), Type: "F32", Shape: []uint64{uint64(experts)},
			Size: 4 * int64(experts), BLAKE3: manifest.Sum(noise(32)), Slabs: bias})
	}
	return pin
}

// TestProveOfAnotherModel is bounded, and proves nothing.
func TestProveOfAnotherModel(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	a, b := noisyPin(rng, 3, 512), noisyPin(rng, 4, 896)
	proof, findings := Prove(a, b, ProveOptions{Keep: map[int][]int{1: make([]int, 512)}})
	if proof.Proven != 0 || len(findings) > 20 || len(findings) == 0 {
		t.Errorf("%d bytes are proven, %d findings", proof.Proven, len(findings))
	}
}
