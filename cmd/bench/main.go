//go:build linux || darwin

// Bench times the program on a generated model of some gigabytes beside the plain tools
// that do the part of it which cannot be avoided, and prints one table of ratios. Each
// command runs in turn with the one beside it, so that a machine whose speed drifts, or
// that others use too, changes both.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
)

const usage = `Time ggufreap beside cp, sync and openssl, and print a table of ratios.

Usage:
  go run ./cmd/bench [flags]

Run it in the project's folder. It builds the program, makes a model of 5 GB and
sparse models of 330 and 596 GB in a fresh folder, and removes that at the end.

Flags:
`

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
}

func run() error {
	dir := flag.String("dir", os.TempDir(), "where to make the folder; the disk under it is measured too")
	runs := flag.Int("n", 3, "runs of each pair; the table has medians")
	remote := flag.Bool("remote", false, "only what concerns models on servers")
	simulated := flag.Bool("simulate", false, "only compute what a prune of the real size fetches from a server")
	tasks := flag.Bool("tasks", false, "only a prune in several tasks at once, and a reckoning of many machines")
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), usage)
		flag.PrintDefaults()
	}
	flag.Parse()
	if err := checkTools(); err != nil {
		return err
	}
	work, err := os.MkdirTemp(*dir, "ggufreap-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	removeWhenEnded(work)
	b := &bench{dir: work, runs: max(*runs, 1)}
	if *simulated {
		return errors.Join(b.run(b.simulated()), b.simulate())
	}
	if *tasks {
		return b.tasks()
	}
	if err := b.prepare(); err != nil {
		return err
	}
	b.describe()
	if !*remote {
		for _, table := range []func() error{b.compare, b.curve, b.realSize} {
			if err := table(); err != nil {
				return err
			}
		}
	}
	return errors.Join(b.simulate(), b.remote())
}

// checkTools wants the programs that commands are timed beside.
func checkTools() error {
	for _, tool := range []string{"go", "sh", "cp", "sync", "xargs", "openssl", "curl", "sha256sum"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("%q is needed and not there (on Debian: apt-get install coreutils findutils openssl curl)", tool)
		}
	}
	return nil
}

// removeWhenEnded removes the folder when the program is interrupted.
func removeWhenEnded(dir string) {
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-interrupted
		os.RemoveAll(dir)
		os.Exit(2)
	}()
}

// A bench is a folder with the program and its models, and how often to run.
type bench struct {
	dir  string
	runs int
	cold bool // the page cache can be dropped

	missed []string // bounds of models on servers
}

func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }

// Names in the folder.
const (
	program  = "ggufreap"
	source   = "source"    // the model
	release  = "release"   // what prune makes of it
	resplit  = "resplit"   // what reshard makes of it
	copied   = "copied"    // what cp makes of either
	plan     = "plan.json" // 568 of 896 experts
	pin      = "pin.json.zst"
	sparse9  = "sparse-9"  // real dimensions, experts of width 1536
	sparse14 = "sparse-14" // of width 3072
)

// prepare builds the program and makes the models.
func (b *bench) prepare() error {
	err := b.run(append(b.simulated(), [][]string{
		{b.path("mkmodel"), "-shards", "10", b.path(source)},
		{b.path("mkmodel"), "-real", "-width", "3072", "-shards", "14", b.path(sparse14)},
		{b.path(program), "plan", "--preset", "reap568", "-o", b.path(plan), b.path(source)},
		{b.path(program), "pin", "-o", b.path(pin), b.path(source)},
	}...))
	b.cold = err == nil && dropCache() == nil
	return err
}

// simulated are the steps that a simulation needs.
func (b *bench) simulated() [][]string {
	return [][]string{
		{"go", "build", "-o", b.path(program), "./cmd/ggufreap"},
		{"go", "build", "-o", b.path("mkmodel"), "./gguf/gguftest/mkmodel"},
		{b.path("mkmodel"), "-real", "-width", "1536", "-shards", "9", b.path(sparse9)},
	}
}

// run runs steps to their end.
func (b *bench) run(steps [][]string) error {
	for _, step := range steps {
		if _, err := measure(step); err != nil {
			return err
		}
	}
	return nil
}
