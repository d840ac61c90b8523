package text

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Safe returns s with everything that a terminal would act on, or that reorders or
// hides text, spelled out as Go escapes it: names and values come from strangers.
func Safe(s string) string { return safeKeeping(s, "") }

// SafeLines is safe for text of many lines.
func SafeLines(s string) string { return safeKeeping(s, "\n\t") }

func safeKeeping(s, keep string) string {
	i := UnsafeAt(s, keep)
	if i < 0 {
		return s
	}
	var b strings.Builder
	for i >= 0 {
		b.WriteString(s[:i])
		r, size := utf8.DecodeRuneInString(s[i:])
		b.WriteString(escape(r, size, s[i]))
		s = s[i+size:]
		i = UnsafeAt(s, keep)
	}
	b.WriteString(s)
	return b.String()
}

// UnsafeAt returns the place of the first rune that must be escaped, -1 if none.
func UnsafeAt(s, keep string) int {
	marks := 0
	for i, r := range s {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(s[i:]); size == 1 {
				return i
			}
		}
		if marks = CountMarks(marks, r); marks > MaxMarks || Hidden(r) && !strings.ContainsRune(keep, r) {
			return i
		}
	}
	return -1
}

// Hidden reports whether a terminal acts on a rune, or shows nothing where it stands.
func Hidden(r rune) bool {
	const brailleBlank = '\u2800'
	return !strconv.IsPrint(r) || r == brailleBlank || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// MaxMarks is how many combining marks may stand on one letter. More of them, which no
// script needs, run into the lines above and below.
const MaxMarks = 4

// CountMarks counts the combining marks in a row, r included.
func CountMarks(before int, r rune) int {
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
