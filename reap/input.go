package reap

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"path"
	"strings"
)

// An Input is a file that scores or lists were read from.
type Input struct {
	File   string // base name
	SHA256 string // lower-case hex
}

// NewInput describes a file that a plan was made from, by its base name and bytes.
func NewInput(name string, data []byte) Input {
	in, _ := HashInput(name, bytes.NewReader(data)) // reading memory cannot fail
	return in
}

// HashInput describes a file that a plan was made from, by its base name and the bytes
// that r gives.
func HashInput(name string, r io.Reader) (Input, error) {
	h := sha256.New()
	if _, err := io.Copy(h, r); err != nil {
		return Input{}, err
	}
	return Input{File: path.Base(strings.ReplaceAll(name, `\`, "/")), SHA256: hex.EncodeToString(h.Sum(nil))}, nil
}
