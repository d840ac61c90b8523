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

// TestReleaseInPieces verifies releases of which one listed file lies there in pieces: it is there,
// byte for byte, or it is not.
func TestReleaseInPieces(t *testing.T) {
	t.Chdir(t.TempDir())
	source := writeModel(t, smallK3(), 2)[0]
	for what, tc := range map[string]struct {
		change func(pieces []string) error
		code   int
		want   string
	}{
		"whole":     {nil, exitOK, "as pinned"},
		"flipped":   {func(p []string) error { return flipByte(p[1], 1000) }, exitDiffers, `sha256 is `},
		"cut off":   {func(p []string) error { return os.Truncate(p[2], 7) }, exitDiffers, "is read from 3 pieces"},
		"one gone":  {func(p []string) error { return os.Remove(p[1]) }, exitDiffers, "is cut into 3 pieces, of which 1 is missing"},
		"last gone": {func(p []string) error { return os.Remove(p[2]) }, exitDiffers, "the file is truncated"},
	} {
		t.Run(what, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out")
			succeed(t, "prune", "--keep", "16", "--shards", "1", "--name", "m", "-o", out, source)
			pieces := cutFile(t, filepath.Join(out, "m.gguf"), 3)
			if tc.change != nil {
				if err := tc.change(pieces); err != nil {
					t.Fatal(err)
				}
			}
			r := ggufreap(t, "verify", out)
			if r.code != tc.code || !strings.Contains(r.stdout, tc.want) || tc.code == exitOK && strings.Contains(r.stdout, "extra") {
				t.Errorf("exit %d, want %d and %q\n%s%s", r.code, tc.code, tc.want, r.stdout, r.stderr)
			}
			if what == "whole" {
				succeed(t, "verify", filepath.Join(out, "m.gguf"))
				refuse(t, "lies there in 3 pieces, and repair writes to whole files", "repair", "--from", out, out)
			}
		})
	}
}

// cutFile leaves pieces in place of a file, as split -n does, and returns their paths.
func cutFile(t *testing.T, path string, n int) []string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var pieces []string
	for i := range n {
		piece := path + ".a" + string(rune('a'+i))
		if err := os.WriteFile(piece, data[i*len(data)/n:(i+1)*len(data)/n], 0o666); err != nil {
			t.Fatal(err)
		}
		pieces = append(pieces, piece)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	return pieces
}

func flipByte(path string, at int) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	data[at] ^= 1
	return os.WriteFile(path, data, 0o666)
}

// TestFoldersOfModelsBelow says where models lie below a folder that has none, as inspect does.
func TestFoldersOfModelsBelow(t *testing.T) {
	dir := t.TempDir()
	model := writeModel(t, smallK3(), 1)[0]
	if err := os.MkdirAll(filepath.Join(dir, "Q8_0"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(model, filepath.Join(dir, "Q8_0", "m.gguf")); err != nil {
		t.Fatal(err)
	}
	if r := ggufreap(t, "verify", dir); r.code != exitDiffers || !strings.Contains(r.stdout, `there is no model file to check; there are models in "Q8_0"`) {
		t.Errorf("exit %d\n%s", r.code, r.stdout)
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
