//go:build !linux

package disk

import (
	"errors"
	"os"
)

// clone does nothing here: what would be cloned is copied.
func clone(f, _ *os.File) error {
	return &os.PathError{Op: "clone", Path: f.Name(), Err: errors.ErrUnsupported}
}

func shares(string, *os.File) bool { return false }
