// Package sha256pair hashes two streams with SHA-256 at once. The SHA instructions of
// x86 processors take four cycles to give a result but can begin another every two, and
// one stream needs each result before it can go on. Two streams side by side take hardly
// more time than one.
package sha256pair

import (
	"bytes"
	"crypto/sha256"
	"encoding"
	"encoding/binary"
	"hash"
	"sync"
)

// Faster reports whether [Write] is faster here than writing to each hash on its own.
var Faster = sync.OnceValue(func() bool { return haveBlocks && correct() })

// Write adds p to a and q to b, two hashes made by [sha256.New].
func Write(a, b hash.Hash, p, q []byte) {
	if Faster() {
		n := writeBlocks(a, b, p, q)
		p, q = p[n:], q[n:]
	}
	a.Write(p)
	b.Write(q)
}

// writeBlocks adds as many whole blocks as both p and q have, and returns their bytes. It
// adds nothing when a hash is within a block, or its state has a form unknown here.
func writeBlocks(a, b hash.Hash, p, q []byte) int {
	n := min(len(p), len(q)) / sha256.BlockSize * sha256.BlockSize
	if n == 0 {
		return 0
	}
	var bufA, bufB [stateSize]byte
	stateA, okA := export(a, bufA[:0])
	stateB, okB := export(b, bufB[:0])
	if !okA || !okB {
		return 0
	}
	wordsA, wordsB := words(stateA), words(stateB)
	blocks(&wordsA, &wordsB, &p[0], &q[0], n/sha256.BlockSize, &constants)
	if !restore(a, stateA, wordsA, n) || !restore(b, stateB, wordsB, n) {
		panic("sha256pair: a hash refuses its own state") // correct has seen it accepted
	}
	return n
}

// The state of a hash as it marshals itself: a magic, eight words of state, the bytes of
// the block that it is within, and how many bytes it has seen; integers are big-endian.
const (
	stateMagic = "sha\x03"
	stateCount = len(stateMagic) + sha256.Size + sha256.BlockSize
	stateSize  = stateCount + 8
)

// export appends the state of h to buf, and reports whether h is between two blocks.
func export(h hash.Hash, buf []byte) ([]byte, bool) {
	m, ok := h.(encoding.BinaryAppender)
	if !ok {
		return nil, false
	}
	state, err := m.AppendBinary(buf)
	if err != nil || len(state) != stateSize || !bytes.HasPrefix(state, []byte(stateMagic)) {
		return nil, false
	}
	return state, binary.BigEndian.Uint64(state[stateCount:])%sha256.BlockSize == 0
}

// words reads the eight words of a state.
func words(state []byte) (w [8]uint32) {
	for i := range w {
		w[i] = binary.BigEndian.Uint32(state[len(stateMagic)+4*i:])
	}
	return w
}

// restore puts words into state, counts n more bytes, and gives it to h.
func restore(h hash.Hash, state []byte, words [8]uint32, n int) bool {
	for i, w := range words {
		binary.BigEndian.PutUint32(state[len(stateMagic)+4*i:], w)
	}
	count := binary.BigEndian.Uint64(state[stateCount:])
	binary.BigEndian.PutUint64(state[stateCount:], count+uint64(n))
	u, ok := h.(encoding.BinaryUnmarshaler)
	return ok && u.UnmarshalBinary(state) == nil
}

// correct hashes two short streams in both ways. A standard library that keeps its state
// in another form than is known here thus costs speed, never a wrong sum.
func correct() bool {
	var data [4 * sha256.BlockSize]byte
	for i := range data {
		data[i] = byte(i)
	}
	p, q := data[:3*sha256.BlockSize], data[sha256.BlockSize:]
	a, b := sha256.New(), sha256.New()
	state, ok := export(a, nil)
	if !ok || !restore(a, state, words(state), 0) {
		return false
	}
	return writeBlocks(a, b, p, q) == len(p) && sum(a) == sha256.Sum256(p) && sum(b) == sha256.Sum256(q)
}

func sum(h hash.Hash) (s [sha256.Size]byte) {
	h.Sum(s[:0])
	return s
}
