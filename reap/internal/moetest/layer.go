// Package moetest computes in float64 what llama.cpp makes of a token in a layer's mixture of
// experts: a second code path for tests. It takes the weights from a spec by the ids of experts,
// and knows nothing of views, slabs or graphs.
package moetest

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"ggufreap/gguf/gguftest"
	"ggufreap/reap"
)

// A Form says how an architecture routes and what its experts do. It is read from llama.cpp's
// graphs.
type Form struct {
	Sigmoid     bool    // of each logit; softmax over all experts otherwise
	Renormalise bool    // divide the weights by their sum
	Scale       float64 // of the weights, 0 for none
	Inputs      bool    // a weight scales its expert's input, not its output
	Scales      bool    // the graph reads the scales of the projections
	Activation  func(gate, up float64) float64
}

// A Layer is the router and the experts of a layer. Experts are by id.
type Layer struct {
	*Router
	gates, ups, downs             [][]float64 // rows one after another
	gateBias, upBias, downBias    [][]float64 // nil when there are none, as those below
	gateScale, upScale, downScale []float64
	// What is made of numbers that meet the projections, nil for nothing.
	roundInput, roundInner func([]float64) []float64
}

// NewLayer reads a block of a model. Its experts are of a type that [Decode] reads.
func NewLayer(t *testing.T, spec gguftest.Spec, block int, f Form) *Layer {
	t.Helper()
	experts, _ := spec.Metadata.ArchUint("expert_count")
	slabs := func(role reap.Role) [][]float64 {
		all := numbers(t, spec, block, role)
		if all == nil {
			return nil
		}
		return slices.Collect(slices.Chunk(all, len(all)/int(experts)))
	}
	l := &Layer{
		Router: NewRouter(t, spec, block, f),
		gates:  slabs(reap.GateProjection), ups: slabs(reap.UpProjection), downs: slabs(reap.DownProjection),
		gateBias: slabs("ffn_gate_exps.bias"), upBias: slabs("ffn_up_exps.bias"), downBias: slabs("ffn_down_exps.bias"),
		roundInput: rounding(spec, block, reap.UpProjection, reap.GateUpProjection),
		roundInner: rounding(spec, block, reap.DownProjection),
	}
	for _, merged := range slabs(reap.GateUpProjection) { // the gate's rows first
		l.gates, l.ups = append(l.gates, merged[:len(merged)/2]), append(l.ups, merged[len(merged)/2:])
	}
	if f.Scales {
		l.gateScale = numbers(t, spec, block, "ffn_gate_exps.scale")
		l.upScale = numbers(t, spec, block, "ffn_up_exps.scale")
		l.downScale = numbers(t, spec, block, "ffn_down_exps.scale")
	}
	return l
}

// Inner returns what enters the down projection of an expert, Outer what leaves it.
func (l *Layer) Inner(id int, x []float64) []float64 {
	if l.roundInput != nil {
		x = l.roundInput(x)
	}
	gate, up := product(l.gates[id], x), product(l.ups[id], x)
	for i := range gate {
		g := gate[i]*at(l.gateScale, id, 1) + at(row(l.gateBias, id), i, 0)
		u := up[i]*at(l.upScale, id, 1) + at(row(l.upBias, id), i, 0)
		gate[i] = l.Activation(g, u)
	}
	return gate
}

// Outer returns what an expert makes of what [Layer.Inner] returns.
func (l *Layer) Outer(id int, inner []float64) []float64 {
	if l.roundInner != nil {
		inner = l.roundInner(inner)
	}
	out := product(l.downs[id], inner)
	for i := range out {
		out[i] = out[i]*at(l.downScale, id, 1) + at(row(l.downBias, id), i, 0)
	}
	return out
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// Activations, by their names in llama.cpp.
func SwiGLU(g, u float64) float64 { return g * sigmoid(g) * u }
func ReGLU(g, u float64) float64  { return max(g, 0) * u }
func GeGLU(g, u float64) float64 {
	return 0.5 * g * (1 + math.Tanh(math.Sqrt(2/math.Pi)*g*(1+0.044715*g*g))) * u
}
func SiTU(g, u float64) float64 { return 4 * math.Tanh(g/4) * sigmoid(g) * 25 * math.Tanh(u/25) }
func SwiGLUOAI(g, u float64) float64 {
	g, u = min(g, 7), max(min(u, 7), -7)
	return g * sigmoid(1.702*g) * (u + 1)
}

// Widen returns the numbers as float64.
func Widen(list []float32) []float64 {
	wide := make([]float64, len(list))
	for i, x := range list {
		wide[i] = float64(x)
	}
	return wide
}

// numbers returns a tensor of a block, nil when there is none.
func numbers(t *testing.T, spec gguftest.Spec, block int, role reap.Role) []float64 {
	t.Helper()
	name := fmt.Sprintf("blk.%d.%s", block, role)
	tensor := spec.Tensor(name)
	if tensor == nil {
		return nil
	}
	data, err := spec.Bytes(name)
	if err != nil {
		t.Fatal(err)
	}
	return Decode(t, tensor.Type, data)
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

func row(rows [][]float64, id int) []float64 {
	if rows == nil {
		return nil
	}
	return rows[id]
}

// at returns a number of a list, or what stands for it in a model without one.
func at(list []float64, i int, otherwise float64) float64 {
	if list == nil {
		return otherwise
	}
	return list[i]
}
