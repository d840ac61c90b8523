//go:build unix

package gguf

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

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
	wantProblems(t, m.Problems, "error: incomplete: 1 of 3 shards are missing: m-00003-of-00003.gguf")
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
