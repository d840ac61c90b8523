//go:build linux || darwin

package main

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// curve prints what more workers give.
func (b *bench) curve() error {
	fmt.Printf("\n%-20s %7s %9s %8s %9s\n", "command", "workers", "seconds", "GB/s", "peak MiB")
	for _, c := range b.contests()[:2] {
		for _, workers := range []int{1, 2, 4} {
			c.args = slices.Insert(slices.Clone(c.args), 1, "--workers", strconv.Itoa(workers))
			var walls []time.Duration
			var peak int64
			for range b.runs {
				s, err := b.once(c, false)
				if err != nil {
					return err
				}
				walls, peak = append(walls, s.wall), max(peak, s.peak)
			}
			wall := median(walls).Seconds()
			fmt.Printf("%-20s %7d %9.2f %8.2f %9d\n", c.name, workers, wall, float64(b.bytes(c.input))/1e9/wall, peak>>20)
			c.args = slices.Delete(c.args, 1, 3)
		}
	}
	return nil
}

// realSize prints what headers of the real size take.
func (b *bench) realSize() error {
	fmt.Printf("\n%-20s %12s %9s %9s\n", "sparse, real size", "GB", "seconds", "peak MiB")
	for _, model := range []string{sparse9, sparse14} {
		drafted := b.path(model + ".plan.json")
		for _, c := range []struct {
			name string
			args []string
		}{
			{"inspect", []string{"inspect"}},
			{"plan", []string{"plan", "--preset", "reap568", "--allow-flat", "--force", "-o", drafted}},
			{"prune --dry-run", []string{"prune", "--plan", drafted, "--shards", "14", "--dry-run"}},
			{"reshard --dry-run", []string{"reshard", "--shards", "40", "--dry-run"}},
		} {
			var walls []time.Duration
			var peak int64
			for range b.runs {
				s, err := measure(append(append([]string{b.path(program)}, c.args...), b.path(model)))
				if err != nil {
					return err
				}
				walls, peak = append(walls, s.wall), max(peak, s.peak)
			}
			fmt.Printf("%-20s %12s %9.2f %9d\n", c.name, gigabytes(b.bytes(model)), median(walls).Seconds(), peak>>20)
		}
	}
	return nil
}

func gigabytes(n int64) string { return fmt.Sprintf("%.2f GB", float64(n)/1e9) }

// spread is the range of ratios.
func spread(ratios []float64) string {
	return fmt.Sprintf("(%.2f to %.2f)", slices.Min(ratios), slices.Max(ratios))
}
