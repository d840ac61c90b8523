//go:build unix

package chaos

import (
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ggufreap/cmd/ggufreap/internal/programtest"

	"ggufreap/gguf/remote/hubtest"
	"ggufreap/manifest"
)

// TestKilledWhileFetching kills a prune from the hub twelve times at random, before anything
// more has come or after some of it, and goes on: the release is that of the files. The hub's addresses
// expire all the time, and what came before is not asked for again.
func TestKilledWhileFetching(t *testing.T) {
	path := programtest.Path(t)
	h, files := programtest.OnHub(t, programtest.WideExperts(), 5)
	h.Life = 40
	dir := t.TempDir()
	keep := []string{"prune", "--keep", "24", "--shards", "20", "--workers", "1"} // a finished shard is kept
	local, out := filepath.Join(dir, "local"), filepath.Join(dir, "out")
	programtest.Succeed(t, append(keep, "-o", local, files[0])...)
	want := programtest.Folder(t, local)
	var size int64
	for _, data := range want {
		size += int64(len(data))
	}
	const kills = 12 // of 20 shards each one lets at most one be finished, and what comes in 50 ms
	line := append(keep, "--resume", "-o", out, "hf://org/K3")
	for range kills {
		// Slow enough for the kill to come before the end.
		cmd := exec.Command(path, append([]string{"prune", "--limit-rate", "8MB", "--connections", "4"}, line[1:]...)...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for enough, end := keptShards(out)+rand.IntN(2), time.Now().Add(time.Minute); keptShards(out) < enough && time.Now().Before(end) && !programtest.Exists(filepath.Join(out, manifest.SumsName)); {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Duration(rand.IntN(50)) * time.Millisecond)
		cmd.Process.Kill()
		if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
			t.Fatalf("not killed: %v\n%s", err, stderr.String())
		}
	}
	h.Reset()
	cmd := exec.Command(path, line...)
	if text, err := cmd.CombinedOutput(); err != nil && !strings.Contains(string(text), "holds a finished release") {
		t.Fatalf("%v\n%s", err, text)
	}
	programtest.SameFolder(t, programtest.Folder(t, out), want)
	if got := h.Written.Load(); got > size*9/10 {
		t.Errorf("%d bytes travelled in the end for a release of %d: nothing was kept", got, size)
	}
	t.Logf("%d kills; the last run fetched %d bytes of %d", kills, h.Written.Load(), size)
}

// keptShards counts what the journal of an unfinished release says is on disk.
func keptShards(out string) int {
	journal, _ := os.ReadFile(filepath.Join(out, manifest.JournalName)) // none is none
	return bytes.Count(journal, []byte(`{"shard":`))
}

// TestGoingOnNeedsTheSameSource refuses to go on when the branch has moved, and goes on by
// another address of the same commit.
func TestGoingOnNeedsTheSameSource(t *testing.T) {
	path := programtest.Path(t)
	h, files := programtest.OnHub(t, programtest.WideExperts(), 5)
	dir := t.TempDir()
	local, out := filepath.Join(dir, "local"), filepath.Join(dir, "out")
	programtest.Succeed(t, "prune", "--keep", "24", "-o", local, files[0])
	cmd := exec.Command(path, "prune", "--keep", "24", "--limit-rate", "5MB", "-o", out, "hf://org/K3")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	cmd.Process.Kill()
	cmd.Wait()

	other := strings.Repeat("ab", 20)
	h.Commit = other
	r := programtest.Run(t, "prune", "--keep", "24", "--resume", "-o", out, "hf://org/K3")
	if r.Code != programtest.Failed || !strings.Contains(r.Stderr, "it was stated as hf://org/K3@"+hubtest.Commit) {
		t.Errorf("after the branch has moved: exit %d, stderr %s", r.Code, r.Stderr)
	}
	r = programtest.Run(t, "prune", "--keep", "24", "--resume", "-o", out, files[0])
	if r.Code != programtest.Failed || !strings.Contains(r.Stderr, "is a file of this machine, it was stated as") {
		t.Errorf("from files in place of the hub: exit %d, stderr %s", r.Code, r.Stderr)
	}
	h.Commit = hubtest.Commit
	programtest.Succeed(t, "prune", "--keep", "24", "--resume", "-o", out, h.Endpoint()+"/org/K3/tree/"+hubtest.Commit+"/IQ1_S")
	programtest.SameFolder(t, programtest.Folder(t, out), programtest.Folder(t, local))
}
