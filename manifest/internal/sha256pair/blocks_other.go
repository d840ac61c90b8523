//go:build !amd64 || purego

package sha256pair

const haveBlocks = false

func blocks(a, b *[8]uint32, p, q *byte, n int, constants *[64]uint32) {}
