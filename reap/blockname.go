package reap

import (
	"fmt"
	"strconv"
	"strings"

	"ggufreap/gguf"
)

// SplitBlock cuts "blk.7.ffn_norm.weight" into 7 and "ffn_norm.weight".
func SplitBlock(name string) (block int, rest string, ok bool) {
	name, ok = strings.CutPrefix(name, "blk.")
	if !ok {
		return 0, "", false
	}
	digits, rest, ok := strings.Cut(name, ".")
	if !ok {
		return 0, "", false
	}
	block, ok = parseID(digits)
	return block, rest, ok
}

// parseID reads a number in plain decimal: no sign, no leading zero, no spaces.
func parseID(s string) (int, bool) {
	if len(s) > 1 && s[0] == '0' {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 31)
	return int(n), err == nil
}

func tensorPlace(t *gguf.Tensor) string { return fmt.Sprintf("tensor %q", t.Name) }
