//go:build unix

package gguf

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestLinkThatLeadsNowhere is said to be one: in a hub's cache the blob may be gone.
func TestLinkThatLeadsNowhere(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink("gone", filepath.Join(dir, "m.gguf")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, filepath.Join(dir, "m.gguf")} {
		_, err := Open(path)
		wantError(t, err, `m.gguf: link that leads nowhere, to "gone"`)
	}
}

// Hub caches are folders of links whose targets have digests for names. Shards are
// siblings by the names of the links.
func TestOpenThroughLinks(t *testing.T) {
	dir := t.TempDir()
	for name, b := range set("m", 3) {
		blob := fmt.Sprintf("%x", name)
		put(t, dir, map[string][]byte{"blobs/" + blob: b})
		os.MkdirAll(filepath.Join(dir, "snapshots/main"), 0o777)
		if err := os.Symlink("../../blobs/"+blob, filepath.Join(dir, "snapshots/main", name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"snapshots/main", "snapshots/main/m-00002-of-00003.gguf"} {
		m, err := Open(filepath.Join(dir, path))
		if err != nil {
			t.Fatal(err)
		}
		if len(m.Files) != 3 || m.Name != "m" {
			t.Errorf("%s: opened %s with %d files", path, m.Name, len(m.Files))
		}
		wantProblems(t, m.Problems)
		m.Close()
	}
	os.Remove(filepath.Join(dir, "blobs", fmt.Sprintf("%x", "m-00003-of-00003.gguf")))
	m, err := Open(filepath.Join(dir, "snapshots/main"))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	wantProblems(t, m.Problems, "error: incomplete: 1 of 3 shards is missing: m-00003-of-00003.gguf")
}

// Shards of a family are found by their names alone, since a folder may not let itself be
// listed. One that is there and cannot be looked at is no missing one.
func TestFamilyPaths(t *testing.T) {
	dir := t.TempDir()
	name := func(i int) string { return ShardName("m", i-1, 6) }
	put(t, dir, map[string][]byte{name(1): nil, name(2) + "/x": nil, name(6): nil})
	for i, target := range map[int]string{3: name(3), 4: "nowhere", 5: name(6)} {
		if err := os.Symlink(target, filepath.Join(dir, name(i))); err != nil {
			t.Fatal(err)
		}
	}
	shard, named := parseShardName(name(2))
	if !named {
		t.Fatalf("%s is no name of a shard", name(2))
	}
	var want []string
	for _, i := range []int{1, 3, 5, 6} { // 2 is a folder, 3 leads to itself, 4 nowhere
		want = append(want, filepath.Join(dir, name(i)))
	}
	if got := (&opener{}).familyPaths(dir, shard); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A file with several names is there once, under the name that tells most.
func TestFilesOfSeveralNames(t *testing.T) {
	link := func(t *testing.T, make func(target, name string) error, dir, target, name string) {
		t.Helper()
		if err := make(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	hard := func(target, name string) error { return os.Link(filepath.Join(filepath.Dir(name), target), name) }
	parts := renamed(set("m", 3), "part-a.gguf", "part-b.gguf", "part-c.gguf")
	tests := []struct {
		name   string
		files  map[string][]byte
		make   func(target, name string) error
		target string
		paths  []string // "" is the folder itself
		model  string
		first  string // of the model's files
	}{
		{"link to a named shard", set("m", 3), os.Symlink, "m-00001-of-00003.gguf", []string{"", "latest.gguf", "m-00002-of-00003.gguf"}, "m 3", "m-00001-of-00003.gguf"},
		{"hard link to a named shard", set("m", 3), hard, "m-00001-of-00003.gguf", []string{"", "latest.gguf", "m-00002-of-00003.gguf"}, "m 3", "m-00001-of-00003.gguf"},
		{"link to a renamed shard", parts, os.Symlink, "part-a.gguf", []string{"", "latest.gguf", "part-c.gguf"}, "part-a 3", "part-a.gguf"},
		{"hard link to a renamed shard", parts, hard, "part-a.gguf", []string{"", "latest.gguf", "part-c.gguf"}, "latest 3", "latest.gguf"},
		{"link to a model of its own", map[string][]byte{"m.gguf": tiny(little(), 3)}, os.Symlink, "m.gguf", []string{""}, "m 1", "m.gguf"},
		{"link in a set that lacks the shard", map[string][]byte{"m-00002-of-00003.gguf": set("m", 3)["m-00002-of-00003.gguf"]}, os.Symlink, "m-00002-of-00003.gguf", []string{"", "latest.gguf"}, "m 1", "m-00002-of-00003.gguf"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			put(t, dir, test.files)
			link(t, test.make, dir, test.target, "latest.gguf")
			for _, path := range test.paths {
				m, err := Open(filepath.Join(dir, path))
				if err != nil {
					t.Errorf("%q: %v", path, err)
					continue
				}
				defer m.Close()
				if got := fmt.Sprint(m.Name, " ", len(m.Files)); got != test.model || filepath.Base(m.Files[0].Name) != test.first {
					t.Errorf("%q: opened %s from %s on, want %s from %s on", path, got, m.Files[0].Name, test.model, test.first)
				}
			}
			both := []string{filepath.Join(dir, test.target), filepath.Join(dir, "latest.gguf")}
			_, err := OpenFiles(both)
			wantError(t, err, both[0]+" and "+both[1]+" are the same file")
		})
	}
}

// Sets of links to the shards of another set are sets of their own.
func TestOpenBesideLinks(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, set("m", 3))
	for _, i := range []int{0, 2} {
		if err := os.Symlink(ShardName("m", i, 3), filepath.Join(dir, ShardName("n", i, 3))); err != nil {
			t.Fatal(err)
		}
	}
	m, err := Open(filepath.Join(dir, ShardName("n", 2, 3)))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	wantProblems(t, m.Problems, "error: n: incomplete: 1 of 3 shards is missing: n-00002-of-00003.gguf")
}

// A shard that the system does not let us look at does not hide the others, and is named
// once.
func TestShardBehindLinksInACircle(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, set("m", 3))
	second := filepath.Join(dir, "m-00002-of-00003.gguf")
	os.Remove(second)
	if err := os.Symlink(filepath.Base(second), second); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, filepath.Join(dir, "m-00001-of-00003.gguf")} {
		m, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		wantProblems(t, m.Problems, "error: "+second+": too many levels of symbolic links")
		if m.Complete() || len(m.Missing) > 0 || !slices.Equal(m.Unreadable, []string{second}) {
			t.Errorf("missing %q, unreadable %q", m.Missing, m.Unreadable)
		}
	}
}

// Reading a device or a pipe may never end.
func TestSpecialFilesAreRefused(t *testing.T) {
	_, err := Open(os.DevNull)
	wantError(t, err, "is a device, want a regular file")
	dir := t.TempDir()
	pipe := filepath.Join(dir, "p.gguf")
	if err := syscall.Mkfifo(pipe, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, dir} {
		_, err = Open(path)
		wantError(t, err, "p.gguf: is a named pipe, want a regular file")
	}
}

// The limit is set in a process of its own, since it cannot be raised again.
func TestManyShardsUnderDescriptorLimit(t *testing.T) {
	const variable = "GGUF_TEST_MANY_SHARDS"
	if dir := os.Getenv(variable); dir != "" {
		limit := syscall.Rlimit{Cur: 64, Max: 64}
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
			t.Fatal(err)
		}
		m, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		for _, tensor := range m.Tensors() {
			if _, err := io.ReadAll(tensor.Reader()); err != nil {
				t.Fatal(err)
			}
		}
		fmt.Println("tensors read:", len(m.Tensors()))
		return
	}
	dir := t.TempDir()
	put(t, dir, set("m", 1200))
	cmd := exec.Command(os.Args[0], "-test.run=^TestManyShardsUnderDescriptorLimit$")
	cmd.Env = append(os.Environ(), variable+"="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "tensors read: 1200") {
		t.Errorf("%v: %s", err, out)
	}
}
