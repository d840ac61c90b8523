package engine_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/reap/engine"
	"ggufreap/reap/engine/enginetest"
)

// A model larger than the memory that the engine may take is measured: its files are mapped,
// and read again in every pass. The limit is on data, which mapped files are not.
func TestModelLargerThanMemory(t *testing.T) {
	spec, err := gguftest.Architecture("qwen3moe", gguftest.ArchitectureOptions{Experts: 32, Hidden: 2048, Width: 768, Projections: gguf.Q8_0})
	if err != nil {
		t.Fatal(err)
	}
	paths, err := spec.WriteSparse(t.TempDir(), gguf.Split{}) // zeros are numbers too
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	e := enginetest.Start(t, engine.Options{})
	limit := uint64(info.Size()) * 2 / 3
	if err := unix.Prlimit(e.PID(), unix.RLIMIT_DATA, &unix.Rlimit{Cur: limit, Max: limit}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Open(t.Context(), paths[0], engine.OpenOptions{Threads: 1}); err != nil {
		t.Fatal(err)
	}
	small := make([]int, 32)
	for i := range small {
		small[i] = 3*i + 1
	}
	sums, err := e.Measure(t.Context(), engine.Measure{Experts: 32, Used: map[int]int{0: 4, 1: 4}, Context: 64, Streams: 2}, [][]int{small, small})
	if err != nil {
		t.Fatal(err)
	}
	if sums.Tokens != 64 {
		t.Errorf("%d tokens", sums.Tokens)
	}
	// It does have an effect: read into memory, the model does not fit.
	other := enginetest.Start(t, engine.Options{})
	if err := unix.Prlimit(other.PID(), unix.RLIMIT_DATA, &unix.Rlimit{Cur: limit, Max: limit}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Open(t.Context(), paths[0], engine.OpenOptions{Threads: 1, NoMmap: true}); err == nil {
		t.Errorf("a model of %d bytes is read into %d bytes of memory", info.Size(), limit)
	}
	t.Logf("a model of %d bytes, %d bytes of data", info.Size(), limit)
}

// A verdict on headers takes little memory at the real size of the largest models too.
func TestVerdictMemoryAtRealSize(t *testing.T) {
	paths, err := gguftest.K3Real(3072, gguf.IQ1_S).WriteSparse(t.TempDir(), gguf.Split{Shards: 9})
	if err != nil {
		t.Fatal(err)
	}
	e := enginetest.Start(t, engine.Options{})
	verdict, err := e.Accept(t.Context(), paths[0], 0)
	if err != nil {
		t.Fatal(err)
	}
	if verdict.Weights < 300e9 || len(verdict.Devices) != 1 {
		t.Errorf("verdict %+v", verdict)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", e.PID()))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	var kib int
	if _, err := fmt.Sscan(rest, &kib); err != nil || kib == 0 || kib > 100_000 {
		t.Errorf("the engine took %d KiB (%v), want at most 100,000", kib, err)
	}
	t.Logf("%d KiB for a model of %d bytes", kib, verdict.Weights)
}
