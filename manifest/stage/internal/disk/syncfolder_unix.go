//go:build !windows

package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// syncFolder makes the names in a folder durable. Some network file systems cannot do
// so for a folder and say EINVAL; they keep names by other means or not at all.
func syncFolder(root *os.Root) error {
	dir, err := root.Open(".")
	if err != nil {
		return osFolder{root}.plain(err)
	}
	err = dir.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = fmt.Errorf("%q: %w", root.Name(), e.Err)
	}
	return errors.Join(err, dir.Close())
}
