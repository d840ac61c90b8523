package text

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// LineColumns is what fits a line of the screen, in columns.
const LineColumns = 60

// Shorten makes s safe and cuts it to fit a line.
func Shorten(s string) string { return ShortenTo(s, LineColumns) }

// ShortenTo makes s safe and cuts it to a number of columns.
func ShortenTo(s string, most int) string {
	if enough := 20 * most; len(s) > enough {
		s = s[:enough] // a rune has at most 4 bytes, and few marks stand on it
	}
	s = Safe(s)
	if Columns(s) <= most {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if Columns(b.String())+4 > most {
			break
		}
		b.WriteRune(r)
	}
	return b.String() + "..."
}

// What is shown of a text of one line, in bytes.
const (
	maxLine  = 2000
	lineTail = 400 // of them from its end
)

// Abridge leaves out the middle of a line that is longer than any that is meant: a name can
// have a million bytes.
func Abridge(s string) string {
	if len(s) <= maxLine {
		return s
	}
	head, tail := maxLine-lineTail, len(s)-lineTail
	for !utf8.RuneStart(s[head]) {
		head--
	}
	for !utf8.RuneStart(s[tail]) {
		tail++
	}
	return fmt.Sprintf("%s ... (%s left out) ... %s", s[:head], Count(tail-head, "byte"), s[tail:])
}

// Architecture writes the name of an architecture, which may be "".
func Architecture(name string) string {
	if name == "" {
		return "no architecture named"
	}
	return Shorten(name)
}
