package reap

import (
	"bytes"
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"ggufreap/gguf"
)

func same(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }

func TestExplain(t *testing.T) {
	e := mustExperts(t, moe(1).model(t))
	grouped := *e
	grouped.Groups, grouped.GroupsUsed = 2, 1
	nan := math.NaN()
	for _, c := range []struct {
		name   string
		e      *Experts
		scores []float64
		counts []float64
		keep   int
		always []int
		want   LayerExplanation
	}{
		{name: "clear cut", scores: []float64{8, 1, 2, 3, 4, 5, 6, 7}, keep: 4,
			want: LayerExplanation{Mass: 26.0 / 36, Cut: 5, Next: 4, NeverRouted: -1, NeverRoutedKept: -1}},
		{name: "tie at the cut", scores: []float64{5, 3, 3, 3, 3, 1, 0, 0}, keep: 3,
			want: LayerExplanation{Mass: 11.0 / 18, Cut: 3, Next: 3, TiesKept: 2, TiesDropped: 2, NeverRouted: -1, NeverRoutedKept: -1}},
		{name: "ties on one side only", scores: []float64{5, 3, 3, 1, 1, 1, 0, 0}, keep: 3,
			want: LayerExplanation{Mass: 11.0 / 14, Cut: 3, Next: 1, NeverRouted: -1, NeverRoutedKept: -1}},
		{name: "all kept", scores: []float64{1, 2, 3, 4, 5, 6, 7, 8}, keep: 8,
			want: LayerExplanation{Mass: 1, Cut: 1, Next: nan, NeverRouted: -1, NeverRoutedKept: -1}},
		{name: "no score", scores: make([]float64, 8), keep: 3,
			want: LayerExplanation{Mass: nan, Cut: 0, Next: 0, TiesKept: 3, TiesDropped: 5, NeverRouted: -1, NeverRoutedKept: -1}},
		// Experts 5, 6 and 7 have no tokens; one of them is kept, by its number.
		{name: "never routed", scores: []float64{4, 3, 2, 1, 1, 0, 0, 0}, counts: []float64{1, 1, 1, 1, 1, 0, 0, 0}, keep: 6,
			want: LayerExplanation{Mass: 1, Cut: 0, Next: 0, TiesKept: 1, TiesDropped: 2, NeverRouted: 3, NeverRoutedKept: 1}},
		// A measured score of 0 is no tie with an expert that was never measured.
		{name: "zero and never routed", scores: []float64{4, 3, 0, 0, 0, 0, 0, 0}, counts: []float64{1, 1, 1, 0, 0, 0, 0, 0}, keep: 3,
			want: LayerExplanation{Mass: 1, Cut: 0, Next: 0, NeverRouted: 5, NeverRoutedKept: 0}},
		// Expert 7 is kept whatever it scores; expert 2 is the last that is kept for its score.
		{name: "forced", scores: []float64{8, 7, 6, 5, 4, 3, 2, 1}, keep: 4, always: []int{7},
			want: LayerExplanation{Mass: 22.0 / 36, Cut: 6, Next: 5, Forced: 1, NeverRouted: -1, NeverRoutedKept: -1}},
		{name: "all forced", scores: []float64{8, 7, 6, 5, 4, 3, 2, 1}, keep: 2, always: []int{6, 7},
			want: LayerExplanation{Mass: 3.0 / 36, Cut: nan, Next: 8, Forced: 2, NeverRouted: -1, NeverRoutedKept: -1}},
		// Each half keeps its best two: the tie of 1s is in the second half only.
		{name: "groups", e: &grouped, scores: []float64{9, 8, 7, 6, 2, 1, 1, 1}, keep: 4,
			want: LayerExplanation{Mass: 20.0 / 35, Cut: 1, Next: 7, TiesKept: 1, TiesDropped: 2, NeverRouted: -1, NeverRoutedKept: -1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.e == nil {
				c.e = e
			}
			s := scored(c.e, c.scores...)
			if c.counts != nil {
				s.Counts = map[int][]float64{1: c.counts}
			}
			x := Explain(c.e, s, c.keep, map[int][]int{1: c.always})
			got, want := x.Layers[0], c.want
			if !same(got.Mass, want.Mass) || !same(got.Cut, want.Cut) || !same(got.Next, want.Next) || !same(x.Mass, want.Mass) {
				t.Errorf("mass %v, cut %v, next %v, mean %v; want %v, %v, %v", got.Mass, got.Cut, got.Next, x.Mass, want.Mass, want.Cut, want.Next)
			}
			got.Mass, got.Cut, got.Next, want.Mass, want.Cut, want.Next, want.Block = 0, 0, 0, 0, 0, 0, 1
			if got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

func TestExplainSummary(t *testing.T) {
	e := mustExperts(t, moe(3).model(t))
	s := scored(e, 1, 1, 1, 1, 0, 0, 0, 0)
	s.Layers[2] = []float64{1, 1, 1, 1, 1, 1, 1, 1}
	s.Layers[3] = make([]float64, 8)
	x := Explain(e, s, 4, nil)
	if x.Mass != 0.75 || x.Worst.Block != 2 || x.Worst.Mass != 0.5 {
		t.Errorf("mean %v, worst %+v; want 0.75, and 0.5 in layer 2", x.Mass, x.Worst)
	}
}

// What is explained is what is chosen: cut and mass by another way, over random scores with
// many ties.
func TestExplainAgreesWithChoose(t *testing.T) {
	e := mustExperts(t, moe(2).model(t))
	rng := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		s := scored(e, make([]float64, 8)...)
		for _, scores := range s.Layers {
			for i := range scores {
				scores[i] = float64(rng.IntN(4))
			}
		}
		keep := 2 + rng.IntN(7)
		p, err := Choose(e, s, keep, ChooseOptions{AllowFlat: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range Explain(e, s, keep, nil).Layers {
			in := kept(s, p, x.Block)
			out := dropped(s, p, x.Block)
			if x.Cut != slices.Min(in) || len(out) > 0 && x.Next != slices.Max(out) {
				t.Fatalf("cut %v, next %v, but %v is kept and %v dropped", x.Cut, x.Next, in, out)
			}
			tied := func(list []float64) (n int) {
				for _, score := range list {
					if score == x.Cut {
						n++
					}
				}
				return n
			}
			if lost := tied(out); lost != x.TiesDropped || lost > 0 && tied(in) != x.TiesKept {
				t.Fatalf("%d and %d ties, but %v is kept and %v dropped", x.TiesKept, x.TiesDropped, in, out)
			}
		}
	}
}

func TestCompare(t *testing.T) {
	e := mustExperts(t, moe(2).model(t))
	s := scored(e, 10, 8, 6, 4, 4, 2, 1, 1)
	p, err := Choose(e, s, 4, ChooseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	other := planFor(e, 7, 0, 4, 1) // 7 for 2, and 4 for 3, which scores the same
	other.Layers[2] = []int{3, 2, 1, 0}
	c, err := Compare(e, s, p, other)
	if err != nil {
		t.Fatal(err)
	}
	want := LayerComparison{Block: 1, Overlap: 0.5, Retention: 23.0 / 28, Differing: 4, Ties: 2}
	if c.Layers[0] != want {
		t.Errorf("got %+v, want %+v", c.Layers[0], want)
	}
	if want := (LayerComparison{Block: 2, Overlap: 1, Retention: 1}); c.Layers[1] != want {
		t.Errorf("got %+v, want %+v", c.Layers[1], want)
	}
	if c.Overlap != 0.75 || c.Chance != 0.5 || c.Retention != (23.0/28+1)/2 || c.Differing != 4 || c.Ties != 2 {
		t.Errorf("means %+v", c)
	}
	// A smaller plan that is part of the larger one overlaps wholly.
	c, err = Compare(e, s, p, planFor(e, 1, 0))
	if err != nil || c.Overlap != 1 || c.Retention != 1 || c.Chance != 0.5 {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := Compare(e, s, p, &Plan{NumExperts: 8, KeepCount: 4, Layers: map[int][]int{1: {0, 1, 2, 3}}}); err == nil {
		t.Error("plans of other layers compare")
	}
}

func TestKeepCounts(t *testing.T) {
	e := &Experts{Count: 64, Used: 6, Groups: 8, GroupsUsed: 3}
	if got, want := e.KeepCounts(24), []int{16, 24, 32, 40, 48, 56, 64}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	e = &Experts{Count: 896, Used: 16, Groups: 1, GroupsUsed: 1}
	if got := e.KeepCounts(568); len(got) != 17 || got[0] != 56 || got[16] != 896 || !slices.Contains(got, 568) {
		t.Errorf("got %v", got)
	}
}

func TestLargestKeep(t *testing.T) {
	e := &Experts{Count: 64, Used: 6, Groups: 8, GroupsUsed: 3}
	for limit, want := range map[int]int{1000: 64, 64: 64, 63: 56, 17: 16, 15: 0} {
		got, err := e.LargestKeep(func(keep int) (bool, error) { return keep <= limit, nil })
		if err != nil || got != want {
			t.Errorf("limit %d: %d, want %d (%v)", limit, got, want, err)
		}
	}
}

// The outline of a count has the layout of every plan with that count, to the byte.
func TestOutline(t *testing.T) {
	m := moe(3).model(t)
	e := mustExperts(t, m)
	p := planFor(e, 7, 0, 3)
	views, err := Views(context.Background(), m, e, p)
	if err != nil {
		t.Fatal(err)
	}
	md, err := Metadata(m, e, p, Provenance{})
	if err != nil {
		t.Fatal(err)
	}
	lay := func(views []gguf.View) *gguf.Layout {
		layout, err := gguf.NewLayout(gguf.Contents{Version: 3, Metadata: md, Views: views}, gguf.Split{Shards: 5})
		if err != nil {
			t.Fatal(err)
		}
		return layout
	}
	want, got := lay(views), lay(Outline(m, e, 3))
	for i, shard := range got.Shards {
		var b bytes.Buffer
		if err := want.Shards[i].Write(context.Background(), &b, make([]byte, 512), nil); err != nil {
			t.Fatal(err)
		}
		if shard.Size != int64(b.Len()) || !slices.Equal(shard.Offsets, want.Shards[i].Offsets) {
			t.Errorf("shard %d: %d bytes, want %d", i, shard.Size, b.Len())
		}
	}
}
