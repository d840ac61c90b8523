package reap

import (
	"context"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
)

func massScores(t *testing.T, m *gguf.Model) *Scores {
	t.Helper()
	s, err := RouterMassScores(context.Background(), m, mustExperts(t, m), nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Masses that are too small for a float64 keep their order. Without biases that is the order
// of the deviations.
func TestSmallMassesKeepTheirOrder(t *testing.T) {
	deviations := []float32{0.03, 60, 0.003, 0.004, 0.0625, 61, 1e-20, 0.05}
	places := []int{4, 1, 6, 5, 2, 0, 7, 3}
	for _, gating := range []Gating{Sigmoid, Softmax} {
		s := massScores(t, routed(gating, 1, unitRows(deviations...)).model(t))
		if got := s.Places[0]; !slices.Equal(got, places) {
			t.Errorf("%s: places %v, want %v", gating, got, places)
		}
		if mass := s.Layers[0]; mass[2] != 0 || mass[3] != 0 || mass[5] == 0 {
			t.Errorf("%s: masses %v, want none for the least", gating, mass)
		}
	}
}

// Experts that the threshold is out of reach for have no mass, and an order: by their biases
// where they are alike, by their deviations where their biases are the same.
func TestUnreachableExpertsKeepTheirOrder(t *testing.T) {
	for name, c := range map[string]struct {
		deviations, bias []float32
		places           []int
	}{
		"by bias":      {[]float32{1, 1, 1, 1, 1, 1}, []float32{-9, 5, -30, -3, 5, -1e30}, []int{3, 0, 4, 2, 0, 5}},
		"by deviation": {[]float32{1, 0.5, 1, 3, 2, 0.5}, []float32{5, -2, 5, -2, -2, -2}, []int{0, 4, 0, 2, 3, 4}},
		// A little more bias is less than a gate that varies much more.
		"by both": {[]float32{1, 0.25, 1, 4, 0.25, 4}, []float32{5, -2, 5, -2.1, -2.15, -2.2}, []int{0, 2, 0, 3, 5, 4}},
	} {
		r := routed(Sigmoid, 2, unitRows(c.deviations...))
		r.add("blk.0.exp_probs_b.bias", gguf.F32, 6).data = floats(c.bias...)
		s := massScores(t, r.model(t))
		if got := s.Places[0]; !slices.Equal(got, c.places) {
			t.Errorf("%s: places %v, want %v", name, got, c.places)
		}
		for expert, mass := range s.Layers[0] {
			if chosen := c.bias[expert] == 5; chosen != (mass == 0.5) || !chosen && mass != 0 {
				t.Errorf("%s: expert %d has mass %v", name, expert, mass)
			}
		}
	}
}

// Places agree with the masses, and an expert that gains from its bias never loses a place.
func TestPlacesAgreeWithMasses(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for trial := range 40 {
		g := randomGate(rng, trial%2 == 0, 48)
		for e := range g.bias {
			g.bias[e] *= 4 // most are out of reach
		}
		mass, places := g.mass(3)
		for a := range mass {
			for b := range mass {
				if mass[a] > mass[b] && places[a] >= places[b] {
					t.Fatalf("masses %v and %v have places %d and %d", mass[a], mass[b], places[a], places[b])
				}
				if a != b && places[a] == places[b] {
					t.Fatalf("two experts have place %d", places[a])
				}
			}
		}
		e := rng.IntN(len(mass))
		g.bias[e] += rng.Float64()
		if _, raised := g.mass(3); raised[e] > places[e] {
			t.Errorf("a greater bias moves expert %d from place %d to %d", e, places[e], raised[e])
		}
	}
}

// In the fixture, as in the real model, biases differ more than gates vary, and most experts
// are out of reach. All of them differ, so all have places of their own.
func TestFixtureHasNoTies(t *testing.T) {
	m, err := gguftest.K3(gguftest.K3Options{}).Model(gguf.Split{Shards: 2})
	if err != nil {
		t.Fatal(err)
	}
	e := mustExperts(t, m)
	s := massScores(t, m)
	for _, block := range e.Blocks() {
		places := slices.Clone(s.Places[block])
		slices.Sort(places)
		if len(slices.Compact(places)) != e.Count {
			t.Errorf("layer %d: not %d different places", block, e.Count)
		}
	}
	for _, l := range Explain(e, s, 568, nil).Layers {
		if l.TiesDropped != 0 {
			t.Errorf("layer %d: %d experts are dropped by their number", l.Block, l.TiesDropped)
		}
	}
}

// Where there are places, they order experts, are a part of what the digest is taken of, and
// go with a layer's scores where those are used for another.
func TestPlaces(t *testing.T) {
	s := &Scores{Layers: map[int][]float64{0: {0, 0, 1}, 1: {2, 2, 2}}, Places: map[int][]int{0: {2, 1, 0}}}
	var b strings.Builder
	if _, err := s.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	want := "0\t0\t0x0p+00\t\t2\n0\t1\t0x0p+00\t\t1\n0\t2\t0x1p+00\t\t0\n" +
		"1\t0\t0x1p+01\n1\t1\t0x1p+01\n1\t2\t0x1p+01\n"
	if b.String() != want {
		t.Errorf("written as\n%s", b.String())
	}
	if s.flat(0) || !s.flat(1) {
		t.Error("a layer with places is flat, or one with equal scores is not")
	}
	e := &Experts{Count: 3, Used: 1, Groups: 1, Layers: []*Layer{{Block: 0}, {Block: 1, Draft: true}}}
	p, err := Choose(e, s, 2, ChooseOptions{AllowFlat: true})
	if err != nil || !reflect.DeepEqual(p.Layers, map[int][]int{0: {1, 2}, 1: {0, 1}}) {
		t.Errorf("%v, %v", p, err)
	}
	delete(s.Layers, 1)
	s.FillDraft(e, &Scores{Layers: map[int][]float64{1: {0, 0, 0}}, Places: map[int][]int{1: {1, 2, 0}}})
	if !slices.Equal(s.Places[1], []int{1, 2, 0}) {
		t.Errorf("places %v", s.Places)
	}
	s.Places[0] = []int{0}
	wantFaults(t, s.Check(e, true), "layer 0: 1 places for 3 experts")
}
