package main

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"

	"ggufreap/gguf/words"
)

// safe returns s with everything that a terminal would act on, or that reorders or
// hides text, spelled out as Go escapes it: names and values come from strangers.
func safe(s string) string { return safeKeeping(s, "") }

// safeLines is safe for text of many lines.
func safeLines(s string) string { return safeKeeping(s, "\n\t") }

func safeKeeping(s, keep string) string {
	i := unsafeAt(s, keep)
	if i < 0 {
		return s
	}
	var b strings.Builder
	for i >= 0 {
		b.WriteString(s[:i])
		r, size := utf8.DecodeRuneInString(s[i:])
		b.WriteString(escape(r, size, s[i]))
		s = s[i+size:]
		i = unsafeAt(s, keep)
	}
	b.WriteString(s)
	return b.String()
}

// unsafeAt returns the place of the first rune that must be escaped, -1 if none.
func unsafeAt(s, keep string) int {
	marks := 0
	for i, r := range s {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(s[i:]); size == 1 {
				return i
			}
		}
		if marks = countMarks(marks, r); marks > maxMarks || hidden(r) && !strings.ContainsRune(keep, r) {
			return i
		}
	}
	return -1
}

// hidden reports whether a terminal acts on a rune, or shows nothing where it stands.
func hidden(r rune) bool {
	const brailleBlank = '\u2800'
	return !strconv.IsPrint(r) || r == brailleBlank || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// maxMarks is how many combining marks may stand on one letter. More of them, which no
// script needs, run into the lines above and below.
const maxMarks = 4

// countMarks counts the combining marks in a row, r included.
func countMarks(before int, r rune) int {
	if unicode.In(r, unicode.Mn, unicode.Me) {
		return before + 1
	}
	return 0
}

func escape(r rune, size int, first byte) string {
	if r == utf8.RuneError && size == 1 {
		return fmt.Sprintf(`\x%02x`, first)
	}
	quoted := strconv.QuoteRuneToASCII(r)
	return quoted[1 : len(quoted)-1]
}

// What is shown of a text of one line, in bytes.
const (
	maxLine  = 2000
	lineTail = 400 // of them from its end
)

// abridge leaves out the middle of a line that is longer than any that is meant: a name can
// have a million bytes.
func abridge(s string) string {
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
	return fmt.Sprintf("%s ... (%s left out) ... %s", s[:head], count(tail-head, "byte"), s[tail:])
}

// ANSI styles.
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	yellow = "33"
)

// paint wraps s in a style when color is on.
func paint(color bool, style, s string) string {
	if !color || style == "" || s == "" {
		return s
	}
	return "\x1b[" + style + "m" + s + "\x1b[0m"
}

// columns is the number of terminal columns that s takes.
func columns(s string) int { return uniseg.StringWidth(s) }

// wrap breaks s at spaces into lines of at most width columns; a longer word stays
// whole. A width of 0 is no limit.
func wrap(s string, width int) []string {
	if width <= 0 || columns(s) <= width {
		return []string{s}
	}
	var lines []string
	line := ""
	for word := range strings.SplitSeq(s, " ") {
		if line != "" && columns(line)+1+columns(word) > width {
			lines = append(lines, line)
			line = ""
		} else if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

// breakText is wrap for text that has to fit: a longer word is broken too, behind
// punctuation if there is some.
func breakText(s string, width int) []string {
	var lines []string
	for _, line := range wrap(s, width) {
		lines = append(lines, breakWord(line, width)...)
	}
	return lines
}

func breakWord(s string, width int) []string {
	var parts []string
	from, mark := 0, 0 // where the part begins, and the last place behind punctuation in it
	used, behind := 0, 0
	at, state := 0, -1
	for rest := s; rest != ""; {
		var cluster string
		var w int
		cluster, rest, w, state = uniseg.FirstGraphemeClusterInString(rest, state)
		for used+w > width && used > 0 {
			if mark == from {
				mark, behind = at, 0
			}
			parts = append(parts, s[from:mark])
			from, used = mark, behind
		}
		at += len(cluster)
		used += w
		behind += w
		if strings.Contains("./-_,:=", cluster) {
			mark, behind = at, 0
		}
	}
	return append(parts, s[from:])
}

// count writes a number with its noun: "1 shard", "1,200 shards".
func count[T words.Integer](n T, noun string) string { return words.Count(n, noun) }

// fileCount writes how many files a model has; a model of one is not split.
func fileCount(n int) string {
	if n == 1 {
		return "1 file"
	}
	return count(n, "shard")
}

// grouped writes a number with commas between thousands.
func grouped[T words.Integer](n T) string { return words.Group(n) }

// nameList joins names for a message, at most most of them.
func nameList(names []string, most int) string {
	shown := make([]string, 0, most+1)
	for _, name := range names[:min(len(names), most)] {
		shown = append(shown, safe(name))
	}
	if more := len(names) - most; more > 0 {
		shown = append(shown, fmt.Sprintf("and %s more", grouped(more)))
	}
	return strings.Join(shown, ", ")
}
