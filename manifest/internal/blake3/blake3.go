// Package blake3 hashes long inputs with BLAKE3 as fast as the processor can: sixteen
// chunks at once where it has AVX-512, otherwise with github.com/zeebo/blake3. Section
// numbers are those of the BLAKE3 paper (O'Connor, Aumasson, Neves, Wilcox-O'Hearn).
package blake3

import (
	"io"

	zeebo "github.com/zeebo/blake3"
)

// A Hasher takes the 32-byte digest of what is written to it. Writes do not err.
type Hasher interface {
	io.Writer
	// Sum appends the digest of what was written so far.
	Sum(b []byte) []byte
	// Reset begins a new digest.
	Reset()
}

// New returns a Hasher.
func New() Hasher {
	if haveHash16 {
		return new(wide)
	}
	return zeebo.New()
}
