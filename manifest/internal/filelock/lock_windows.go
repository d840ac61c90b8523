package filelock

import (
	"errors"
	"os"
	"syscall"
	"unsafe"
)

var lockFileEx = syscall.NewLazyDLL("kernel32.dll").NewProc("LockFileEx")

const (
	lockFailImmediately = 1                  // LOCKFILE_FAIL_IMMEDIATELY
	lockExclusive       = 2                  // LOCKFILE_EXCLUSIVE_LOCK
	lockViolation       = syscall.Errno(33)  // ERROR_LOCK_VIOLATION
	lockOffset          = uint32(0x40000000) // high word, beyond every byte of the File: Windows bars others from reading what is locked
)

// try takes the lock of f, which ends with the process at the latest.
func try(f *os.File) error {
	at := syscall.Overlapped{OffsetHigh: lockOffset}
	ok, _, err := lockFileEx.Call(f.Fd(), lockExclusive|lockFailImmediately, 0, 1, 0, uintptr(unsafe.Pointer(&at)))
	switch {
	case ok != 0:
		return nil
	case errors.Is(err, lockViolation):
		return ErrLocked
	}
	return &os.PathError{Op: "lock", Path: f.Name(), Err: err}
}
