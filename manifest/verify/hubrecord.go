package verify

import (
	"bytes"
	"os"
	"path"
	"path/filepath"
	"strings"

	"ggufreap/manifest"
)

// hubRecords is where huggingface_hub keeps what it knows of the files that it downloads into a
// folder: for each "NAME.metadata", of three lines, commit, etag and time, and while it goes on
// a file that ends in ".incomplete". The etag of a file in large-file storage is the SHA-256 of
// its bytes, that of others the name of a git object.
const hubRecords = ".cache/huggingface/download"

// hubDepth is how many folders a file lies below the one with its record, at most.
const hubDepth = 4

// hubRecord returns the digest that a hub's program took note of when it downloaded a file, and
// where.
func (v *verifier) hubRecord(file string) (sum manifest.Sum, by string, ok bool) {
	const metadata = 1 << 10 // bytes
	for dir, rest := filepath.Dir(file), filepath.Base(file); len(strings.Split(rest, "/")) <= hubDepth; {
		record := filepath.Join(dir, filepath.FromSlash(hubRecords), filepath.FromSlash(rest)+".metadata")
		if text, err := readBounded(record, metadata); err == nil {
			lines := bytes.Split(text, []byte("\n"))
			if len(lines) < 3 {
				return sum, "", false
			}
			sum, err = manifest.ParseSum(strings.TrimSpace(string(lines[1])))
			return sum, v.name(record), err == nil
		}
		absolute, err := filepath.Abs(dir)
		if err != nil || filepath.Dir(absolute) == absolute {
			return sum, "", false
		}
		dir, rest = filepath.Dir(absolute), path.Join(filepath.Base(absolute), rest)
	}
	return sum, "", false
}

// hubParts lists what a hub's program has of downloads into the folder that go on.
func (v *verifier) hubParts() []string {
	entries, _ := os.ReadDir(v.path(hubRecords))
	var parts []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".incomplete") {
			parts = append(parts, e.Name())
		}
	}
	return parts
}
