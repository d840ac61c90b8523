package gguf

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// printable returns s as it is when a terminal shows it as it is, and quoted
// otherwise. File names and keys come from strangers and can hold control
// characters or marks that reorder text.
func printable(s string) string {
	if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}

// maxQuoted bounds how much of a key or tensor name a message repeats.
const maxQuoted = 200

// quoted quotes a name for a message. Of a very long one it gives the beginning.
func quoted(name string) string {
	if len(name) <= maxQuoted {
		return strconv.Quote(name)
	}
	return fmt.Sprintf("%s... (%d bytes)", strconv.Quote(name[:maxQuoted]), len(name))
}
