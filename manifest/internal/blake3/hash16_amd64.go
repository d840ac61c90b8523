//go:build !purego

package blake3

import "github.com/klauspost/cpuid/v2"

var haveHash16 = cpuid.CPU.Supports(cpuid.AVX512F)

// hash16 does what hash16Each does.
func hash16(out, in []byte, size int, counters *[2][lanes]uint32, start, end uint32) {
	if !haveHash16 {
		hash16Each(out, in, size, counters, start, end)
		return
	}
	hash16AVX512(&out[0], &in[0], size, size/blockSize, counters, start, end)
}

// hash16AVX512 is hash16Each with one lane of each vector for each input.
//
//go:noescape
func hash16AVX512(out, in *byte, size, blocks int, counters *[2][lanes]uint32, start, end uint32)
