package measure

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"ggufreap/gguf/pattern"
)

// A Text is one kind of text to measure on.
type Text struct {
	Label  string
	File   string  // base name
	SHA256 string  // of the file
	Weight float64 // the sums are multiplied with it
	// Documents are pieces that do not go on from each other.
	Documents []Document
}

// A Document is plain text, a conversation, or tokens: one of them is set.
type Document struct {
	Text     string
	Messages []Message
	Tokens   []int
}

// A Message is one turn of a conversation.
type Message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// labelled matches LABEL=FILE. A label has no "/", so that a path with "=" in it is one.
var labelled = pattern.Lazy(`^([\pL\pN_.+-]+)=(.+)$`)

// ParseSource reads FILE, LABEL=FILE or LABEL=FILE:WEIGHT. The label of a file without one is
// "all".
func ParseSource(s string) (label, file string, weight float64, err error) {
	label, file, weight = "all", s, 1
	m := labelled().FindStringSubmatch(s)
	if m == nil {
		return label, file, weight, nil
	}
	label, file = m[1], m[2]
	before, after, found := cutLast(file, ":")
	if !found {
		return label, file, weight, nil
	}
	w, err := strconv.ParseFloat(after, 64)
	switch {
	case err != nil: // a colon of the file's name
		return label, file, 1, nil
	case !(w > 0) || math.IsInf(w, 0):
		return "", "", 0, fmt.Errorf("weight %q of %q, want a number above 0", after, label)
	}
	return label, before, w, nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// ReadText reads the bytes of a file: lines of JSON when its name ends in .jsonl or .ndjson,
// plain text otherwise. Each line is a document of its own:
//
//	{"text": "..."}
//	{"messages": [{"role": "user", "content": "..."}, ...]}
//	{"tokens": [1, 2, 3]}
func ReadText(label, name string, weight float64, data []byte) (*Text, error) {
	sum := sha256.Sum256(data)
	t := &Text{Label: label, File: baseName(name), SHA256: hex.EncodeToString(sum[:]), Weight: weight}
	lower := strings.ToLower(name)
	if strings.HasSuffix(lower, ".jsonl") || strings.HasSuffix(lower, ".ndjson") {
		return t, t.readLines(data)
	}
	if at := invalid(data); at >= 0 {
		return nil, fmt.Errorf("byte %d is not UTF-8", at)
	}
	if len(data) > 0 {
		t.Documents = []Document{{Text: string(data)}}
	}
	return t, nil
}

func (t *Text) readLines(data []byte) error {
	number := 0
	for line := range bytes.Lines(data) {
		number++
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		d, err := readLine(line)
		if err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
		t.Documents = append(t.Documents, d)
	}
	return nil
}

func readLine(line []byte) (Document, error) {
	if at := invalid(line); at >= 0 {
		return Document{}, fmt.Errorf("byte %d is not UTF-8", at)
	}
	var fields struct {
		Text     *string   `json:"text"`
		Messages []Message `json:"messages"`
		Tokens   []int     `json:"tokens"`
	}
	if err := json.Unmarshal(line, &fields); err != nil {
		return Document{}, err
	}
	switch {
	case fields.Tokens != nil: // text beside tokens is what they say
		return Document{Tokens: fields.Tokens}, nil
	case fields.Messages != nil:
		return Document{Messages: fields.Messages}, nil
	case fields.Text != nil:
		return Document{Text: *fields.Text}, nil
	}
	return Document{}, errors.New(`want an object with "text", "messages" or "tokens"`)
}

// invalid returns the place of the first byte that is not UTF-8, -1 when all is.
func invalid(data []byte) int {
	if utf8.Valid(data) {
		return -1
	}
	for at := 0; at < len(data); {
		r, size := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && size <= 1 {
			return at
		}
		at += size
	}
	return -1
}

func baseName(path string) string { return path[strings.LastIndexAny(path, `/\`)+1:] }
