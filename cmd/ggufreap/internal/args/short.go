package args

import (
	"strings"

	"github.com/urfave/cli/v2"
)

// splitShort parts short flags that were typed as one word, as all programs of Unix take them:
// -qo FILE, -oFILE.
func splitShort(flags []cli.Flag, words []string) []string {
	var list []string
	for i := 0; i < len(words); i++ {
		switch {
		case words[i] == "--":
			return append(list, words[i:]...)
		case WantsNext(flags, words[i]) && i+1 < len(words):
			list = append(list, words[i], words[i+1])
			i++
		default:
			list = append(list, shortFlags(flags, words[i])...)
		}
	}
	return list
}

// shortFlags returns the short flags that a word is made of, and the word itself when it is one
// flag, a file, or more likely a slip of the fingers.
func shortFlags(flags []cli.Flag, word string) []string {
	if !IsFlag(word) || word[1] == '-' || FlagOf(flags, word) != nil || isFile(word) {
		return []string{word}
	}
	var list []string
	for i := 1; i < len(word); i++ { // byte by byte: a word may be no text
		short, rest := "-"+word[i:i+1], word[i+1:]
		list = append(list, short)
		switch {
		case FlagOf(flags, short) == nil || isSlip(flags, word, rest):
			return []string{word}
		case WantsNext(flags, short) && rest != "":
			return append(list, strings.TrimPrefix(rest, "="))
		}
	}
	return list
}

// isSlip reports whether a word is closer to the name of a flag than to a short one with its
// value, the rest of the word.
func isSlip(flags []cli.Flag, word, rest string) bool {
	return len(rest) > 1 && Closest(word[1:], flagNames(&cli.Command{Flags: flags})) != ""
}

// Paths of the standard streams, which the system has beside "-".
var (
	stdinPaths  = []string{"/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"}
	stdoutPaths = []string{"/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"}
)
