package reap_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"

	"ggufreap/gguf/gguftest"
	"ggufreap/reap"
	"ggufreap/reap/internal/moetest"
	"ggufreap/reap/llama"
	"ggufreap/reap/llama/llamatest"
)

// A routing is the form of an architecture whose layers are computed again, and llama.cpp's name
// of the sum, "ffn_moe_out" unless set.
type routing struct {
	moetest.Form
	result string
}

// sum returns what the used experts of a layer make of a token together. Routers of some
// architectures have an input of their own.
func sum(l *moetest.Layer, routerInput, input []float32, keep []int) []float64 {
	var out []float64
	for _, c := range l.Choose(moetest.Widen(routerInput), keep) {
		in, weight := moetest.Widen(input), c.Weight
		if l.Inputs {
			for i := range in {
				in[i] *= c.Weight
			}
			weight = 1
		}
		result := l.Outer(c.ID, l.Inner(c.ID, in))
		if out == nil {
			out = make([]float64, len(result))
		}
		for i, y := range result {
			out[i] += weight * y
		}
	}
	return out
}

// A layerTrace holds what went into a layer's routed experts and what came out of them, as
// llama.cpp computed it: rows of one token each.
type layerTrace struct{ routerInput, input, output [][]float32 }

// traceLayers runs a model and records the given blocks.
func traceLayers(t *testing.T, r routing, path string, tokens, blocks []int) map[int]*layerTrace {
	t.Helper()
	traces := map[int]*layerTrace{}
	operands := moetest.Operands{}
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
		return operands.Of(n)
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
		*record = moetest.Rows(t, holder, len(tokens))
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
		layer := moetest.NewLayer(t, spec, block, r.Form)
		for token, got := range trace.output {
			input := trace.input[token]
			if r.Inputs { // it was scaled for each used expert: take it as it was before
				input = trace.routerInput[token]
			}
			want := sum(layer, trace.routerInput[token], input, keep[block])
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
	router := moetest.NewRouter(t, spec, block, r.Form)
	survivors := 0
	for token, x := range source.routerInput {
		if !slices.Equal(x, pruned.routerInput[token]) {
			t.Fatalf("block %d: token %d has another input than in the source", block, token)
		}
		was, is := router.Choose(moetest.Widen(x), nil), router.Choose(moetest.Widen(x), keep)
		if slices.ContainsFunc(was, func(c moetest.Choice) bool { return !slices.Contains(keep, c.ID) }) {
			continue
		}
		if !slices.EqualFunc(was, is, func(a, b moetest.Choice) bool { return a.ID == b.ID }) {
			if r.Sigmoid || router.SelectionBias == nil {
				t.Errorf("block %d: token %d keeps its experts, but chooses others", block, token)
			}
			continue // its probabilities grew, the bias did not
		}
		survivors++
		want := moetest.Widen(source.output[token])
		for i := range want {
			want[i] *= is[0].Weight / was[0].Weight
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
