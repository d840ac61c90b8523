package disk

import (
	"errors"
	"os"
	"syscall"
)

// keepSize is FALLOC_FL_KEEP_SIZE of linux/falloc.h: reserve, but leave the file's
// length at what was written, so that an interrupted file does not look whole.
const keepSize = 1

// reserve asks the file system for the blocks of size bytes.
func reserve(f *os.File, size int64) error {
	if size == 0 {
		return nil
	}
	for {
		err := syscall.Fallocate(int(f.Fd()), keepSize, 0, size)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.EOPNOTSUPP) || errors.Is(err, syscall.ENOSYS):
			return nil
		case err != nil:
			return &os.PathError{Op: "reserve", Path: f.Name(), Err: err}
		}
		return nil
	}
}
