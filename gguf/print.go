package gguf

import (
	"strconv"
	"strings"
	"unicode"
)

// printable returns s as it is when a terminal shows it as it is, and quoted
// otherwise. File names and keys come from strangers and can hold control
// characters or marks that reorder text.
func printable(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return r == unicode.ReplacementChar || !strconv.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}
