// Package words writes numbers for people.
package words

import (
	"fmt"
	"strings"
)

// Integer is what can be written.
type Integer interface{ int | int64 | uint64 }

// Group writes a number with commas between thousands.
func Group[T Integer](n T) string {
	digits := fmt.Sprint(n)
	sign := ""
	if digits[0] == '-' {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// Count writes a number with its noun, which takes an s: "1 shard", "1,200 shards".
func Count[T Integer](n T, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return Group(n) + " " + noun
}

// Verb chooses the form that agrees with a number: one for 1, and more for any other.
func Verb[T Integer](n T, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}

// Ranges writes ascending numbers with runs closed up: "1-3, 7".
func Ranges(list []int) string {
	var b strings.Builder
	for i := 0; i < len(list); {
		j := i
		for j+1 < len(list) && list[j+1] == list[j]+1 {
			j++
		}
		if i > 0 {
			b.WriteString(", ")
		}
		if fmt.Fprintf(&b, "%d", list[i]); j > i {
			fmt.Fprintf(&b, "-%d", list[j])
		}
		i = j + 1
	}
	return b.String()
}

// Files writes how many files a model has: "1 file", "9 shards". A model of one is not split.
func Files(n int) string {
	if n == 1 {
		return "1 file"
	}
	return Count(n, "shard")
}
