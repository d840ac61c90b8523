package gguf

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"ggufreap/gguf/pattern"
	"ggufreap/gguf/words"
)

// backwards is the magic of a writer that took it for a number and swapped its bytes.
const backwards = "FUGG"

// lfsPointers begin the pointers of Git LFS, of now and of its first versions.
var lfsPointers = []string{"version https://git-lfs.github.com/spec/", "version https://hawser.github.com/spec/"}

// foreign lists beginnings of files that people take for GGUF models.
var foreign = []struct{ prefix, kind string }{
	{"PK\x03\x04", "a zip archive (as PyTorch models and .npz files are)"},
	{"\x1f\x8b", "gzip data"},
	{"\x28\xb5\x2f\xfd", "zstd data"},
	{"tjgg", "a GGJT model, the format before GGUF"},
	{"lmgg", "a GGML model, the format before GGUF"},
	{"fmgg", "a GGMF model, the format before GGUF"},
}

// answer matches what servers say in place of a file, in lower case: the hub's words, those of
// other servers, and JSON that begins with an error.
var answer = pattern.Lazy(`^(?:[45][0-9]{2}:? +)?(?:(?:(?:entry|repository|repo|revision|model|file|page) )?not found\b` +
	`|access to \S+ \S+ is restricted` +
	`|invalid (?:username or password|credentials|user token)` +
	`|(?:unauthorized|forbidden|too many requests|internal server error|bad gateway|service unavailable|gateway time-?out)\b)` +
	`|^\{\s*"(?:error|errors|message|detail)"\s*:`)

// beginning is how a text begins, in one line, as far as a message has room for it. Of a JSON
// object it is more than the brace that stands alone in the first line.
func beginning(text string) string {
	text = strings.TrimLeft(text, " \t\r\n\ufeff")
	line, _, _ := strings.Cut(text, "\n")
	if line = strings.TrimSpace(line); line == "{" {
		line = strings.Join(strings.Fields(text), " ")
	}
	if len(line) > 120 {
		line = strings.ToValidUTF8(line[:120], "") + "..."
	}
	return line
}

// foreignKind says in one line why a file that begins so cannot be GGUF at all, or "".
func foreignKind(head []byte) string {
	head = head[:min(len(head), 512)]
	text := strings.ToLower(strings.TrimLeft(string(head), " \t\r\n\ufeff"))
	switch {
	case bytes.HasPrefix(head, []byte(magic[:min(len(head), len(magic))])):
		return ""
	case isPointer(head):
		return pointerKind(string(head))
	case strings.HasPrefix(text, "<!doctype") || strings.HasPrefix(text, "<html"):
		return "an HTML page, not a model: a web server answered the download with a page"
	case strings.HasPrefix(text, "<?xml"):
		return "an XML document, not a model: a web server answered the download with a message"
	case answer().MatchString(text):
		return fmt.Sprintf("a message, not a model: a web server answered the download with %q", beginning(string(head)))
	case len(bytes.Trim(head, "\x00")) == 0:
		return "the file begins with zero bytes: space was set aside for a download that did not arrive"
	case bytes.HasPrefix(head, []byte(backwards)):
		return fmt.Sprintf("the magic is written backwards: it begins with %q, want %q, in files of either byte order", backwards, magic)
	case len(head) > 9 && head[8] == '{' && bytes.Count(head[2:8], []byte{0}) >= 4:
		return "a safetensors file, not GGUF"
	}
	for _, f := range foreign {
		if strings.HasPrefix(string(head), f.prefix) {
			return f.kind + ", not GGUF"
		}
	}
	if isText(head) {
		return fmt.Sprintf("a text, not a model: it begins with %q", beginning(string(head)))
	}
	return fmt.Sprintf("not a GGUF file: it begins with %q, want %q", head[:min(len(head), 4)], magic)
}

// isText reports whether bytes are some words that somebody can read. A character that is cut
// off at their end is no fault.
func isText(head []byte) bool {
	text := strings.TrimRight(strings.ToValidUTF8(string(head), "\x00"), "\x00")
	return len(text) >= 8 && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) && !unicode.IsSpace(r) })
}

// isPointer reports whether a file is a pointer of Git LFS, by how it begins.
func isPointer(head []byte) bool {
	return slices.ContainsFunc(lfsPointers, func(begin string) bool { return bytes.HasPrefix(head, []byte(begin)) })
}

// grouped writes digits in groups of three, where they are a number that fits.
func grouped(digits string) string {
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return digits
	}
	return words.Group(n)
}

// pointerKind reports what a Git LFS pointer stands for, as far as its lines are what the
// specification wants: a size in decimal and an oid "sha256:HEX".
func pointerKind(text string) string {
	size, oid := "of unknown size", ""
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case key == "size" && pointerSize().MatchString(value):
			size = "of " + grouped(value) + " bytes"
		case key == "oid" && pointerOID().MatchString(value):
			oid = " with oid " + value
		}
	}
	return fmt.Sprintf("a Git LFS pointer, not the model: it stands for a file %s%s", size, oid)
}

var (
	pointerSize = pattern.Lazy(`^[0-9]{1,18}$`)
	pointerOID  = pattern.Lazy(`^sha256:[0-9a-f]{64}$`)
)
