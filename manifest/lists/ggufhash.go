package lists

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"hash/maphash"
	"io"
	"strings"

	"github.com/cespare/xxhash/v2"

	"ggufreap/manifest"
)

// GGUFHashes are the lines of a manifest of llama-gguf-hash, which comes with llama.cpp:
//
//	ALGORITHM, padded to 8 columns, two spaces, DIGEST, two spaces, PATH[:TENSOR]
//
// The digest of a tensor is over its data; that of a file, on a line without a tensor,
// over the data of all its tensors in the order of the table. Names, shapes, types,
// padding and metadata are in neither. PATH is as it was typed.
type GGUFHashes []GGUFHash

// A GGUFHash is one line of a manifest.
type GGUFHash struct {
	Algorithm string
	Digest    []byte // nil when the algorithm is none that can be compared
	Name      string // PATH[:TENSOR]
}

// hashAlgorithms are those that can be compared. XXH64 has the seed 0 and is written as a
// big-endian number, a uuid as 8-4-4-4-12 digits.
var hashAlgorithms = map[string]func() hash.Hash{
	"xxh64":  func() hash.Hash { return xxhash.New() },
	"sha1":   sha1.New,
	"sha256": sha256.New,
	"uuid":   newUUID,
}

// OtherHashes says why lines of other algorithms are passed over.
var OtherHashes = map[string]string{
	"xxh3": "this program has no xxh3",
}

// IsHashName reports whether a word is what a line of a manifest begins with.
func IsHashName(word string) bool { return hashAlgorithms[word] != nil || OtherHashes[word] != "" }

// Bounds on a manifest. A model has fewer than 100,000 tensors, and a manifest at most a line
// of each hash for one.
const (
	maxHashBytes = 64 << 20
	maxHashLine  = 64 << 10
	maxHashLines = 300_000
)

// ReadGGUFHashes reads a manifest. A line cut short, an unknown algorithm, a digest of
// the wrong length and a name that comes twice with one algorithm are errors.
func ReadGGUFHashes(r io.Reader) (GGUFHashes, error) {
	limited := &io.LimitedReader{R: r, N: maxHashBytes + 1}
	lines := bufio.NewReaderSize(limited, maxHashLine)
	list := hashList{seed: maphash.MakeSeed(), seen: map[uint64]bool{}}
	for n := 1; ; n++ {
		text, err := lines.ReadSlice('\n')
		if err == io.EOF && len(text) == 0 && limited.N > 0 {
			break
		}
		switch {
		case limited.N == 0:
			err = fmt.Errorf("more than %d bytes", maxHashBytes)
		case err == io.EOF:
			err = errors.New("line has no line end, so the manifest may be cut short")
		case err == nil && len(bytes.TrimSpace(text)) > 0:
			err = list.add(strings.TrimRight(string(text), "\r\n"))
		}
		if err != nil {
			return nil, fmt.Errorf("llama-gguf-hash manifest: line %d: %w", n, err)
		}
	}
	if len(list.rows) == 0 {
		return nil, errors.New("llama-gguf-hash manifest: it has no lines")
	}
	return list.rows, nil
}

// A hashList is the lines of a manifest so far, and a hash of each algorithm and name: the names
// themselves may be long.
type hashList struct {
	rows GGUFHashes
	seed maphash.Seed
	seen map[uint64]bool
}

func (l *hashList) add(line string) error {
	row, err := parseGGUFHash(line)
	if err != nil {
		return err
	}
	if len(l.rows) == maxHashLines {
		return fmt.Errorf("more than %d lines", maxHashLines)
	}
	id := maphash.String(l.seed, row.Algorithm+" "+row.Name)
	if l.seen[id] {
		return fmt.Errorf("%s of %q comes twice", row.Algorithm, row.Name)
	}
	l.seen[id] = true
	l.rows = append(l.rows, row)
	return nil
}

// parseGGUFHash reads one line.
func parseGGUFHash(text string) (GGUFHash, error) {
	algorithm, rest, _ := strings.Cut(text, " ")
	digest, name, found := strings.Cut(strings.TrimLeft(rest, " "), "  ")
	row := GGUFHash{Algorithm: algorithm, Name: name}
	switch {
	case !IsHashName(algorithm):
		return row, fmt.Errorf("algorithm is %q, want xxh64, sha1, sha256 or uuid", algorithm)
	case !found || name == "":
		return row, errors.New("line is not an algorithm, a digest and a name")
	case OtherHashes[algorithm] != "":
		return row, nil
	}
	for _, verdict := range []string{"Ok", "Mismatch", "Not Found"} {
		if strings.HasSuffix(name, "  -  "+verdict) {
			return row, fmt.Errorf("line ends in %q: this is what a check printed, not a manifest", verdict)
		}
	}
	var err error
	row.Digest, err = hex.DecodeString(plainDigits(algorithm, digest))
	if want := hashAlgorithms[algorithm]().Size(); err != nil || len(row.Digest) != want {
		return row, fmt.Errorf("%s is %q, want %d hexadecimal digits", algorithm, digest, 2*want)
	}
	return row, nil
}

// plainDigits takes the dashes from a uuid that has them in their places.
func plainDigits(algorithm, digest string) string {
	if parts := strings.Split(digest, "-"); algorithm == "uuid" && len(parts) == 5 {
		for i, digits := range []int{8, 4, 4, 4, 12} {
			if len(parts[i]) != digits {
				return digest
			}
		}
		return strings.Join(parts, "")
	}
	return digest
}

// Split cuts a name at a colon. known says what a tensor of the model is called; a
// colon that is followed by none of these may belong to the path, as in C:\x.gguf, which
// has at most MaxFileName bytes.
func (row GGUFHash) Split(known func(tensor string) bool) (path, tensor string) {
	for i := range min(len(row.Name), manifest.MaxFileName+1) {
		if row.Name[i] == ':' && known(row.Name[i+1:]) {
			return row.Name[:i], row.Name[i+1:]
		}
	}
	i := strings.LastIndexByte(row.Name, ':')
	if i < 0 || strings.ContainsAny(row.Name[i+1:], `/\`) {
		return row.Name, ""
	}
	return row.Name[:i], row.Name[i+1:]
}
