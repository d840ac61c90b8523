package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"ggufreap/cmd/ggufreap/internal/programtest"
	"ggufreap/manifest"
)

// keptShards counts what the journal of an unfinished release says is on disk.
func keptShards(out string) int {
	journal, _ := os.ReadFile(filepath.Join(out, manifest.JournalName)) // none is none
	return bytes.Count(journal, []byte(`{"shard":`))
}

// lastProgress returns what the last line of --progress json says.
func lastProgress(stderr string) (done, total int64) {
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

// TestProgressByWhatTravels has progress tell of bytes that travel: not of those that an
// interrupted run has written.
func TestProgressByWhatTravels(t *testing.T) {
	h, files := programtest.OnHub(t, programtest.WideExperts(), 5)
	out := filepath.Join(t.TempDir(), "out")
	line := []string{"prune", "--keep", "24", "--shards", "20", "--workers", "1", "--progress", "json", "-o", out}
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
	done, rest := lastProgress(r.stderr)
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
	h, files := programtest.OnHub(t, programtest.WideExperts(), 3)
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
	programtest.SameFolder(t, folder(t, out), folder(t, local))
	var size int64
	for _, data := range folder(t, out) {
		size += int64(len(data))
	}
	if got := h.Written.Load(); got > size*9/10 {
		t.Errorf("%d bytes travelled the second time, the release has %d", got, size)
	}
}

// TestPartsByWhatTravels has the parts of a release tell of bytes that travel, and say that nobody
// could take the sums that the hub states; joined they are the release of one run.
func TestPartsByWhatTravels(t *testing.T) {
	h, files := programtest.OnHub(t, programtest.WideExperts(), 5)
	dir := t.TempDir()
	for _, command := range [][]string{{"prune", "--keep", "24"}, {"reshard"}} {
		local, out := filepath.Join(dir, "local"+command[0]), filepath.Join(dir, "out"+command[0])
		line := append(command, "--shards", "6", "--name", "M")
		succeed(t, append(line, "-o", local, files[0])...)
		for _, part := range []string{"1/2", "2/2"} {
			h.Reset()
			r := ggufreap(t, append(line, "--only", part, "--progress", "json", "-o", out, "hf://org/K3")...)
			done, total := lastProgress(r.stderr)
			if r.code != exitOK || done != total || total == 0 || total > h.Written.Load() || total < h.Written.Load()*8/10 {
				t.Errorf("%s: exit %d: %d of %d bytes at the end, %d travelled\n%s", part, r.code, done, total, h.Written.Load(), r.stderr)
			}
			if !strings.Contains(r.stdout, "did not have to travel") || strings.Contains(r.stdout, "the sha256 that the hub states") != (command[0] == "reshard") {
				t.Errorf("%s %s prints\n%s", command[0], part, r.stdout)
			}
		}
		succeed(t, "assemble", out)
		for name, data := range folder(t, local) {
			if strings.HasSuffix(name, ".gguf") && data != folder(t, out)[name] {
				t.Errorf("%s: %s differs from that of one run", command[0], name)
			}
		}
	}
}
