package reap

import (
	"bytes"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// scored gives every layer the same scores.
func scored(e *Experts, scores ...float64) *Scores {
	s := &Scores{Criterion: Criterion{Name: "x", Version: 3}, Layers: map[int][]float64{}}
	for _, b := range e.Blocks() {
		s.Layers[b] = slices.Clone(scores)
	}
	return s
}

func TestChoose(t *testing.T) {
	e := mustExperts(t, moe(2).model(t))
	s := scored(e, 1, 5, 3, 3, 0, 3, 2, -1)
	for _, c := range []struct {
		name   string
		keep   int
		counts []float64
		always []int
		want   []int
	}{
		{name: "greatest", keep: 2, want: []int{1, 2}},
		{name: "ties go to lower ids", keep: 3, want: []int{1, 2, 3}},
		{name: "all", keep: 8, want: []int{0, 1, 2, 3, 4, 5, 6, 7}},
		{name: "never routed come last", keep: 4, counts: []float64{9, 0, 9, 0, 9, 9, 9, 9}, want: []int{0, 2, 5, 6}},
		{name: "never routed before nobody", keep: 7, counts: []float64{9, 0, 9, 0, 9, 9, 9, 9}, want: []int{0, 1, 2, 4, 5, 6, 7}},
		{name: "kept always", keep: 3, always: []int{7, 4}, want: []int{1, 4, 7}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &Scores{Criterion: s.Criterion, Layers: s.Layers, Counts: map[int][]float64{}}
			always := map[int][]int{}
			for _, b := range e.Blocks() {
				if c.counts != nil {
					s.Counts[b] = c.counts
				}
				always[b] = c.always
			}
			got, err := Choose(e, s, c.keep, ChooseOptions{Always: always})
			if err != nil {
				t.Fatal(err)
			}
			want := planFor(e, c.want...)
			want.Source, want.Criterion = Source{Architecture: "test"}, s.Criterion
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

func TestChooseFaults(t *testing.T) {
	e := mustExperts(t, moe(2).model(t))
	good := []float64{1, 2, 3, 4, 5, 6, 7, 8}
	cases := map[string]struct {
		spoil  func(s *Scores)
		keep   int
		always map[int][]int
		want   []string
	}{
		"not finite": {spoil: func(s *Scores) { s.Layers[1][3] = math.NaN(); s.Layers[2][0] = math.Inf(1) },
			want: []string{"layer 1: score of expert 3 is NaN", "layer 2: score of expert 0 is +Inf"}},
		"layer missing": {spoil: func(s *Scores) { delete(s.Layers, 2) },
			want: []string{"layer 2: has experts but no scores"}},
		"layer too many": {spoil: func(s *Scores) { s.Layers[0] = good },
			want: []string{"layer 0: scored, but the model has no routed experts there"}},
		"length": {spoil: func(s *Scores) { s.Layers[1] = good[:7] },
			want: []string{"layer 1: 7 scores for 8 experts"}},
		"flat": {spoil: func(s *Scores) { s.Layers[1] = make([]float64, 8) },
			want: []string{"layer 1: all experts score 0, so nothing is known"}},
		"count not a number": {spoil: func(s *Scores) { s.Counts = map[int][]float64{1: {math.NaN(), 1, 1, 1, 1, 1, 1, 1}} },
			want: []string{"layer 1: count of expert 0 is NaN"}},
		"counts of another length": {spoil: func(s *Scores) { s.Counts = map[int][]float64{1: {1}} },
			want: []string{"layer 1: 1 counts for 8 experts"}},
		"too few":  {keep: 1, want: []string{"keep count: 1, want 2 (the experts used for a token) to 8"}},
		"too many": {keep: 9, want: []string{"keep count: 9, want 2"}},
		"forced": {always: map[int][]int{0: {1}, 1: {8, 2, 2}, 2: {1, 2, 3, 4, 5}},
			want: []string{"layer 0: experts to keep always", "layer 1: expert 8", "layer 1: expert 2", "layer 2: 5 experts to keep always, more than the 4 kept"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := scored(e, good...)
			if c.spoil != nil {
				c.spoil(s)
			}
			keep := c.keep
			if keep == 0 {
				keep = 4
			}
			_, err := Choose(e, s, keep, ChooseOptions{Always: c.always})
			faults, _ := err.(Faults)
			wantFaults(t, faults, c.want...)
		})
	}
	flat := scored(e, make([]float64, 8)...)
	p, err := Choose(e, flat, 3, ChooseOptions{AllowFlat: true})
	if err != nil || !slices.Equal(p.Layers[1], []int{0, 1, 2}) {
		t.Errorf("flat scores, allowed: %+v, %v", p, err)
	}
}

func TestChooseByGroups(t *testing.T) {
	r := moe(1)
	r.set("expert_group_count", 2)
	r.set("expert_group_used_count", 1)
	e := mustExperts(t, r.model(t))
	s := scored(e, 9, 8, 7, 6, 1, 2, 3, 4) // the best four are all in group 0
	p, err := Choose(e, s, 4, ChooseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := p.Layers[1], []int{0, 1, 6, 7}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if err := p.Check(e).Err(); err != nil {
		t.Error(err)
	}
	if _, err := Choose(e, s, 5, ChooseOptions{}); err == nil || !strings.Contains(err.Error(), "cannot share equally") {
		t.Errorf("5 of 2 groups: %v", err)
	}
}

// Whatever the scores, a smaller plan is part of a larger one, and every plan fits.
func TestChooseIsNested(t *testing.T) {
	r := moe(3)
	r.set("nextn_predict_layers", 1)
	e := mustExperts(t, r.model(t))
	for seed := range uint64(50) {
		s := RandomScores(e, seed)
		if seed%2 == 1 { // many ties
			for _, scores := range s.Layers {
				for i := range scores {
					scores[i] = math.Floor(scores[i] * 3)
				}
			}
		}
		var larger *Plan
		for keep := 8; keep >= 2; keep-- {
			p, err := Choose(e, s, keep, ChooseOptions{AllowFlat: true})
			if err != nil {
				t.Fatal(err)
			}
			if p.Rules.DraftLayers != DraftScored {
				t.Errorf("rules %+v", p.Rules)
			}
			if err := p.Check(e).Err(); err != nil {
				t.Fatal(err)
			}
			for block, list := range p.Layers {
				for _, id := range list {
					if larger != nil && !slices.Contains(larger.Layers[block], id) {
						t.Errorf("seed %d: layer %d keeps %d of %v, but not of more", seed, block, id, list)
					}
				}
			}
			larger = p
		}
	}
}

// The first outputs of SplitMix64 from seed 0, as its authors' C code prints them.
func TestMix64(t *testing.T) {
	var state uint64
	for _, want := range []uint64{0xe220a8397b1dcdaf, 0x6e789e6aa1b965f4, 0x06c45d188009454f} {
		if got := mix64(state); got != want {
			t.Errorf("got %#x, want %#x", got, want)
		}
		state += 0x9e3779b97f4a7c15
	}
}

func TestScoresWriteTo(t *testing.T) {
	s := &Scores{
		Layers: map[int][]float64{10: {0.5}, 2: {3, -0.1}},
		Counts: map[int][]float64{2: {7, 0}},
	}
	var b bytes.Buffer
	n, err := s.WriteTo(&b)
	want := "2\t0\t0x1.8p+01\t0x1.cp+02\n2\t1\t-0x1.999999999999ap-04\t0x0p+00\n10\t0\t0x1p-01\n"
	if err != nil || b.String() != want || n != int64(len(want)) {
		t.Errorf("%d, %v, got\n%s", n, err, &b)
	}
}

// Draft layers that a run did not reach are ranked by another criterion, or as the last
// layer before them; all else as measured.
func TestFillDraftScores(t *testing.T) {
	r := moe(3)
	r.set("nextn_predict_layers", 1)
	e := mustExperts(t, r.model(t))
	proxy := scored(e, 1, 2, 3, 4, 5, 6, 7, 8)
	measured := func(draft []float64) *Scores {
		s := scored(e, 8, 7, 6, 5, 4, 3, 2, 1)
		s.Counts = map[int][]float64{2: {0, 1, 1, 1, 1, 1, 1, 1}}
		if s.Layers[3] = draft; draft == nil {
			delete(s.Layers, 3)
		} else {
			s.Counts[3] = slices.Clone(draft) // a table of counts
		}
		return s
	}
	if measured([]float64{0, 0, 0, 0, 0, 0, 0, 3}).LacksDraft(e) {
		t.Error("a scored draft layer passes for one that is not")
	}
	for _, draft := range [][]float64{nil, make([]float64, 8)} {
		s := measured(draft)
		if !s.LacksDraft(e) {
			t.Error("a draft layer without scores passes")
		}
		if _, err := Choose(e, s, 2, ChooseOptions{}); err == nil || !strings.Contains(err.Error(), "layer 3: ") {
			t.Errorf("error %v", err)
		}
		for rule, want := range map[string][]int{DraftMass: {6, 7}, DraftAsLast: {1, 2}} {
			s := measured(draft)
			if rule == DraftMass {
				s.FillDraft(e, proxy)
			} else {
				s.FillDraft(e, nil)
			}
			p, err := Choose(e, s, 2, ChooseOptions{Rules: Rules{DraftLayers: rule}})
			if err != nil {
				t.Fatal(err)
			}
			if want := (map[int][]int{1: {0, 1}, 2: {1, 2}, 3: want}); !reflect.DeepEqual(p.Layers, want) || p.Rules.DraftLayers != rule {
				t.Errorf("%s: %v and %+v, want %v", rule, p.Layers, p.Rules, want)
			}
			if err := p.Check(e).Err(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestKeepOrder wants the first n of the order to be those that are kept, for every n.
func TestKeepOrder(t *testing.T) {
	e := mustExperts(t, moe(2).model(t))
	s := scored(e, 1, 5, 3, 3, 0, 3, 2, -1)
	for _, groups := range []int{1, 2, 4} {
		e.Groups = groups
		for _, always := range [][]int{nil, {7}} {
			for keep := groups * 2; keep <= e.Count; keep += groups {
				plan, err := Choose(e, s, keep, ChooseOptions{Always: map[int][]int{e.Blocks()[0]: always}})
				if err != nil {
					t.Fatal(err)
				}
				block := e.Blocks()[0]
				first := slices.Sorted(slices.Values(KeepOrder(e, s, block, always)[:keep]))
				if !slices.Equal(first, plan.Layers[block]) {
					t.Errorf("%d groups, keep %d: %v, want %v", groups, keep, first, plan.Layers[block])
				}
			}
		}
	}
}
