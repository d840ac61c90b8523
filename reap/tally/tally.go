// Package tally holds what calibration sums up of a model's routed experts: exactly, so that
// neither the order of tokens, nor the number of workers, nor how a text was divided changes
// a bit.
package tally

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// An Expert is what was measured of one routed expert over the tokens routed to it. With g
// the router's weight that the model applies to the expert's output, f that output before
// it, h what enters the expert's down projection, and bars for Euclidean norms:
type Expert struct {
	Tokens   uint64
	Gate     Sum     // of g
	Norm     Sum     // of |f|
	Saliency Sum     // of g*|f|
	Energy   Sum     // of |h|^2
	Greatest float64 // of |f|
}

// A Tally holds the sums of a model's layers over a number of tokens.
type Tally struct {
	Tokens uint64
	// Layers maps a block number to one entry for each routed expert.
	Layers map[int][]Expert
}

// New returns a tally of nothing for the given blocks.
func New(blocks []int, experts int) *Tally {
	t := &Tally{Layers: make(map[int][]Expert, len(blocks))}
	for _, block := range blocks {
		t.Layers[block] = make([]Expert, experts)
	}
	return t
}

// Blocks returns the block numbers, ascending.
func (t *Tally) Blocks() []int { return slices.Sorted(maps.Keys(t.Layers)) }

// Add counts one token for the expert. g is as llama.cpp computed it, in float32; the
// product with the norm is rounded once. It reports false for numbers that are not finite or
// negative, and for sums beyond 2^64.
func (e *Expert) Add(g float32, norm, energy float64) bool {
	gate := float64(g)
	if !e.Gate.Add(gate) || !e.Norm.Add(norm) || !e.Saliency.Add(gate*norm) || !e.Energy.Add(energy) {
		return false
	}
	e.Tokens++
	e.Greatest = max(e.Greatest, norm)
	return true
}

// merge adds what another run measured of the same expert.
func (e *Expert) merge(o *Expert) bool {
	e.Tokens += o.Tokens
	e.Greatest = max(e.Greatest, o.Greatest)
	return e.Gate.AddSum(o.Gate) && e.Norm.AddSum(o.Norm) && e.Saliency.AddSum(o.Saliency) && e.Energy.AddSum(o.Energy)
}

// Merge adds another tally of the same model. Any order of merging gives the same bits.
func (t *Tally) Merge(o *Tally) error {
	if !slices.Equal(t.Blocks(), o.Blocks()) {
		return fmt.Errorf("sums of layers %v do not add to those of layers %v", o.Blocks(), t.Blocks())
	}
	for block, experts := range t.Layers {
		if others := o.Layers[block]; len(others) != len(experts) {
			return fmt.Errorf("layer %d: sums of %d experts do not add to those of %d", block, len(others), len(experts))
		}
	}
	t.Tokens += o.Tokens
	for block, experts := range t.Layers {
		for i := range experts {
			if !experts[i].merge(&o.Layers[block][i]) {
				return fmt.Errorf("layer %d: expert %d: a sum is 2^64 or more", block, i)
			}
		}
	}
	return nil
}

// Clone returns a copy that shares nothing.
func (t *Tally) Clone() *Tally {
	c := &Tally{Tokens: t.Tokens, Layers: make(map[int][]Expert, len(t.Layers))}
	for block, experts := range t.Layers {
		c.Layers[block] = slices.Clone(experts)
	}
	return c
}

// Seen returns how many experts got a token, of how many.
func (t *Tally) Seen() (seen, all int) {
	for _, experts := range t.Layers {
		all += len(experts)
		for i := range experts {
			if experts[i].Tokens > 0 {
				seen++
			}
		}
	}
	return seen, all
}

// Check returns an error when the counts of a layer are not those of so many tokens with so
// many experts each.
func (t *Tally) Check(used func(block int) int) error {
	for _, block := range t.Blocks() {
		var pairs uint64
		for i := range t.Layers[block] {
			e := &t.Layers[block][i]
			pairs += e.Tokens
			if math.IsNaN(e.Greatest) || e.Greatest < 0 {
				return fmt.Errorf("layer %d: expert %d has a greatest norm of %v", block, i, e.Greatest)
			}
		}
		if want := t.Tokens * uint64(used(block)); pairs != want {
			return fmt.Errorf("layer %d: %d pairs of token and expert, want %d", block, pairs, want)
		}
	}
	return nil
}
