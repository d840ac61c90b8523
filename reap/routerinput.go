package reap

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"ggufreap/gguf"
)

// A routerInput is what a layer's router reads: factor * (scale*x + shift), element by
// element, of a normalised state x whose mean square is 1.
type routerInput struct {
	scale  []float64 // weights of the norm; nil for ones
	shift  []float64 // bias of the norm; nil for none
	factor float64
}

// routerNorms names the tensor by which a block's router input is scaled after it was
// normalised, where that is not one of the usual two. Sources: the graphs in
// llama.cpp's src/models.
var routerNorms = map[string]string{
	"arctic":         "ffn_norm_exps.weight",    // experts run beside a dense feed-forward
	"cohere2moe":     "attn_norm.weight",        // attention and experts read the same input
	"dbrx":           "attn_output_norm.weight", // its second norm
	"gemma4":         "ffn_gate_inp.scale",      // the router has a norm of its own
	"nemotron_h_moe": "attn_norm.weight",        // a block has one norm
	"nomic-bert-moe": "attn_output_norm.weight", // norms follow their sublayer
	"smallthinker":   "",                        // reads the residual as it is
}

// usualNorms come before the router in all other architectures, the first one that a
// block has.
var usualNorms = []string{"ffn_norm.weight", "post_attention_norm.weight"}

// readRouterInput reads the norm before a layer's router.
func readRouterInput(m *gguf.Model, architecture string, l *Layer) (routerInput, error) {
	in := routerInput{factor: 1}
	names := usualNorms
	if name, special := routerNorms[architecture]; special {
		if name == "" {
			return in, nil // the state is not normalised, and only ratios of deviations count
		}
		names = []string{name}
	}
	for _, name := range names {
		full := fmt.Sprintf("blk.%d.%s", l.Block, name)
		t := m.Tensor(full)
		if t == nil {
			continue
		}
		var err error
		if in.scale, err = readVector(t); err != nil {
			return in, err
		}
		if architecture == "gemma4" { // gemma4.cpp divides by sqrt(n_embd)
			in.factor = 1 / math.Sqrt(float64(len(in.scale)))
		}
		if bias := m.Tensor(strings.TrimSuffix(full, "weight") + "bias"); bias != nil && bias != t {
			in.shift, err = readVector(bias)
		}
		return in, err
	}
	return in, fmt.Errorf("layer %d: no norm before the router, want %q", l.Block, names[0])
}

// check wants as many weights as a router row has.
func (in routerInput) check(router *RoutedTensor) error {
	for _, v := range [][]float64{in.scale, in.shift} {
		if v != nil && uint64(len(v)) != router.Shape[0] {
			return fmt.Errorf("tensor %q: rows of %d, but the norm before it has %d weights", router.Name, router.Shape[0], len(v))
		}
	}
	return nil
}

// deviations returns the deviations of the rows' logits when x is isotropic with mean
// square 1.
func (in routerInput) deviations(rows [][]float64) [rowsAtOnce]float64 {
	norms := scaledNorms(rows, in.scale)
	for i := range norms {
		norms[i] = float64(in.factor * norms[i])
	}
	return norms
}

// mean returns the mean of row's logit for such an x: factor * sum_j row_j*shift_j.
func (in routerInput) mean(row []float64) float64 {
	var sum float64
	for j, b := range in.shift {
		sum += float64(row[j] * b)
	}
	return float64(in.factor * sum)
}

// rowsAtOnce is how many sums run side by side: each is a chain of additions, in which
// the processor waits for one before it can begin the next.
const rowsAtOnce = 4

// scaledNorms are the Euclidean norms of one to rowsAtOnce rows times gamma; nil stands
// for ones. The conversions keep the compiler from fusing a product with the sum, which
// would round once instead of twice on some processors. Square roots are exact to the
// last bit everywhere.
func scaledNorms(rows [][]float64, gamma []float64) [rowsAtOnce]float64 {
	if gamma == nil {
		gamma = slices.Repeat([]float64{1}, len(rows[0]))
	}
	row := func(i int) []float64 { return rows[min(i, len(rows)-1)][:len(gamma)] }
	a, b, c, d := row(0), row(1), row(2), row(3)
	var sumA, sumB, sumC, sumD float64
	for j, g := range gamma {
		x, y, z, w := float64(a[j]*g), float64(b[j]*g), float64(c[j]*g), float64(d[j]*g)
		sumA += float64(x * x)
		sumB += float64(y * y)
		sumC += float64(z * z)
		sumD += float64(w * w)
	}
	return [rowsAtOnce]float64{math.Sqrt(sumA), math.Sqrt(sumB), math.Sqrt(sumC), math.Sqrt(sumD)}
}
