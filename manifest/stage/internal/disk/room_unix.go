//go:build darwin || linux

package disk

import (
	"errors"
	"io/fs"
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

// Allocated returns the bytes that a file takes on its disk: with space that is reserved
// behind its end, without holes.
func Allocated(info fs.FileInfo) int64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Blocks * 512 // the unit of st_blocks, whatever the file system's
	}
	return info.Size()
}
