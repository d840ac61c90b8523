package gguf

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
)

// backwards is the magic of a writer that took it for a number and swapped its bytes.
const backwards = "FUGG"

const lfsPointer = "version https://git-lfs.github.com/spec/"

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
var answer = regexp.MustCompile(`^(?:[45][0-9]{2}:? +)?(?:(?:(?:entry|repository|repo|revision|model|file|page) )?not found\b` +
	`|access to \S+ \S+ is restricted` +
	`|invalid (?:username or password|credentials|user token)` +
	`|(?:unauthorized|forbidden|too many requests|internal server error|bad gateway|service unavailable|gateway time-?out)\b)` +
	`|^\{\s*"(?:error|errors|message|detail)"\s*:`)

// firstLine is the first line of a text that is not blank, as far as a message has room for it.
func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimLeft(text, " \t\r\n\ufeff"), "\n")
	line = strings.TrimSpace(line)
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
	case strings.HasPrefix(string(head), lfsPointer):
		return pointerKind(string(head))
	case strings.HasPrefix(text, "<!doctype") || strings.HasPrefix(text, "<html"):
		return "an HTML page, not a model: a web server answered the download with a page"
	case strings.HasPrefix(text, "<?xml"):
		return "an XML document, not a model: a web server answered the download with a message"
	case answer.MatchString(text):
		return fmt.Sprintf("a message, not a model: a web server answered the download with %q", firstLine(string(head)))
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
	return fmt.Sprintf("not a GGUF file: it begins with %q, want %q", head[:min(len(head), 4)], magic)
}

// pointerKind reports what a Git LFS pointer stands for, as far as its lines are what the
// specification wants: a size in decimal and an oid "sha256:HEX".
func pointerKind(text string) string {
	size, oid := "of unknown size", ""
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case key == "size" && pointerSize.MatchString(value):
			size = "of " + value + " bytes"
		case key == "oid" && pointerOID.MatchString(value):
			oid = " with oid " + value
		}
	}
	return fmt.Sprintf("a Git LFS pointer, not the model: it stands for a file %s%s", size, oid)
}

var (
	pointerSize = regexp.MustCompile(`^[0-9]{1,18}$`)
	pointerOID  = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
)
