package reap

import (
	"context"
	"fmt"
	"math"
	"slices"

	"ggufreap/gguf"
	"ggufreap/reap/internal/portable"
)

// RouterMassScores computes for each expert the router weight that it may expect for a
// token when the normalised hidden state before the router is isotropic. It needs the
// model alone, no text, and knows nothing of what the experts compute: a proxy, not a
// measurement.
//
// The logit u of expert e is then normal; its deviation s is that of [RouterNormScores],
// its mean m is 0 unless the norm or the router has a bias. The gate is sigmoid(u), or for
// softmax e^u/Z with Z = sum_e e^(m+s^2/2), its mean. An expert is chosen when its gate plus
// its selection bias exceeds a threshold t, which is one for the layer: the greatest at
// which the expected number of chosen experts is at least the number of experts used. With
// c the logit at which an expert is chosen and Q the normal tail, the score is
//
//	sigmoid   E[sigmoid(u); u > c]
//	softmax   e^(m+s^2/2)/Z * Q((c-m)/s - s)
//
// The score is that number. Experts are ranked by its logarithm where it is too small for a
// float64, and by [gate.standings] where it is 0.
//
// Weights are those before the chosen ones are normalised to a sum of 1. Where the model
// routes by groups, every group is taken to be among the used ones equally often: the
// expected number above the threshold is then the number used times all groups over those
// used. Within a group, where experts are ranked, this is all that groups change.
//
// Sigmoid and softmax gates are covered, and softmax over the chosen alone, which chooses
// and ranks as softmax does. The error says what to use in place of it for another gate
// and for a router that reads a state of unknown size. The threshold is found by bisection
// down to neighbouring numbers, and all functions are those of package portable, so the
// scores are the same on every machine.
//
// Router, norm and biases must be F32, F16 or BF16. A few router rows are held at a time. Bytes
// read are reported to progress, which may be nil.
func RouterMassScores(ctx context.Context, m *gguf.Model, e *Experts, progress func(bytes int64)) (*Scores, error) {
	if err := massFault(e); err != nil {
		return nil, err
	}
	return eachLayer(ctx, e, RouterMass, progress, func(ctx context.Context, l *Layer, progress func(bytes int64)) ([]float64, []int, error) {
		logits, err := readRouterLogits(ctx, m, e, l, progress)
		if err != nil {
			return nil, nil, err
		}
		bias, err := expertVector(l, SelectionBias)
		if err != nil {
			return nil, nil, err
		}
		g, err := newGate(e.Gating, logits, bias)
		if err != nil {
			return nil, nil, fmt.Errorf("layer %d: %w", l.Block, err)
		}
		mass, places := g.mass(expectedAbove(e))
		return mass, places, nil
	})
}

// massFault says why the architecture's routers have no score of this kind.
func massFault(e *Experts) error {
	norm, special := routerNorms[e.Architecture]
	switch {
	case special && norm == "":
		return fmt.Errorf("the routers of %s read a state that is not normalised, so %s cannot tell how large their logits are; use %s", e.Architecture, RouterMass, RouterNorm)
	case e.Gating != Softmax && e.Gating != SoftmaxSelected && e.Gating != Sigmoid:
		return fmt.Errorf("%s gates are not covered by %s; use %s", e.Gating, RouterMass, RouterNorm)
	}
	return nil
}

// expectedAbove is the number of experts to expect above the threshold.
func expectedAbove(e *Experts) float64 {
	return float64(e.Used) * float64(e.Groups) / float64(e.GroupsUsed)
}

// A gate turns the normal logits of a layer's experts into weights and choices.
type gate struct {
	*routerLogits
	bias    []float64 // on the gate, for choosing only; nil for none
	softmax bool
	logZ    float64 // softmax: log of the mean of sum_e e^u
}

func newGate(gating Gating, logits *routerLogits, bias []float64) (*gate, error) {
	g := &gate{routerLogits: logits, bias: bias}
	switch {
	case gating == Sigmoid && slices.ContainsFunc(logits.mean, func(m float64) bool { return m != 0 }):
		return nil, fmt.Errorf("sigmoid gates with a bias on the logits are not covered by %s; use %s", RouterMass, RouterNorm)
	case gating == Softmax || gating == SoftmaxSelected:
		g.softmax = true
		g.logZ = g.logMeanSum()
	}
	return g, nil
}

// logMean is the logarithm of the mean of e^u: m + s^2/2.
func (g *gate) logMean(expert int) float64 {
	s := g.deviation[expert]
	return g.mean[expert] + float64(float64(s*s)/2)
}

// logMeanSum is the logarithm of the mean of sum_e e^u.
func (g *gate) logMeanSum() float64 {
	greatest := math.Inf(-1)
	for e := range g.mean {
		greatest = max(greatest, g.logMean(e))
	}
	var sum float64
	for e := range g.mean {
		sum += portable.Exp(g.logMean(e) - greatest)
	}
	return greatest + portable.Log(sum)
}

// cut returns the logit above which an expert is chosen at threshold t, in deviations
// from its mean. Gates are between 0 and 1.
func (g *gate) cut(expert int, t float64) float64 {
	if g.bias != nil {
		t -= g.bias[expert]
	}
	switch {
	case t <= 0:
		return math.Inf(-1)
	case t >= 1:
		return math.Inf(1)
	}
	logit := portable.Log(t / (1 - t))
	if g.softmax {
		logit = portable.Log(t) + g.logZ
	}
	over := logit - g.mean[expert]
	if s := g.deviation[expert]; s != 0 {
		return over / s
	}
	return math.Inf(signOf(over)) // the logit is its mean, always
}

// signOf returns 1 for numbers from 0 up, -1 below.
func signOf(x float64) int {
	if x < 0 {
		return -1
	}
	return 1
}

// above returns the number of experts to expect above threshold t. It falls as t rises.
func (g *gate) above(t float64) float64 {
	var sum float64
	for e := range g.deviation {
		sum += portable.NormalTail(g.cut(e, t))
	}
	return sum
}

// threshold returns the greatest t at which at least so many experts are to be expected.
func (g *gate) threshold(expected float64) float64 {
	low, high := 0.0, 1.0
	if g.bias != nil {
		low, high = slices.Min(g.bias), slices.Max(g.bias)+1
	}
	for {
		middle := low + float64((high-low)/2)
		if middle <= low || middle >= high {
			return low
		}
		if g.above(middle) >= expected {
			low = middle
		} else {
			high = middle
		}
	}
}
