// Package filelock locks open files against other processes, so that two runs do not write
// into one folder.
package filelock

import "errors"

// ErrLocked says that another process holds a file.
var ErrLocked = errors.New("another process holds it")
