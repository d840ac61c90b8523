//go:build !(darwin || linux || windows)

package manifest

import (
	"errors"
	"syscall"
)

// roomOf does not know; a full disk shows when it is full.
func roomOf(string) (room, error) { return unknownRoom, nil }

// isDiskFull reports whether err says that there is no space.
func isDiskFull(err error) bool { return errors.Is(err, syscall.ENOSPC) }
