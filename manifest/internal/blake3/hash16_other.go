//go:build !amd64 || purego

package blake3

const haveHash16 = false

func hash16(out, in []byte, size int, counters *[2][lanes]uint32, start, end uint32) {
	hash16Each(out, in, size, counters, start, end)
}
