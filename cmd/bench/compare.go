//go:build linux || darwin

package main

import (
	"fmt"
	"os"
	"runtime"
	"time"
)

// A contest is a command of the program beside a line of plain tools.
type contest struct {
	name   string
	target float64  // greatest ratio
	args   []string // of the program
	output string   // folder that it makes, "" for none
	input  string   // folder whose files are read first to warm the cache
	beside string   // a line of sh
	what   string   // what that is
}

// hash is the line that takes the SHA-256 of the files in a folder, two at a time.
func (b *bench) hash(folder string) string {
	return "ls " + b.path(folder) + "/*.gguf | xargs -P 2 -n 1 openssl dgst -sha256"
}

// copyAndHash is the line that copies the files of a folder, makes the copies durable and
// hashes them.
func (b *bench) copyAndHash(folder string) string {
	to := b.path(copied)
	return "mkdir " + to + " && cp " + b.path(folder) + "/*.gguf " + to + " && sync " + to + "/*.gguf && " + b.hash(copied)
}

func (b *bench) contests() []contest {
	const (
		copyWhat = "cp, sync, openssl x2"
		hashWhat = "openssl x2"
	)
	return []contest{
		{"prune", 1.1, []string{"prune", "--plan", b.path(plan), "--shards", "14", "-o", b.path(release), b.path(source)}, release, source, b.copyAndHash(release), copyWhat},
		{"pin", 1.3, []string{"pin", "-o", b.path("again.json.zst"), "--force", b.path(source)}, "", source, b.hash(source), hashWhat},
		{"prune --pin-source", 1.0, []string{"prune", "--plan", b.path(plan), "--shards", "14", "--pin-source", b.path("taken.json.zst"), "--force", "-o", b.path(release), b.path(source)}, release, source,
			b.path(program) + " pin -o " + b.path("again.json.zst") + " --force " + b.path(source) + " && " + b.path(program) + " prune --plan " + b.path(plan) + " --shards 14 -o " + b.path(copied) + " " + b.path(source), "pin, then prune"},
		{"verify", 1.3, []string{"verify", b.path(release)}, "", release, b.hash(release), hashWhat},
		{"verify --source-pin", 1.3, []string{"verify", "--source-pin", b.path(pin), b.path(release)}, "", release, b.hash(release), hashWhat},
		{"reshard", 1.1, []string{"reshard", "--shards", "14", "-o", b.path(resplit), b.path(source)}, resplit, source, b.copyAndHash(resplit), copyWhat},
	}
}

// describe says what is measured, and where.
func (b *bench) describe() {
	fmt.Printf("%s/%s, Go %s, %d processors; %s\n", runtime.GOOS, runtime.GOARCH, runtime.Version(), runtime.NumCPU(), b.dir)
	fmt.Printf("source %s in ten files, 896 experts in each of 5 layers; prune keeps 568, in fourteen files\n", gigabytes(b.bytes(source)))
	fmt.Printf("%d runs of each pair in turn; medians, and the ratios from the least to the greatest\n\n", b.runs)
}

// compare prints the table of contests.
func (b *bench) compare() error {
	fmt.Printf("%-20s %-5s %9s %8s %9s  %-21s %6s %13s %7s\n", "command", "cache", "seconds", "GB/s", "peak MiB", "beside", "ratio", "", "target")
	for _, c := range b.contests() {
		for _, cold := range []bool{false, true} {
			if cold && !b.cold {
				fmt.Printf("%-20s cold  not measured: only root can drop the page cache, on Linux\n", c.name)
				continue
			}
			if _, err := b.contest(c, cold); err != nil {
				return err
			}
		}
	}
	return nil
}

// contest prints the line of one contest, and returns its median ratio and the most memory.
func (b *bench) contest(c contest, cold bool) (outcome, error) {
	var walls, besides []time.Duration
	var ratios []float64
	var peak int64
	for i := range b.runs + 1 { // the first warms up
		ours, err := b.once(c, cold)
		if err != nil {
			return outcome{}, err
		}
		theirs, err := b.besides(c, cold)
		if err != nil {
			return outcome{}, err
		}
		if i == 0 {
			continue
		}
		walls, besides = append(walls, ours.wall), append(besides, theirs.wall)
		ratios = append(ratios, ours.wall.Seconds()/theirs.wall.Seconds())
		peak = max(peak, ours.peak)
	}
	cache := "warm"
	if cold {
		cache = "cold"
	}
	read := b.bytes(c.input)
	wall := median(walls).Seconds()
	fmt.Printf("%-20s %-5s %9.2f %8.2f %9d  %-21s %6.2f %13s %7.1f\n", c.name, cache, wall, float64(read)/1e9/wall, peak>>20,
		fmt.Sprintf("%s %.2f", c.what, median(besides).Seconds()), median(ratios), spread(ratios), c.target)
	return outcome{median(ratios), peak}, nil
}

// An outcome is what a contest came to.
type outcome struct {
	ratio float64
	peak  int64 // bytes
}

// once runs the program's side of a contest.
func (b *bench) once(c contest, cold bool) (sample, error) {
	if c.output != "" {
		if err := os.RemoveAll(b.path(c.output)); err != nil {
			return sample{}, err
		}
	}
	if err := b.settle(cold, c.input); err != nil {
		return sample{}, err
	}
	return measure(append([]string{b.path(program)}, c.args...))
}

// besides runs the other side.
func (b *bench) besides(c contest, cold bool) (sample, error) {
	if err := os.RemoveAll(b.path(copied)); err != nil {
		return sample{}, err
	}
	read := c.input
	if c.output != "" {
		read = c.output
	}
	if err := b.settle(cold, read); err != nil {
		return sample{}, err
	}
	return measure([]string{"sh", "-c", c.beside})
}

// bytes returns the size of the files in a folder.
func (b *bench) bytes(folder string) int64 {
	entries, _ := os.ReadDir(b.path(folder)) // what is not there has no bytes
	var n int64
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			n += info.Size()
		}
	}
	return n
}
