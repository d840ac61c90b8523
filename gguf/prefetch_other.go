//go:build !linux || !(amd64 || arm64 || loong64 || ppc64 || ppc64le || riscv64 || s390x)

package gguf

import "os"

// willNeed does nothing here; the kernel reads ahead as it sees fit.
func willNeed(*os.File, int64, int64) {}
