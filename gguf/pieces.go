package gguf

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ggufreap/gguf/words"
)

// pieceName tells a file that was cut by bytes, to be joined with cat: "m.gguf.part1of2".
var pieceName = regexp.MustCompile(`^(.+)\.part([1-9][0-9]{0,3})of([1-9][0-9]{0,3})$`)

// mostPieces is how many pieces a message names.
const mostPieces = 20

// pieces says of which file the names, all of them, are byte pieces, how many are missing and
// in which order they belong; it is "" for other names.
func pieces(names []string) string {
	type piece struct {
		name string
		no   int
	}
	var list []piece
	seen := map[int]bool{}
	stem, count := "", 0
	for _, name := range names {
		match := pieceName.FindStringSubmatch(name)
		if match == nil || stem != "" && match[1] != stem {
			return ""
		}
		no, _ := strconv.Atoi(match[2])
		of, _ := strconv.Atoi(match[3])
		if no > of || count != 0 && of != count || seen[no] {
			return ""
		}
		seen[no] = true
		stem, count, list = match[1], of, append(list, piece{name, no})
	}
	slices.SortFunc(list, func(a, b piece) int { return cmp.Compare(a.no, b.no) })
	var ordered []string
	for _, p := range list {
		ordered = append(ordered, printable(p.name))
	}
	switch missing := count - len(list); {
	case len(list) == 0:
		return ""
	case missing > 0:
		return fmt.Sprintf("%s is cut into %s, of which %d %s missing: there are %s", printable(stem), words.Count(count, "piece"), missing, words.Verb(missing, "is", "are"), nameList(ordered))
	}
	if len(ordered) > mostPieces {
		ordered = slices.Concat(ordered[:mostPieces-1], []string{"..."}, ordered[len(ordered)-1:])
	}
	return fmt.Sprintf("%s is cut into %s, which cat joins in this order: %s", printable(stem), words.Count(count, "piece"), strings.Join(ordered, " "))
}
