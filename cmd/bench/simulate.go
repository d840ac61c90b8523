//go:build linux || darwin

package main

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"ggufreap/gguf"
	"ggufreap/reap"
	"ggufreap/reap/planfile"
)

// The program asks for at most rangeStep bytes at once, and takes at most rangeGap along that
// nobody wants.
const (
	rangeStep = 8 << 20
	rangeGap  = 64 << 10
)

// simulate prints what a prune of the real size fetches, from the headers of the sparse model
// alone: each run of neighbours that are kept is a range. Experts are kept at random, which
// is the worst that a criterion does on average.
func (b *bench) simulate() error {
	m, err := gguf.Open(b.path(sparse9))
	if err != nil {
		return err
	}
	defer m.Close()
	experts, err := reap.ReadExperts(m)
	if err != nil {
		return err
	}
	fmt.Printf("\nPrune of %s from an address, computed from headers; experts at random; ranges of at most %d MiB, over gaps of at most %d KiB\n", gigabytes(m.FileBytes()), rangeStep>>20, rangeGap>>10)
	fmt.Printf("%5s %9s %12s %8s %10s  %12s %11s %11s\n", "keep", "requests", "travels", "of all", "a request", "100 Mbit/s", "1 Gbit/s", "10 Gbit/s")
	for keep := 112; keep <= experts.Count; keep += 112 {
		for _, n := range []int{keep, 568} {
			if n != keep && keep != 560 {
				continue
			}
			if err := b.simulateKeep(m, experts, n); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bench) simulateKeep(m *gguf.Model, experts *reap.Experts, keep int) error {
	path := b.path("simulated.json")
	if _, err := measure([]string{b.path(program), "plan", "--keep", strconv.Itoa(keep), "--criterion", "seeded-random", "--force", "-o", path, b.path(sparse9)}); err != nil {
		return err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	p, err := planfile.Read(data, experts)
	if err != nil {
		return err
	}
	views, err := reap.Views(context.Background(), m, experts, p)
	if err != nil {
		return err
	}
	count, bytes := gguf.Ranges(views, rangeStep, rangeGap)
	hours := func(bits float64) string {
		seconds := float64(bytes) * 8 / bits
		if seconds < 3600 {
			return fmt.Sprintf("%.1f min", seconds/60)
		}
		return fmt.Sprintf("%.2f h", seconds/3600)
	}
	fmt.Printf("%5d %9d %12s %6.1f %% %7.2f MB  %12s %11s %11s\n", keep, count, gigabytes(bytes), 100*float64(bytes)/float64(m.FileBytes()),
		float64(bytes)/float64(count)/1e6, hours(100e6), hours(1e9), hours(10e9))
	return nil
}
