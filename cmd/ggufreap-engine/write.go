//go:build !windows

package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"ggufreap/reap/engine"
	"ggufreap/reap/llama"
)

// A document is one that the model is writing.
type document struct {
	rng    *rand.Rand
	tokens []int
	ended  bool
}

// write lets the model write documents side by side. Each has a random number generator of
// its own, seeded by its number, so that it does not depend on how many are written at a
// time, as far as llama.cpp's numbers do not.
func (b *backend) write(w *engine.Write) (*engine.Reply, []byte, error) {
	if err := b.closeSession(); err != nil {
		return nil, nil, err
	}
	session, err := b.model.NewSession(llama.SessionOptions{Context: w.Length, Sequences: w.Count, Ubatch: max(w.Ubatch, w.Count), LastOnly: true}, nil)
	if err != nil {
		return nil, nil, err
	}
	defer session.Close()
	documents := b.begin(w)
	running := func(d *document) bool { return !d.ended }
	for n := 1; n < w.Length && slices.ContainsFunc(documents, running); n++ {
		if err := b.writeNext(session, documents); err != nil {
			return nil, nil, err
		}
		b.steps.Add(1)
	}
	var lists [][]int
	for _, d := range documents {
		lists = append(lists, d.tokens)
	}
	data, lengths := engine.EncodeTokens(lists)
	return &engine.Reply{Lengths: lengths}, data, nil
}

// begin starts documents with BOS, or with any token where the model has none.
func (b *backend) begin(w *engine.Write) []*document {
	v := b.model.Vocabulary()
	documents := make([]*document, w.Count)
	for i := range documents {
		d := &document{rng: rand.New(rand.NewPCG(w.Seed, uint64(w.First+i)))}
		first := v.BOS
		if !v.AddBOS || first < 0 {
			for first = d.rng.IntN(v.Size); b.model.EndsGeneration(first); {
				first = d.rng.IntN(v.Size)
			}
		}
		d.tokens = []int{first}
		documents[i] = d
	}
	return documents
}

// writeNext draws one token for each document. One that has ended goes on being computed with
// its last token, so that the others are computed as before; what it gives is left out.
func (b *backend) writeNext(session *llama.Session, documents []*document) error {
	step := make([][]int, len(documents))
	for i, d := range documents {
		step[i] = d.tokens[len(d.tokens)-1:]
	}
	if err := session.Append(step, nil, nil); err != nil {
		return err
	}
	for i, d := range documents {
		logits, err := session.Logits(i)
		if err != nil {
			return err
		}
		token, err := draw(logits, d.rng)
		if err != nil {
			return err
		}
		if d.ended = d.ended || b.model.EndsGeneration(token); !d.ended {
			d.tokens = append(d.tokens, token)
		}
	}
	return nil
}

// draw draws a token by its probability.
func draw(logits []float32, rng *rand.Rand) (int, error) {
	most := math.Inf(-1)
	for _, x := range logits {
		most = max(most, float64(x))
	}
	var sum float64
	for _, x := range logits {
		sum += math.Exp(float64(x) - most)
	}
	if !(sum > 0) || math.IsInf(sum, 0) {
		return 0, fmt.Errorf("the model gives no probabilities (their sum is %v)", sum)
	}
	left := rng.Float64() * sum
	last := 0
	for token, x := range logits {
		p := math.Exp(float64(x) - most)
		if p == 0 {
			continue
		}
		last = token
		if left -= p; left < 0 {
			break
		}
	}
	return last, nil
}
