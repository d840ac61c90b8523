package chaos

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"ggufreap/cmd/ggufreap/internal/programtest"

	"ggufreap/gguf/gguftest"
	"ggufreap/manifest"
)

// mount mounts a file system until the test ends.
func mount(t *testing.T, session, source, kind, options string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount(source, dir, kind, 0, options); err != nil {
		notRun(t, session, fmt.Sprintf("mounting %s: %v", kind, err))
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// mountImage makes a file system in a file, the image, and mounts it until the test ends.
func mountImage(t *testing.T, session string, size int64, mkfs ...string) (disk, image string) {
	t.Helper()
	image = filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(image, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(image, size); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(mkfs[0], append(mkfs[1:], image)...).CombinedOutput(); err != nil {
		notRun(t, session, fmt.Sprintf("%s: %v %s", mkfs[0], err, out))
	}
	disk = t.TempDir()
	if out, err := exec.Command("mount", "-o", "loop", image, disk).CombinedOutput(); err != nil {
		notRun(t, session, fmt.Sprintf("mounting a loop device: %v %s", err, out))
	}
	t.Cleanup(func() { exec.Command("umount", "-l", disk).Run() })
	return disk, image
}

// TestDiskIsFull writes to a file system that is too small, and to one that fills up in
// the middle of the run.
func TestDiskIsFull(t *testing.T) {
	const session = "full disks"
	b := newBench(t, session, gguftest.K3(gguftest.K3Options{}), "--preset", "reap568")
	disk := mount(t, session, "tmpfs", "tmpfs", "size=8m")
	out := filepath.Join(disk, "release")
	b.faults++
	b.wantFailure(b.run(out, "--dry-run"), "bytes are needed, 8,388,608 are free", "hint: 7.43 MB are lacking")
	b.wantFailure(b.run(out), "bytes are needed, 8,388,608 are free", "hint: 7.43 MB are lacking")
	if programtest.Exists(out) {
		t.Error("the refused run left a folder")
	}

	if err := syscall.Mount("", disk, "", syscall.MS_REMOUNT, "size=20m"); err != nil {
		t.Fatal(err)
	}
	filler := filepath.Join(disk, "filler")
	out, r := b.stopAt(2, func() string {
		if err := os.RemoveAll(out); err != nil {
			t.Fatal(err)
		}
		return out
	}, func(*process, string) {
		f, err := os.Create(filler)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for block := make([]byte, 4096); err == nil; {
			_, err = f.Write(block)
		}
	})
	b.wantFailure(r, "no space left on device", "bytes of shards are still to be written", "written and stay in", "--resume")
	b.wantFailure(b.run(out, "--resume"), "bytes are needed")
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	b.goOn(out, "with room again")
}

// TestTooManyFiles writes to a file system that runs out of names.
func TestTooManyFiles(t *testing.T) {
	const session = "disks without free names"
	b := newBench(t, session, gguftest.K3(gguftest.K3Options{}), "--preset", "reap568")
	disk := mount(t, session, "tmpfs", "tmpfs", "nr_inodes=8")
	out := filepath.Join(disk, "release")
	b.faults++
	b.wantFailure(b.run(out), "no space left on device", "written and stay in")
	if err := syscall.Mount("", disk, "", syscall.MS_REMOUNT, "nr_inodes=100"); err != nil {
		t.Fatal(err)
	}
	b.goOn(out, "with names again")
}

// TestReadOnlyDisk is refused before anything is written.
func TestReadOnlyDisk(t *testing.T) {
	const session = "read-only disks"
	b := newBench(t, session, gguftest.K3(gguftest.K3Options{}), "--preset", "reap568")
	disk := mount(t, session, "tmpfs", "tmpfs", "")
	out := filepath.Join(disk, "release")
	if err := os.Mkdir(out, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("", disk, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{out, filepath.Join(disk, "new")} {
		b.faults++
		b.wantFailure(b.run(dir), "read-only file system", dir)
	}
	if names := programtest.Folder(t, out); len(names) > 0 {
		t.Errorf("left %q", names)
	}
}

// TestBadDisk reads a source on a disk whose blocks are gone.
func TestBadDisk(t *testing.T) {
	const session = "bad disks"
	b := newBench(t, session, gguftest.K3(gguftest.K3Options{}), "--preset", "reap568")
	disk, image := mountImage(t, session, 64<<20, "mkfs.ext4", "-q", "-O", "^has_journal")
	var copies []string
	for _, file := range b.files {
		copied := filepath.Join(disk, filepath.Base(file))
		if err := os.WriteFile(copied, []byte(b.source[filepath.Base(file)]), 0o666); err != nil {
			t.Fatal(err)
		}
		copies = append(copies, copied)
	}
	syscall.Sync()
	headers := copies[0] // read now, so that only data is lost
	if r := b.wait(b.start([]string{"inspect", headers})); r.Code != programtest.OK {
		t.Fatalf("exit %d\n%s", r.Code, r.Stderr)
	}
	if err := os.Truncate(image, 8<<20); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("/proc/sys/vm/drop_caches", []byte("1"), 0); err != nil {
		notRun(t, session, err.Error())
	}
	b.faults++
	out := filepath.Join(t.TempDir(), "release")
	b.wantEnd(b.wait(b.start([]string{"prune", "--keep", "568", "-o", out, copies[0]})), programtest.TryAgain, "input/output error", disk)
	if programtest.Exists(filepath.Join(out, manifest.SumsName)) {
		t.Error("the folder has a list of sums")
	}
}
