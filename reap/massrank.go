package reap

import (
	"cmp"
	"math"
	"slices"

	"ggufreap/reap/internal/portable"
)

// A standing is what decides the place of an expert by router mass.
type standing struct {
	mass float64 // the weight that it may expect
	// round is 0 for an expert that the layer's threshold can choose, n for one that only the
	// n-th lower threshold can; see [gate.standings].
	round int
	log   float64 // logarithm of the mass at the threshold of the round
	bias  float64 // selection bias
}

// compare puts the better standing first.
func (a standing) compare(b standing) int {
	return cmp.Or(
		cmp.Compare(b.mass, a.mass),
		cmp.Compare(a.round, b.round),
		cmp.Compare(b.log, a.log),
		cmp.Compare(b.bias, a.bias),
	)
}

// mass returns the weight that each expert may expect, and each one's place.
func (g *gate) mass(expected float64) (mass []float64, places []int) {
	standings := g.standings(expected)
	mass = make([]float64, len(standings))
	order := make([]int, len(standings))
	for e, s := range standings {
		mass[e], order[e] = s.mass, e
	}
	slices.SortFunc(order, func(a, b int) int { return standings[a].compare(standings[b]) })
	places = make([]int, len(standings))
	for i, e := range order {
		switch {
		case i > 0 && standings[e].compare(standings[order[i-1]]) == 0:
			places[e] = places[order[i-1]]
		default:
			places[e] = i
		}
	}
	return mass, places
}

// standings ranks the experts of a layer. One whose gate and bias cannot reach the threshold
// has no mass at all, and a layer can have many of those. In a router that is not isotropic
// the threshold moves from token to token, so they are told apart by what they would get at a
// lower one: that at which half of them are to be expected. Those that cannot reach it
// either follow in the same way, by a threshold of their own.
func (g *gate) standings(expected float64) []standing {
	standings := make([]standing, len(g.deviation))
	left := make([]int, len(standings))
	for e := range left {
		left[e] = e
	}
	for round := 0; len(left) > 0; round++ {
		part := g.only(left)
		if round > 0 {
			expected = float64(len(left)) / 2
		}
		t := part.threshold(expected)
		var rest []int
		for i, e := range left {
			s := standing{round: round, log: part.logMass(i, t)}
			if round == 0 {
				s.mass = part.massAt(i, t)
			}
			if g.bias != nil {
				s.bias = g.bias[e]
			}
			if standings[e] = s; math.IsInf(s.log, -1) {
				rest = append(rest, e)
			}
		}
		if len(rest) == len(left) {
			break // nothing tells these apart but their biases
		}
		left = rest
	}
	return standings
}

// only returns the gate of some of the experts; their gates are what they are among all.
func (g *gate) only(experts []int) *gate {
	part := &gate{routerLogits: &routerLogits{}, softmax: g.softmax, logZ: g.logZ}
	for _, e := range experts {
		part.mean = append(part.mean, g.mean[e])
		part.deviation = append(part.deviation, g.deviation[e])
		if g.bias != nil {
			part.bias = append(part.bias, g.bias[e])
		}
	}
	return part
}

// massAt returns the weight that an expert may expect at threshold t.
func (g *gate) massAt(expert int, t float64) float64 {
	cut, s := g.cut(expert, t), g.deviation[expert]
	if g.softmax {
		return float64(portable.Exp(g.logMean(expert)-g.logZ) * portable.NormalTail(cut-s))
	}
	return portable.TruncatedSigmoid(s, cut)
}

// logMass returns the logarithm of massAt, which does not underflow.
func (g *gate) logMass(expert int, t float64) float64 {
	cut, s := g.cut(expert, t), g.deviation[expert]
	if g.softmax {
		return g.logMean(expert) - g.logZ + portable.LogNormalTail(cut-s)
	}
	return portable.LogTruncatedSigmoid(s, cut)
}
