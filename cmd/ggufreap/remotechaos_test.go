//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ggufreap/cmd/ggufreap/internal/programtest"
	"ggufreap/gguf/remote/hubtest"
	"ggufreap/manifest"
)

// TestKilledWhileFetching kills a prune from the hub twelve times at random, each time after
// some of it has come, and goes on: the release is that of the files. The hub's addresses
// expire all the time, and what came before is not asked for again.
func TestKilledWhileFetching(t *testing.T) {
	path := programtest.Path(t)
	h, files := onHub(t, wideExperts(), 5)
	h.Life = 40
	dir := t.TempDir()
	keep := []string{"prune", "--keep", "24", "--shards", "20", "--workers", "1"} // a finished shard is kept
	local, out := filepath.Join(dir, "local"), filepath.Join(dir, "out")
	succeed(t, append(keep, "-o", local, files[0])...)
	want := folder(t, local)
	var size int64
	for _, data := range want {
		size += int64(len(data))
	}
	const kills = 12
	killed := 0
	line := append(keep, "--resume", "-o", out, "hf://org/K3")
	for range kills {
		// Slow enough for the kill to come before the end.
		cmd := exec.Command(path, append([]string{"prune", "--limit-rate", "8MB", "--connections", "4"}, line[1:]...)...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for enough, end := keptShards(out)+rand.IntN(3), time.Now().Add(20*time.Second); keptShards(out) < enough && time.Now().Before(end) && !exists(filepath.Join(out, manifest.SumsName)); {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond)
		cmd.Process.Kill()
		if err := cmd.Wait(); err != nil && strings.Contains(err.Error(), "killed") {
			killed++
		} else if err != nil {
			t.Fatalf("%v\n%s", err, stderr.String())
		}
	}
	if killed < kills/2 {
		t.Errorf("%d kills only came before the end", killed)
	}
	h.Reset()
	cmd := exec.Command(path, line...)
	if text, err := cmd.CombinedOutput(); err != nil && !strings.Contains(string(text), "holds a finished release") {
		t.Fatalf("%v\n%s", err, text)
	}
	sameFolder(t, folder(t, out), want)
	if got := h.Written.Load(); got > size*9/10 {
		t.Errorf("%d bytes travelled in the end for a release of %d: nothing was kept", got, size)
	}
	t.Logf("%d kills; the last run fetched %d bytes of %d", killed, h.Written.Load(), size)
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
	h, files := onHub(t, wideExperts(), 5)
	dir := t.TempDir()
	local, out := filepath.Join(dir, "local"), filepath.Join(dir, "out")
	succeed(t, "prune", "--keep", "24", "-o", local, files[0])
	cmd := exec.Command(path, "prune", "--keep", "24", "--limit-rate", "5MB", "-o", out, "hf://org/K3")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	cmd.Process.Kill()
	cmd.Wait()

	other := strings.Repeat("ab", 20)
	h.Commit = other
	r := ggufreap(t, "prune", "--keep", "24", "--resume", "-o", out, "hf://org/K3")
	if r.code != exitFailed || !strings.Contains(r.stderr, "it was stated as hf://org/K3@"+hubtest.Commit) {
		t.Errorf("after the branch has moved: exit %d, stderr %s", r.code, r.stderr)
	}
	r = ggufreap(t, "prune", "--keep", "24", "--resume", "-o", out, files[0])
	if r.code != exitFailed || !strings.Contains(r.stderr, "is a file of this machine, it was stated as") {
		t.Errorf("from files in place of the hub: exit %d, stderr %s", r.code, r.stderr)
	}
	h.Commit = hubtest.Commit
	succeed(t, "prune", "--keep", "24", "--resume", "-o", out, h.Endpoint()+"/org/K3/tree/"+hubtest.Commit+"/IQ1_S")
	sameFolder(t, folder(t, out), folder(t, local))
}

// TestKilledWhileRepairing kills a repair from the hub twelve times at random, each time after
// some of it has come, and goes on: the files are what they were, and no byte that is noted as
// replaced is fetched again.
func TestKilledWhileRepairing(t *testing.T) {
	path := programtest.Path(t)
	h, files := onHub(t, wideExperts(), 5)
	good, dir := t.TempDir(), filepath.Dir(files[0])
	for _, file := range files {
		if err := os.WriteFile(filepath.Join(good, filepath.Base(file)), read(t, file), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	pin := filepath.Join(t.TempDir(), "pin.json.zst")
	succeed(t, "pin", "-o", pin, good)
	h.AddFolder(t, "org/K3", "IQ1_S", good)
	want := folder(t, good)
	for _, file := range files {
		f, err := os.OpenFile(file, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		info, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		for at := int64(100); at < info.Size(); at += 400_000 {
			if _, err := f.WriteAt([]byte("damage"), at); err != nil {
				t.Fatal(err)
			}
		}
		f.Close()
	}
	line := []string{"repair", "--pin", pin, "--from", "hf://org/K3", dir}
	const kills = 12
	killed := 0
	for range kills {
		h.Reset()
		cmd := exec.Command(path, append([]string{"repair", "--limit-rate", "2MB", "--connections", "2"}, line[1:]...)...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		for enough, end := rand.Int64N(400_000), time.Now().Add(20*time.Second); h.Written.Load() < enough && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond)
		cmd.Process.Kill()
		if err := <-ended; err != nil && strings.Contains(err.Error(), "killed") {
			killed++
		} else if err != nil {
			t.Fatalf("%v\n%s", err, stderr.String())
		}
	}
	if killed < kills/2 {
		t.Errorf("%d kills only came before the end", killed)
	}
	succeed(t, line...)
	sameFolder(t, folder(t, dir), want)
	if out := succeed(t, line...); !strings.Contains(out, "nothing is wrong") {
		t.Errorf("a repair of what was repaired prints\n%s", out)
	}
}

// TestProgressByWhatTravels has progress tell of bytes that travel: not of those that an
// interrupted run has written.
func TestProgressByWhatTravels(t *testing.T) {
	h, files := onHub(t, wideExperts(), 5)
	out := filepath.Join(t.TempDir(), "out")
	line := []string{"prune", "--keep", "24", "--shards", "20", "--workers", "1", "--progress", "json", "-o", out}
	last := func(stderr string) (done, total int64) {
		for text := range strings.Lines(stderr) {
			var state struct {
				Done  int64 `json:"done_bytes"`
				Total int64 `json:"total_bytes"`
			}
			if json.Unmarshal([]byte(text), &state) == nil && state.Total > 0 {
				done, total = state.Done, state.Total
			}
		}
		return done, total
	}
	var stored atomic.Int64
	h.Fault = func(w http.ResponseWriter, r *http.Request) bool {
		gone := stored.Add(1) > 60
		if gone {
			w.WriteHeader(http.StatusNotFound)
		}
		return gone
	}
	address := h.File(filepath.Base(files[0]))
	r := ggufreap(t, append(line, address)...)
	if r.code == exitOK || keptShards(out) == 0 {
		t.Fatalf("exit %d, %d shards are kept, stderr %s", r.code, keptShards(out), r.stderr)
	}
	h.Fault = nil
	h.Reset()
	r = ggufreap(t, append(append([]string{"prune", "--resume"}, line[1:]...), address)...)
	done, rest := last(r.stderr)
	var whole int64
	for _, data := range folder(t, out) {
		whole += int64(len(data))
	}
	if r.code != exitOK || done != rest || rest > whole*9/10 || rest > h.Written.Load() {
		t.Errorf("exit %d: %d of %d bytes at the end, all have %d, %d travelled\n%s", r.code, done, rest, whole, h.Written.Load(), r.stderr)
	}
}

// TestGoingOnWithAnotherSignature goes on by fresh signatures, and by another name of the server,
// after those of the first run have expired.
func TestGoingOnWithAnotherSignature(t *testing.T) {
	h, files := onHub(t, wideExperts(), 3)
	dir := t.TempDir()
	local, out := filepath.Join(dir, "local"), filepath.Join(dir, "out")
	keep := []string{"prune", "--keep", "24", "--shards", "20", "--workers", "1"}
	succeed(t, append(keep, "-o", local, files[0])...)
	addresses := func(signature string) []string {
		var list []string
		for _, file := range files {
			list = append(list, h.File(filepath.Base(file))+"?X-Amz-Signature="+signature)
		}
		return list
	}
	var asked atomic.Int64
	h.Fault = func(w http.ResponseWriter, r *http.Request) bool {
		expired := r.URL.Query().Get("X-Amz-Signature") == "first" && asked.Add(1) > 60
		if expired {
			w.WriteHeader(http.StatusForbidden)
		}
		return expired
	}
	r := ggufreap(t, append(append(keep, "-o", out), addresses("first")...)...)
	if r.code == exitOK || keptShards(out) == 0 || !strings.Contains(r.stderr, "SIGNATURE") || strings.Contains(r.stderr, "=first") {
		t.Fatalf("exit %d, %d shards are kept, stderr %s", r.code, keptShards(out), r.stderr)
	}
	h.Reset()
	succeed(t, append(append(keep, "--resume", "-o", out), addresses("second")...)...)
	sameFolder(t, folder(t, out), folder(t, local))
	var size int64
	for _, data := range folder(t, out) {
		size += int64(len(data))
	}
	if got := h.Written.Load(); got > size*9/10 {
		t.Errorf("%d bytes travelled the second time, the release has %d", got, size)
	}
}
