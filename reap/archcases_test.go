package reap_test

import (
	"fmt"
	"testing"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/reap"
	"ggufreap/reap/internal/moetest"
)

// An archCase is one kind of model and the way in which llama.cpp judges its pruning.
type archCase struct {
	arch    string
	variant string // what sets the case apart from others of the architecture
	options gguftest.ArchitectureOptions
	keys    map[string]gguf.Value          // other values under the architecture
	make    func(*testing.T) gguftest.Spec // in place of arch, options and keys

	// mask is the tensor by which the source is kept from choosing dropped experts; with
	// maskAdded the source has none and is given one.
	mask      reap.Role
	maskAdded bool
	// routing says how to compute layers again where nothing can mask the source.
	routing *routing

	softmax bool   // router weights begin as a softmax over all experts
	scaled  bool   // the engine reads the scales of the projections
	unread  bool   // the engine reads no routed tensor at all
	refused string // part of the reason why it is not pruned
}

// name is the case's row in the tables.
func (c archCase) name() string {
	if c.variant == "" {
		return c.arch
	}
	return c.arch + ", " + c.variant
}

func (c archCase) spec(t *testing.T) gguftest.Spec {
	t.Helper()
	if c.make != nil {
		return c.make(t)
	}
	spec, err := gguftest.Architecture(c.arch, c.narrow())
	if err != nil {
		t.Fatal(err)
	}
	for suffix, v := range c.keys {
		spec.Metadata.Set(spec.Metadata.ArchKey(suffix), v)
	}
	return spec
}

// narrow returns the options for experts as narrow as whole blocks of their type can be: what is
// judged is which expert is where.
func (c archCase) narrow() gguftest.ArchitectureOptions {
	info, _ := c.options.Projections.Info()
	c.options.Width = max(8, int(info.Elements))
	if info.Elements > 128 {
		c.options.Hidden = int(info.Elements)
	}
	return c.options
}

// held returns the case's model with its bytes, which are read many times, made once.
func (c archCase) held(t *testing.T) gguftest.Spec {
	t.Helper()
	spec := c.spec(t).Clone()
	for i := range spec.Tensors {
		data, err := spec.Bytes(spec.Tensors[i].Name)
		if err != nil {
			t.Fatal(err)
		}
		spec.Tensors[i].Data = data
	}
	return spec
}

// The routings of architectures whose source cannot be masked.
var (
	softmaxSelected = &routing{Form: moetest.Form{Renormalise: true, Activation: moetest.SwiGLU}}
	softmaxAll      = &routing{Form: moetest.Form{Activation: moetest.SwiGLU}}
)

// selectionBias is the mask of most architectures.
func selectionBias(arch string) archCase { return archCase{arch: arch, mask: reap.SelectionBias} }

func computedAgain(arch string, r *routing) archCase {
	return archCase{arch: arch, routing: r, softmax: !r.Sigmoid}
}

// with returns a variant of a case.
func (c archCase) with(variant string, o gguftest.ArchitectureOptions) archCase {
	c.variant, c.options = variant, o
	return c
}

func (c archCase) readsScales() archCase {
	c.scaled = true
	if c.routing != nil {
		r := *c.routing
		r.Scales = true
		c.routing = &r
	}
	return c
}

// archCases are all rows: each architecture of [gguftest.Architectures] once, then variants.
func archCases() []archCase {
	separate := gguftest.ArchitectureOptions{Separate: true}
	draft := gguftest.ArchitectureOptions{Draft: true}
	unbiased := selectionBias("deepseek2").with("no selection bias", gguftest.ArchitectureOptions{Unbiased: true})
	unbiased.maskAdded = true
	gptOSS := archCase{arch: "gpt-oss", mask: reap.RouterBias}
	qwen3moe := computedAgain("qwen3moe", softmaxSelected).readsScales()
	deepseek2, qwen35moe := selectionBias("deepseek2"), computedAgain("qwen35moe", softmaxSelected).readsScales()

	cases := []archCase{
		selectionBias("afmoe"),
		computedAgain("arctic", softmaxSelected),
		computedAgain("bailingmoe", softmaxAll),
		selectionBias("bailingmoe2"),
		selectionBias("bailingmoe3"),
		computedAgain("cohere2moe", &routing{Form: moetest.Form{Sigmoid: true, Activation: moetest.SwiGLU}}).readsScales(),
		computedAgain("dbrx", softmaxSelected),
		computedAgain("deepseek", softmaxAll),
		deepseek2,
		selectionBias("deepseek32").readsScales(),
		selectionBias("deepseek4"),
		selectionBias("dots1"),
		computedAgain("ernie4_5-moe", softmaxSelected), // its bias is added to probabilities, which pruning raises: masking chooses others
		selectionBias("exaone-moe"),
		computedAgain("gemma4", &routing{Form: moetest.Form{Renormalise: true, Activation: moetest.GeGLU}}).readsScales(),
		selectionBias("glm-dsa").readsScales(),
		selectionBias("glm4moe"),
		gptOSS,
		computedAgain("granite", softmaxSelected),
		computedAgain("granitemoe", softmaxSelected),
		computedAgain("granitehybrid", softmaxSelected),
		computedAgain("grok", &routing{Form: moetest.Form{Renormalise: true, Activation: moetest.GeGLU}}),
		{arch: "grovemoe", refused: "chunk experts"},
		computedAgain("hunyuan-moe", softmaxSelected),
		selectionBias("hy_v3").readsScales(),
		computedAgain("jamba", softmaxAll),
		selectionBias("kimi-k3"),
		selectionBias("kimi-linear"),
		selectionBias("laguna"),
		selectionBias("lfm2moe"),
		computedAgain("llada-moe", softmaxAll),
		computedAgain("llama", softmaxSelected).readsScales(),
		computedAgain("llama4", &routing{Form: moetest.Form{Sigmoid: true, Inputs: true, Activation: moetest.SwiGLU}}),
		computedAgain("mellum", softmaxSelected).readsScales(),
		selectionBias("mimo2"),
		computedAgain("minicpm", softmaxSelected),
		computedAgain("minimax-01", softmaxSelected),
		selectionBias("minimax-m2"),
		selectionBias("minimax-m3"),
		computedAgain("mistral3", softmaxSelected).readsScales(),
		selectionBias("mistral4"),
		selectionBias("nemotron_h_moe").readsScales(),
		computedAgain("olmoe", softmaxAll),
		computedAgain("phimoe", softmaxSelected),
		computedAgain("qwen2moe", softmaxAll),
		qwen35moe,
		qwen3moe,
		computedAgain("qwen3next", softmaxSelected).readsScales(),
		computedAgain("qwen3vlmoe", softmaxSelected),
		{arch: "refact", unread: true},
		computedAgain("rnd1", softmaxSelected),
		computedAgain("smallthinker", &routing{Form: moetest.Form{Sigmoid: true, Renormalise: true, Activation: moetest.ReGLU}, result: "ffn_out"}),
		selectionBias("step35"),

		{
			arch: "deepseek2", variant: "softmax, as V2", routing: softmaxAll, softmax: true,
			options: gguftest.ArchitectureOptions{Unbiased: true, Separate: true},
			keys: map[string]gguf.Value{
				"expert_gating_func": gguf.Uint32Value(1),
			},
		},
		{
			arch: "deepseek2", variant: "as Kimi-K2", mask: reap.SelectionBias,
			options: gguftest.ArchitectureOptions{Separate: true, Groups: 1, GroupsUsed: 1},
			keys: map[string]gguf.Value{
				"expert_weights_norm":  gguf.BoolValue(true),
				"expert_weights_scale": gguf.Float32Value(2.827),
			},
		},
		deepseek2.with("four groups", gguftest.ArchitectureOptions{Groups: 4, GroupsUsed: 2}),
		unbiased,
		deepseek2.with("separate gate and up", separate),
		selectionBias("hy_v3").readsScales().with("separate gate and up", separate),
		selectionBias("mistral4").with("separate gate and up", separate),
		qwen35moe.with("separate gate and up", separate),
		computedAgain("qwen3next", softmaxSelected).readsScales().with("separate gate and up", separate),
		deepseek2.with("draft layer", draft),
		selectionBias("glm4moe").with("draft layer", draft),
		qwen35moe.with("draft layer", draft),
		{
			arch: "kimi-k3", variant: "as many heads as experts", mask: reap.SelectionBias,
			make: func(*testing.T) gguftest.Spec {
				return gguftest.K3(gguftest.K3Options{Experts: 16, Used: 4, Heads: 16})
			},
		},
		{
			arch: "glm4moe", variant: "used experts by layer", mask: reap.SelectionBias,
			keys: map[string]gguf.Value{
				"expert_used_count": gguf.Uint32sValue(4, 4, 2),
			},
		},
		{
			arch: "llama4", variant: "128 experts", refused: "llama4 with 128 experts",
			options: gguftest.ArchitectureOptions{Experts: 128},
		},
	}
	for _, typ := range []gguf.Type{gguf.Q8_0, gguf.Q4_K, gguf.IQ1_S, gguf.MXFP4, gguf.NVFP4} {
		o := gguftest.ArchitectureOptions{Projections: typ}
		for _, c := range []archCase{selectionBias("kimi-k3"), deepseek2, selectionBias("glm4moe"), gptOSS, qwen3moe} {
			cases = append(cases, c.with(fmt.Sprint(typ), o))
		}
	}
	return cases
}
