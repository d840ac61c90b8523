package calibrate_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/reap"
	"ggufreap/reap/calibrate"
	"ggufreap/reap/internal/moetest"
	"ggufreap/reap/llama"
	"ggufreap/reap/llama/llamatest"
	"ggufreap/reap/tally"
)

// A form is a model whose saliency is computed again in float64, from what went into a layer's
// router and experts and from the weights of both.
type form struct {
	name, arch string
	options    gguftest.ArchitectureOptions
	keys       map[string]gguf.Value
	moe        moetest.Form
	bound      float64 // how far sums may be off, as a share
}

// exact is the bound where llama.cpp computes in float32; tables is that where it looks an
// activation up in a table of halves, and steps that where a number that enters a quantized
// projection may be rounded to the next step.
const exact, tables, steps = 2e-6, 2e-3, 1e-3

var forms = []form{
	{name: "kimi-k3: sigmoid, bias, latent", arch: "kimi-k3", keys: map[string]gguf.Value{"expert_weights_norm": gguf.BoolValue(true)}, moe: moetest.Form{Sigmoid: true, Renormalise: true, Activation: moetest.SiTU}, bound: exact},
	{name: "kimi-k3: constant scale in g", arch: "kimi-k3", keys: map[string]gguf.Value{"expert_weights_norm": gguf.BoolValue(true), "expert_weights_scale": gguf.Float32Value(2.5)},
		moe: moetest.Form{Sigmoid: true, Renormalise: true, Scale: 2.5, Activation: moetest.SiTU}, bound: exact},
	{name: "deepseek2: sigmoid, bias, not normalised", arch: "deepseek2", moe: moetest.Form{Sigmoid: true, Activation: moetest.SwiGLU}, bound: exact},
	{name: "deepseek2: grouped", arch: "deepseek2", options: gguftest.ArchitectureOptions{Groups: 4, GroupsUsed: 2}, moe: moetest.Form{Sigmoid: true, Activation: moetest.SwiGLU}, bound: exact},
	{name: "qwen3moe: softmax, normalised, scales", arch: "qwen3moe", moe: moetest.Form{Renormalise: true, Scales: true, Activation: moetest.SwiGLU}, bound: exact},
	{name: "qwen2moe: softmax, not normalised", arch: "qwen2moe", moe: moetest.Form{Activation: moetest.SwiGLU}, bound: exact},
	{name: "gpt-oss: softmax of the chosen, biases of experts", arch: "gpt-oss", moe: moetest.Form{Renormalise: true, Activation: moetest.SwiGLUOAI}, bound: exact},
	{name: "gemma4: down scales, merged projections", arch: "gemma4", moe: moetest.Form{Renormalise: true, Scales: true, Activation: moetest.GeGLU}, bound: tables},
	{name: "kimi-k3: Q8_0 experts", arch: "kimi-k3", options: gguftest.ArchitectureOptions{Projections: gguf.Q8_0}, keys: map[string]gguf.Value{"expert_weights_norm": gguf.BoolValue(true)},
		moe: moetest.Form{Sigmoid: true, Renormalise: true, Activation: moetest.SiTU}, bound: steps},
	{name: "qwen3moe: Q8_0 experts", arch: "qwen3moe", options: gguftest.ArchitectureOptions{Projections: gguf.Q8_0}, moe: moetest.Form{Renormalise: true, Scales: true, Activation: moetest.SwiGLU}, bound: steps},
	{name: "qwen3moe: Q4_K experts", arch: "qwen3moe", options: gguftest.ArchitectureOptions{Projections: gguf.Q4_K, Hidden: 256, Width: 256}, moe: moetest.Form{Renormalise: true, Scales: true, Activation: moetest.SwiGLU}, bound: steps},
}

func (f form) spec(t *testing.T) gguftest.Spec {
	t.Helper()
	spec, err := gguftest.Architecture(f.arch, f.options)
	if err != nil {
		t.Fatal(err)
	}
	for suffix, v := range f.keys {
		spec.Metadata.Set(spec.Metadata.ArchKey(suffix), v)
	}
	return spec
}

// A capture is what went into a layer, by token.
type capture struct{ router, experts [][]float32 }

// Counts are those of the reference exactly, sums within the form's bound.
func TestIndependentPath(t *testing.T) {
	for _, form := range forms {
		t.Run(form.name, func(t *testing.T) {
			spec := form.spec(t)
			f := write(t, spec)
			got, captured := measureAndCapture(t, f, text(160))
			var farthest float64
			for block, experts := range got.Layers {
				want := saliency(moetest.NewLayer(t, spec, block, form.moe), f.experts.Count, captured[block])
				for id := range experts {
					g, w := &experts[id], &want[id]
					if g.Tokens != w.tokens {
						t.Errorf("layer %d: expert %d: %d tokens, want %d", block, id, g.Tokens, w.tokens)
						continue
					}
					for _, pair := range [][2]float64{
						{g.Gate.Float64(), w.gate}, {g.Norm.Float64(), w.norm}, {g.Saliency.Float64(), w.saliency},
						{g.Energy.Float64(), w.energy}, {g.Greatest, w.greatest},
					} {
						if pair[1] == 0 && pair[0] == 0 {
							continue
						}
						off := math.Abs(pair[0]-pair[1]) / math.Abs(pair[1])
						farthest = max(farthest, off)
						if !(off <= form.bound) {
							t.Errorf("layer %d: expert %d: %v, want %v", block, id, pair[0], pair[1])
						}
					}
				}
			}
			t.Logf("sums are off by %.1e at most", farthest)
		})
	}
}

// measureAndCapture measures a text and keeps what went into the layers of it.
func measureAndCapture(t *testing.T, f fixture, tokens []int) (*tally.Tally, map[int]*capture) {
	t.Helper()
	captured := map[int]*capture{}
	operands := moetest.Operands{}
	var blocks []int
	for block := range f.used() {
		c := &capture{}
		captured[block], blocks = c, append(blocks, block)
		operands[fmt.Sprintf("blk.%d.ffn_gate_inp.weight", block)] = &c.router
		for _, role := range []reap.Role{reap.UpProjection, reap.GateUpProjection} {
			operands[fmt.Sprintf("blk.%d.%s", block, role)] = &c.experts
		}
	}
	model, err := llamatest.Engine(t).Open(f.path, llama.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	c := calibrate.New(f.experts.Count, f.used(), 2)
	defer c.Close()
	inner := c.Observer()
	observer := &llama.Observer{
		Wanted: func(n llama.Node) bool {
			_, to := operands.Of(n)
			return inner.Wanted(n) || to != nil
		},
		Computed: func(n llama.Node) {
			if in, to := operands.Of(n); to != nil {
				*to = moetest.Rows(t, in, len(tokens))
			}
			if inner.Wanted(n) {
				inner.Computed(n)
			}
		},
	}
	session, err := model.NewSession(llama.SessionOptions{Context: len(tokens)}, observer)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	sums := tally.New(blocks, f.experts.Count)
	c.Begin(len(tokens))
	if err := session.Append([][]int{tokens}, observer, func(int) error { return c.End(sums) }); err != nil {
		t.Fatal(err)
	}
	return sums, captured
}

// sums are what the reference measures of an expert.
type sums struct {
	tokens                                 uint64
	gate, norm, saliency, energy, greatest float64
}

func saliency(l *moetest.Layer, experts int, c *capture) []sums {
	out := make([]sums, experts)
	for token, x := range c.experts {
		for _, choice := range l.Choose(moetest.Widen(c.router[token]), nil) {
			h := l.Inner(choice.ID, moetest.Widen(x))
			norm := math.Sqrt(square(l.Outer(choice.ID, h)))
			s := &out[choice.ID]
			s.tokens++
			s.gate += choice.Weight
			s.norm += norm
			s.saliency += choice.Weight * norm
			s.energy += square(h)
			s.greatest = max(s.greatest, norm)
		}
	}
	return out
}

func square(list []float64) (sum float64) {
	for _, x := range list {
		sum += x * x
	}
	return sum
}

// A model whose experts were given known sizes ranks them as they were made: with the down
// projection of one expert k times that of the others, |f| is k times as large.
func TestKnownSizesAreRanked(t *testing.T) {
	spec, err := gguftest.Architecture("kimi-k3", gguftest.ArchitectureOptions{})
	if err != nil {
		t.Fatal(err)
	}
	plain := write(t, spec)
	before, err := plain.measure(t, way{}, text(200))
	if err != nil {
		t.Fatal(err)
	}
	last := slices.Max(before.Blocks()) // nothing behind it is measured
	name := fmt.Sprintf("blk.%d.ffn_down_exps.weight", last)
	data, err := spec.Bytes(name)
	if err != nil {
		t.Fatal(err)
	}
	experts := len(before.Layers[last])
	slab := len(data) / experts
	for id := range experts {
		for i := id * slab; i < (id+1)*slab; i += 4 {
			x := math.Float32frombits(binary.LittleEndian.Uint32(data[i:]))
			binary.LittleEndian.PutUint32(data[i:], math.Float32bits(x*float32(uint(1)<<id)))
		}
	}
	spec = spec.Clone()
	spec.Tensor(name).Data = data
	after, err := write(t, spec).measure(t, way{}, text(200))
	if err != nil {
		t.Fatal(err)
	}
	for id := range experts {
		b, a := &before.Layers[last][id], &after.Layers[last][id]
		if a.Tokens != b.Tokens || a.Norm.Float64() != b.Norm.Float64()*float64(uint(1)<<id) || a.Saliency.Float64() != b.Saliency.Float64()*float64(uint(1)<<id) {
			t.Errorf("expert %d, %d times as large: |f| of %v, was %v", id, 1<<id, a.Norm.Float64(), b.Norm.Float64())
		}
	}
}
