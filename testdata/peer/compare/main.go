// Compare times how long ggufreap and gguf-parser-go take to read large headers: whole
// processes, one after the other in the same run. It fails when ggufreap takes more than
// a twentieth of the other's time or more than 64 MiB of memory.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	wantRatio = 20.0
	maxMemory = 64 << 20
)

var models = []struct{ name, first string }{
	{"163,840 tokens and merges, ten shards", "vocabulary/m-00001-of-00010.gguf"},
	{"100,000 tensors, ten shards", "tensors/m-00001-of-00010.gguf"},
	{"100,000 tensors, one file", "tensors-in-one/m.gguf"},
}

func main() {
	rounds := flag.Int("rounds", 15, "runs of each program on each model")
	flag.Parse()
	if err := run(*rounds); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

func run(rounds int) error {
	dir, err := os.MkdirTemp("", "ggufreap-compare-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ours, theirs, err := prepare(dir)
	if err != nil {
		return err
	}
	fmt.Printf("%-40s %14s %16s %7s %12s\n", "median of "+fmt.Sprint(rounds)+" runs", "ggufreap", "gguf-parser-go", "ratio", "peak memory")
	var slow error
	for _, m := range models {
		path := filepath.Join(dir, m.first)
		var a, b timing
		for range rounds {
			if err := a.add(ours, "inspect", path); err != nil {
				return err
			}
			if err := b.add(theirs, path); err != nil {
				return err
			}
		}
		ratio := float64(b.median()) / float64(a.median())
		fmt.Printf("%-40s %11.1f ms %13.1f ms %7.1f %8.1f MiB\n", m.name, milliseconds(a.median()), milliseconds(b.median()), ratio, float64(a.memory)/(1<<20))
		if ratio < wantRatio || a.memory > maxMemory {
			slow = fmt.Errorf("want a ratio of at least %g and at most %d MiB", wantRatio, maxMemory>>20)
		}
	}
	return slow
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// prepare builds both programs and writes the models.
func prepare(dir string) (ours, theirs string, err error) {
	root, err := command("go", "list", "-m", "-f", "{{.Dir}}", "ggufreap")
	if err != nil {
		return "", "", err
	}
	ours, theirs = filepath.Join(dir, "ggufreap"), filepath.Join(dir, "theirs")
	for _, args := range [][]string{
		{"build", "-C", strings.TrimSpace(root), "-o", ours, "./cmd/ggufreap"},
		{"build", "-o", theirs, "ggufreap/testdata/peer/theirs"},
		{"run", "ggufreap/testdata/peer/models", dir},
	} {
		if _, err := command("go", args...); err != nil {
			return "", "", err
		}
	}
	return ours, theirs, nil
}

func command(name string, args ...string) (string, error) {
	var stdout, stderr strings.Builder
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, stderr.String())
	}
	return stdout.String(), nil
}

// A timing is what the runs of one program took.
type timing struct {
	runs   []time.Duration
	memory int64 // bytes at most
}

// add runs a program once, from start to exit.
func (t *timing) add(program string, args ...string) error {
	cmd := exec.Command(program, args...)
	begin := time.Now()
	err := cmd.Run()
	took := time.Since(begin)
	if err != nil {
		return fmt.Errorf("%s %s: %w", program, strings.Join(args, " "), err)
	}
	t.runs = append(t.runs, took)
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		t.memory = max(t.memory, int64(usage.Maxrss)<<10)
	}
	return nil
}

func (t *timing) median() time.Duration {
	slices.Sort(t.runs)
	return t.runs[len(t.runs)/2]
}
