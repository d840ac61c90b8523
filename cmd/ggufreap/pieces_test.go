package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCommandsReadPieces runs commands on a model whose shards lie there in pieces: all they say
// and write is what they do of the whole files.
func TestCommandsReadPieces(t *testing.T) {
	whole := filepath.Dir(writeModel(t, smallK3(), 2)[0])
	pieces := t.TempDir()
	entries, err := os.ReadDir(whole)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(whole, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		for i, suffix := range []string{".part1of2", ".part2of2"} {
			part := [][]byte{data[:100_003], data[100_003:]}[i]
			if err := os.WriteFile(filepath.Join(pieces, e.Name()+suffix), part, 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	out := func(name string) string { return filepath.Join(t.TempDir(), name) }
	for _, line := range [][]string{{"prune", "--keep", "16"}, {"reshard", "--shards", "3"}, {"edit", "--set", "general.url=x"}} {
		a, b := out("a"), out("b")
		succeed(t, append(line, "-o", a, whole)...)
		succeed(t, append(line, "-o", b, pieces)...)
		list, err := os.ReadFile(filepath.Join(a, "MANIFEST.sha256"))
		other, err2 := os.ReadFile(filepath.Join(b, "MANIFEST.sha256"))
		if err != nil || err2 != nil || string(list) != string(other) {
			t.Errorf("%q: %s\nof pieces %s", line, list, other)
		}
	}
	if r := ggufreap(t, "diff", whole, pieces); r.code != exitOK {
		t.Errorf("diff: %s", r.stdout)
	}
	if said := succeed(t, "verify", pieces); !strings.Contains(said, "nothing found") {
		t.Error(said)
	}
	if said := succeed(t, "inspect", "--json", pieces); strings.Count(said, `.part2of2"`) != 2 {
		t.Error(said)
	}
	taken := out("source.json")
	succeed(t, "prune", "--keep", "16", "--pin-source", taken, "-o", out("c"), pieces)
	if r := ggufreap(t, "pin", "--check", taken, whole); r.code != exitOK {
		t.Errorf("check: %s%s", r.stdout, r.stderr)
	}
	if r := ggufreap(t, "prune", "--keep", "16", "-o", pieces, pieces); r.code != exitFailed || !strings.Contains(r.stderr, "holds the source") {
		t.Errorf("into its own folder: exit %d\n%s", r.code, r.stderr)
	}
	if r := ggufreap(t, "inspect", "--engine", pieces); r.code != exitFailed || !strings.Contains(r.stderr, "llama.cpp cannot read a file in pieces") || !strings.Contains(r.stderr, "hint: cat ") {
		t.Errorf("--engine: exit %d\n%s", r.code, r.stderr)
	}
}

// TestPointerAmongShards says how the shard comes that a Git LFS pointer stands for.
func TestPointerAmongShards(t *testing.T) {
	files := writeModel(t, smallK3(), 3)
	pointer := "version https://git-lfs.github.com/spec/v1\noid sha256:" + strings.Repeat("7", 64) + "\nsize 123\n"
	if err := os.WriteFile(files[1], []byte(pointer), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, line := range [][]string{{"inspect", files[0]}, {"prune", "--keep", "16", "--dry-run", filepath.Dir(files[0])}} {
		if r := ggufreap(t, line...); r.code == exitOK || !strings.Contains(r.stderr, "Git LFS pointers in place of 1 file; git lfs pull") {
			t.Errorf("%q: exit %d\n%s", line, r.code, r.stderr)
		}
	}
}
