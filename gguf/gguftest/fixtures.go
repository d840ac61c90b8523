package gguftest

import (
	"path/filepath"

	"ggufreap/gguf"
)

// MixedExperts is the number of slabs of the tensors for which [MixedSlabs] is not 0.
const MixedExperts = 6

// Mixed is a small model, of no architecture that exists: tensors of several types, sizes
// that need padding, an empty one, and three with a slab for each expert. Its vocabulary
// has a token that is not UTF-8.
func Mixed(seed uint64) Spec {
	md := gguf.NewMetadata()
	md.Set("general.architecture", gguf.TextValue("test"))
	md.Set("test.expert_count", gguf.Uint32Value(MixedExperts))
	md.Set("tokenizer.ggml.model", gguf.TextValue("gpt2"))
	md.Set("tokenizer.ggml.tokens", gguf.TextsValue("a", "b", "\xff"))
	fill := Fill{Spread: 1}
	return Spec{Name: "m", Seed: seed, Metadata: md, Tensors: []Tensor{
		{Name: "token_embd.weight", Type: gguf.F16, Shape: []uint64{33, 7}, Fill: fill},
		{Name: "blk.0.attn_norm.weight", Type: gguf.F32, Shape: []uint64{33}, Fill: fill},
		{Name: "blk.0.scale", Type: gguf.F32, Fill: fill},
		{Name: "blk.0.empty", Type: gguf.F32, Shape: []uint64{0}},
		{Name: "blk.1.ffn_gate_inp.weight", Type: gguf.F32, Shape: []uint64{33, MixedExperts}, Fill: fill},
		{Name: "blk.1.exp_probs_b.bias", Type: gguf.F32, Shape: []uint64{MixedExperts}, Fill: fill},
		{Name: "blk.1.ffn_up_exps.weight", Type: gguf.Q8_0, Shape: []uint64{64, 50, MixedExperts}, Fill: fill},
		{Name: "output.weight", Type: gguf.Q4_0, Shape: []uint64{32, 101}, Fill: fill},
	}}
}

// MixedSlabs returns the number of slabs that a tensor of [Mixed] carries.
func MixedSlabs(tensor string) int {
	switch tensor {
	case "blk.1.ffn_up_exps.weight", "blk.1.ffn_gate_inp.weight", "blk.1.exp_probs_b.bias":
		return MixedExperts
	}
	return 0
}

const timedExperts = 32

// Timed is a model of 90 MB for benchmarks: experts with the row width of the real
// Kimi-K3.
func Timed() Spec {
	return K3(K3Options{Layers: 5, Experts: timedExperts, Used: 4, Hidden: 512, Latent: 3584, Width: 256, GateUp: gguf.IQ1_S})
}

// TimedSlabs returns the number of slabs that a projection of [Timed] carries.
func TimedSlabs(tensor string) int {
	if routed, _ := filepath.Match("blk.*.ffn_*_exps.weight", tensor); routed {
		return timedExperts
	}
	return 0
}
