package reap

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ggufreap/gguf"
)

// routed makes a model of one routed layer with the given router rows.
func routed(gating Gating, used int, rows [][]float32) *recipe {
	r := &recipe{arch: "test", keys: map[string]gguf.Value{}}
	experts, width := uint64(len(rows)), uint64(len(rows[0]))
	r.set("block_count", 1)
	r.set("expert_count", len(rows))
	r.set("expert_used_count", used)
	r.set("expert_gating_func", int(gating))
	ones := make([]float32, width)
	for i := range ones {
		ones[i] = 1
	}
	r.add("blk.0.ffn_norm.weight", gguf.F32, width).data = floats(ones...)
	r.add("blk.0.ffn_gate_inp.weight", gguf.F32, width, experts).data = floats(slices.Concat(rows...)...)
	r.add("blk.0.ffn_up_exps.weight", gguf.F32, width, 1, experts)
	r.add("blk.0.ffn_down_exps.weight", gguf.F32, 1, width, experts)
	return r
}

func routerMass(t *testing.T, r *recipe) []float64 {
	t.Helper()
	m := r.model(t)
	s, err := RouterMassScores(context.Background(), m, mustExperts(t, m), nil)
	if err != nil {
		t.Fatal(err)
	}
	if s.Criterion.Name != RouterMass || s.Criterion.Version != 2 {
		t.Errorf("criterion %+v", s.Criterion)
	}
	return s.Layers[0]
}

// unitRows are router rows whose logits have the given deviations.
func unitRows(deviations ...float32) [][]float32 {
	rows := make([][]float32, len(deviations))
	for i, s := range deviations {
		rows[i] = []float32{0, s, 0, 0}
	}
	return rows
}

// Cases with a threshold that can be had by hand: alike experts of which half are used
// are chosen at logits above 0, and all experts always when all are used.
func TestRouterMassByHand(t *testing.T) {
	const tail1 = 0.84134474606854294859 // P(Z > -1), from a table
	for _, c := range []struct {
		name   string
		recipe *recipe
		want   float64
	}{
		// E[sigmoid(Z); Z > 0] by numeric integration with 20 digits, see package portable.
		{"sigmoid, half", routed(Sigmoid, 2, unitRows(1, 1, 1, 1)), 0.33742841263348795078},
		// e^(1/2) P(Z > -1) of a sum whose mean is 4 e^(1/2).
		{"softmax, half", routed(Softmax, 2, unitRows(1, 1, 1, 1)), tail1 / 4},
		{"softmax over the selected, half", routed(SoftmaxSelected, 2, unitRows(1, 1, 1, 1)), tail1 / 4},
		// The mean of a sigmoid of a symmetric variable is 1/2, that of e^u a share of the sum.
		{"sigmoid, all", routed(Sigmoid, 4, unitRows(3, 3, 3, 3)), 0.5},
		{"softmax, all", routed(Softmax, 4, unitRows(2, 2, 2, 2)), 0.25},
	} {
		for expert, got := range routerMass(t, c.recipe) {
			if math.Abs(got-c.want) > 1e-14 {
				t.Errorf("%s: expert %d has %v, want %v", c.name, expert, got, c.want)
			}
		}
	}
}

// A biased expert that is always chosen has its whole gate, one that is never chosen none.
func TestRouterMassOfBiasedExperts(t *testing.T) {
	r := routed(Sigmoid, 2, unitRows(1, 1, 1, 1, 1, 1))
	r.add("blk.0.exp_probs_b.bias", gguf.F32, 6).data = floats(5, 0, 0, 0, 0, -1e30)
	mass := routerMass(t, r)
	if mass[0] != 0.5 || mass[5] != 0 {
		t.Errorf("masses %v", mass)
	}
	// The other four share one place: each is chosen with probability 1/4.
	const quarter = 0.67448975019608174 // P(Z > quarter) = 1/4, from a table
	for _, got := range mass[1:5] {
		low, high := 0.25/(1+math.Exp(-quarter)), 0.25 // sigmoid is between that and 1
		if got != mass[1] || got < low || got > high {
			t.Errorf("masses %v, want between %v and %v", mass, low, high)
		}
	}
}

// Routers whose gates are not covered are refused with what to use instead.
func TestRouterMassRefuses(t *testing.T) {
	rows := unitRows(1, 2, 3, 4)
	for name, c := range map[string]struct {
		recipe func() *recipe
		want   string
	}{
		"sqrt softplus": {func() *recipe { return routed(SqrtSoftplus, 2, rows) },
			"sqrt(softplus) gates are not covered by router-mass; use router-norm"},
		"state not normalised": {func() *recipe {
			r := routed(Sigmoid, 2, rows)
			r.arch = "smallthinker"
			return r
		}, "not normalised, so router-mass cannot tell"},
		"sigmoid with logit bias": {func() *recipe {
			r := routed(Sigmoid, 2, rows)
			r.add("blk.0.ffn_gate_inp.bias", gguf.F32, 4).data = floats(0, 0, 1, 0)
			return r
		}, "bias on the logits are not covered"},
		"router not a number": {func() *recipe {
			return routed(Sigmoid, 2, unitRows(1, float32(math.NaN()), 3, 4))
		}, `tensor "blk.0.ffn_gate_inp.weight": expert 1: the logit has mean 0 and deviation NaN`},
		"bias not a number": {func() *recipe {
			r := routed(Sigmoid, 2, rows)
			r.add("blk.0.exp_probs_b.bias", gguf.F32, 4).data = floats(0, 0, 1, float32(math.Inf(1)))
			return r
		}, `tensor "blk.0.exp_probs_b.bias": expert 3 is +Inf`},
	} {
		m := c.recipe().model(t)
		_, err := RouterMassScores(context.Background(), m, mustExperts(t, m), nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}

// The number of experts above the threshold is the number used, and no more at the next
// number up.
func TestThreshold(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, softmax := range []bool{false, true} {
		for _, expected := range []float64{0.5, 3, 17, 40} {
			g := randomGate(rng, softmax, 64)
			threshold := g.threshold(expected)
			if n := g.above(threshold); n < expected || n > expected+1e-9 {
				t.Errorf("softmax %v: %v experts above, want %v", softmax, n, expected)
			}
			if next := math.Nextafter(threshold, 2); g.above(next) >= expected {
				t.Errorf("softmax %v: %v is not the greatest threshold", softmax, threshold)
			}
		}
	}
}

func randomGate(rng *rand.Rand, softmax bool, experts int) *gate {
	logits := &routerLogits{mean: make([]float64, experts)}
	for range experts {
		logits.deviation = append(logits.deviation, 0.2+2*rng.Float64())
	}
	gating := Sigmoid
	if softmax {
		gating = Softmax
	}
	var bias []float64
	for range experts {
		bias = append(bias, 0.3*rng.NormFloat64())
	}
	g, err := newGate(gating, logits, bias)
	if err != nil {
		panic(err)
	}
	return g
}

// More weight, more bias or more deviation never lowers an expert's place.
func TestRouterMassGrows(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, softmax := range []bool{false, true} {
		g := randomGate(rng, softmax, 32)
		threshold := g.threshold(4)
		before, _ := g.mass(4)
		g.bias[7] += 0.05
		if raised := g.threshold(4); raised < threshold {
			t.Errorf("a greater bias lowers the threshold from %v to %v", threshold, raised)
		}
		after, _ := g.mass(4)
		if after[7] <= before[7] {
			t.Errorf("a greater bias lowers the mass from %v to %v", before[7], after[7])
		}
		for e := range after {
			if e != 7 && after[e] > before[e] {
				t.Errorf("expert %d gains from another's bias", e)
			}
		}
	}
}

// Groups make room above the threshold for the experts of groups that are not used.
func TestExpectedAbove(t *testing.T) {
	if got := expectedAbove(&Experts{Used: 8, Groups: 8, GroupsUsed: 4}); got != 16 {
		t.Errorf("%v, want 16", got)
	}
	if got := expectedAbove(&Experts{Used: 16, Groups: 1, GroupsUsed: 1}); got != 16 {
		t.Errorf("%v, want 16", got)
	}
}

// The formula against what it claims to expect: normal hidden states routed one by one, with
// a real choice of the best.
func TestRouterMassAgainstSimulation(t *testing.T) {
	const experts, width, used, states = 96, 64, 8, 4000
	rng := rand.New(rand.NewPCG(5, 6))
	rows := make([][]float32, experts)
	bias := make([]float32, experts)
	for e := range rows {
		size := math.Exp(0.5 * rng.NormFloat64())
		for range width {
			rows[e] = append(rows[e], float32(size*rng.NormFloat64()/8))
		}
		bias[e] = float32(0.1 * rng.NormFloat64())
	}
	for _, c := range []struct {
		name   string
		gating Gating
		bias   Role
	}{
		{"sigmoid", Sigmoid, ""},
		{"sigmoid with selection bias", Sigmoid, SelectionBias},
		{"softmax", Softmax, ""},
		{"softmax with logit bias", SoftmaxSelected, RouterBias},
	} {
		r := routed(c.gating, used, rows)
		sim := simulation{gating: c.gating, rows: rows, used: used}
		if c.bias != "" {
			r.add("blk.0."+string(c.bias), gguf.F32, experts).data = floats(bias...)
			sim.selection, sim.logit = bias, bias
			if c.bias == SelectionBias {
				sim.logit = nil
			} else {
				sim.selection = nil
			}
		}
		got, want := routerMass(t, r), sim.run(rng, states)
		if rho := rankCorrelation(got, want); rho < 0.98 {
			t.Errorf("%s: rank correlation %.4f with the simulation", c.name, rho)
		} else {
			t.Logf("%s: rank correlation %.4f with the simulation", c.name, rho)
		}
	}
}

type simulation struct {
	gating           Gating
	rows             [][]float32
	selection, logit []float32
	used             int
}

// run returns each expert's mean gate over random states.
func (s *simulation) run(rng *rand.Rand, states int) []float64 {
	mass := make([]float64, len(s.rows))
	x := make([]float64, len(s.rows[0]))
	gates, keys := make([]float64, len(s.rows)), make([]float64, len(s.rows))
	for range states {
		for j := range x {
			x[j] = rng.NormFloat64()
		}
		var sum float64
		for e, row := range s.rows {
			var u float64
			for j, w := range row {
				u += float64(w) * x[j]
			}
			if s.logit != nil {
				u += float64(s.logit[e])
			}
			gates[e] = math.Exp(u)
			if s.gating == Sigmoid {
				gates[e] = 1 / (1 + math.Exp(-u))
			}
			sum += gates[e]
		}
		order := make([]int, len(gates))
		for e := range order {
			order[e] = e
			if s.gating != Sigmoid {
				gates[e] /= sum
			}
			keys[e] = gates[e]
			if s.selection != nil {
				keys[e] += float64(s.selection[e])
			}
		}
		slices.SortFunc(order, func(a, b int) int { return cmp.Compare(keys[b], keys[a]) })
		for _, e := range order[:s.used] {
			mass[e] += gates[e] / float64(states)
		}
	}
	return mass
}

// rankCorrelation is Spearman's.
func rankCorrelation(a, b []float64) float64 {
	ranks := func(list []float64) []int {
		order := make([]int, len(list))
		for i := range order {
			order[i] = i
		}
		slices.SortFunc(order, func(i, j int) int { return cmp.Compare(list[i], list[j]) })
		rank := make([]int, len(list))
		for place, i := range order {
			rank[i] = place
		}
		return rank
	}
	ra, rb := ranks(a), ranks(b)
	var squares float64
	for i := range ra {
		d := float64(ra[i] - rb[i])
		squares += d * d
	}
	n := float64(len(a))
	return 1 - 6*squares/(n*(n*n-1))
}

// TestMeanLogit weighs a row with the norm's bias: the sign counts.
func TestMeanLogit(t *testing.T) {
	in := routerInput{shift: []float64{1, -2}, factor: 2}
	if got := in.mean([]float64{3, 4}); got != 2*(3*1-4*2) {
		t.Errorf("got %v, want -10", got)
	}
}
