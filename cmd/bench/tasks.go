//go:build linux || darwin

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
)

// taskCounts are into how many tasks at once the same prune is divided.
var taskCounts = []int{1, 2, 4}

// tasks prunes a model in several tasks at once, each with one worker, and prints how much
// faster that is than one task and what bounds it; and from what it measured, a reckoning of
// many machines.
func (b *bench) tasks() error {
	steps := append(b.simulated(), [][]string{
		{b.path("mkmodel"), "-layers", "3", "-shards", "8", b.path(source)},
		{b.path(program), "plan", "--preset", "reap568", "-o", b.path(plan), b.path(source)},
	}...)
	if err := b.run(steps); err != nil {
		return err
	}
	fmt.Printf("\nPrune of %s to 568 of 896 experts in fourteen files, in tasks at once with one worker each; medians of %d runs\n", gigabytes(b.bytes(source)), b.runs)
	fmt.Printf("%6s %9s %12s %12s %14s %9s\n", "tasks", "wall", "processor", "speed-up", "processors", "join")
	var one sample
	for _, n := range taskCounts {
		s, join, err := b.inTasks(n)
		if err != nil {
			return err
		}
		if n == 1 {
			one = s
		}
		fmt.Printf("%6d %7.1f s %10.1f s %12.2f %14.2f %7.2f s\n", n, s.wall.Seconds(), s.cpu.Seconds(), one.wall.Seconds()/s.wall.Seconds(), s.cpu.Seconds()/s.wall.Seconds(), join.Seconds())
	}
	copying, err := b.copyOfRelease()
	if err != nil {
		return err
	}
	fmt.Printf("%6s %7.1f s   cp and sync of what was written\n", "", copying.Seconds())
	written := b.bytes(release)
	return errors.Join(b.reckon(one, written), os.RemoveAll(b.path(release)))
}

// inTasks measures n tasks at once and the join behind them.
func (b *bench) inTasks(n int) (s sample, join time.Duration, err error) {
	var walls, cpus, joins []time.Duration
	for range b.runs {
		if err := errors.Join(os.RemoveAll(b.path(release)), b.settle(false, source)); err != nil {
			return s, 0, err
		}
		one, err := b.atOnce(n)
		if err != nil {
			return s, 0, err
		}
		joined, err := measure([]string{b.path(program), "assemble", "-q", "--wait", "0s", b.path(release)})
		if err != nil {
			return s, 0, err
		}
		walls, cpus, joins = append(walls, one.wall), append(cpus, one.cpu), append(joins, joined.wall)
	}
	return sample{wall: median(walls), cpu: median(cpus)}, median(joins), nil
}

// atOnce runs all parts at the same time.
func (b *bench) atOnce(n int) (sample, error) {
	var group sync.WaitGroup
	samples, faults := make([]sample, n), make([]error, n)
	begin := time.Now()
	for i := range n {
		group.Go(func() {
			samples[i], faults[i] = measure([]string{b.path(program), "prune", "-q", "--workers", "1", "--plan", b.path(plan), "--only", fmt.Sprintf("%d/%d", i+1, n), "-o", b.path(release), b.path(source)})
		})
	}
	group.Wait()
	all := sample{wall: time.Since(begin)}
	for _, s := range samples {
		all.cpu += s.cpu
	}
	return all, errors.Join(faults...)
}

// copyOfRelease times what no program can do without: reading as many bytes and writing them.
func (b *bench) copyOfRelease() (time.Duration, error) {
	var walls []time.Duration
	for range b.runs {
		if err := errors.Join(os.RemoveAll(b.path(copied)), b.settle(false, release)); err != nil {
			return 0, err
		}
		s, err := measure([]string{"sh", "-c", "cp -r " + b.path(release) + " " + b.path(copied) + " && sync " + b.path(copied) + "/*"})
		if err != nil {
			return 0, err
		}
		walls = append(walls, s.wall)
	}
	return median(walls), os.RemoveAll(b.path(copied))
}

// The machines of the reckoning.
const (
	nodes    = 16
	diskRate = 10e9 // bytes a second that the file system gives to all together
	linkRate = 25e9 / 8
)

// reckon prints what bounds a prune of the real size on many machines: what their disk and
// links carry, and what one worker needs for its files.
func (b *bench) reckon(one sample, written int64) error {
	shards, err := b.realShards()
	if err != nil {
		return err
	}
	var all int64
	for _, size := range shards {
		all += size
	}
	rate := float64(written) / one.cpu.Seconds() // of a worker that waits for nothing
	fmt.Printf("\nReckoning of %d machines with one file system of %.0f GB/s and links of %.0f Gbit/s: %s written in %d files, as many read;\none worker writes %.2f GB/s, as measured above\n", nodes, diskRate/1e9, linkRate*8/1e9, gigabytes(all), len(shards), rate/1e9)
	fmt.Printf("%6s %12s %12s %12s %12s   %s\n", "tasks", "disk", "link", "worker", "done after", "bound by")
	for _, n := range []int{1, 2, 4, 8, len(shards), nodes} {
		largest := largestShare(shards, n)
		times := map[string]float64{
			"disk":   2 * float64(all) / diskRate,
			"link":   float64(largest) / linkRate,
			"worker": float64(largest) / rate,
		}
		bound := ""
		for _, what := range []string{"disk", "link", "worker"} {
			if bound == "" || times[what] > times[bound] {
				bound = what
			}
		}
		fmt.Printf("%6d %10.0f s %10.0f s %10.0f s %10.0f s   %s\n", n, times["disk"], times["link"], times["worker"], times[bound], bound)
	}
	return nil
}

// largestShare is what the task with the most bytes writes: files go one by one, the largest
// first, to the task that has least.
func largestShare(shards []int64, n int) int64 {
	sorted := slices.Sorted(slices.Values(shards))
	slices.Reverse(sorted)
	loads := make([]int64, n)
	for _, size := range sorted {
		least := slices.Index(loads, slices.Min(loads))
		loads[least] += size
	}
	return slices.Max(loads)
}

// realShards returns the sizes of the files that a prune of the real model writes. A disk
// without room for them ends a dry run with an error, behind what it would write.
func (b *bench) realShards() ([]int64, error) {
	line := "prune --preset reap568 --criterion seeded-random --dry-run --json -o " + b.path("real") + " " + b.path(sparse9)
	out, failed := exec.Command(b.path(program), strings.Fields(line)...).Output()
	var document struct {
		Shards []struct {
			Size int64 `json:"size"`
		} `json:"shards"`
	}
	if err := json.Unmarshal(out, &document); err != nil {
		return nil, errors.Join(failed, err)
	}
	var sizes []int64
	for _, shard := range document.Shards {
		sizes = append(sizes, shard.Size)
	}
	return sizes, nil
}
