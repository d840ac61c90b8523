package args

import "ggufreap/gguf/words"

// Closest returns the candidate that differs from word by a slip or two, or "".
func Closest(word string, candidates []string) string {
	best, least := "", 3
	for _, c := range candidates {
		if len(c) < 3 {
			continue // a flag of one letter is near to everything
		}
		if d := words.Distance(word, c); d < least && d < len(c)-1 {
			best, least = c, d
		}
	}
	return best
}
