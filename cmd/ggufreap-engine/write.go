//go:build !windows

package main

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"ggufreap/reap/engine"
	"ggufreap/reap/llama"
)

// A writer has the model write documents, so many side by side. Each has a random number
// generator of its own, seeded by its number, so that it does not depend on the others, as far
// as llama.cpp's numbers do not.
type writer struct {
	engine.Write
	model   *llama.Model
	session *llama.Session
	draft   engine.Draft
	first   int          // number of the first document that is being written
	rngs    []*rand.Rand // of those that are, one a sequence of the session
	weights []float64    // memory for probabilities
}

// write goes on writing for about as long as was asked for, and tells what was written.
func (b *backend) write(r *engine.Request, data []byte) (*engine.Reply, []byte, error) {
	w := b.writer
	if r.Write.Begin {
		known, err := engine.SplitTokens(data, r.Lengths)
		if err != nil {
			return nil, nil, err
		}
		if w, err = b.newWriter(*r.Write, known); err != nil {
			return nil, nil, err
		}
	}
	if w == nil {
		return nil, nil, errors.New("nothing is being written")
	}
	first, told := w.first, w.lengths()
	for begun := time.Now(); !w.done(); {
		if err := w.step(); err != nil {
			return nil, nil, err
		}
		b.steps.Add(1)
		if time.Since(begun).Seconds() > w.Seconds {
			break
		}
	}
	var news [][]int
	for i, document := range w.draft.Documents[first:] {
		if i < len(told) {
			document = document[told[i]:]
		}
		news = append(news, document)
	}
	text, lengths := engine.EncodeTokens(news)
	return &engine.Reply{First: first, Lengths: lengths, Done: w.done()}, text, nil
}

// newWriter makes a writer that goes on from what was written before.
func (b *backend) newWriter(w engine.Write, known [][]int) (*writer, error) {
	if err := b.closeSession(); err != nil {
		return nil, err
	}
	if w.Documents < 1 || w.Streams < 1 || w.Tokens < w.Documents || len(known) > w.Documents {
		return nil, fmt.Errorf("%d tokens in %d documents, %d side by side, %d of them there", w.Tokens, w.Documents, w.Streams, len(known))
	}
	sequences := max(w.Streams, 2) // a token alone is computed by other kernels
	session, err := b.model.NewSession(llama.SessionOptions{
		Context: w.Tokens/w.Documents + 1, Sequences: sequences, Ubatch: sequences, LastOnly: true,
	}, nil)
	if err != nil {
		return nil, err
	}
	b.session, b.measure = session, ""
	b.writer = &writer{Write: w, model: b.model, session: session, draft: engine.Draft{Documents: known}}
	return b.writer, b.writer.resume()
}

// resume goes on with the documents that are not complete.
func (w *writer) resume() error {
	for w.first < len(w.draft.Documents) && w.complete(w.first) {
		w.first++
	}
	if w.first == len(w.draft.Documents) {
		return nil
	}
	var known [][]int
	for i, document := range w.draft.Documents[w.first:] {
		if len(document) == 0 || len(document) != len(w.draft.Documents[w.first]) {
			return fmt.Errorf("document %d has %d tokens, document %d has %d", w.first, len(w.draft.Documents[w.first]), w.first+i, len(document))
		}
		w.rngs = append(w.rngs, w.replay(w.first+i, document))
		known = append(known, document[:len(document)-1])
	}
	if len(known) > w.Streams {
		return fmt.Errorf("%d documents are being written, %d can be", len(known), w.Streams)
	}
	if len(known[0]) == 0 {
		return nil
	}
	return w.session.Append(inCompany(known), nil, nil)
}

// inCompany adds a second sequence to one alone: what it comes to is not used.
func inCompany(lists [][]int) [][]int {
	if len(lists) == 1 {
		return append(lists, lists[0])
	}
	return lists
}

// replay returns a document's generator as it is after these tokens.
func (w *writer) replay(number int, document []int) *rand.Rand {
	rng := rand.New(rand.NewPCG(w.Seed, uint64(number)))
	w.begin(rng)
	for _, token := range document[:len(document)-1] {
		if _, given := w.given(token); !given {
			rng.Float64()
		}
	}
	return rng
}

// begin returns the first token of a document: BOS, or any where the model begins texts without.
func (w *writer) begin(rng *rand.Rand) int {
	v := w.model.Vocabulary()
	if v.AddBOS && v.BOS >= 0 {
		return v.BOS
	}
	for {
		if token := rng.IntN(v.Size); !w.model.EndsGeneration(token) {
			return token
		}
	}
}

// given returns what follows a token in any case: where the model has ended a text, the next
// one begins in the same document, as in what models are trained on.
func (w *writer) given(token int) (int, bool) {
	v := w.model.Vocabulary()
	return v.BOS, v.AddBOS && v.BOS >= 0 && w.model.EndsGeneration(token)
}

func (w *writer) complete(document int) bool {
	return len(w.draft.Documents[document]) >= engine.DocumentLength(w.Tokens, w.Documents, document)
}

func (w *writer) done() bool { return w.first == w.Documents }

// lengths returns the lengths of the documents that are being written.
func (w *writer) lengths() []int {
	var list []int
	for _, document := range w.draft.Documents[w.first:] {
		list = append(list, len(document))
	}
	return list
}

// step adds a token to each of the documents that are being written.
func (w *writer) step() error {
	if w.first == len(w.draft.Documents) {
		if err := w.next(); err != nil {
			return err
		}
	}
	var last [][]int
	writing := w.draft.Documents[w.first:]
	for _, document := range writing {
		last = append(last, document[len(document)-1:])
	}
	if err := w.session.Append(inCompany(last), nil, nil); err != nil {
		return err
	}
	tokens, err := w.draw(last[:len(writing)])
	if err != nil {
		return err
	}
	whole := true
	for i := range writing {
		if !w.complete(w.first + i) {
			writing[i] = append(writing[i], tokens[i])
		}
		whole = whole && w.complete(w.first+i)
	}
	if whole {
		w.first += len(writing)
	}
	return nil
}

// next begins the next documents.
func (w *writer) next() error {
	if err := w.session.Clear(); err != nil {
		return err
	}
	w.rngs = w.rngs[:0]
	for i := w.first; i < min(w.first+w.Streams, w.Documents); i++ {
		rng := rand.New(rand.NewPCG(w.Seed, uint64(i)))
		w.draft.Documents = append(w.draft.Documents, []int{w.begin(rng)})
		w.rngs = append(w.rngs, rng)
	}
	return nil
}

// draw draws what follows the last tokens of the documents that are being written.
func (w *writer) draw(last [][]int) ([]int, error) {
	logits := make([][]float32, len(last))
	for i := range logits {
		var err error
		if logits[i], err = w.session.Logits(i); err != nil {
			return nil, err
		}
	}
	tokens, errs := make([]int, len(last)), make([]error, len(last))
	workers, size := min(runtime.GOMAXPROCS(0), len(last)), w.model.Vocab()
	if w.weights == nil {
		w.weights = make([]float64, runtime.GOMAXPROCS(0)*size)
	}
	var group sync.WaitGroup
	for worker := range workers {
		group.Go(func() {
			for i := worker; i < len(last); i += workers {
				token, given := w.given(last[i][0])
				if !given {
					token, errs[i] = draw(logits[i], w.weights[worker*size:(worker+1)*size], w.rngs[i])
				}
				tokens[i] = token
			}
		})
	}
	group.Wait()
	return tokens, errors.Join(errs...)
}

// draw draws a token by its probability. weights is memory for as many numbers as logits.
func draw(logits []float32, weights []float64, rng *rand.Rand) (int, error) {
	most := math.Inf(-1)
	for _, x := range logits {
		most = max(most, float64(x))
	}
	var sum float64
	for i, x := range logits {
		weights[i] = math.Exp(float64(x) - most)
		sum += weights[i]
	}
	if !(sum > 0) || math.IsInf(sum, 0) {
		return 0, fmt.Errorf("the model gives no probabilities (their sum is %v)", sum)
	}
	left := rng.Float64() * sum
	last := 0
	for token, p := range weights[:len(logits)] {
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
