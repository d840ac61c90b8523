package reap

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// The rules of choosing, each stated for itself, over random models, scores with many ties,
// experts without tokens, groups and experts to keep always.
func TestChooseRules(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for range 400 {
		c := randomChoice(rng)
		var larger *Plan
		for keep := c.e.Count; keep >= c.least; keep -= c.e.Groups {
			p, err := Choose(c.e, c.s, keep, ChooseOptions{AllowFlat: true, Always: c.always})
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Check(c.e).Err(); err != nil {
				t.Fatalf("the plan does not fit its model: %v", err)
			}
			for block, kept := range p.Layers {
				c.checkLayer(t, block, kept, keep)
				for _, id := range kept {
					if larger != nil && !slices.Contains(larger.Layers[block], id) {
						t.Fatalf("expert %d is kept among %d and not among %d", id, keep, keep+c.e.Groups)
					}
				}
			}
			larger = p
		}
	}
}

// A randomChoiceCase is a model's experts with scores for them.
type randomChoiceCase struct {
	e      *Experts
	s      *Scores
	always map[int][]int
	least  int // keep count
}

func randomChoice(rng *rand.Rand) randomChoiceCase {
	groups := []int{1, 1, 2, 4}[rng.IntN(4)]
	c := randomChoiceCase{
		e:      &Experts{Architecture: "x", Count: 24, Used: 2, Groups: groups, GroupsUsed: max(1, groups/2)},
		s:      &Scores{Criterion: Criterion{Name: "x"}, Layers: map[int][]float64{}, Counts: map[int][]float64{}},
		always: map[int][]int{},
	}
	for block := range 1 + rng.IntN(3) {
		c.e.Layers = append(c.e.Layers, &Layer{Block: block})
		for range c.e.Count {
			c.s.Layers[block] = append(c.s.Layers[block], float64(rng.IntN(6)))
		}
		if rng.IntN(2) == 0 {
			for range c.e.Count {
				c.s.Counts[block] = append(c.s.Counts[block], float64(rng.IntN(3)))
			}
		}
		c.always[block] = rng.Perm(c.e.Count)[:rng.IntN(3)]
	}
	c.least = 2 * groups // room for the experts to keep always, and what groups need
	return c
}

func (c randomChoiceCase) checkLayer(t *testing.T, block int, kept []int, keep int) {
	t.Helper()
	size := c.e.Count / c.e.Groups
	perGroup := make([]int, c.e.Groups)
	for _, id := range kept {
		perGroup[id/size]++
	}
	if len(kept) != keep || !slices.IsSorted(kept) || slices.Min(perGroup) != slices.Max(perGroup) {
		t.Fatalf("keeps %v, want %d ascending, as many from each group", kept, keep)
	}
	for _, id := range c.always[block] {
		if !slices.Contains(kept, id) {
			t.Fatalf("expert %d is to be kept always and is dropped", id)
		}
	}
	for dropped := range c.e.Count {
		if slices.Contains(kept, dropped) {
			continue
		}
		for _, id := range kept {
			if id/size == dropped/size && !slices.Contains(c.always[block], id) && !c.better(block, id, dropped) {
				t.Fatalf("layer %d keeps expert %d and drops %d, scores %v, counts %v", block, id, dropped, c.s.Layers[block], c.s.Counts[block])
			}
		}
	}
}

// better states the order: with tokens before without, then by score, then by number.
func (c randomChoiceCase) better(block, a, b int) bool {
	scores, counts := c.s.Layers[block], c.s.Counts[block]
	if counts != nil && (counts[a] == 0) != (counts[b] == 0) {
		return counts[b] == 0
	}
	if scores[a] != scores[b] {
		return scores[a] > scores[b]
	}
	return a < b
}
