package calibrate_test

import (
	"testing"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/reap"
	"ggufreap/reap/calibrate"
	"ggufreap/reap/llama"
	"ggufreap/reap/llama/llamatest"
	"ggufreap/reap/tally"
)

// text is what small models are measured on, in a vocabulary of 128.
func text(n int) []int {
	tokens := make([]int, n)
	for i := range tokens {
		tokens[i] = (i*i + 7*i/3 + 11) % 100
	}
	return tokens
}

// a fixture is a small model on disk, with its experts.
type fixture struct {
	path    string
	spec    gguftest.Spec
	experts *reap.Experts
}

func write(t testing.TB, spec gguftest.Spec) fixture {
	t.Helper()
	paths, err := spec.Write(t.TempDir(), gguf.Split{})
	if err != nil {
		t.Fatal(err)
	}
	return open(t, paths[0], spec)
}

func open(t testing.TB, path string, spec gguftest.Spec) fixture {
	t.Helper()
	model, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { model.Close() })
	experts, err := reap.ReadExperts(model)
	if err != nil {
		t.Fatal(err)
	}
	return fixture{path, spec, experts}
}

// used returns the experts used for a token in each layer that llama.cpp computes.
func (f fixture) used() map[int]int {
	used := map[int]int{}
	for _, layer := range f.experts.Layers {
		if !layer.Draft {
			used[layer.Block] = f.experts.UsedIn(layer.Block)
		}
	}
	return used
}

// A way is how a model is run.
type way struct {
	threads, ubatch int
	sideBySide      int // sequences
	repack          bool
	workers         int
}

// measure sums a model's experts over sequences of equal length.
func (f fixture) measure(t testing.TB, w way, sequences ...[]int) (*tally.Tally, error) {
	t.Helper()
	model, err := llamatest.Engine(t).Open(f.path, llama.Options{Threads: w.threads, Repack: w.repack})
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	used := f.used()
	c := calibrate.New(f.experts.Count, used, w.workers)
	defer c.Close()
	w.sideBySide = max(w.sideBySide, 1)
	session, err := model.NewSession(llama.SessionOptions{Context: len(sequences[0]), Sequences: w.sideBySide, Ubatch: w.ubatch}, c.Observer())
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	var blocks []int
	for block := range used {
		blocks = append(blocks, block)
	}
	sums := tally.New(blocks, f.experts.Count)
	for len(sequences) > 0 {
		group := sequences[:min(w.sideBySide, len(sequences))]
		sequences = sequences[len(group):]
		if err := c.Measure(session, group, sums); err != nil {
			return nil, err
		}
	}
	return sums, nil
}
