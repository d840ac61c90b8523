package gguf

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"ggufreap/gguf/words"
)

// mostPieces is how many pieces a message names.
const mostPieces = 20

// pieceFault says why pieces in order cannot be joined, or "". How many there are some names
// tell, and the header of the whole tells when the last are missing. All but the last are of one
// size where names do not count them.
func pieceFault(whole string, list []piece, from int) string {
	count := cmp.Or(list[0].count, list[len(list)-1].number-from+1)
	for _, p := range list {
		if p.count != list[0].count || p.number-from >= count {
			return fmt.Sprintf("%s is cut into pieces whose names contradict each other: %s and %s", whole, base(list[0].path), base(p.path))
		}
	}
	if missing := count - len(list); missing > 0 {
		return fmt.Sprintf("%s is cut into %s, of which %d %s missing: there are %s", whole, words.Count(count, "piece"), missing, words.Verb(missing, "is", "are"), pieceList(list))
	}
	for _, p := range list {
		if p.size == 0 {
			return fmt.Sprintf("%s is cut into %s, of which %s is empty", whole, words.Count(count, "piece"), base(p.path))
		}
	}
	for _, p := range list[:len(list)-1] {
		if list[0].count == 0 && p.size != list[0].size {
			return fmt.Sprintf("%s is cut into %s of one size but for the last: %s", whole, words.Count(count, "piece"), smallPiece(list))
		}
	}
	return ""
}

// smallPiece says which piece may not be whole: one before the last that is smaller than another
// there, or the first of two that is smaller than the last. It is "" where there is none: the
// last alone may have any size, and split -n makes it the largest.
func smallPiece(list []piece) string {
	alike := list[:max(len(list)-1, min(len(list), 2))]
	largest := slices.MaxFunc(alike, func(a, b piece) int { return cmp.Compare(a.size, b.size) })
	for _, p := range list[:len(list)-1] {
		if p.size < largest.size {
			return fmt.Sprintf("%s may not be whole: it has %s, %s has %s", base(p.path), words.Count(p.size, "byte"), base(largest.path), words.Group(largest.size))
		}
	}
	return ""
}

// pieceList names pieces in their order; of many the first and the last.
func pieceList(list []piece) string {
	var shown []string
	for _, p := range list {
		shown = append(shown, base(p.path))
	}
	if len(shown) > mostPieces {
		shown = slices.Concat(shown[:mostPieces-1], []string{"..."}, shown[len(shown)-1:])
	}
	return strings.Join(shown, ", ")
}

// PiecesIn returns the files that lie in a folder in pieces which can be read as one, sorted.
func PiecesIn(dir string) []Joined {
	var list []Joined
	for whole, set := range piecesIn(dir) {
		if set.fault == "" {
			list = append(list, Joined{whole, set.paths})
		}
	}
	slices.SortFunc(list, func(a, b Joined) int { return cmp.Compare(a.File, b.File) })
	return list
}

// BrokenPieces says of which files the pieces in a folder cannot be joined, and why; "" for none.
func BrokenPieces(dir string) string {
	var faults []string
	for _, set := range piecesIn(dir) {
		if set.fault != "" {
			faults = append(faults, set.fault)
		}
	}
	slices.Sort(faults)
	return strings.Join(faults, "; ")
}
