//go:build unix

package chaos

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"ggufreap/cmd/ggufreap/internal/programtest"

	"ggufreap/manifest"
)

func finished(out string) bool {
	return programtest.Exists(filepath.Join(out, manifest.SumsName)) && !programtest.Exists(filepath.Join(out, manifest.JournalName))
}

// phase says how far a run had come by what it left.
func phase(out string) string {
	journal, _ := os.ReadFile(filepath.Join(out, manifest.JournalName))
	names, _ := filepath.Glob(filepath.Join(out, "*.gguf"))
	switch {
	case finished(out):
		return "after the last byte"
	case len(journal) == 0:
		return "before the first byte"
	case programtest.Exists(filepath.Join(out, manifest.SumsName)):
		return "between list and journal"
	case len(names) > 0:
		return "giving names"
	}
	return "copying"
}

// keptLine is what a journal says of bytes that are durable.
var keptLine = regexp.MustCompile(`(?m)^{"shard":(\d+),"size":(\d+),"sha256":"[0-9a-f]{64}"}\n`)

// timesKept counts how often something was noted to be durable.
func timesKept(out string) int {
	journal, _ := os.ReadFile(filepath.Join(out, manifest.JournalName))
	return len(keptLine.FindAll(journal, -1))
}

// kept returns the bytes that a journal says are durable.
func kept(t *testing.T, out string) int64 {
	t.Helper()
	journal, _ := os.ReadFile(filepath.Join(out, manifest.JournalName))
	sizes := map[string]int64{}
	for _, line := range keptLine.FindAllSubmatch(journal, -1) {
		size, err := strconv.ParseInt(string(line[2]), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		sizes[string(line[1])] = size
	}
	var sum int64
	for _, size := range sizes {
		sum += size
	}
	return sum
}

// waitUntilKept waits until something was noted to be durable n times, and reports false
// when the release is finished first.
func waitUntilKept(out string, n int) bool {
	for !finished(out) {
		if timesKept(out) >= n {
			return true
		}
		time.Sleep(20 * time.Microsecond)
	}
	return false
}

// written returns the bytes of the shards that are being written or are.
func written(out string) int64 {
	names, _ := filepath.Glob(filepath.Join(out, "*.gguf*"))
	var n int64
	for _, name := range names {
		if info, err := os.Stat(name); err == nil {
			n += info.Size()
		}
	}
	return n
}
