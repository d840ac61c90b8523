package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestShares keeps a share of the experts, or a multiple of what fits.
func TestShares(t *testing.T) {
	t.Chdir(t.TempDir())
	source := writeModel(t, smallK3(), 3)[0]
	keep := func(want int, flags ...string) {
		t.Helper()
		out := succeed(t, append([]string{"plan", source}, flags...)...)
		if !strings.Contains(out, fmt.Sprintf("keep            %d of 32 experts", want)) {
			t.Errorf("%q: want %d, got\n%s", flags, want, out)
		}
	}
	keep(24, "--keep", "75%")
	keep(20, "--keep", "65%")
	keep(16, "--keep", "65%", "--multiple-of", "16")
	out := succeed(t, "plan", "--keep", "22", "--json", source)
	if !strings.Contains(out, `"keep_count": 22`) {
		t.Error(out)
	}
	var fits int64 = 500_000
	keep(17, "--fit", fmt.Sprint(fits))
	keep(16, "--fit", fmt.Sprint(fits), "--multiple-of", "8")
	refuse(t, "--multiple-of is 0, want at least 1", "plan", "--fit", "1GB", "--multiple-of", "0", source)
	refuse(t, "--keep says the number", "plan", "--keep", "8", "--multiple-of", "8", source)
	refuse(t, `--keep: "many" is no number of experts, nor a share such as 75%`, "plan", "--keep", "many", source)
	if out := succeed(t, "inspect", "--keep", "75%", source); !strings.Contains(out, "24 of 32") {
		t.Error(out)
	}
}

// TestHintOfSmallerPieces asks for room that there is on all machines together.
func TestHintOfSmallerPieces(t *testing.T) {
	t.Chdir(t.TempDir())
	source := writeModel(t, smallK3(), 1)[0]
	text := refuse(t, "hint: that much has room in smaller pieces: --shards ", "plan", "--fit-per-node", "8x60kB", source)
	_, shards, _ := strings.Cut(text, "smaller pieces: --shards ")
	succeed(t, "plan", "--fit-per-node", "8x60kB", "--shards", strings.TrimSpace(shards), source)
	if _, err := os.Stat("-"); err == nil {
		t.Error("a file was written")
	}
}
