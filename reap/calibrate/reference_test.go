package calibrate_test

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/reap"
	"ggufreap/reap/calibrate"
	"ggufreap/reap/llama"
	"ggufreap/reap/llama/llamatest"
	"ggufreap/reap/tally"
)

// A form says how an architecture routes and what its experts do, as llama.cpp's graphs have
// it. The reference below computes saliency of it again in float64 from what went into a
// layer's router and experts, the router and the experts' weights: it knows nothing of the
// graph behind them.
type form struct {
	name, arch string
	options    gguftest.ArchitectureOptions
	keys       map[string]gguf.Value

	gate        string // "sigmoid", "softmax" over all, "selected": softmax over the chosen
	renormalise bool
	scale       float64 // of the weights, 0 for none
	scales      bool    // the graph reads the scales of the projections
	activation  func(gate, up float64) float64
	bound       float64 // how far sums may be off, as a share
}

func sigmoid(x float64) float64   { return 1 / (1 + math.Exp(-x)) }
func swiglu(g, u float64) float64 { return g * sigmoid(g) * u }
func geglu(g, u float64) float64 {
	return 0.5 * g * (1 + math.Tanh(math.Sqrt(2/math.Pi)*g*(1+0.044715*g*g))) * u
}
func situ(g, u float64) float64 { return 4 * math.Tanh(g/4) * sigmoid(g) * 25 * math.Tanh(u/25) }
func swigluOAI(g, u float64) float64 {
	g, u = min(g, 7), max(min(u, 7), -7)
	return g * sigmoid(1.702*g) * (u + 1)
}

// exact is the bound where llama.cpp computes in float32; tables is that where it looks an
// activation up in a table of halves, and steps that where a number that enters a quantized
// projection may be rounded to the next step.
const exact, tables, steps = 2e-6, 2e-3, 1e-3

var forms = []form{
	{name: "kimi-k3: sigmoid, bias, latent", arch: "kimi-k3", keys: map[string]gguf.Value{"expert_weights_norm": gguf.BoolValue(true)}, gate: "sigmoid", renormalise: true, activation: situ, bound: exact},
	{name: "kimi-k3: constant scale in g", arch: "kimi-k3", keys: map[string]gguf.Value{"expert_weights_norm": gguf.BoolValue(true), "expert_weights_scale": gguf.Float32Value(2.5)},
		gate: "sigmoid", renormalise: true, scale: 2.5, activation: situ, bound: exact},
	{name: "deepseek2: sigmoid, bias, not normalised", arch: "deepseek2", gate: "sigmoid", activation: swiglu, bound: exact},
	{name: "deepseek2: grouped", arch: "deepseek2", options: gguftest.ArchitectureOptions{Groups: 4, GroupsUsed: 2}, gate: "sigmoid", activation: swiglu, bound: exact},
	{name: "qwen3moe: softmax, normalised, scales", arch: "qwen3moe", gate: "softmax", renormalise: true, scales: true, activation: swiglu, bound: exact},
	{name: "qwen2moe: softmax, not normalised", arch: "qwen2moe", gate: "softmax", activation: swiglu, bound: exact},
	{name: "gpt-oss: softmax of the chosen, biases of experts", arch: "gpt-oss", gate: "selected", activation: swigluOAI, bound: exact},
	{name: "gemma4: down scales, merged projections", arch: "gemma4", gate: "softmax", renormalise: true, scales: true, activation: geglu, bound: tables},
	{name: "kimi-k3: Q8_0 experts", arch: "kimi-k3", options: gguftest.ArchitectureOptions{Projections: gguf.Q8_0}, keys: map[string]gguf.Value{"expert_weights_norm": gguf.BoolValue(true)},
		gate: "sigmoid", renormalise: true, activation: situ, bound: steps},
	{name: "qwen3moe: Q8_0 experts", arch: "qwen3moe", options: gguftest.ArchitectureOptions{Projections: gguf.Q8_0}, gate: "softmax", renormalise: true, scales: true, activation: swiglu, bound: steps},
	{name: "qwen3moe: Q4_K experts", arch: "qwen3moe", options: gguftest.ArchitectureOptions{Projections: gguf.Q4_K, Hidden: 256, Width: 256}, gate: "softmax", renormalise: true, scales: true, activation: swiglu, bound: steps},
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
				want := newReference(t, form, spec, f.experts, block).compute(captured[block])
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
	operands := map[string]*[][]float32{} // by the weight that they are multiplied with
	var blocks []int
	for block := range f.used() {
		c := &capture{}
		captured[block], blocks = c, append(blocks, block)
		operands[fmt.Sprintf("blk.%d.ffn_gate_inp.weight", block)] = &c.router
		for _, role := range []reap.Role{reap.UpProjection, reap.GateUpProjection} {
			operands[fmt.Sprintf("blk.%d.%s", block, role)] = &c.experts
		}
	}
	operand := func(n llama.Node) (llama.Node, *[][]float32) {
		weight, ok := n.Input(0)
		if !ok || operands[weight.Name()] == nil {
			return n, nil
		}
		in, _ := n.Input(1)
		return in, operands[weight.Name()]
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
			_, to := operand(n)
			return inner.Wanted(n) || to != nil
		},
		Computed: func(n llama.Node) {
			if in, to := operand(n); to != nil {
				list, err := in.Float32s()
				if err != nil {
					t.Error(err)
					return
				}
				*to = slices.Collect(slices.Chunk(list, len(list)/len(tokens)))
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

// A reference computes one layer.
type reference struct {
	form
	used, groups, groupsUsed      int
	router, routerBias, bias      []float64
	gates, ups, downs             [][]float64 // by expert
	gateBias, upBias, downBias    [][]float64
	gateScale, upScale, downScale []float64
	// What is made of numbers that meet the projections, nil for nothing.
	roundInput, roundInner func([]float64) []float64
}

func newReference(t *testing.T, f form, spec gguftest.Spec, e *reap.Experts, block int) *reference {
	t.Helper()
	list := func(role reap.Role) []float64 {
		name := fmt.Sprintf("blk.%d.%s", block, role)
		if spec.Tensor(name) == nil {
			return nil
		}
		data, err := spec.Bytes(name)
		if err != nil {
			t.Fatal(err)
		}
		return decode(t, spec.Tensor(name).Type, data)
	}
	rounded := func(role reap.Role) func([]float64) []float64 {
		if tensor := spec.Tensor(fmt.Sprintf("blk.%d.%s", block, role)); tensor != nil {
			return codings[tensor.Type].rounded
		}
		return nil
	}
	slabs := func(role reap.Role) [][]float64 {
		all := list(role)
		if all == nil {
			return nil
		}
		return slices.Collect(slices.Chunk(all, len(all)/e.Count))
	}
	r := &reference{
		form: f, used: e.UsedIn(block), groups: e.Groups, groupsUsed: e.GroupsUsed,
		router: list(reap.Router), routerBias: list(reap.RouterBias), bias: list(reap.SelectionBias),
		gates: slabs(reap.GateProjection), ups: slabs(reap.UpProjection), downs: slabs(reap.DownProjection),
		gateBias: slabs("ffn_gate_exps.bias"), upBias: slabs("ffn_up_exps.bias"), downBias: slabs("ffn_down_exps.bias"),
	}
	r.roundInput, r.roundInner = rounded(reap.UpProjection), rounded(reap.DownProjection)
	if r.ups == nil {
		r.roundInput = rounded(reap.GateUpProjection)
	}
	for _, merged := range slabs(reap.GateUpProjection) { // the gate's rows first
		r.gates, r.ups = append(r.gates, merged[:len(merged)/2]), append(r.ups, merged[len(merged)/2:])
	}
	if f.scales {
		r.gateScale, r.upScale, r.downScale = list("ffn_gate_exps.scale"), list("ffn_up_exps.scale"), list("ffn_down_exps.scale")
	}
	return r
}

// sums are what the reference measures of an expert.
type sums struct {
	tokens                                 uint64
	gate, norm, saliency, energy, greatest float64
}

func (r *reference) compute(c *capture) []sums {
	out := make([]sums, len(r.downs))
	for token, x := range c.experts {
		for _, choice := range r.choose(wide(c.router[token])) {
			h := r.inner(choice.id, wide(x))
			norm := math.Sqrt(square(r.outer(choice.id, h)))
			s := &out[choice.id]
			s.tokens++
			s.gate += choice.weight
			s.norm += norm
			s.saliency += choice.weight * norm
			s.energy += square(h)
			s.greatest = max(s.greatest, norm)
		}
	}
	return out
}

// inner is what enters the down projection, outer what leaves it.
func (r *reference) inner(id int, x []float64) []float64 {
	if r.roundInput != nil {
		x = r.roundInput(x)
	}
	gate, up := product(r.gates[id], x), product(r.ups[id], x)
	for i := range gate {
		g := gate[i]*at(r.gateScale, id, 1) + at(row(r.gateBias, id), i, 0)
		u := up[i]*at(r.upScale, id, 1) + at(row(r.upBias, id), i, 0)
		gate[i] = r.activation(g, u)
	}
	return gate
}

func (r *reference) outer(id int, h []float64) []float64 {
	if r.roundInner != nil {
		h = r.roundInner(h)
	}
	f := product(r.downs[id], h)
	for i := range f {
		f[i] = f[i]*at(r.downScale, id, 1) + at(row(r.downBias, id), i, 0)
	}
	return f
}

type choice struct {
	id             int
	weight, ranked float64
}

// choose returns the experts that a token uses, with their weights.
func (r *reference) choose(x []float64) []choice {
	logits := product(r.router, x)
	choices := make([]choice, len(logits))
	var all float64
	for id := range logits {
		logits[id] += at(r.routerBias, id, 0)
		all += math.Exp(logits[id])
	}
	for id, logit := range logits {
		weight := logit // of "selected"
		switch r.gate {
		case "sigmoid":
			weight = sigmoid(logit)
		case "softmax":
			weight = math.Exp(logit) / all
		}
		choices[id] = choice{id, weight, weight + at(r.bias, id, 0)}
	}
	choices = r.inGroups(choices)
	best := func(a, b choice) int { return cmp.Compare(b.ranked, a.ranked) }
	slices.SortStableFunc(choices, best)
	choices = choices[:r.used]
	var sum float64
	for i := range choices {
		if r.gate == "selected" {
			choices[i].weight = math.Exp(choices[i].weight)
		}
		sum += choices[i].weight
	}
	for i := range choices {
		if r.renormalise || r.gate == "selected" {
			choices[i].weight /= sum
		}
		if r.scale != 0 {
			choices[i].weight *= r.scale
		}
	}
	return choices
}

// inGroups leaves the experts of the used groups: those whose two best have the greatest sum.
func (r *reference) inGroups(choices []choice) []choice {
	if r.groups < 2 {
		return choices
	}
	groups := slices.Collect(slices.Chunk(choices, len(choices)/r.groups))
	worth := func(group []choice) float64 {
		ranked := slices.Clone(group)
		slices.SortFunc(ranked, func(a, b choice) int { return cmp.Compare(b.ranked, a.ranked) })
		return ranked[0].ranked + ranked[1].ranked
	}
	slices.SortStableFunc(groups, func(a, b []choice) int { return cmp.Compare(worth(b), worth(a)) })
	return slices.Concat(groups[:r.groupsUsed]...)
}

func wide(list []float32) []float64 {
	out := make([]float64, len(list))
	for i, x := range list {
		out[i] = float64(x)
	}
	return out
}

// product multiplies a matrix, row after row, with a vector.
func product(matrix, x []float64) []float64 {
	var y []float64
	for r := range slices.Chunk(matrix, len(x)) {
		var sum float64
		for i, w := range r {
			sum += w * x[i]
		}
		y = append(y, sum)
	}
	return y
}

func square(list []float64) (sum float64) {
	for _, x := range list {
		sum += x * x
	}
	return sum
}

func row(rows [][]float64, i int) []float64 {
	if rows == nil {
		return nil
	}
	return rows[i]
}

func at(list []float64, i int, otherwise float64) float64 {
	if list == nil {
		return otherwise
	}
	return list[i]
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
