package disk

import "errors"

// Discard closes the file first: Windows does not remove an open one.
func (f osLockedFile) Discard() error {
	return errors.Join(f.Close(), osFolder{f.root}.Remove(f.name))
}
