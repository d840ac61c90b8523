package text

import (
	"fmt"
	"strings"

	"ggufreap/gguf/words"
)

// Count writes a number with its noun: "1 shard", "1,200 shards".
func Count[T words.Integer](n T, noun string) string { return words.Count(n, noun) }

// Files writes how many files a model has; a model of one is not split.
func Files(n int) string { return words.Files(n) }

// Grouped writes a number with commas between thousands.
func Grouped[T words.Integer](n T) string { return words.Group(n) }

// Names joins names for a message, at most most of them.
func Names(names []string, most int) string {
	shown := make([]string, 0, most+1)
	for _, name := range names[:min(len(names), most)] {
		shown = append(shown, Safe(name))
	}
	if more := len(names) - most; more > 0 {
		shown = append(shown, fmt.Sprintf("and %s more", Grouped(more)))
	}
	return strings.Join(shown, ", ")
}

// Differ writes how many things differ: "1 key differs", "2 keys differ".
func Differ[T words.Integer](n T, noun string) string {
	return Count(n, noun) + " " + words.Verb(n, "differs", "differ")
}

// Shape writes dims, innermost first: "7168x896".
func Shape(shape []uint64) string {
	if len(shape) == 0 {
		return "scalar"
	}
	dims := make([]string, len(shape))
	for i, d := range shape {
		dims[i] = fmt.Sprint(d)
	}
	return strings.Join(dims, "x")
}
