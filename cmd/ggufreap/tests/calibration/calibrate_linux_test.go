package calibration

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"ggufreap/cmd/ggufreap/internal/programtest"
)

// smallDisk mounts a file system in memory until the test ends.
func smallDisk(t *testing.T, options string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		fmt.Printf("calibrate: full disk: NOT RUN: a file system cannot be mounted here: %v\n", err)
		t.Skip(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// A disk that is full when a checkpoint is written is an error that says so. Nothing is left
// there, and a checkpoint that was there stays for a run that has room again.
func TestCalibrateFullDisk(t *testing.T) {
	model := trained(t, "dots1-trained-Q8_0.gguf")
	text := head(t, "german.calib.txt", 2000)
	withEngine(t)
	disk := smallDisk(t, "size=256k")
	args := []string{"calibrate", "--quiet", "--threads", "1", "--text", text, "-o", filepath.Join(disk, "s.npz")}
	interrupt := func(want string, more ...string) {
		t.Helper()
		if r := interruptedAt(t, "measure", 2, slices.Concat(args, more, []string{model})...); !strings.Contains(r.Stderr, want) {
			t.Fatalf("exit %d, want %q: %s", r.Code, want, r.Stderr)
		}
	}
	interrupt("--resume goes on")
	saved := programtest.ReadFile(t, filepath.Join(disk, "s.checkpoint"))
	filler := filepath.Join(disk, "filler")
	if err := os.WriteFile(filler, bytes.Repeat([]byte{1}, 1<<20), 0o666); err == nil {
		t.Fatal("the disk is not full")
	}
	interrupt(syscall.ENOSPC.Error(), "--resume")
	if names, _ := filepath.Glob(filepath.Join(disk, "*")); len(names) != 2 || !bytes.Equal(programtest.ReadFile(t, filepath.Join(disk, "s.checkpoint")), saved) {
		t.Errorf("the disk holds %q", names)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	whole := filepath.Join(t.TempDir(), "s.npz")
	programtest.Succeed(t, "calibrate", "--quiet", "--threads", "1", "--text", text, "-o", whole, model)
	programtest.Succeed(t, append(args, "--resume", model)...)
	for _, ending := range []string{".npz", ".json"} {
		if !bytes.Equal(programtest.ReadFile(t, filepath.Join(disk, "s"+ending)), programtest.ReadFile(t, strings.TrimSuffix(whole, ".npz")+ending)) {
			t.Errorf("%s differs from that of a run on a disk with room", ending)
		}
	}
}
