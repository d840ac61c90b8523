package main

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zeebo/blake3"

	"ggufreap/cmd/ggufreap/internal/programtest"
	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/manifest"
	"ggufreap/manifest/parts"
	"ggufreap/reap"
)

// TestJoinAtRealSize joins the records of 256 parts of a release with 92 layers of 896 experts
// in 1,148 shards, which are sparse, and prints what that costs.
func TestJoinAtRealSize(t *testing.T) {
	dir := t.TempDir()
	writeRealParts(t, dir, 256, 1148)
	cmd := exec.Command(programtest.Path(t), "assemble", "--wait", "0s", dir)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	peak := programtest.Measured(t, cmd)
	start := time.Now()
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	taken := time.Since(start)
	const most = 256 << 20
	fmt.Printf("join of 256 parts, 1,148 shards, 92 layers of 896 experts: %.1f s, %d MiB\n", taken.Seconds(), peak()>>20)
	if peak() > most {
		t.Errorf("%d bytes of memory, want at most %d", peak(), most)
	}
	if !exists(filepath.Join(dir, manifest.SumsName)) || exists(filepath.Join(dir, parts.Name(1, 256))) {
		t.Error("the parts were not joined")
	}
}

// TestMemoryOfRecords joins records of some 20 MiB that hold as many small things as can be.
func TestMemoryOfRecords(t *testing.T) {
	base := func() *parts.Record {
		r := parts.New(&manifest.Pin{Artifact: manifest.Artifact{Name: "x", Shards: 65535}}, nil)
		r.Task, r.Program, r.Part, r.Parts = "prune", programVersion(), 1, 1
		return r
	}
	for name, fill := range map[string]func(r *parts.Record){
		"keys": func(r *parts.Record) {
			for i := range 150_000 {
				r.Metadata = append(r.Metadata, manifest.Pair{Key: fmt.Sprint(i), Type: "u8"})
			}
		},
		"facts": func(r *parts.Record) {
			for range 150_000 {
				r.Facts = append(r.Facts, parts.Fact{Digest: manifest.DigestBytes(nil)})
			}
		},
		"findings": func(r *parts.Record) {
			for i := range 250_000 {
				r.Findings = append(r.Findings, parts.Finding{What: fmt.Sprint(i)})
			}
		},
		"tensors": func(r *parts.Record) {
			r.Add(1, manifest.File{Name: "x-00001-of-65535.gguf"}, make([]manifest.Tensor, 100_000))
			for i := range r.Tensors {
				r.Tensors[i].Shape = []uint64{}
			}
		},
		"dims": func(r *parts.Record) {
			for range 3 {
				r.Tensors = append(r.Tensors, manifest.Tensor{Shape: make([]uint64, 480_000)})
			}
			r.Add(1, manifest.File{Name: "x-00001-of-65535.gguf"}, nil)
			r.Files[0].Tensors = len(r.Tensors)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			r := base()
			fill(r)
			var text bytes.Buffer
			if err := r.Encode(&text); err != nil {
				t.Fatal(err)
			}
			writeFile(t, filepath.Join(dir, parts.Name(1, 1)), text.Bytes())
			cmd := exec.Command(programtest.Path(t), "assemble", "--wait", "0s", dir)
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			peak := programtest.Measured(t, cmd)
			err := cmd.Run()
			t.Logf("record of %d MiB: %d MiB of memory, %v: %.200s", text.Len()>>20, peak()>>20, err, out.String())
			if peak() > 256<<20 {
				t.Errorf("%d bytes of memory, want at most %d", peak(), 256<<20)
			}
			if err == nil || !strings.Contains(err.Error(), "exit status") {
				t.Errorf("ended with %v", err)
			}
		})
	}
}

// writeRealParts writes sparse shards, and records of parts with digests that rest on nothing.
func writeRealParts(t *testing.T, dir string, n, shards int) {
	t.Helper()
	files, err := gguftest.K3Real(1536, gguf.IQ1_S).WriteSparse(dir, gguf.Split{Shards: shards})
	if err != nil {
		t.Fatal(err)
	}
	m := openModel(t, files[0])
	experts, _ := reap.FindExperts(m)
	pin, err := manifest.PinHeaders(m, manifest.BuildOptions{Slabs: routedSlabs(experts)})
	if err != nil {
		t.Fatal(err)
	}
	for i := range pin.Tensors {
		fillTensor(&pin.Tensors[i])
	}
	costs := make([]int64, len(m.Files))
	first := make([]int, len(m.Files)+1) // tensor of each file
	for i, f := range m.Files {
		costs[i] = f.Size
		first[i+1] = first[i] + len(f.Tensors)
		rand.Read(pin.Files[i].SHA256[:])
	}
	for part, files := range parts.Divide(costs, n) {
		r := parts.New(pin, []parts.Fact{{Name: "plan", Digest: manifest.DigestBytes(nil)}})
		r.Task, r.Program, r.Part, r.Parts = "prune", programVersion(), part+1, n
		for _, i := range files {
			r.Add(i+1, pin.Files[i], pin.Tensors[first[i]:first[i+1]])
		}
		var text bytes.Buffer
		if err := r.Encode(&text); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, parts.Name(part+1, n)), text.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// fillTensor makes up digests that do not contradict each other.
func fillTensor(t *manifest.Tensor) {
	rand.Read(t.BLAKE3[:])
	switch {
	case t.Slabs == nil:
	case t.Size/int64(t.Slabs.Count) <= 32:
		t.Slabs.Bytes = make([]byte, t.Size)
		rand.Read(t.Slabs.Bytes)
		t.BLAKE3 = blake3.Sum256(t.Slabs.Bytes)
	default:
		t.Slabs.BLAKE3 = make([]byte, 32*t.Slabs.Count)
		rand.Read(t.Slabs.BLAKE3)
	}
}
