// Package filelock locks open files against other processes, so that two runs do not write
// into one folder.
package filelock

import (
	"errors"
	"os"
	"time"
)

// ErrLocked says that another process holds a file.
var ErrLocked = errors.New("another process holds it")

// A process that was killed has its locks until its last request to the disk is done, and the
// run that goes on after it may come sooner.
const (
	patience = time.Second
	askAgain = 20 * time.Millisecond
)

// Lock takes the lock of f, and waits up to a second for one who has it to end. The lock ends
// with the process at the latest.
func Lock(f *os.File) error { return lock(f, patience) }

func lock(f *os.File, patience time.Duration) error {
	for end := time.Now().Add(patience); ; time.Sleep(askAgain) {
		if err := try(f); !errors.Is(err, ErrLocked) || time.Now().After(end) {
			return err
		}
	}
}
