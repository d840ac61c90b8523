package filekind

import (
	"bytes"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/klauspost/compress/zstd"

	"ggufreap/gguf/pattern"
	"ggufreap/manifest"
	"ggufreap/manifest/lists"
)

const (
	headBytes = 64 << 10
	// maxText bounds what is looked through for the key that tells.
	maxText = 1 << 20
)

// Of tells what a file is by how it begins.
func Of(r io.ReaderAt) Kind {
	head := beginning(io.NewSectionReader(r, 0, maxText), headBytes)
	switch {
	case bytes.HasPrefix(head, []byte("GGUF")):
		return ofGGUF(head)
	case bytes.HasPrefix(head, manifest.ZstdMagic):
		return ofPacked(r)
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		return ofZip(head)
	case bytes.HasPrefix(head, []byte("ggufreap calibration part ")):
		return ScorePart
	}
	head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\ufeff")), " \t\r\n")
	switch {
	case bytes.HasPrefix(head, []byte("{")):
		return ofObject(beginning(io.NewSectionReader(r, 0, maxText), maxText))
	case listing().Match(head):
		return Listing
	}
	return ofLine(head)
}

func beginning(r io.Reader, n int64) []byte {
	data, _ := io.ReadAll(io.LimitReader(r, n)) // as much as there is tells
	return data
}

// ofGGUF tells models from the scores that are kept in GGUF files.
func ofGGUF(head []byte) Kind {
	has := func(word string) bool { return bytes.Contains(head, []byte(word)) }
	switch {
	case has("reap.s_sum."):
		return Scores
	case has("general.architecture"):
		return Model
	case has("imatrix"):
		return Scores
	}
	return 0
}

// ofPacked looks into what only pins are compressed with.
func ofPacked(r io.ReaderAt) Kind {
	d, err := zstd.NewReader(io.NewSectionReader(r, 0, maxText), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(16<<20))
	if err != nil {
		return 0
	}
	defer d.Close()
	return ofObject(beginning(d, headBytes))
}

// ofZip takes a zip archive whose first member is an array of numpy for scores.
func ofZip(head []byte) Kind {
	if len(head) < 30 {
		return 0
	}
	name := head[30:min(len(head), 30+int(head[26])+int(head[27])<<8)]
	if bytes.HasSuffix(name, []byte(".npy")) {
		return Scores
	}
	return 0
}

var listing = pattern.Lazy(`^\[\s*\{[^{}]*"(?:oid|path)"\s*:`)

// ofObject goes by the first key at the root that tells.
func ofObject(data []byte) Kind {
	d := jsontext.NewDecoder(bytes.NewReader(data))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return 0
	}
	for {
		key, err := d.ReadToken()
		if err != nil || key.Kind() != '"' {
			return 0
		}
		name := key.String()
		value, err := d.ReadValue()
		if kind := ofMember(name, string(value)); kind != 0 || err != nil {
			return kind
		}
	}
}

func ofMember(key, value string) Kind {
	switch key {
	case "schema", "format":
		return formats[strings.Trim(value, `"`)]
	case "layers", "keep", "pruned_experts":
		return Plan
	}
	if strings.Contains(value, `"activation_counts"`) {
		return Scores
	}
	return 0
}

// formats are the names that documents give themselves: those that packages planfile and
// scorefile read.
var formats = map[string]Kind{
	manifest.PinSchema:                 Pin,
	"ggufreap/plan/v1":                 Plan,
	"aikar-moe-prune":                  Plan,
	"ggufreap/saliency/v1":             Scores,
	"llama-moe-prune-importance-cache": Scores,
}

var sum = pattern.Lazy(`^\\?[0-9A-Fa-f]{64}[ \t]|^SHA(?:2-)?256 ?\(`)

// ofLine goes by the first line of a text.
func ofLine(head []byte) Kind {
	line, _, _ := strings.Cut(string(head), "\n")
	word, _, _ := strings.Cut(line, " ")
	switch {
	case strings.TrimRight(line, "\r") == "layer,expert,count":
		return Scores
	case sum().MatchString(line):
		return Sums
	case lists.IsHashName(word):
		return Hashes
	}
	return 0
}
