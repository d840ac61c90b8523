//go:build !windows

package disk

import "errors"

// Discard removes the file while the lock still holds others off.
func (f osLockedFile) Discard() error {
	return errors.Join(osFolder{f.root}.Remove(f.name), f.Close())
}
