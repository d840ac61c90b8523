package disk

import (
	"errors"
	"os"
	"syscall"
)

// Flags of sync_file_range in linux/fs.h.
const (
	waitBefore = 1
	writeOut   = 2
	waitAfter  = 4
)

// drain starts to write the size bytes of f that begin at offset to disk, and waits
// until those size bytes that end ahead bytes before offset are there.
func drain(f *os.File, offset, size, ahead int64) error {
	err := syscall.SyncFileRange(int(f.Fd()), offset, size, writeOut)
	if wait := offset - ahead - size; err == nil && wait >= 0 {
		err = syscall.SyncFileRange(int(f.Fd()), wait, size, waitBefore|writeOut|waitAfter)
	}
	if err == nil || errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ESPIPE) {
		return nil
	}
	return &os.PathError{Op: "write", Path: f.Name(), Err: err}
}
