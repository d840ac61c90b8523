package verify

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"

	"ggufreap/manifest"
	"ggufreap/manifest/lists"
)

// ReadEvidence reads the file at path, which may be a pin, a tree listing of the Hugging
// Face hub, a manifest of llama-gguf-hash, or a list of SHA-256 sums. It tells them
// apart by how they begin.
func ReadEvidence(path string) (Evidence, error) {
	f, _, err := manifest.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	e, err := decodeEvidence(f, path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return e, nil
}

// A sumsFile is a list of sums that is read again when it is known which of its entries
// matter: it can have a million.
type sumsFile string

// DecodeEvidence is ReadEvidence for what is no file.
func DecodeEvidence(from io.Reader) (Evidence, error) { return decodeEvidence(from, "") }

// decodeEvidence reads evidence of the file at path, "" for none.
func decodeEvidence(from io.Reader, path string) (Evidence, error) {
	r := bufio.NewReader(from)
	head, err := r.Peek(512)
	if err != nil && err != io.EOF {
		return nil, err
	}
	text := strings.TrimLeft(string(head), " \t\r\n")
	word, _, _ := strings.Cut(text, " ")
	switch {
	case bytes.HasPrefix(head, manifest.ZstdMagic) || strings.HasPrefix(text, "{"):
		return manifest.DecodePin(r)
	case strings.HasPrefix(text, "["):
		return lists.ReadTree(r)
	case strings.HasPrefix(text, "GGUF"):
		return nil, fmt.Errorf("a model, want a pin or a list of digests")
	case lists.IsHashName(word):
		return lists.ReadGGUFHashes(r)
	}
	if path != "" {
		return sumsFile(path), lists.EachSum(r, func(lists.FileSum) error { return nil })
	}
	sums, err := lists.ReadSums(r)
	return lists.Sums(sums), err
}
