package stage

import (
	"slices"
	"testing"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
)

// testExperts is the number of slabs of the expert tensors in testModel.
const testExperts = 6

// testSlabs says which tensors of testModel carry slabs.
func testSlabs(name string) int {
	switch name {
	case "blk.1.ffn_up_exps.weight", "blk.1.ffn_gate_inp.weight", "blk.1.exp_probs_b.bias":
		return testExperts
	}
	return 0
}

// testModel is a small model: tensors of several types, sizes that need padding, an empty
// one, and three with a slab for each expert.
func testModel(seed uint64) gguftest.Spec {
	md := gguf.NewMetadata()
	md.Set("general.architecture", gguf.TextValue("test"))
	md.Set("test.expert_count", gguf.Uint32Value(testExperts))
	md.Set("tokenizer.ggml.model", gguf.TextValue("gpt2"))
	md.Set("tokenizer.ggml.tokens", gguf.TextsValue("a", "b", "\xff"))
	fill := gguftest.Fill{Spread: 1}
	return gguftest.Spec{Name: "m", Seed: seed, Metadata: md, Tensors: []gguftest.Tensor{
		{Name: "token_embd.weight", Type: gguf.F16, Shape: []uint64{33, 7}, Fill: fill},
		{Name: "blk.0.attn_norm.weight", Type: gguf.F32, Shape: []uint64{33}, Fill: fill},
		{Name: "blk.0.scale", Type: gguf.F32, Fill: fill},
		{Name: "blk.0.empty", Type: gguf.F32, Shape: []uint64{0}},
		{Name: "blk.1.ffn_gate_inp.weight", Type: gguf.F32, Shape: []uint64{33, testExperts}, Fill: fill},
		{Name: "blk.1.exp_probs_b.bias", Type: gguf.F32, Shape: []uint64{testExperts}, Fill: fill},
		{Name: "blk.1.ffn_up_exps.weight", Type: gguf.Q8_0, Shape: []uint64{64, 50, testExperts}, Fill: fill},
		{Name: "output.weight", Type: gguf.Q4_0, Shape: []uint64{32, 101}, Fill: fill},
	}}
}

// testLayout cuts a model into so many shards; edit, unless nil, changes what it consists
// of.
func testLayout(t testing.TB, model gguftest.Spec, shards int, edit func(c *gguf.Contents)) *gguf.Layout {
	t.Helper()
	c, err := model.Contents()
	if err != nil {
		t.Fatal(err)
	}
	if edit != nil {
		edit(&c)
	}
	layout, err := gguf.NewLayout(c, gguf.Split{Shards: shards})
	if err != nil {
		t.Fatal(err)
	}
	return layout
}

// viewNamed returns the view of that name to change it.
func viewNamed(c *gguf.Contents, name string) *gguf.View {
	i := slices.IndexFunc(c.Views, func(v gguf.View) bool { return v.Name == name })
	return &c.Views[i]
}
