package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"ggufreap/cmd/ggufreap/internal/programtest"
	"ggufreap/gguf/gguftest"
)

// TestRepairFromTheHub flips one byte of an expert: with a pin one expert travels, with the
// hub's sums alone the whole file, and from a folder it is mended too.
func TestRepairFromTheHub(t *testing.T) {
	h, files := programtest.OnHub(t, programtest.WideExperts(), 5)
	good := t.TempDir()
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(good, filepath.Base(file)), data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	pin := filepath.Join(t.TempDir(), "pin.json.zst")
	succeed(t, "pin", "-o", pin, good)
	m := openModel(t, good)
	tensor := m.Tensor("blk.2.ffn_up_exps.weight")
	var headers int64
	for _, f := range m.Files {
		headers += f.DataOffset
	}
	slab, dir := tensor.Size/32, filepath.Dir(files[0])
	damage := func() {
		t.Helper()
		f, err := os.OpenFile(files[tensor.Shard()], os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteAt([]byte("damage"), tensor.DataOffset()+7*slab+9); err != nil {
			t.Fatal(err)
		}
	}
	// The hub serves the files that are damaged here.
	h.AddFolder(t, "org/K3", "IQ1_S", good)
	h.AddFolder(t, "plain/files", "", good)
	want := folder(t, good)
	for _, tc := range []struct {
		args  []string
		bytes int64
		text  string
	}{
		{[]string{"--pin", pin, "--from", "hf://org/K3"}, slab + headers*11/10, "expert 7"},
		{[]string{"--pin", pin, "--from", h.File(filepath.Base(files[0]))}, slab + headers*11/10, "expert 7"},
		{[]string{"--pin", pin, "--from", good}, 0, "expert 7"},
		{[]string{"--from", "hf://org/K3"}, m.Files[tensor.Shard()].Size + headers*11/10, "With a pin it would be"},
	} {
		damage()
		if r := ggufreap(t, append(append([]string{"repair", "--dry-run"}, tc.args...), dir)...); r.code != exitDiffers || !strings.Contains(r.stdout, tc.text) {
			t.Errorf("%s --dry-run: exit %d\n%s%s", tc.args, r.code, r.stdout, r.stderr)
		}
		h.Reset()
		out := succeed(t, append(append([]string{"repair"}, tc.args...), dir)...)
		if got := h.Written.Load(); got > tc.bytes {
			t.Errorf("%s: %d bytes travelled, want at most %d\n%s", tc.args, got, tc.bytes, out)
		}
		programtest.SameFolder(t, folder(t, dir), want)
		if out := succeed(t, append(append([]string{"repair"}, tc.args...), dir)...); !strings.Contains(out, "nothing is wrong") {
			t.Errorf("%s: a second repair prints\n%s", tc.args, out)
		}
	}
	if r := ggufreap(t, "repair", "--from", good, dir); r.code != exitFailed || !strings.Contains(r.stderr, "nothing says what its bytes should be") {
		t.Errorf("no pin and no list: exit %d, %s", r.code, r.stderr)
	}
}

// A bitFlip changes one byte of a body.
type bitFlip struct {
	http.ResponseWriter
	at int // bytes before it
}

func (w *bitFlip) Write(p []byte) (int, error) {
	if w.at >= 0 && w.at < len(p) {
		p = bytes.Clone(p)
		p[w.at] ^= 1
	}
	w.at -= len(p)
	return w.ResponseWriter.Write(p)
}

// TestBadPartIsFetchedAgain changes a byte of an expert, a router, a bias and a tensor without
// experts on its way: with the source's pin it is noticed as it arrives and fetched again, and
// when it is wrong each time the run ends and nothing is published.
func TestBadPartIsFetchedAgain(t *testing.T) {
	const experts = 12
	h, files := programtest.OnHub(t, gguftest.K3(gguftest.K3Options{Name: "wide", Experts: experts, Used: 4, Layers: 3, Latent: 512, Width: 256}), 5)
	dir := t.TempDir()
	pin, first := filepath.Join(dir, "pin.json.zst"), h.File(filepath.Base(files[0]))
	succeed(t, "pin", "-o", pin, files[0])
	m := openModel(t, files[0])
	for _, command := range [][]string{
		{"prune", "--keep", "5", "--source-pin", pin},
		{"reshard", "--shards", "3", "--source-pin", pin},
	} {
		local := filepath.Join(dir, command[0])
		line := append(append(command, "-o", local), files[0])
		succeed(t, line...)
		names := []string{"blk.1.ffn_down_exps.weight", "blk.2.ffn_gate_inp.weight", "blk.2.exp_probs_b.bias", "output_norm.weight", "token_embd.weight"}
		if command[0] == "reshard" { // which knows no kinds of tensors
			names = names[3:]
		}
		for _, name := range names {
			tensor := m.Tensor(name)
			kept := 0
			if pruned := openModel(t, filepath.Join(local)); command[0] == "prune" && strings.HasPrefix(name, "blk.") {
				kept = keptExpert(t, tensor, pruned.Tensor(name))
			}
			bad := tensor.DataOffset() + tensor.Size/experts*int64(kept) + 1
			for _, times := range []int64{1, 99} {
				var flipped atomic.Int64
				h.Fault = func(w http.ResponseWriter, r *http.Request) bool {
					var from, last int64
					fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &from, &last)
					if filepath.Base(r.URL.Path) != filepath.Base(tensor.File().Name) || from > bad || last < bad || flipped.Add(1) > times {
						return false
					}
					h.Answer(&bitFlip{w, int(bad - from)}, r)
					return true
				}
				out := filepath.Join(dir, fmt.Sprint(command[0], name, times))
				r := ggufreap(t, append(append(slices.Clone(command), "-o", out), first)...)
				if times == 1 {
					if r.code != exitOK || flipped.Load() < 2 {
						t.Errorf("%s, %s: exit %d after %d changes, stderr %s", command[0], name, r.code, flipped.Load(), r.stderr)
					}
					programtest.SameFolder(t, folder(t, out), folder(t, local))
					continue
				}
				if r.code != exitFailed || !strings.Contains(r.stderr, "also when it was asked for again") || !strings.Contains(r.stderr, name) || exists(filepath.Join(out, "MANIFEST.sha256")) {
					t.Errorf("%s, %s: exit %d, stderr %s", command[0], name, r.code, r.stderr)
				}
			}
		}
	}
}
