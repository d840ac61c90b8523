//go:build linux || darwin

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A sample is what one run of a command took.
type sample struct {
	wall, cpu time.Duration
	peak      int64 // bytes of the largest process
}

// measure runs a command to its end.
func measure(args []string) (sample, error) {
	cmd := exec.Command(args[0], args[1:]...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	start := time.Now()
	err := cmd.Run()
	s := sample{wall: time.Since(start)}
	if err != nil {
		return s, fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	s.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		s.peak = int64(usage.Maxrss) * peakUnit
	}
	return s, nil
}

// dropCache empties the page cache, which only root may do and only on Linux.
func dropCache() error {
	syscall.Sync()
	return os.WriteFile("/proc/sys/vm/drop_caches", []byte("3\n"), 0)
}

// settle brings the machine to where a run begins: nothing waits to be written, and the
// files are in the page cache, or nothing is.
func (b *bench) settle(cold bool, warm ...string) error {
	if cold {
		return dropCache()
	}
	syscall.Sync()
	for _, name := range warm {
		if _, err := measure([]string{"sh", "-c", "cat " + b.path(name) + "/*.gguf >/dev/null"}); err != nil {
			return err
		}
	}
	return nil
}

// median returns the middle of values, the lower of two.
func median[T int64 | float64 | time.Duration](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[(len(sorted)-1)/2]
}
