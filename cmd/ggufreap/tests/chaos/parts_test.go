//go:build unix

package chaos

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ggufreap/cmd/ggufreap/internal/programtest"

	"ggufreap/manifest/parts"
)

// TestPartsAreKilled runs all parts of a release at once, some of them twice, and kills tasks
// at random times until every record is there. No record is lost, and the join is that of one
// run.
func TestPartsAreKilled(t *testing.T) {
	path := programtest.Path(t)
	source := programtest.WriteModel(t, programtest.WideExperts(), 5)[0]
	dir := t.TempDir()
	whole, out := filepath.Join(dir, "whole"), filepath.Join(dir, "out")
	line := []string{"prune", "--keep", "24", "--shards", "9"}
	programtest.Succeed(t, append(line, "-o", whole, source)...)
	const n, rounds = 3, 60
	killed, doubles := 0, 0
	for round := 0; ; round++ {
		left := missingRecords(out, n)
		if len(left) == 0 {
			break
		}
		if round == rounds {
			t.Fatalf("after %d rounds these parts are not done: %v", rounds, left)
		}
		var tasks []*exec.Cmd
		for _, i := range left {
			for range 2 - rand.IntN(min(round, 1)+1) { // all twice at first
				cmd := exec.Command(path, append(line, "--only", fmt.Sprintf("%d/%d", i, n), "-o", out, source)...)
				cmd.Stderr = &bytes.Buffer{}
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				tasks = append(tasks, cmd)
			}
		}
		doubles += len(tasks) - len(left)
		time.Sleep(time.Duration(rand.IntN(20+50*round)) * time.Millisecond)
		for _, cmd := range tasks {
			if round == 0 || rand.IntN(max(4-round/4, 1)) > 0 {
				cmd.Process.Kill()
			}
		}
		for _, cmd := range tasks {
			switch err := cmd.Wait(); {
			case err == nil:
			case strings.Contains(err.Error(), "killed"):
				killed++
			default:
				t.Fatalf("%v\n%s", err, cmd.Stderr)
			}
		}
	}
	programtest.Succeed(t, "assemble", "--recheck", out)
	if got, want := programtest.Folder(t, out), programtest.Folder(t, whole); !maps.Equal(got, want) {
		t.Errorf("the folder holds %q, want %q, or other bytes", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
	t.Logf("%d tasks were killed, %d were doubles", killed, doubles)
	if killed == 0 || doubles == 0 {
		t.Errorf("%d tasks were killed, %d were doubles: too few to tell", killed, doubles)
	}
}

// missingRecords returns the parts whose records are not in a folder.
func missingRecords(dir string, n int) []int {
	var left []int
	for i := 1; i <= n; i++ {
		if _, err := os.Stat(filepath.Join(dir, parts.Name(i, n))); err != nil {
			left = append(left, i)
		}
	}
	return left
}
