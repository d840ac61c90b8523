package calibrate_test

import (
	"bytes"
	"strings"
	"testing"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
)

// Every architecture that is pruned is measured, by the structure of its graph alone: each
// layer that llama.cpp computes, each pair of a token and an expert. One that cannot be says
// why.
func TestEveryArchitectureIsMeasured(t *testing.T) {
	for _, name := range gguftest.Architectures() {
		if name == "grovemoe" || name == "refact" { // not pruned; no router at all
			continue
		}
		t.Run(name, func(t *testing.T) {
			spec, err := gguftest.Architecture(name, gguftest.ArchitectureOptions{})
			if err != nil {
				t.Fatal(err)
			}
			f := write(t, spec)
			sums, err := f.measure(t, way{}, text(48))
			if name == "llama4" { // its router's weights scale the experts' input
				if err == nil || !strings.Contains(err.Error(), "weights their input") {
					t.Errorf("error %v, want the reason", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := sums.Check(f.experts.UsedIn); err != nil {
				t.Error(err)
			}
			for block, experts := range sums.Layers {
				for id, e := range experts {
					if positive := e.Gate.Float64() > 0 && e.Norm.Float64() > 0 && e.Saliency.Float64() > 0 && e.Energy.Float64() > 0; positive != (e.Tokens > 0) {
						t.Errorf("layer %d: expert %d with %d tokens has sums of 0", block, id, e.Tokens)
					}
				}
			}
		})
	}
}

// The same bits come out of any number of threads and workers, of tokens computed at a time
// and of sequences side by side, with weights laid out anew or not, in any order.
func TestSameBitsAnyWay(t *testing.T) {
	k3 := gguftest.K3(gguftest.K3Options{Experts: 64, Used: 4})
	qwen, err := gguftest.Architecture("qwen3moe", gguftest.ArchitectureOptions{Projections: gguf.Q8_0, Hidden: 256, Width: 256})
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range []gguftest.Spec{k3, qwen} {
		t.Run(spec.Name, func(t *testing.T) {
			f := write(t, spec)
			a, b, c := text(200), text(201)[1:], text(207)[7:]
			sums, err := f.measure(t, way{}, a, b, c)
			if err != nil {
				t.Fatal(err)
			}
			want := sums.Append(nil)
			for _, other := range []struct {
				name string
				way
				sequences [][]int
			}{
				{"two threads, three workers", way{threads: 2, workers: 3}, [][]int{a, b, c}},
				{"64 at a time", way{ubatch: 64}, [][]int{a, b, c}},
				{"77 at a time", way{ubatch: 77}, [][]int{a, b, c}},
				{"another order", way{}, [][]int{c, a, b}},
				{"side by side", way{sideBySide: 3}, [][]int{a, b, c}},
				{"side by side, in pieces", way{sideBySide: 2, ubatch: 90}, [][]int{a, b, c}},
				{"laid out anew", way{repack: true}, [][]int{a, b, c}},
			} {
				sums, err := f.measure(t, other.way, other.sequences...)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(sums.Append(nil), want) {
					t.Errorf("%s: other sums", other.name)
				}
			}
		})
	}
}
