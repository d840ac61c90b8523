//go:build !purego

package sha256pair

import "github.com/klauspost/cpuid/v2"

var haveBlocks = cpuid.CPU.Supports(cpuid.SHA, cpuid.SSSE3, cpuid.SSE4)

// blocks adds n blocks of 64 bytes at p to the state a, and as many at q to b.
//
//go:noescape
func blocks(a, b *[8]uint32, p, q *byte, n int, constants *[64]uint32)
