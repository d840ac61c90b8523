package stage

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"ggufreap/manifest"
)

// TestReplaceHeader replaces a header on disk, and refuses files that are not one's own.
func TestReplaceHeader(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "m.gguf")
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	put("m.gguf", "old head and data")
	if err := ReplaceHeader(path, []byte("old head"), []byte("new head")); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "new head and data" {
		t.Errorf("got %q, %v", data, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left %v, %v", entries, err)
	}
	if err := ReplaceHeader(path, []byte("old head"), []byte("new head")); err == nil {
		t.Error("a file with another header was changed")
	}
	if err := ReplaceHeader(path, []byte("new head"), []byte("new")); err == nil {
		t.Error("a shorter header was taken")
	}
	if back, err := TakeBack(path); back || err != nil {
		t.Errorf("took back what there is not: %v", err)
	}
	for name, link := range map[string]func(from, to string) error{"hard": os.Link, "symbolic": os.Symlink} {
		other := filepath.Join(dir, name+".gguf")
		if err := link(path, other); err != nil {
			t.Logf("no %s links here: %v", name, err)
			continue
		}
		if err := ReplaceHeader(other, []byte("new head"), []byte("odd head")); !errors.Is(err, ErrShared) {
			t.Errorf("a %s link: %v", name, err)
		}
		os.Remove(other)
	}
	put("m.gguf"+manifest.OldHeaderSuffix, "no sum of anything, but long enough to hold one")
	if _, err := TakeBack(path); err == nil {
		t.Error("anything was taken for an old header")
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "new head and data" {
		t.Errorf("got %q, %v", data, err)
	}
}

// TestReplaceHeaderSurvives ends the replacement at each operation by a fault, a kill and the
// loss of power. What is found, taken back where it was interrupted, is the old file or the new.
func TestReplaceHeaderSurvives(t *testing.T) {
	was, is := bytes.Repeat([]byte("old"), 100), bytes.Repeat([]byte("new"), 100)
	rest := []byte("tensor data")
	newDisk := func() *memDisk {
		file := &memFile{data: append(bytes.Clone(was), rest...)}
		file.synced = bytes.Clone(file.data)
		return &memDisk{names: map[string]*memFile{"m.gguf": file}, synced: map[string]*memFile{"m.gguf": file}}
	}
	path := filepath.Join("folder", "m.gguf")
	count := newTally(t, "header in place")
	whole := func(d *memDisk, how string, at int) {
		t.Helper()
		if _, err := takeBack(d, path); err != nil {
			t.Fatalf("%s at operation %d: %v", how, at, err)
		}
		delete(d.names, "m.gguf"+manifest.OldHeaderSuffix+partSuffix)
		got := d.names["m.gguf"].data
		if len(d.names) != 1 || !bytes.Equal(got, append(bytes.Clone(was), rest...)) && !bytes.Equal(got, append(bytes.Clone(is), rest...)) {
			t.Fatalf("%s at operation %d left %q", how, at, d.files())
		}
	}
	d := newDisk()
	if err := replaceHeader(d, path, was, is); err != nil || !bytes.HasPrefix(d.names["m.gguf"].data, is) {
		t.Fatal(err)
	}
	operations := d.count
	for at := 1; at <= operations; at++ {
		d := newDisk()
		d.failAt = at
		replaceHeader(d, path, was, is)
		d.restart()
		whole(d, "a fault", at)
		for seed := range uint64(40) {
			d := newDisk()
			d.dieAt = at
			if replaceHeader(d, path, was, is) == nil {
				t.Fatalf("operation %d was never reached", at)
			}
			count.kills++
			d.restart()
			how := "a kill"
			if seed > 0 {
				how = "the loss of power"
				d.cutPower(rand.New(rand.NewPCG(seed, uint64(at))))
			}
			whole(d, how, at)
		}
	}
	// Taking back is itself interrupted.
	for at := 1; at <= operations; at++ {
		d := newDisk()
		if err := keepOld(memFolder{d}, "m.gguf"+manifest.OldHeaderSuffix, was); err != nil {
			t.Fatal(err)
		}
		copy(d.names["m.gguf"].data, is[:150])
		d.restart()
		d.dieAt = at
		takeBack(d, path)
		d.restart()
		d.cutPower(rand.New(rand.NewPCG(1, uint64(at))))
		whole(d, "a kill while taking back", at)
	}
}
