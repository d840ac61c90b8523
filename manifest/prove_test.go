package manifest

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ggufreap/gguf"
)

// moeExperts is the number of experts of moeContents.
const moeExperts = 9

// moeSlabbed are the tensors of a block of moeContents that carry slabs, innermost dims
// first and without the expert dim.
var moeSlabbed = []struct {
	name  string
	typ   gguf.Type
	shape []uint64
}{
	{"ffn_gate_inp.weight", gguf.F32, []uint64{24}},
	{"exp_probs_b.bias", gguf.F32, nil},
	{"ffn_gate_exps.weight", gguf.Q8_0, []uint64{32, 5}},
	{"ffn_up_exps.weight", gguf.Q8_0, []uint64{32, 5}},
	{"ffn_down_exps.weight", gguf.Q4_0, []uint64{32, 3}},
}

// moeSlabs says how many slabs the tensors of a model of n experts carry.
func moeSlabs(n int) SlabCount {
	return func(tensor string) int {
		for _, t := range moeSlabbed {
			if strings.HasSuffix(tensor, "."+t.name) {
				return n
			}
		}
		return 0
	}
}

// moeContents returns a model with experts in blocks 1, 2 and 10.
func moeContents() gguf.Contents {
	md := gguf.NewMetadata()
	md.Set("general.architecture", gguf.TextValue("moe"))
	md.Set("moe.expert_count", gguf.Uint32Value(moeExperts))
	md.Set("tokenizer.chat_template", gguf.TextValue("{{ x }}"))
	rng := rand.New(rand.NewPCG(3, 4))
	c := gguf.Contents{Version: 3, Metadata: md}
	add := func(name string, typ gguf.Type, shape ...uint64) {
		size, err := gguf.TypeSize(typ, shape)
		if err != nil {
			panic(err)
		}
		data := make([]byte, size)
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		c.Views = append(c.Views, dataView(name, typ, shape, data))
	}
	add("token_embd.weight", gguf.F16, 24, 7)
	add("blk.0.ffn_up.weight", gguf.F16, 24, 7)
	for _, block := range []int{1, 2, 10} {
		add(fmt.Sprintf("blk.%d.attn_norm.weight", block), gguf.F32, 24)
		for _, t := range moeSlabbed {
			add(fmt.Sprintf("blk.%d.%s", block, t.name), t.typ, slices.Concat(t.shape, []uint64{moeExperts})...)
		}
	}
	return c
}

func dataView(name string, typ gguf.Type, shape []uint64, data []byte) gguf.View {
	v := gguf.View{Name: name, Type: typ, Shape: shape}
	v.Append(gguf.Extent{Source: bytes.NewReader(data), Length: int64(len(data))})
	return v
}

// slabOf returns slab i of n of a tensor.
func slabOf(c gguf.Contents, tensor string, n, i int) []byte {
	data := viewData(*viewNamed(c, tensor))
	return data[len(data)/n*i : len(data)/n*(i+1)]
}

var moeKeep = map[int][]int{1: {0, 2, 3, 7}, 2: {8, 1, 5, 4}, 10: {4, 5, 6, 7}}

// pruned returns what is left of moeContents: the experts of moeKeep.
func pruned() gguf.Contents {
	source := moeContents()
	c := moeContents()
	c.Metadata.Set("moe.expert_count", gguf.Uint32Value(4))
	c.Metadata.Set("reap.criterion", gguf.TextValue("test"))
	for i, v := range c.Views {
		if moeSlabs(moeExperts)(v.Name) == 0 {
			continue
		}
		var block int
		fmt.Sscanf(v.Name, "blk.%d.", &block)
		var data []byte
		for _, id := range moeKeep[block] {
			data = append(data, slabOf(source, v.Name, moeExperts, id)...)
		}
		c.Views[i] = dataView(v.Name, v.Type, slices.Concat(v.Shape[:len(v.Shape)-1], []uint64{4}), data)
	}
	return c
}

// mayAdd allows the key that pruned adds.
func mayAdd(key string) (*gguf.Value, bool) { return nil, key == "reap.criterion" }

func pinContents(t *testing.T, c gguf.Contents, s gguf.Split, slabs SlabCount) *Pin {
	t.Helper()
	return mustPin(t, newModel(t, c, s), BuildOptions{Slabs: slabs})
}

func TestProve(t *testing.T) {
	source := pinContents(t, moeContents(), gguf.Split{Shards: 2}, moeSlabs(moeExperts))
	release := pinContents(t, pruned(), gguf.Split{Shards: 3}, moeSlabs(4))
	for name, keep := range map[string]map[int][]int{"with the plan": moeKeep, "without": nil} {
		proof, findings := Prove(release, source, ProveOptions{Keep: keep, MayChange: mayAdd})
		checkFindings(t, findings, nil)
		if proof.Proven != release.Artifact.TensorBytes || proof.Unproven != 0 || proof.Experts != moeExperts || proof.WeightsDigest != source.WeightsDigest {
			t.Errorf("%s: proof is %+v", name, proof)
		}
		for _, b := range proof.Blocks {
			var block int
			fmt.Sscanf(b.Block, "blk.%d", &block)
			if !slices.Equal(b.Keep, moeKeep[block]) {
				t.Errorf("%s: %s keeps %v, want %v", name, b.Block, b.Keep, moeKeep[block])
			}
		}
		if len(proof.Blocks) != len(moeKeep) || len(proof.Tensors) != len(release.Tensors) {
			t.Errorf("%s: %d blocks and %d tensors", name, len(proof.Blocks), len(proof.Tensors))
		}
		for _, p := range proof.Tensors {
			want := ProvenIdentical
			if moeSlabs(1)(p.Name) > 0 {
				want = ProvenSlabs
			}
			if p.As != want || p.Proven != p.Size {
				t.Errorf("%s: %+v, want all of it as %s", name, p, want)
			}
		}
		if want := []MetadataProof{{"moe.expert_count", Changed, true}, {"reap.criterion", Added, true}}; !slices.Equal(proof.Metadata, want) {
			t.Errorf("%s: metadata %+v, want %+v", name, proof.Metadata, want)
		}
	}
	proof, findings := Prove(source, source, ProveOptions{})
	checkFindings(t, findings, nil)
	if proof.Unproven != 0 || len(proof.Blocks) != 3 || proof.Blocks[0].Keep[8] != 8 {
		t.Errorf("the source of itself: %+v", proof)
	}
}

// putSlab replaces slab i of n of a tensor.
func putSlab(c gguf.Contents, tensor string, n, i int, slab []byte) {
	v := viewNamed(c, tensor)
	data := viewData(*v)
	copy(data[len(data)/n*i:], slab)
	*v = dataView(v.Name, v.Type, v.Shape, data)
}

func swapSlabs(c gguf.Contents, tensor string, i, j int) {
	a, b := bytes.Clone(slabOf(c, tensor, 4, i)), bytes.Clone(slabOf(c, tensor, 4, j))
	putSlab(c, tensor, 4, i, b)
	putSlab(c, tensor, 4, j, a)
}

// TestProveNamesEveryForgery makes releases that are sound by themselves, and wrong.
func TestProveNamesEveryForgery(t *testing.T) {
	source := pinContents(t, moeContents(), gguf.Split{}, moeSlabs(moeExperts))
	up, router, bias := "blk.2.ffn_up_exps.weight", "blk.1.ffn_gate_inp.weight", "blk.10.exp_probs_b.bias"
	for name, test := range map[string]struct {
		edit     func(c *gguf.Contents)
		unproven int64
		want     []Finding
	}{
		"two experts' up slabs swapped": {func(c *gguf.Contents) { swapSlabs(*c, up, 0, 2) }, 2 * 170, []Finding{
			{KindExperts, "F", up, 0, "is the source's expert 5, other tensors of the block have expert 8 there"},
			{KindExperts, "F", up, 2, "is the source's expert 8, other tensors of the block have expert 5 there"}}},
		"two router rows swapped": {func(c *gguf.Contents) { swapSlabs(*c, router, 1, 3) }, 2 * 96, []Finding{
			{KindExperts, "F", router, 1, "is the source's expert 7, other tensors of the block have expert 2 there"},
			{KindExperts, "F", router, 3, "is the source's expert 2, other tensors of the block have expert 7 there"}}},
		"two biases swapped": {func(c *gguf.Contents) { swapSlabs(*c, bias, 0, 1) }, 2 * 4, []Finding{
			{KindExperts, "F", bias, 0, "is the source's expert 5, other tensors of the block have expert 4 there"},
			{KindExperts, "F", bias, 1, "is the source's expert 4, other tensors of the block have expert 5 there"}}},
		"a dropped expert's slab": {func(c *gguf.Contents) { putSlab(*c, up, 4, 3, slabOf(moeContents(), up, moeExperts, 0)) }, 170, []Finding{
			{KindExperts, "F", up, 3, "is the source's expert 0, other tensors of the block have expert 4 there"}}},
		"a slab of another layer": {func(c *gguf.Contents) {
			putSlab(*c, up, 4, 1, slabOf(moeContents(), "blk.10.ffn_up_exps.weight", moeExperts, 6))
		}, 170, []Finding{{KindDigest, "F", up, 1, `is expert 6 of the source's tensor "blk.10.ffn_up_exps.weight"`}}},
		"a slab of another projection": {func(c *gguf.Contents) {
			putSlab(*c, up, 4, 1, slabOf(moeContents(), "blk.2.ffn_gate_exps.weight", moeExperts, 1))
		}, 170, []Finding{{KindDigest, "F", up, 1, `is expert 1 of the source's tensor "blk.2.ffn_gate_exps.weight"`}}},
		"a flipped byte": {func(c *gguf.Contents) { changedData(viewNamed(*c, up), 170*3+5) }, 170, []Finding{
			{KindDigest, "F", up, 3, "is no expert of the source"}}},
		"an expert twice": {func(c *gguf.Contents) {
			for _, slabbed := range moeSlabbed {
				tensor := "blk.2." + slabbed.name
				putSlab(*c, tensor, 4, 3, slabOf(*c, tensor, 4, 0))
			}
		}, 0, []Finding{{KindExperts, "F", "blk.2.ffn_gate_inp.weight", 3, "is the source's expert 8 of blk.2, which is there already"},
			{KindPlan, "F", "blk.2.ffn_gate_inp.weight", 3, "blk.2 is the source's expert 8, the plan says 4"}}},
		"a tensor dropped": {func(c *gguf.Contents) {
			c.Views = slices.DeleteFunc(c.Views, func(v gguf.View) bool { return v.Name == bias })
		}, 0, []Finding{{KindMissing, "F", bias, NoExpert, "is a tensor of the source, and not there"}}},
		"a tensor added": {func(c *gguf.Contents) {
			c.Views = append(c.Views, dataView("blk.1.extra", gguf.I8, []uint64{3}, []byte("abc")))
		}, 3, []Finding{{KindExtra, "F", "blk.1.extra", NoExpert, "is no tensor of the source"}}},
		"a tensor renamed": {func(c *gguf.Contents) { viewNamed(*c, "token_embd.weight").Name = "x" }, 336, []Finding{
			{KindMissing, "F", "token_embd.weight", NoExpert, "not there"}, {KindExtra, "F", "x", NoExpert, "no tensor of the source"}}},
		"a tensor changed": {func(c *gguf.Contents) { changedData(viewNamed(*c, "token_embd.weight"), 7) }, 336, []Finding{
			{KindDigest, "F", "token_embd.weight", NoExpert, "the source has"}}},
		"a tensor retyped": {func(c *gguf.Contents) {
			viewNamed(*c, "token_embd.weight").Type = gguf.BF16
		}, 336, []Finding{
			{KindStructure, "F", "token_embd.weight", NoExpert, "type is BF16, the source has F16"}}},
		"a tensor reshaped": {func(c *gguf.Contents) { viewNamed(*c, "token_embd.weight").Shape = []uint64{7, 24} }, 336, []Finding{
			{KindStructure, "F", "token_embd.weight", NoExpert, "shape is [7 24], the source has [24 7]"}}},
		"an expert less in one tensor": {func(c *gguf.Contents) {
			v := viewNamed(*c, up)
			*v = dataView(up, v.Type, []uint64{32, 5, 3}, viewData(*v)[:170*3])
		}, 4*(96+4+170+54) + 3*170, []Finding{
			{KindStructure, "F", up, NoExpert, `has 3 experts, tensor "blk.2.ffn_gate_inp.weight" of the block has 4`},
			{KindPlan, "F", "blk.2.ffn_gate_inp.weight", NoExpert, "blk.2 has no experts to compare, the plan keeps 4"}}},
		"an expert less in one block": {func(c *gguf.Contents) {
			for _, slabbed := range moeSlabbed {
				v := viewNamed(*c, "blk.2."+slabbed.name)
				data := viewData(*v)
				*v = dataView(v.Name, v.Type, slices.Concat(slabbed.shape, []uint64{3}), data[:len(data)/4*3])
			}
		}, 0, []Finding{
			{KindStructure, "F", "blk.2.ffn_gate_inp.weight", NoExpert, `has 3 experts, blk.1 has 4`},
			{KindPlan, "F", "blk.2.ffn_gate_inp.weight", NoExpert, "blk.2 has 3 experts, the plan keeps 4"}}},
		"two blocks swapped": {func(c *gguf.Contents) {
			for _, slabbed := range moeSlabbed {
				a, b := viewNamed(*c, "blk.1."+slabbed.name), viewNamed(*c, "blk.2."+slabbed.name)
				a.Extents, b.Extents = b.Extents, a.Extents
			}
		}, 2 * 4 * (96 + 4 + 170 + 170 + 54), nil},
		"the experts of another plan": {func(c *gguf.Contents) {
			for _, slabbed := range moeSlabbed {
				tensor := "blk.2." + slabbed.name
				putSlab(*c, tensor, 4, 3, slabOf(moeContents(), tensor, moeExperts, 0))
			}
		}, 0, []Finding{{KindPlan, "F", "blk.2.ffn_gate_inp.weight", 3, "blk.2 is the source's expert 0, the plan says 4"}}},
		"a chat template edited": {func(c *gguf.Contents) { c.Metadata.Set("tokenizer.chat_template", gguf.TextValue("evil")) }, 0, []Finding{
			{KindMetadata, "", "", NoExpert, `key "tokenizer.chat_template" has another value`}}},
		"a key added": {func(c *gguf.Contents) { c.Metadata.Set("x", gguf.Uint8Value(1)) }, 0, []Finding{
			{KindMetadata, "", "", NoExpert, `key "x" (u8) was added`}}},
		"a key removed": {func(c *gguf.Contents) {
			c.Metadata = c.Metadata.Without(func(key string) bool { return key == "tokenizer.chat_template" })
		}, 0, []Finding{{KindMetadata, "", "", NoExpert, `key "tokenizer.chat_template" (str) is missing`}}},
		"the count not changed": {func(c *gguf.Contents) { c.Metadata.Set("moe.expert_count", gguf.Uint32Value(moeExperts)) }, 0, []Finding{
			{KindMetadata, "", "", NoExpert, `key "moe.expert_count" is the source's, but 4 of 9 experts are there`}}},
		"another count": {func(c *gguf.Contents) { c.Metadata.Set("moe.expert_count", gguf.Uint32Value(5)) }, 0, []Finding{
			{KindMetadata, "", "", NoExpert, `key "moe.expert_count" has another value, and not the one`}}},
		"the count retyped": {func(c *gguf.Contents) { c.Metadata.Set("moe.expert_count", gguf.Uint64Value(4)) }, 0, []Finding{
			{KindMetadata, "", "", NoExpert, `key "moe.expert_count" has type u64, was u32`}}},
	} {
		t.Run(name, func(t *testing.T) {
			c := pruned()
			test.edit(&c)
			m := newModel(t, c, gguf.Split{})
			o := BuildOptions{}
			o.follow(m, source)
			release := mustPin(t, m, o)
			proof, findings := Prove(release, source, ProveOptions{Keep: moeKeep, MayChange: mayAdd, File: func(tensor string) string {
				if tensor == "" {
					return ""
				}
				return "F"
			}})
			if name == "two blocks swapped" {
				// Every slab of both blocks is named, with where it comes from.
				if len(findings) != 2*4*4+2*4 || !slices.ContainsFunc(findings, func(f Finding) bool {
					return f.Tensor == "blk.1.ffn_up_exps.weight" && f.Expert == 0 && f.What == `is expert 8 of the source's tensor "blk.2.ffn_up_exps.weight"`
				}) {
					t.Errorf("got %d findings %+v", len(findings), findings)
				}
			} else {
				checkFindings(t, findings, test.want)
			}
			if proof.Unproven != test.unproven || proof.Proven+proof.Unproven != release.Artifact.TensorBytes {
				t.Errorf("%d bytes are proven and %d are not, want %d", proof.Proven, proof.Unproven, test.unproven)
			}
		})
	}
}

// TestProveCannotTellEqualExpertsApart gives two experts the same bytes: either may be
// meant, and the plan settles it.
func TestProveCannotTellEqualExpertsApart(t *testing.T) {
	twins := func(c gguf.Contents, n, i, j int) gguf.Contents {
		for _, slabbed := range moeSlabbed {
			tensor := "blk.1." + slabbed.name
			putSlab(c, tensor, n, j, bytes.Clone(slabOf(c, tensor, n, i)))
		}
		return c
	}
	source := pinContents(t, twins(moeContents(), moeExperts, 2, 8), gguf.Split{}, moeSlabs(moeExperts))
	release := pinContents(t, pruned(), gguf.Split{}, moeSlabs(4)) // 0, 2, 3, 7
	for _, id := range []int{2, 8} {
		keep := maps.Clone(moeKeep)
		keep[1] = []int{0, id, 3, 7}
		proof, findings := Prove(release, source, ProveOptions{Keep: keep, MayChange: mayAdd})
		checkFindings(t, findings, nil)
		if !slices.Equal(proof.Blocks[0].Keep, keep[1]) {
			t.Errorf("got %v, want %v", proof.Blocks[0].Keep, keep[1])
		}
	}
	proof, findings := Prove(release, source, ProveOptions{MayChange: mayAdd})
	checkFindings(t, findings, nil)
	if !slices.Equal(proof.Blocks[0].Keep, []int{0, 2, 3, 7}) {
		t.Errorf("got %v", proof.Blocks[0].Keep)
	}
}

// TestProveTablesOfIDs takes a tensor for a table of expert ids: its values must change,
// and under the old numbers be those of the source.
func TestProveTablesOfIDs(t *testing.T) {
	const table = "blk.2.attn_norm.weight"
	source := pinContents(t, moeContents(), gguf.Split{}, moeSlabs(moeExperts))
	was := byName(source)[table].BLAKE3
	changed := pruned()
	changedData(viewNamed(changed, table), 0)
	for name, test := range map[string]struct {
		contents gguf.Contents
		old      func(string, []int) (Sum, error)
		proven   string
		findings []Finding
	}{
		"new numbers":     {changed, func(string, []int) (Sum, error) { return was, nil }, ProvenIDs, nil},
		"replaced":        {changed, func(string, []int) (Sum, error) { return Sum{}, nil }, UnprovenOther, nil},
		"nobody can tell": {changed, nil, UnprovenOther, nil},
		"old numbers": {pruned(), func(string, []int) (Sum, error) { return Sum{}, nil }, UnprovenOther,
			[]Finding{{KindExperts, "", table, NoExpert, "still has the source's expert numbers"}}},
		"no numbers": {changed, func(string, []int) (Sum, error) { return Sum{}, errInjected }, UnprovenOther,
			[]Finding{{KindExperts, "", table, NoExpert, errInjected.Error()}}},
	} {
		release := pinContents(t, test.contents, gguf.Split{}, moeSlabs(4))
		old := test.old
		if old != nil {
			old = func(tensor string, keep []int) (Sum, error) {
				if tensor != table || !slices.Equal(keep, moeKeep[2]) {
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

func TestProveWantsWhatKeysMustSay(t *testing.T) {
	source := pinContents(t, moeContents(), gguf.Split{}, moeSlabs(moeExperts))
	c := pruned()
	want := gguf.TextValue(source.WeightsDigest.String())
	may := func(key string) (*gguf.Value, bool) {
		if key == "reap.source_weights_digest" {
			return &want, true
		}
		return mayAdd(key)
	}
	for text, findings := range map[string][]Finding{
		source.WeightsDigest.String(): nil,
		"blake3:" + hexA:              {{KindMetadata, "", "", NoExpert, `key "reap.source_weights_digest" (str) was added and does not fit the source's pin: want ` + source.WeightsDigest.String()}},
	} {
		c.Metadata.Set("reap.source_weights_digest", gguf.TextValue(text))
		_, got := Prove(pinContents(t, c, gguf.Split{}, moeSlabs(4)), source, ProveOptions{MayChange: may})
		checkFindings(t, got, findings)
	}
}

// TestProveOfAPinWithoutSlabs cannot follow experts.
func TestProveOfAPinWithoutSlabs(t *testing.T) {
	source := pinContents(t, moeContents(), gguf.Split{}, nil)
	release := pinContents(t, pruned(), gguf.Split{}, nil)
	proof, findings := Prove(release, source, ProveOptions{MayChange: mayAdd})
	if len(findings) != 15+1 || !strings.Contains(findings[0].What, "its pin has no slabs of it") || proof.Proven != 336*2+3*96 {
		t.Errorf("got %d findings, %+v", len(findings), proof)
	}
}

// TestProveOfAnotherModel is bounded, and proves nothing.
func TestProveOfAnotherModel(t *testing.T) {
	a, b := modelSizedPin(3, 512), modelSizedPin(4, 896)
	for i := range a.Tensors {
		for j := range a.Tensors[i].BLAKE3 {
			a.Tensors[i].BLAKE3[j] ^= 0x55
		}
		if s := a.Tensors[i].Slabs; s != nil {
			for j := range s.BLAKE3 {
				s.BLAKE3[j] ^= 0x55
			}
			for j := range s.Bytes {
				s.Bytes[j] ^= 0x55
			}
		}
	}
	proof, findings := Prove(a, b, ProveOptions{Keep: map[int][]int{1: make([]int, 512)}})
	if proof.Proven != 0 || len(findings) > 1000 || len(findings) < 100 {
		t.Errorf("%d bytes are proven, %d findings", proof.Proven, len(findings))
	}
}
