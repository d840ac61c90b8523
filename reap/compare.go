package reap

import (
	"fmt"
	"math"
	"slices"
)

// A Comparison holds two plans of one model against each other, and against scores.
type Comparison struct {
	Layers []LayerComparison // ascending by block
	// Means over the layers. Chance is the overlap to expect of two plans drawn blindly.
	Overlap, Chance, Retention float64
	// Differing and Ties are sums over the layers.
	Differing, Ties int
}

// A LayerComparison is about one layer.
type LayerComparison struct {
	Block int
	// Overlap is how many of the smaller list's experts are in the other one, as a share.
	Overlap float64
	// Retention is the score that the other plan's experts have, over the score of the best
	// choice of as many: 1 when the other plan is as good by these scores. It is NaN when the
	// best choice scores 0.
	Retention float64
	// Differing counts experts that one of the plans keeps and not the other; Ties those
	// of them that score exactly at the cut of the first plan, so that the expert number
	// alone decided.
	Differing, Ties int
}

// Compare compares another plan with the plan p that was chosen by the scores s. Lists are
// compared as sets. It errs when the plans are not of one model.
func Compare(e *Experts, s *Scores, p, other *Plan) (*Comparison, error) {
	if p.NumExperts != other.NumExperts || !slices.Equal(p.Blocks(), other.Blocks()) {
		return nil, fmt.Errorf("the plans are not of one model: %d experts in %s, and %d experts in %s",
			p.NumExperts, layerList(p.Blocks()), other.NumExperts, layerList(other.Blocks()))
	}
	c := &Comparison{Chance: float64(max(p.KeepCount, other.KeepCount)) / float64(p.NumExperts)}
	var overlap, retention float64
	scored := 0
	for _, block := range p.Blocks() {
		l := compareLayer(e, s, block, p.Layers[block], other.Layers[block])
		c.Layers = append(c.Layers, l)
		c.Differing += l.Differing
		c.Ties += l.Ties
		overlap += l.Overlap
		if !math.IsNaN(l.Retention) {
			retention += l.Retention
			scored++
		}
	}
	c.Overlap = overlap / float64(len(c.Layers))
	c.Retention = retention / float64(scored) // NaN when there is none
	return c, nil
}

func compareLayer(e *Experts, s *Scores, block int, ours, theirs []int) LayerComparison {
	scores := s.Layers[block]
	l := LayerComparison{Block: block}
	last := slices.MaxFunc(ours, func(a, b int) int { return s.compare(block, a, b) })
	common := 0
	inOurs, inTheirs := setOf(ours, len(scores)), setOf(theirs, len(scores))
	for id := range scores {
		mine, other := inOurs[id], inTheirs[id]
		switch {
		case mine && other:
			common++
		case mine != other:
			l.Differing++
			if s.compare(block, id, last) == 0 {
				l.Ties++
			}
		}
	}
	l.Overlap = float64(common) / float64(min(len(ours), len(theirs)))
	best := keepBest(rank(s, block, nil), e.Groups, len(theirs))
	l.Retention = sumOf(scores, theirs) / sumOf(scores, best)
	return l
}
