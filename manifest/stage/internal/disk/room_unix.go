//go:build darwin || linux

package disk

import (
	"errors"
	"math"
	"math/bits"
	"syscall"
)

// bytesOf multiplies; file systems that know no bound report absurd counts.
func bytesOf(blocks uint64, block int64) int64 {
	hi, lo := bits.Mul64(blocks, uint64(max(block, 1)))
	if hi != 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(lo)
}

// fileLimit is what RLIMIT_FSIZE allows this process.
func fileLimit() int64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil || limit.Cur > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(limit.Cur)
}

// IsFull reports whether err says that there is no space, or no more for this user.
func IsFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
