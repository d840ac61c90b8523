//go:build unix

package files

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestModesFollowTheUmask(t *testing.T) {
	for mask, want := range map[int]os.FileMode{0o077: 0o600, 0o022: 0o644, 0o002: 0o664} {
		old := syscall.Umask(mask)
		path := filepath.Join(t.TempDir(), "x")
		_, err := Write(path, false, nil, Bytes([]byte("text")))
		syscall.Umask(old)
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode() != want {
			t.Errorf("umask %03o: mode %v, %v, want %v", mask, info.Mode(), err, want)
		}
	}
}
