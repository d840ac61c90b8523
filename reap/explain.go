package reap

import (
	"math"
	"slices"
)

// An Explanation says what a choice by scores keeps and where it was close.
type Explanation struct {
	Layers []LayerExplanation // ascending by block
	// Mass is the mean of the layers' masses; Worst is the layer with the least.
	Mass  float64
	Worst LayerExplanation
}

// A LayerExplanation is about the choice in one layer.
type LayerExplanation struct {
	Block int
	Draft bool
	// Mass is the share of the layer's total score that the kept experts have. It is NaN
	// when there is no score to share.
	Mass float64
	// Cut is the least score that was kept for its own sake, Next the greatest that was
	// dropped. Next is above Cut where routing groups had to keep equally many, or an
	// expert without tokens ranked behind. Next is NaN when nothing was dropped.
	Cut, Next float64
	// TiesKept and TiesDropped count the experts that rank exactly as the last one kept does,
	// which the expert number alone told apart; both are 0 unless there are such on both
	// sides.
	TiesKept, TiesDropped int
	// NeverRouted counts experts without tokens, NeverRoutedKept those of them that were
	// kept; -1 when tokens were not counted.
	NeverRouted, NeverRoutedKept int
	// Forced counts experts that are kept whatever their score.
	Forced int
}

// Explain looks at the choice of keep experts that [Choose] makes of the same scores and
// experts to keep always. The scores must have passed [Scores.Check].
func Explain(e *Experts, s *Scores, keep int, always map[int][]int) *Explanation {
	x := &Explanation{}
	for _, l := range e.Layers {
		x.Layers = append(x.Layers, explainLayer(e, s, l, keep, always[l.Block]))
	}
	x.summarise()
	return x
}

func (x *Explanation) summarise() {
	var sum float64
	measured := 0
	x.Mass, x.Worst.Mass = math.NaN(), math.NaN()
	for _, l := range x.Layers {
		if math.IsNaN(l.Mass) {
			continue
		}
		sum += l.Mass
		measured++
		if !(l.Mass >= x.Worst.Mass) { // the first one compares with NaN
			x.Worst = l
		}
	}
	if measured > 0 {
		x.Mass = sum / float64(measured)
	}
}

func explainLayer(e *Experts, s *Scores, l *Layer, keep int, always []int) LayerExplanation {
	scores, counts := s.Layers[l.Block], s.Counts[l.Block]
	x := LayerExplanation{
		Block: l.Block, Draft: l.Draft, Forced: len(always),
		Cut: math.NaN(), Next: math.NaN(), NeverRouted: -1, NeverRoutedKept: -1,
	}
	ranking := rank(s, l.Block, always)
	kept := keepBest(ranking, e.Groups, keep)
	x.Mass = share(scores, kept)
	if counts != nil {
		x.NeverRouted = count(ranking, func(id int) bool { return counts[id] == 0 })
		x.NeverRoutedKept = count(kept, func(id int) bool { return counts[id] == 0 })
	}
	groups := make([][]int, e.Groups)
	for _, id := range ranking {
		g := id / (len(scores) / e.Groups)
		groups[g] = append(groups[g], id)
	}
	forced := setOf(always, len(scores))
	for _, group := range groups {
		x.addGroup(s, group, keep/e.Groups, forced)
	}
	return x
}

// addGroup adds what happened at the cut of one routing group; forced says of each expert
// whether it is kept always.
func (x *LayerExplanation) addGroup(s *Scores, ranking []int, keep int, forced []bool) {
	scores := s.Layers[x.Block]
	kept, dropped := ranking[:keep], ranking[keep:]
	last := kept[keep-1]
	if len(dropped) > 0 {
		x.Next = maxOrNaN(x.Next, scores[dropped[0]])
	}
	if forced[last] {
		return // nothing was kept for its own sake
	}
	x.Cut = -maxOrNaN(-x.Cut, -scores[last])
	never := s.neverRouted(x.Block)
	equal := func(id int) bool {
		return !forced[id] && s.compare(x.Block, id, last) == 0 && never[id] == never[last]
	}
	if lost := count(dropped, equal); lost > 0 {
		x.TiesKept += count(kept, equal)
		x.TiesDropped += lost
	}
}

// maxOrNaN returns the greater number, and b when a is NaN.
func maxOrNaN(a, b float64) float64 {
	if math.IsNaN(a) {
		return b
	}
	return max(a, b)
}

func count[T any](list []T, is func(T) bool) int {
	n := 0
	for _, x := range list {
		if is(x) {
			n++
		}
	}
	return n
}

// share returns how much of the sum of scores the chosen have; NaN when that is nothing.
func share(scores []float64, chosen []int) float64 {
	var all float64
	for _, x := range scores {
		all += x
	}
	if all <= 0 {
		return math.NaN()
	}
	return sumOf(scores, chosen) / all
}

// sumOf adds up the scores of the chosen.
func sumOf(scores []float64, chosen []int) float64 {
	var sum float64
	for _, id := range chosen {
		sum += scores[id]
	}
	return sum
}

// KeepCounts returns counts that the model can keep: sixteenths of its experts, as near as
// groups allow, and the given ones, ascending.
func (e *Experts) KeepCounts(also ...int) []int {
	counts := slices.Clone(also)
	for i := 1; i <= 16; i++ {
		n := e.Count * i / 16 / e.Groups * e.Groups
		if e.CheckKeep(n) == nil {
			counts = append(counts, n)
		}
	}
	slices.Sort(counts)
	return slices.Compact(counts)
}

// LargestKeep returns the greatest count that the model can keep and for which fits holds,
// 0 when there is none. It tries counts from the top down and stops at the first.
func (e *Experts) LargestKeep(fits func(keep int) (bool, error)) (int, error) {
	for keep := e.Count; keep > 0; keep-- {
		if e.CheckKeep(keep) != nil {
			continue
		}
		if ok, err := fits(keep); ok || err != nil {
			return keep, err
		}
	}
	return 0, nil
}
