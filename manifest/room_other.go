//go:build !(darwin || linux || windows)

package manifest

import (
	"errors"
	"math"
	"syscall"
)

// roomOf does not know; a full disk shows when it is full.
func roomOf(string) (room, error) { return room{free: -1, block: 1, file: math.MaxInt64}, nil }

// isDiskFull reports whether err says that there is no space.
func isDiskFull(err error) bool { return errors.Is(err, syscall.ENOSPC) }
