package gguftest

import (
	"fmt"
	"math"

	"ggufreap/gguf"
)

// K3Shards is the number of shards that the K3-shaped fixture has on disk.
const K3Shards = 9

// K3Options vary the K3-shaped fixture. A zero field takes the fixture's value.
type K3Options struct {
	Name    string // "K3"
	Seed    uint64 // 1
	Layers  int    // 5: the first is dense, every fourth and the last have MLA, the others KDA; at least 2
	Experts int    // 896
	Used    int    // 16
	Hidden  int    // 64
	Latent  int    // 64: the width of an expert's input and output
	Width   int    // 32: the inner width of an expert
	Heads   int    // 2: attention heads

	GateUp gguf.Type // Q8_0: type of the routed experts' gate and up projections
	Down   gguf.Type // GateUp: type of their down projection
}

// K3 describes a small model of the kimi-k3 architecture that llama.cpp loads and runs: 896
// routed experts of which 16 are used, two shared experts, latent experts in a block type,
// KDA and MLA layers, a selection bias, a small byte-level vocabulary, and metadata of
// every value type. Router, selection bias and projections of every layer show in its
// logits.
func K3(o K3Options) Spec {
	k := k3{
		name: orElse(o.Name, "K3"), seed: orElse(o.Seed, 1),
		layers: orElse(o.Layers, 5), experts: orElse(o.Experts, 896), used: orElse(o.Used, 16), shared: 2,
		hidden: orElse(o.Hidden, 64), latent: orElse(o.Latent, 64), width: orElse(o.Width, 32), dense: 96,
		heads: orElse(o.Heads, 2), headDim: 32, qRank: 64, kvRank: 32, nope: 32, rope: 16, valueDim: 32, resBlock: 2,
		embedding: gguf.F16, matrix: gguf.Q8_0, gateUp: orElse(o.GateUp, gguf.Q8_0),
		context: 4096, vocab: smallVocab,
	}
	k.down = orElse(o.Down, k.gateUp)
	spec := k.spec()
	addVocabulary(spec.Metadata)
	addOddValues(spec.Metadata)
	return spec
}

// K3Real describes a model with the dimensions of the real Kimi-K3: 93 layers, 896 experts,
// hidden width 7168, latent width 3584, 2,573 tensors. The real expert width is 3072 with
// two shared experts; a published variant has width 1536 with four shared experts of that
// width, so that the shared part stays as it is. Its 330,160,710,016 bytes of data are
// those of IQ1_S experts with F16 for embedding and output and Q8_0 for other matrices,
// which is the mix here. Write it sparse.
func K3Real(width int, experts gguf.Type) Spec {
	k := k3{
		name: "Kimi-K3", seed: 1,
		layers: 93, experts: 896, used: 16, shared: 6144 / width,
		hidden: 7168, latent: 3584, width: width, dense: 33792,
		heads: 96, headDim: 128, qRank: 1536, kvRank: 512, nope: 128, rope: 64, valueDim: 128, resBlock: 12,
		embedding: gguf.F16, matrix: gguf.Q8_0, gateUp: experts, down: experts,
		context: 1 << 20, vocab: 163840,
	}
	spec := k.spec()
	spec.Metadata.Set("tokenizer.ggml.model", gguf.TextValue("no_vocab"))
	spec.Metadata.Set("kimi-k3.vocab_size", gguf.Uint32Value(uint32(k.vocab)))
	return spec
}

func orElse[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

// k3 holds the dimensions of a kimi-k3 model.
type k3 struct {
	name                            string
	seed                            uint64
	layers                          int
	experts, used, shared           int
	hidden, latent, width           int
	dense                           int // inner width of a dense layer
	heads, headDim                  int // of KDA
	qRank, kvRank                   int // of MLA, as the next three
	nope, rope, valueDim            int
	resBlock                        int
	embedding, matrix, gateUp, down gguf.Type
	context, vocab                  int
}

// mla reports whether a layer has MLA; the others have KDA.
func (k k3) mla(layer int) bool { return layer%4 == 3 || layer == k.layers-1 }

func (k k3) spec() Spec {
	s := Spec{Name: k.name, Seed: k.seed, Metadata: k.metadata()}
	add := func(prefix string, tensors []Tensor) {
		for _, t := range tensors {
			t.Name = prefix + t.Name
			s.Tensors = append(s.Tensors, t)
		}
	}
	add("", k.outer())
	for i := range k.layers {
		prefix := fmt.Sprintf("blk.%d.", i)
		add(prefix, k.norms())
		if k.mla(i) {
			add(prefix, k.mlaTensors())
		} else {
			add(prefix, k.kdaTensors())
		}
		if i == 0 {
			add(prefix, k.denseTensors())
		} else {
			add(prefix, k.moeTensors())
		}
	}
	return s
}

func (k k3) metadata() *gguf.Metadata {
	md := gguf.NewMetadata()
	md.Set("general.architecture", gguf.TextValue("kimi-k3"))
	md.Set("general.type", gguf.TextValue("model"))
	md.Set("general.name", gguf.TextValue(k.name))
	u32 := func(key string, n int) { md.Set("kimi-k3."+key, gguf.Uint32Value(uint32(n))) }
	f32 := func(key string, f float32) { md.Set("kimi-k3."+key, gguf.Float32Value(f)) }
	u32("context_length", k.context)
	u32("embedding_length", k.hidden)
	u32("block_count", k.layers)
	u32("feed_forward_length", k.dense)
	u32("attention.head_count", k.heads)
	kv := make([]int32, k.layers)
	for i := range kv {
		if k.mla(i) {
			kv[i] = 1
		}
	}
	md.Set("kimi-k3.attention.head_count_kv", gguf.Int32sValue(kv...)) // 0 marks a KDA layer
	f32("attention.layer_norm_rms_epsilon", 1e-5)
	u32("attention.q_lora_rank", k.qRank)
	u32("attention.kv_lora_rank", k.kvRank)
	u32("attention.key_length", k.kvRank+k.rope)
	u32("attention.value_length", k.kvRank)
	u32("attention.key_length_mla", k.nope+k.rope)
	u32("attention.value_length_mla", k.valueDim)
	u32("rope.dimension_count", k.rope)
	u32("ssm.conv_kernel", convKernel)
	u32("kda.head_dim", k.headDim)
	f32("kda.gate_lower_bound", -5)
	u32("expert_count", k.experts)
	u32("expert_used_count", k.used)
	u32("expert_feed_forward_length", k.width)
	u32("expert_shared_count", k.shared)
	u32("leading_dense_block_count", 1)
	u32("expert_latent_length", k.latent)
	u32("expert_gating_func", 2) // sigmoid
	md.Set("kimi-k3.expert_weights_norm", gguf.BoolValue(true))
	f32("expert_weights_scale", 1)
	f32("activation.situ_beta", 4)
	f32("activation.situ_linear_beta", 25)
	u32("attn_res.block_size", k.resBlock)
	md.Set("general.quantization_version", gguf.Uint32Value(2))
	return md
}

const convKernel = 4

// outer lists the tensors outside of layers.
func (k k3) outer() []Tensor {
	return []Tensor{
		{Name: "token_embd.weight", Type: k.embedding, Shape: shape(k.hidden, k.vocab), Fill: Fill{Spread: 1}},
		norm("output_norm.weight", k.hidden),
		weight("output.weight", k.embedding, k.hidden, k.vocab),
		weight("output_res_score.weight", gguf.F32, k.hidden),
	}
}

// norms lists what both kinds of attention and of feed-forward have.
func (k k3) norms() []Tensor {
	return []Tensor{
		norm("attn_norm.weight", k.hidden),
		norm("ffn_norm.weight", k.hidden),
		weight("attn_res_score.weight", gguf.F32, k.hidden),
		weight("ffn_res_score.weight", gguf.F32, k.hidden),
	}
}

func (k k3) kdaTensors() []Tensor {
	inner := k.heads * k.headDim
	conv := func(name string) Tensor { // with the outer dim that the converter writes
		return Tensor{Name: name, Type: gguf.F32, Shape: shape(convKernel, 1, inner, 1), Fill: Fill{Spread: 0.5}}
	}
	return []Tensor{
		weight("attn_q.weight", k.matrix, k.hidden, inner),
		weight("attn_k.weight", k.matrix, k.hidden, inner),
		weight("attn_v.weight", k.matrix, k.hidden, inner),
		conv("ssm_conv1d_q.weight"),
		conv("ssm_conv1d_k.weight"),
		conv("ssm_conv1d_v.weight"),
		weight("ssm_f_a.weight", k.matrix, k.hidden, k.headDim),
		weight("ssm_f_b.weight", k.matrix, k.headDim, inner),
		weight("ssm_beta.weight", k.matrix, k.hidden, k.heads),
		{Name: "ssm_a", Type: gguf.F32, Shape: shape(k.heads), Fill: Fill{Mean: -2, Spread: 1.5}}, // -exp(A)
		{Name: "ssm_dt.bias", Type: gguf.F32, Shape: shape(inner), Fill: Fill{Spread: 1}},
		weight("ssm_g.weight", k.matrix, k.hidden, inner),
		norm("ssm_norm.weight", k.headDim),
		weight("attn_output.weight", k.matrix, inner, k.hidden),
	}
}

func (k k3) mlaTensors() []Tensor {
	return []Tensor{
		weight("attn_q_a.weight", k.matrix, k.hidden, k.qRank),
		norm("attn_q_a_norm.weight", k.qRank),
		weight("attn_q_b.weight", k.matrix, k.qRank, k.heads*(k.nope+k.rope)),
		weight("attn_kv_a_mqa.weight", k.matrix, k.hidden, k.kvRank+k.rope),
		norm("attn_kv_a_norm.weight", k.kvRank),
		weight("attn_k_b.weight", k.matrix, k.nope, k.kvRank, k.heads),
		weight("attn_v_b.weight", k.matrix, k.kvRank, k.valueDim, k.heads),
		weight("attn_gate.weight", k.matrix, k.hidden, k.heads*k.valueDim),
		weight("attn_output.weight", k.matrix, k.heads*k.valueDim, k.hidden),
	}
}

func (k k3) denseTensors() []Tensor {
	return []Tensor{
		weight("ffn_gate.weight", k.matrix, k.hidden, k.dense),
		weight("ffn_up.weight", k.matrix, k.hidden, k.dense),
		weight("ffn_down.weight", k.matrix, k.dense, k.hidden),
	}
}

func (k k3) moeTensors() []Tensor {
	shared := k.width * k.shared
	return []Tensor{
		uneven(weight("ffn_gate_inp.weight", gguf.F32, k.hidden, k.experts)),
		{Name: "exp_probs_b.bias", Type: gguf.F32, Shape: shape(k.experts), Fill: Fill{Spread: 0.1}},
		uneven(weight("ffn_gate_exps.weight", k.gateUp, k.latent, k.width, k.experts)),
		uneven(weight("ffn_up_exps.weight", k.gateUp, k.latent, k.width, k.experts)),
		uneven(weight("ffn_down_exps.weight", k.down, k.width, k.latent, k.experts)),
		weight("ffn_routed_down.weight", k.matrix, k.hidden, k.latent),
		norm("ffn_routed_norm.weight", k.latent),
		weight("ffn_routed_up.weight", k.matrix, k.latent, k.hidden),
		weight("ffn_gate_shexp.weight", k.matrix, k.hidden, shared),
		weight("ffn_up_shexp.weight", k.matrix, k.hidden, shared),
		weight("ffn_down_shexp.weight", k.matrix, shared, k.hidden),
	}
}

// shape makes a shape from dims, innermost first.
func shape(dims ...int) []uint64 {
	s := make([]uint64, len(dims))
	for i, d := range dims {
		s[i] = uint64(d)
	}
	return s
}

// weight is a matrix, or a stack of them, that keeps the variance of what it multiplies:
// values are even with a variance of one over the row length.
func weight(name string, t gguf.Type, dims ...int) Tensor {
	return Tensor{Name: name, Type: t, Shape: shape(dims...), Fill: Fill{Spread: float32(math.Sqrt(3 / float64(dims[0])))}}
}

// norm is the weight of a normalisation: near one.
func norm(name string, n int) Tensor {
	return Tensor{Name: name, Type: gguf.F32, Shape: shape(n), Fill: Fill{Mean: 1, Spread: 0.1}}
}

// uneven makes the tensor's slabs differ in weight.
func uneven(t Tensor) Tensor {
	t.Fill.Uneven = true
	return t
}
