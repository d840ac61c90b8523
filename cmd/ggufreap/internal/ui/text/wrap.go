package text

import (
	"strings"

	"github.com/rivo/uniseg"
)

// Columns is the number of terminal columns that s takes.
func Columns(s string) int { return uniseg.StringWidth(s) }

// Wrap breaks s at spaces into lines of at most width columns; a longer word stays
// whole. A width of 0 is no limit.
func Wrap(s string, width int) []string {
	if width <= 0 || Columns(s) <= width {
		return []string{s}
	}
	var lines []string
	line := ""
	for word := range strings.SplitSeq(s, " ") {
		if line != "" && Columns(line)+1+Columns(word) > width {
			lines = append(lines, line)
			line = ""
		} else if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

// Break is wrap for text that has to fit: a longer word is broken too, behind
// punctuation if there is some.
func Break(s string, width int) []string {
	var lines []string
	for _, line := range Wrap(s, width) {
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
