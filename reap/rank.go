package reap

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// ChooseOptions change how [Choose] picks experts. The zero value is right for most.
type ChooseOptions struct {
	// AllowFlat accepts layers in which all experts score the same; the lower ids are
	// kept there.
	AllowFlat bool
	// Always names experts of a block that are kept whatever their score.
	Always map[int][]int
	// Rules are stated in the plan. The rule for draft layers is "scored" unless another is
	// given, and "" for a model without them.
	Rules Rules
}

// Choose makes the plan that keeps the given number of experts in every layer: those
// with the greatest scores, and of equal scores the lower ids. Experts that were never
// routed come last. Where the model routes by groups, every group keeps the same
// number. Keep lists ascend, and the experts of a smaller plan are among those of a
// larger one. The caller names the source and the scores' digest.
func Choose(e *Experts, s *Scores, keep int, o ChooseOptions) (*Plan, error) {
	fs := s.Check(e, o.AllowFlat)
	checkAlways(e, o.Always, keep, &fs)
	if err := e.CheckKeep(keep); err != nil {
		fs.Add("keep count", "%v", err)
	}
	if err := fs.Err(); err != nil {
		return nil, err
	}
	p := &Plan{
		Source:     Source{Architecture: e.Architecture},
		NumExperts: e.Count,
		KeepCount:  keep,
		Criterion:  s.Criterion,
		Rules:      o.Rules,
		Layers:     map[int][]int{},
	}
	p.Rules.DraftLayers = draftRule(e, cmp.Or(o.Rules.DraftLayers, DraftScored))
	for _, l := range e.Layers {
		p.Layers[l.Block] = keepBest(rank(s, l.Block, o.Always[l.Block]), e.Groups, keep)
	}
	return p, nil
}

// Rules for the lists of draft layers.
const (
	DraftScored = "scored"        // by their own scores, as any layer
	DraftGiven  = "given"         // as the file with the lists says
	DraftAsLast = "as-last-layer" // the list of the last layer before them
	DraftMass   = RouterMass      // by router-mass, for want of measured scores
	DraftNorm   = RouterNorm      // by router-norm, for want of measured scores
)

// DraftRules are the rules for draft layers that are known.
var DraftRules = []string{DraftScored, DraftGiven, DraftAsLast, DraftMass, DraftNorm}

// LacksDraft reports whether a draft layer was not scored: it is missing, or all its scores
// are 0. Calibration seldom reaches draft layers.
func (s *Scores) LacksDraft(e *Experts) bool {
	return slices.ContainsFunc(e.Layers, s.lacks)
}

func (s *Scores) lacks(l *Layer) bool {
	return l.Draft && !slices.ContainsFunc(s.Layers[l.Block], func(x float64) bool { return x != 0 })
}

// FillDraft gives draft layers that were not scored the scores of another criterion, or,
// when other is nil, those of the last layer before them. The plan must state the rule.
func (s *Scores) FillDraft(e *Experts, other *Scores) {
	last := -1
	for _, l := range e.Layers {
		if !s.lacks(l) {
			last = l.Block
			continue
		}
		from, block := other, l.Block
		if other == nil {
			from, block = s, last
		}
		delete(s.Counts, l.Block)
		if scores, ok := from.Layers[block]; ok {
			s.Layers[l.Block] = scores
		}
		if counts, ok := from.Counts[block]; ok {
			s.Counts[l.Block] = counts
		}
		s.setPlaces(l.Block, from.Places[block])
	}
}

// draftRule returns the rule that a plan must state: none without draft layers.
func draftRule(e *Experts, rule string) string {
	if slices.ContainsFunc(e.Layers, func(l *Layer) bool { return l.Draft }) {
		return rule
	}
	return ""
}

// FillDraft gives draft layers without a list that of the last layer before them, and
// records the rule. Calibration does not reach draft layers, so plans that were made of it
// often leave them out. A plan that lacks no such list stays as it is.
func (p *Plan) FillDraft(e *Experts) {
	var last []int
	for _, l := range e.Layers {
		switch list, has := p.Layers[l.Block]; {
		case !l.Draft:
			last = list
		case !has && last != nil:
			p.Layers[l.Block] = slices.Clone(last)
			p.Rules.DraftLayers = DraftAsLast
		}
	}
}

func checkAlways(e *Experts, always map[int][]int, keep int, fs *Faults) {
	for _, block := range slices.Sorted(maps.Keys(always)) {
		where := fmt.Sprintf("layer %d", block)
		if e.Layer(block) == nil {
			fs.Add(where, "experts to keep always, but the model has no routed experts there")
			continue
		}
		seen := map[int]bool{}
		inGroup := make([]int, e.Groups)
		for _, id := range always[block] {
			if id < 0 || id >= e.Count || seen[id] {
				fs.Add(where, "expert %d to keep always is out of range or stands twice", id)
				continue
			}
			seen[id] = true
			inGroup[id/(e.Count/e.Groups)]++
		}
		if most := slices.Max(inGroup); most > keep/e.Groups {
			fs.Add(where, "%d experts to keep always, more than the %d kept", most, keep/e.Groups)
		}
	}
}

// rank lists the expert ids of a layer from best to worst.
func rank(s *Scores, block int, always []int) []int {
	byScore, never, forced := s.order(block), s.neverRouted(block), setOf(always, len(s.Layers[block]))
	ids := make([]int, len(forced))
	for i := range ids {
		ids[i] = i
	}
	slices.SortFunc(ids, func(a, b int) int {
		return cmp.Or(
			-compareBool(forced[a], forced[b]),
			compareBool(never[a], never[b]),
			byScore(a, b),
			cmp.Compare(a, b),
		)
	})
	return ids
}

// setOf returns which of so many experts a list names.
func setOf(ids []int, count int) []bool {
	set := make([]bool, count)
	for _, id := range ids {
		set[id] = true
	}
	return set
}

// neverRouted tells of each expert whether tokens were counted and none was routed to it.
func (s *Scores) neverRouted(block int) []bool {
	never := make([]bool, len(s.Layers[block]))
	for id, count := range s.Counts[block] {
		never[id] = count == 0
	}
	return never
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// keepBest takes the first of a ranking, equally many from each group, and returns
// them ascending.
func keepBest(ranking []int, groups, keep int) []int {
	size, room := len(ranking)/groups, make([]int, groups)
	for g := range room {
		room[g] = keep / groups
	}
	kept := make([]int, 0, keep)
	for _, id := range ranking {
		if g := id / size; room[g] > 0 {
			room[g]--
			kept = append(kept, id)
		}
	}
	slices.Sort(kept)
	return kept
}

// KeepOrder lists the experts of a block in the order in which growing keep counts take them:
// the first n are those that [Choose] keeps of the same scores, for every n that the model can
// keep.
func KeepOrder(e *Experts, s *Scores, block int, always []int) []int {
	ranking := rank(s, block, always)
	groups := make([][]int, e.Groups)
	for _, id := range ranking {
		g := id / (len(ranking) / e.Groups)
		groups[g] = append(groups[g], id)
	}
	order := make([]int, 0, len(ranking))
	for place := range groups[0] {
		for _, group := range groups {
			order = append(order, group[place])
		}
	}
	return order
}
