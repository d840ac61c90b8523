//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package disk

import (
	"errors"
	"os"
)

// lockFile does nothing here: nothing keeps two runs out of one folder.
func lockFile(*os.File) error { return nil }

// Discard removes the file.
func (f osLockedFile) Discard() error {
	return errors.Join(f.root.Remove(f.name), f.Close())
}
