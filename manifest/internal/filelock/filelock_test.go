//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows

package filelock

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestLockWaitsForTheDying holds a lock for a moment, as a process that was killed does, and for
// good, as one that runs.
func TestLockWaitsForTheDying(t *testing.T) {
	path := filepath.Join(t.TempDir(), "held")
	open := func() *os.File {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	first, second, third := open(), open(), open()
	if err := Lock(first); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(100*time.Millisecond, func() { first.Close() })
	if err := lock(second, time.Hour); err != nil {
		t.Fatalf("the holder has ended: %v", err)
	}
	if err := Lock(third); !errors.Is(err, ErrLocked) {
		t.Errorf("the holder goes on: got %v, want %v", err, ErrLocked)
	}
}
