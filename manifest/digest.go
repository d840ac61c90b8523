package manifest

import (
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"github.com/zeebo/blake3"
)

// Sum is the result of a 256-bit hash whose algorithm the context names.
// It is comparable, and its text is 64 lower-case hexadecimal digits.
type Sum [32]byte

// ParseSum reads 64 lower-case hexadecimal digits and nothing else.
func ParseSum(s string) (Sum, error) {
	var sum Sum
	err := sum.UnmarshalText([]byte(s))
	return sum, err
}

// String returns 64 lower-case hexadecimal digits.
func (s Sum) String() string { return hex.EncodeToString(s[:]) }

// MarshalText returns what String does.
func (s Sum) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what ParseSum does.
func (s *Sum) UnmarshalText(text []byte) error {
	if len(text) != 2*len(s) {
		return fmt.Errorf("digest has %d characters, want %d hexadecimal digits%s", len(text), 2*len(s), otherHash(len(text)))
	}
	for i, c := range text {
		if !isLowerHex(c) {
			return fmt.Errorf("digest has %q at character %d, want a lower-case hexadecimal digit", text[i:i+1], i+1)
		}
	}
	_, err := hex.Decode(s[:], text)
	return err
}

// otherHash says what a digest of n hexadecimal digits usually is, to help
// whoever took a git object name for a hash of content.
func otherHash(n int) string {
	switch n {
	case 32:
		return " (32 are an MD5)"
	case 40:
		return " (40 are a SHA-1, or the name of a git object)"
	case 96:
		return " (96 are a SHA-384)"
	case 128:
		return " (128 are a SHA-512)"
	}
	return ""
}

func isLowerHex(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' }

// Algorithm is a 256-bit hash function.
type Algorithm uint8

// The algorithms. The zero Algorithm is none.
const (
	SHA256 Algorithm = iota + 1
	BLAKE3
)

// String returns "sha256" or "blake3".
func (a Algorithm) String() string {
	switch a {
	case SHA256:
		return "sha256"
	case BLAKE3:
		return "blake3"
	}
	return fmt.Sprintf("algorithm(%d)", uint8(a))
}

// parseAlgorithm is the inverse of String.
func parseAlgorithm(s string) (Algorithm, error) {
	for _, a := range []Algorithm{SHA256, BLAKE3} {
		if s == a.String() {
			return a, nil
		}
	}
	return 0, fmt.Errorf("algorithm is %q, want sha256 or blake3", s)
}

// Digest is a sum together with its algorithm. It is comparable; the zero Digest
// means that there is none. Its text is "blake3:" or "sha256:" and the sum's.
type Digest struct {
	Algorithm Algorithm
	Sum       Sum
}

// ParseDigest reads an algorithm's name, a colon and 64 lower-case hexadecimal
// digits.
func ParseDigest(s string) (Digest, error) {
	name, digits, found := strings.Cut(s, ":")
	if !found {
		return Digest{}, fmt.Errorf("digest %q names no algorithm, want blake3:HEX or sha256:HEX", s)
	}
	a, err := parseAlgorithm(name)
	if err != nil {
		return Digest{}, err
	}
	sum, err := ParseSum(digits)
	if err != nil {
		return Digest{}, err
	}
	return Digest{a, sum}, nil
}

// IsZero reports whether there is no digest.
func (d Digest) IsZero() bool { return d == Digest{} }

// String returns what ParseDigest reads, or "" when there is no digest.
func (d Digest) String() string {
	if d.IsZero() {
		return ""
	}
	return d.Algorithm.String() + ":" + d.Sum.String()
}

// MarshalText returns what String does. A zero Digest is an error: a document
// that has none says null.
func (d Digest) MarshalText() ([]byte, error) {
	if _, err := parseAlgorithm(d.Algorithm.String()); err != nil {
		return nil, err
	}
	return []byte(d.String()), nil
}

// UnmarshalText reads what ParseDigest does.
func (d *Digest) UnmarshalText(text []byte) error {
	parsed, err := ParseDigest(string(text))
	if err != nil {
		return err
	}
	*d = parsed
	return nil
}

// DigestBytes returns the BLAKE3-256 digest of b.
func DigestBytes(b []byte) Digest { return Digest{BLAKE3, Sum(blake3.Sum256(b))} }

// DigestOf returns the BLAKE3-256 digest of what w writes.
func DigestOf(w io.WriterTo) (Digest, error) {
	h := blake3.New()
	if _, err := w.WriteTo(h); err != nil {
		return Digest{}, err
	}
	return Digest{BLAKE3, Sum(h.Sum(nil))}, nil
}
