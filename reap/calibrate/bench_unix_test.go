//go:build unix

package calibrate_test

import (
	"runtime"
	"syscall"
	"testing"
	"time"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/reap/calibrate"
	"ggufreap/reap/llama"
	"ggufreap/reap/llama/llamatest"
	"ggufreap/reap/tally"
)

// BenchmarkCost holds measuring against plain decoding of the same tokens, in processor time,
// on a model with the widths of Qwen3-30B-A3B (hidden 2048, experts of 768) and fewer experts
// and layers: "ratio" is the one over the other, "MiB" what the sums and slices take beyond
// the model's and llama.cpp's own memory.
func BenchmarkCost(b *testing.B) {
	spec, err := gguftest.Architecture("qwen3moe", gguftest.ArchitectureOptions{Experts: 32, Hidden: 2048, Width: 768, Projections: gguf.Q8_0})
	if err != nil {
		b.Fatal(err)
	}
	f := write(b, spec)
	model, err := llamatest.Engine(b).Open(f.path, llama.Options{Threads: 1, Repack: true})
	if err != nil {
		b.Fatal(err)
	}
	defer model.Close()
	tokens := [][]int{text(512)}
	plain, err := model.NewSession(llama.SessionOptions{Context: 512}, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer plain.Close()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	c := calibrate.New(f.experts.Count, f.used(), runtime.GOMAXPROCS(0))
	defer c.Close()
	measured, err := model.NewSession(llama.SessionOptions{Context: 512}, c.Observer())
	if err != nil {
		b.Fatal(err)
	}
	defer measured.Close()
	var blocks []int
	for block := range f.used() {
		blocks = append(blocks, block)
	}
	sums := tally.New(blocks, f.experts.Count)
	var bare, with time.Duration
	for b.Loop() {
		begin := processorTime(b)
		if err := plain.Clear(); err != nil {
			b.Fatal(err)
		}
		if err := plain.Append(tokens, nil, nil); err != nil {
			b.Fatal(err)
		}
		middle := processorTime(b)
		if err := c.Measure(measured, tokens, sums); err != nil {
			b.Fatal(err)
		}
		bare, with = bare+middle-begin, with+processorTime(b)-middle
	}
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(with)/float64(bare), "ratio")
	b.ReportMetric(float64(after.Sys-before.Sys)/(1<<20), "MiB")
}

// processorTime is that of all threads of the process.
func processorTime(b *testing.B) time.Duration {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		b.Fatal(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}
