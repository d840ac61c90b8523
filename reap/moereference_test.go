package reap_test

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"

	"ggufreap/gguf/gguftest"
	"ggufreap/reap"
	"ggufreap/reap/llama"
	"ggufreap/reap/llama/llamatest"
)

// A routing says how the layers of an architecture turn router logits into the weights of
// the used experts, and what an expert does. It is read from llama.cpp's graphs.
type routing struct {
	sigmoid     bool // of each logit; softmax over all experts otherwise
	renormalise bool // divide the weights by their sum
	inputs      bool // a weight scales its expert's input, not its output
	scaled      bool // the graph reads the scales of the projections
	activation  func(float64) float64
	result      string // llama.cpp's name of the sum, "ffn_moe_out" unless set
}

func silu(x float64) float64 { return x / (1 + math.Exp(-x)) }
func relu(x float64) float64 { return max(x, 0) }
func gelu(x float64) float64 {
	return 0.5 * x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*x*(1+0.044715*x*x)))
}

// A layerRouter chooses in float64 the experts of a layer that a token uses.
type layerRouter struct {
	routing
	keep         []int // the ids that may be chosen
	used         int
	router, bias []float64
}

func newLayerRouter(t *testing.T, spec gguftest.Spec, block int, r routing, keep []int) layerRouter {
	t.Helper()
	used, _ := spec.Metadata.ArchUint("expert_used_count")
	return layerRouter{
		routing: r, keep: keep, used: int(used),
		router: numbers(t, spec, block, reap.Router), bias: numbers(t, spec, block, reap.SelectionBias),
	}
}

// A layerReference computes in float64 what one layer's routed experts make of a token. It
// takes weights from the source by their old ids and knows nothing of views or slabs.
type layerReference struct {
	layerRouter
	gate, up, down                [][]float64 // by id, rows one after another
	gateScale, upScale, downScale []float64   // by id, nil when there are none
}

func newLayerReference(t *testing.T, spec gguftest.Spec, block int, r routing, keep []int) *layerReference {
	t.Helper()
	experts, _ := spec.Metadata.ArchUint("expert_count")
	slabs := func(role reap.Role) [][]float64 {
		list := numbers(t, spec, block, role)
		if list == nil {
			return nil
		}
		return slices.Collect(slices.Chunk(list, len(list)/int(experts)))
	}
	l := &layerReference{
		layerRouter: newLayerRouter(t, spec, block, r, keep),
		gate:        slabs(reap.GateProjection),
		up:          slabs(reap.UpProjection),
		down:        slabs(reap.DownProjection),
	}
	for _, merged := range slabs(reap.GateUpProjection) { // the gate's rows first
		l.gate = append(l.gate, merged[:len(merged)/2])
		l.up = append(l.up, merged[len(merged)/2:])
	}
	if r.scaled {
		l.gateScale = numbers(t, spec, block, "ffn_gate_exps.scale")
		l.upScale = numbers(t, spec, block, "ffn_up_exps.scale")
		l.downScale = numbers(t, spec, block, "ffn_down_exps.scale")
	}
	return l
}

// numbers returns an F32 tensor of a block, nil when there is none.
func numbers(t *testing.T, spec gguftest.Spec, block int, role reap.Role) []float64 {
	t.Helper()
	name := fmt.Sprintf("blk.%d.%s", block, role)
	if spec.Tensor(name) == nil {
		return nil
	}
	return float64s(specBytes(t, spec, name))
}

func float64s(data []byte) []float64 {
	list := make([]float64, len(data)/4)
	for i := range list {
		list[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:])))
	}
	return list
}

// compute returns the sum over the used experts. Routers of some architectures have an
// input of their own.
func (l *layerReference) compute(routerInput, input []float32) []float64 {
	var out []float64
	for _, c := range l.choose(routerInput) {
		in, weight := widen(input), c.weight
		if l.inputs {
			for i := range in {
				in[i] *= c.weight
			}
			weight = 1
		}
		gate, up := product(l.gate[c.id], in), product(l.up[c.id], in)
		for i := range gate {
			gate[i] = l.activation(gate[i]*at(l.gateScale, c.id, 1)) * up[i] * at(l.upScale, c.id, 1)
		}
		result := product(l.down[c.id], gate)
		if out == nil {
			out = make([]float64, len(result))
		}
		for i, y := range result {
			out[i] += weight * y * at(l.downScale, c.id, 1)
		}
	}
	return out
}

type choice struct {
	id     int
	weight float64
}

// choose ranks the kept experts by their probability and selection bias. A softmax runs over
// the kept experts alone: the share of the dropped ones goes to them.
func (l layerRouter) choose(x []float32) []choice {
	logits := product(l.router, widen(x))
	choices := make([]choice, 0, len(l.keep))
	var sum float64
	for _, id := range l.keep {
		w := math.Exp(logits[id])
		sum += w
		if l.sigmoid {
			w = 1 / (1 + math.Exp(-logits[id]))
		}
		choices = append(choices, choice{id, w})
	}
	if !l.sigmoid {
		divide(choices, sum)
	}
	slices.SortFunc(choices, func(a, b choice) int { return cmp.Compare(b.weight+at(l.bias, b.id, 0), a.weight+at(l.bias, a.id, 0)) })
	choices = choices[:l.used]
	if l.renormalise {
		sum = 0
		for _, c := range choices {
			sum += c.weight
		}
		divide(choices, sum)
	}
	return choices
}

func divide(choices []choice, by float64) {
	for i := range choices {
		choices[i].weight /= by
	}
}

// at returns an expert's number, or what stands for it in a model without them.
func at(list []float64, id int, otherwise float64) float64 {
	if list == nil {
		return otherwise
	}
	return list[id]
}

func widen(list []float32) []float64 {
	wide := make([]float64, len(list))
	for i, x := range list {
		wide[i] = float64(x)
	}
	return wide
}

// product multiplies a matrix, row after row, with a vector.
func product(matrix, x []float64) []float64 {
	var y []float64
	for row := range slices.Chunk(matrix, len(x)) {
		var sum float64
		for j, w := range row {
			sum += w * x[j]
		}
		y = append(y, sum)
	}
	return y
}

// A layerTrace holds what went into a layer's routed experts and what came out of them, as
// llama.cpp computed it: rows of one token each.
type layerTrace struct{ routerInput, input, output [][]float32 }

// traceLayers runs a model and records the given blocks.
func traceLayers(t *testing.T, r routing, path string, tokens, blocks []int) map[int]*layerTrace {
	t.Helper()
	traces := map[int]*layerTrace{}
	operands := map[string]*[][]float32{} // by the weight that they are multiplied with
	results := map[string]*[][]float32{}
	for _, block := range blocks {
		trace := &layerTrace{}
		traces[block] = trace
		weight := func(role reap.Role) string { return fmt.Sprintf("blk.%d.%s", block, role) }
		operands[weight(reap.Router)] = &trace.routerInput
		operands[weight(reap.UpProjection)] = &trace.input
		operands[weight(reap.GateUpProjection)] = &trace.input
		results[fmt.Sprintf("%s-%d", cmp.Or(r.result, "ffn_moe_out"), block)] = &trace.output
	}
	// find returns what a node holds of a trace, and where to put it.
	find := func(n llama.Node) (llama.Node, *[][]float32) {
		if record := results[n.Name()]; record != nil {
			return n, record
		}
		if weight, ok := n.Input(0); ok && operands[weight.Name()] != nil {
			operand, _ := n.Input(1)
			return operand, operands[weight.Name()]
		}
		return n, nil
	}
	model, err := llamatest.Engine(t).Open(path, llama.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	_, err = model.Trace(tokens, func(n llama.Node) bool {
		_, record := find(n)
		return record != nil
	}, func(n llama.Node) {
		holder, record := find(n)
		list, err := holder.Float32s()
		if err != nil {
			t.Error(err)
			return
		}
		*record = slices.Collect(slices.Chunk(list, len(list)/len(tokens)))
	})
	if err != nil {
		t.Fatal(err)
	}
	for block, trace := range traces {
		if len(trace.routerInput) != len(tokens) || len(trace.input) != len(tokens) || len(trace.output) != len(tokens) {
			t.Fatalf("block %d: the trace lacks a router's input, experts' input or output", block)
		}
	}
	return traces
}

// referenceBound is how far llama.cpp's F32 sums, and its tables of activations in F16, may
// be from the reference: a share of the greatest number in the token's row. One wrong
// expert, row or scale is far beyond it.
const referenceBound = 2e-3

// checkLayers compares every layer of a pruned model on disk with the reference. Keep names
// the source's experts that the model holds.
func checkLayers(t *testing.T, spec gguftest.Spec, r routing, traces map[int]*layerTrace, keep map[int][]int) {
	t.Helper()
	for block, trace := range traces {
		layer := newLayerReference(t, spec, block, r, keep[block])
		for token, got := range trace.output {
			input := trace.input[token]
			if r.inputs { // it was scaled for each used expert: take it as it was before
				input = trace.routerInput[token]
			}
			want := layer.compute(trace.routerInput[token], input)
			if far := farthest(got, want); !(far <= referenceBound) { // a NaN too
				t.Errorf("block %d: token %d differs from the reference by %g", block, token, far)
			}
		}
	}
}

// checkSurvivors looks at tokens that lose none of their experts in a block with the same
// inputs in source and pruned model. The block's sum must be the source's, times what a
// softmax that is not renormalised gains: the share of all probability that the kept experts
// had, inverted. It needs no weights but the router's, so experts may have any type.
func checkSurvivors(t *testing.T, spec gguftest.Spec, r routing, block int, source, pruned *layerTrace, keep []int) {
	t.Helper()
	experts, _ := spec.Metadata.ArchUint("expert_count")
	all := make([]int, experts)
	for id := range all {
		all[id] = id
	}
	before, after := newLayerRouter(t, spec, block, r, all), newLayerRouter(t, spec, block, r, keep)
	survivors := 0
	for token, x := range source.routerInput {
		if !slices.Equal(x, pruned.routerInput[token]) {
			t.Fatalf("block %d: token %d has another input than in the source", block, token)
		}
		was, is := before.choose(x), after.choose(x)
		if slices.ContainsFunc(was, func(c choice) bool { return !slices.Contains(keep, c.id) }) {
			continue
		}
		if !slices.EqualFunc(was, is, func(a, b choice) bool { return a.id == b.id }) {
			if r.sigmoid || before.bias == nil {
				t.Errorf("block %d: token %d keeps its experts, but chooses others", block, token)
			}
			continue // its probabilities grew, the bias did not
		}
		survivors++
		want := widen(source.output[token])
		for i := range want {
			want[i] *= is[0].weight / was[0].weight
		}
		if far := farthest(pruned.output[token], want); !(far <= referenceBound) {
			t.Errorf("block %d: token %d keeps its experts, but its sum moves by %g", block, token, far)
		}
	}
	if survivors == 0 {
		t.Errorf("block %d: no token keeps all its experts", block)
	}
}

// farthest returns the greatest difference as a share of the greatest number.
func farthest(got []float32, want []float64) float64 {
	var far, most float64
	for i, w := range want {
		far, most = max(far, math.Abs(w-float64(got[i]))), max(most, math.Abs(w))
	}
	return far / most
}
