package disk

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"syscall"
	"unsafe"
)

var getDiskFreeSpaceEx = syscall.NewLazyDLL("kernel32.dll").NewProc("GetDiskFreeSpaceExW")

// roomOf asks the volume of the folder at path, quotas included.
func roomOf(path string) (Room, error) {
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return Room{}, err
	}
	var free uint64
	ok, _, err := getDiskFreeSpaceEx.Call(uintptr(unsafe.Pointer(name)), uintptr(unsafe.Pointer(&free)), 0, 0)
	if ok == 0 {
		return Room{}, &os.PathError{Op: "free space", Path: path, Err: err}
	}
	return Room{Free: int64(min(free, math.MaxInt64)), Block: 1, File: math.MaxInt64}, nil
}

// IsFull reports whether err is ERROR_HANDLE_DISK_FULL, ERROR_DISK_FULL or
// ERROR_DISK_QUOTA_EXCEEDED.
func IsFull(err error) bool {
	return errors.Is(err, syscall.Errno(39)) || errors.Is(err, syscall.Errno(112)) || errors.Is(err, syscall.Errno(1295))
}

// Allocated returns the bytes that a file takes on its disk, as far as its size tells.
func Allocated(info fs.FileInfo) int64 { return info.Size() }
