//go:build amd64 || arm64 || loong64 || ppc64 || ppc64le || riscv64 || s390x

package gguf

import (
	"os"
	"syscall"
)

// willNeedAdvice is POSIX_FADV_WILLNEED of linux/fadvise.h.
const willNeedAdvice = 3

// willNeed starts to read n bytes at off into the page cache.
func willNeed(f *os.File, off, n int64) {
	syscall.Syscall6(syscall.SYS_FADVISE64, f.Fd(), uintptr(off), uintptr(n), willNeedAdvice, 0, 0)
}
