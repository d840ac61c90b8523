package blake3

import (
	"encoding/binary"
	"math/bits"
)

const (
	blockSize = 64
	chunkSize = 1024
	// valueSize is the bytes of a chaining value, eight words in little-endian order.
	// The block of a parent is the values of its two children one after the other.
	valueSize = 32
)

// Flags of section 2.2 that say what a block is.
const (
	chunkStart uint32 = 1 << iota
	chunkEnd
	parent
	root
)

var iv = [8]uint32{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}

// order says which word of a block each round takes where: the permutation of section
// 2.2 applied again and again.
var order = func() (o [7][16]uint8) {
	permutation := [16]uint8{2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8}
	for i := range o[0] {
		o[0][i] = uint8(i)
	}
	for r := range o[1:] {
		for i, from := range permutation {
			o[r+1][i] = o[r][from]
		}
	}
	return o
}()

// compress is the compression function of section 2.2, cut to the first eight words.
func compress(h *[8]uint32, block []byte, counter uint64, flags uint32) {
	var padded [blockSize]byte
	n := copy(padded[:], block)
	var m [16]uint32
	for i := range m {
		m[i] = binary.LittleEndian.Uint32(padded[4*i:])
	}
	v := [16]uint32{
		h[0], h[1], h[2], h[3], h[4], h[5], h[6], h[7],
		iv[0], iv[1], iv[2], iv[3], uint32(counter), uint32(counter >> 32), uint32(n), flags,
	}
	for r := range order {
		o := &order[r]
		mix(&v, 0, 4, 8, 12, m[o[0]], m[o[1]])
		mix(&v, 1, 5, 9, 13, m[o[2]], m[o[3]])
		mix(&v, 2, 6, 10, 14, m[o[4]], m[o[5]])
		mix(&v, 3, 7, 11, 15, m[o[6]], m[o[7]])
		mix(&v, 0, 5, 10, 15, m[o[8]], m[o[9]])
		mix(&v, 1, 6, 11, 12, m[o[10]], m[o[11]])
		mix(&v, 2, 7, 8, 13, m[o[12]], m[o[13]])
		mix(&v, 3, 4, 9, 14, m[o[14]], m[o[15]])
	}
	for i := range h {
		h[i] = v[i] ^ v[i+8]
	}
}

func mix(v *[16]uint32, a, b, c, d int, x, y uint32) {
	v[a] += v[b] + x
	v[d] = bits.RotateLeft32(v[d]^v[a], -16)
	v[c] += v[d]
	v[b] = bits.RotateLeft32(v[b]^v[c], -12)
	v[a] += v[b] + y
	v[d] = bits.RotateLeft32(v[d]^v[a], -8)
	v[c] += v[d]
	v[b] = bits.RotateLeft32(v[b]^v[c], -7)
}

// hashOne compresses the blocks of one input in turn. The first has the flags of start,
// the last those of end. An empty input is one empty block.
func hashOne(out, in []byte, counter uint64, start, end uint32) {
	h := iv
	for flags := start; ; flags = 0 {
		block := in[:min(len(in), blockSize)]
		in = in[len(block):]
		if len(in) == 0 {
			flags |= end
		}
		compress(&h, block, counter, flags)
		if len(in) == 0 {
			break
		}
	}
	for i, w := range h {
		binary.LittleEndian.PutUint32(out[4*i:], w)
	}
}

// hash16Each hashes sixteen neighbouring inputs of size bytes, whole blocks, with a
// counter each (low words first) into sixteen values. Out may be the beginning of in.
func hash16Each(out, in []byte, size int, counters *[2][lanes]uint32, start, end uint32) {
	for i := range lanes {
		counter := uint64(counters[1][i])<<32 | uint64(counters[0][i])
		hashOne(out[i*valueSize:], in[i*size:][:size], counter, start, end)
	}
}
