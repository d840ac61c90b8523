package manifest

import (
	"errors"
	"math"
	"os"
	"syscall"
	"unsafe"
)

var getDiskFreeSpaceEx = syscall.NewLazyDLL("kernel32.dll").NewProc("GetDiskFreeSpaceExW")

// roomOf asks the volume of the folder at path, quotas included.
func roomOf(path string) (room, error) {
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return room{}, err
	}
	var free uint64
	ok, _, err := getDiskFreeSpaceEx.Call(uintptr(unsafe.Pointer(name)), uintptr(unsafe.Pointer(&free)), 0, 0)
	if ok == 0 {
		return room{}, &os.PathError{Op: "free space", Path: path, Err: err}
	}
	return room{free: int64(min(free, math.MaxInt64)), block: 1, file: math.MaxInt64}, nil
}

// isDiskFull reports whether err is ERROR_HANDLE_DISK_FULL, ERROR_DISK_FULL or
// ERROR_DISK_QUOTA_EXCEEDED.
func isDiskFull(err error) bool {
	return errors.Is(err, syscall.Errno(39)) || errors.Is(err, syscall.Errno(112)) || errors.Is(err, syscall.Errno(1295))
}
