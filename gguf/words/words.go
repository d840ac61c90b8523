// Package words writes numbers for people.
package words

import "fmt"

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
