package moetest

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"ggufreap/gguf/gguftest"
	"ggufreap/reap"
)

// A Router chooses the experts of a layer that a token uses.
type Router struct {
	Form
	used, groups, groupsUsed int
	weights                  []float64 // a row an expert
	logitBias                []float64 // nil when there is none
	SelectionBias            []float64
}

// NewRouter reads the router of a block, whose experts may be of any type.
func NewRouter(t *testing.T, spec gguftest.Spec, block int, f Form) *Router {
	t.Helper()
	number := func(suffix string) int {
		n, _ := spec.Metadata.ArchUint(suffix)
		return int(n)
	}
	return &Router{
		Form: f, used: number("expert_used_count"), groups: number("expert_group_count"), groupsUsed: number("expert_group_used_count"),
		weights: numbers(t, spec, block, reap.Router), logitBias: numbers(t, spec, block, reap.RouterBias),
		SelectionBias: numbers(t, spec, block, reap.SelectionBias),
	}
}

// A Choice is an expert that a token uses, and its weight.
type Choice struct {
	ID     int
	Weight float64
	ranked float64
}

// Choose returns the experts that a token uses, by its input of the router, the best first. Only
// those that keep names may be chosen, all when it is nil; a softmax runs over them alone: the
// share of the others goes to them. A layer with groups keeps all.
func (r *Router) Choose(x []float64, keep []int) []Choice {
	choices := r.rank(product(r.weights, x), keep)
	if r.groups > 1 {
		choices = r.inGroups(choices)
	}
	slices.SortStableFunc(choices, better)
	choices = choices[:r.used]
	if r.Renormalise {
		divide(choices)
	}
	for i := range choices {
		choices[i].Weight *= cmp.Or(r.Scale, 1)
	}
	return choices
}

// rank weighs the experts that may be chosen.
func (r *Router) rank(logits []float64, keep []int) []Choice {
	var choices []Choice
	for id, logit := range logits {
		if keep != nil && !slices.Contains(keep, id) {
			continue
		}
		logit += at(r.logitBias, id, 0)
		weight := math.Exp(logit)
		if r.Sigmoid {
			weight = sigmoid(logit)
		}
		choices = append(choices, Choice{ID: id, Weight: weight})
	}
	if !r.Sigmoid {
		divide(choices)
	}
	for i, c := range choices {
		choices[i].ranked = c.Weight + at(r.SelectionBias, c.ID, 0)
	}
	return choices
}

// divide makes the weights of choices add up to 1.
func divide(choices []Choice) {
	var sum float64
	for _, c := range choices {
		sum += c.Weight
	}
	for i := range choices {
		choices[i].Weight /= sum
	}
}

func better(a, b Choice) int { return cmp.Compare(b.ranked, a.ranked) }

// inGroups leaves the experts of the used groups: those whose two best have the greatest sum.
func (r *Router) inGroups(choices []Choice) []Choice {
	groups := slices.Collect(slices.Chunk(choices, len(choices)/r.groups))
	worth := func(group []Choice) float64 {
		ranked := slices.SortedFunc(slices.Values(group), better)
		return ranked[0].ranked + ranked[1].ranked
	}
	slices.SortStableFunc(groups, func(a, b []Choice) int { return cmp.Compare(worth(b), worth(a)) })
	return slices.Concat(groups[:r.groupsUsed]...)
}
