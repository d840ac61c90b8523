package chaos

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"ggufreap/cmd/ggufreap/internal/programtest"
)

// free returns the free bytes of a file system, once all is written.
func free(t *testing.T, disk string) int64 {
	t.Helper()
	syscall.Sync()
	var s syscall.Statfs_t
	if err := syscall.Statfs(disk, &s); err != nil {
		t.Fatal(err)
	}
	return int64(s.Bavail) * s.Bsize
}

// TestSharedBlocks edits a model on file systems whose files can share blocks, with less room
// than the model has: only the file with the new header takes any. Such a run is killed and
// gone on with, too.
func TestSharedBlocks(t *testing.T) {
	for _, mkfs := range [][]string{{"mkfs.xfs", "-q", "-m", "reflink=1"}, {"mkfs.btrfs", "-q"}} {
		t.Run(mkfs[0], func(t *testing.T) {
			session := "shared blocks, " + mkfs[0]
			b := edits(t, session)
			disk, _ := mountImage(t, session, 400<<20, mkfs...)
			var all, largest int64
			for name, data := range b.source {
				if err := os.WriteFile(filepath.Join(disk, name), []byte(data), 0o666); err != nil {
					t.Fatal(err)
				}
				all, largest = all+int64(len(data)), max(largest, int64(len(data)))
			}
			own := b.files[0]
			b.files[0] = filepath.Join(disk, filepath.Base(own))
			defer func() { b.files[0] = own }()
			filler, err := os.Create(filepath.Join(disk, "filler.bin"))
			if err != nil {
				t.Fatal(err)
			}
			if err := syscall.Fallocate(int(filler.Fd()), 0, 0, free(t, disk)-all*3/4); err != nil {
				t.Fatal(err)
			}
			filler.Close()
			before := free(t, disk)
			out := filepath.Join(disk, "release")
			p := b.start(b.line(out))
			waitUntilKept(out, 1)
			p.Process.Kill()
			if b.wait(p).Code == -1 {
				b.kills++
			}
			b.goOn(out, mkfs[0])
			if took := before - free(t, disk); took >= all/2 {
				t.Errorf("the release of %d bytes took %d, the largest file has %d", all, took, largest)
			}
			b.faults++
			b.wantFailure(b.wait(b.start([]string{"reshard", "--shards", "2", "-o", filepath.Join(disk, "other"), b.files[0]})), "bytes are needed", "make room")
			if names := programtest.Folder(t, out); len(names) != len(b.want) {
				t.Errorf("the release has %d files", len(names))
			}
		})
	}
}
