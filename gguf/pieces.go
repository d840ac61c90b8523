package gguf

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ggufreap/gguf/pattern"
)

// Files are cut by bytes, to be joined with cat, in these ways. The first group of a pattern is
// the name of the whole file, the second tells the piece, the third how many there are.
var pieceNames = []struct {
	name   func() *regexp.Regexp
	number func(text string) int
	from   int // the greatest number that the first may have
}{
	{pattern.Lazy(`^(.+?)[ ._-]+\(?part[ ._-]?([0-9]{1,4})[ ._-]?of[ ._-]?([0-9]{1,4})\)?$`), func(s string) int { return decimal(s) - 1 }, 0},
	{pattern.Lazy(`^(.+\.gguf)[._-]?(?:split|part)[._-]?([a-z]{1,3})$`), letters, 0}, // by hand, before hosts took large files
	{pattern.Lazy(`^(.+\.gguf)[._-]?(?:split|part)[._-]?([0-9]{2,4})$`), decimal, 1},
	{pattern.Lazy(`^(.+\.gguf)[._-]?([a-z]{2,3})$`), letters, 0},                 // split m.gguf m.gguf.
	{pattern.Lazy(`^(.+\.gguf)[._-]?([0-9]{2,4})$`), decimal, 1},                 // split -d, 7-Zip
	{pattern.Lazy(`^(.+\.gguf)[._-]?(?:split|part)?[._-]?([0-9])$`), decimal, 1}, // by hand
	{pattern.Lazy(`^(x)([a-z]{2,3})$`), letters, 0},                              // split
	{pattern.Lazy(`^(x)([0-9]{2,4})$`), decimal, 1},                              // split -d
}

func decimal(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

// letters counts "aa", "ab" and so on, from 0.
func letters(s string) int {
	n := 0
	for _, r := range s {
		n = 26*n + int(r-'a')
	}
	return n
}

// A pieceSet is a file that is cut into pieces.
type pieceSet struct {
	whole string // its path, where there is nothing
	paths []string
	fault string // why it cannot be read as one, or ""
	count int    // of pieces, as their names tell, or 0
}

// A piece is one file of a set, by its name.
type piece struct {
	path   string
	number int
	count  int // of all, 0 where the name does not tell
	size   int64
}

const unknownSize = -1 // of a link that leads nowhere

// piecesIn finds the files that lie in a folder in pieces, by the paths of the whole ones. Of a
// file that lies there whole too, the pieces are not looked at.
func piecesIn(dir string) map[string]*pieceSet {
	entries, _ := os.ReadDir(dir)
	type way struct {
		whole, before string // before the number
		scheme, width int
	}
	found := map[way][]piece{}
	for _, e := range entries {
		scheme, match := matchPiece(e.Name())
		if match == nil || isDir(dir, e) {
			continue
		}
		p := piece{path: filepath.Join(dir, e.Name()), number: pieceNames[scheme].number(match[2]), size: unknownSize}
		if len(match) > 3 {
			p.count = decimal(match[3])
		}
		if info, err := os.Stat(p.path); err == nil {
			p.size = info.Size()
		}
		key := way{filepath.Join(dir, match[1]), strings.TrimSuffix(e.Name(), match[2]), scheme, len(match[2])}
		if p.count > 0 {
			key.before, key.width = "", 0 // numbers of any width
		}
		found[key] = append(found[key], p)
	}
	sets := map[string]*pieceSet{}
	for _, key := range slices.SortedFunc(maps.Keys(found), func(a, b way) int {
		return cmp.Or(cmp.Compare(a.whole, b.whole), cmp.Compare(a.scheme, b.scheme), cmp.Compare(a.before, b.before), cmp.Compare(a.width, b.width))
	}) {
		set := newPieceSet(key.whole, found[key], pieceNames[key.scheme].from)
		if _, err := os.Lstat(key.whole); err == nil || set == nil {
			continue
		}
		if other := sets[key.whole]; other != nil {
			set.fault = fmt.Sprintf("%s is cut into pieces in two ways: %s and %s", base(key.whole), base(other.paths[0]), base(set.paths[0]))
		}
		sets[key.whole] = set
	}
	return sets
}

func matchPiece(name string) (scheme int, match []string) {
	for i, way := range pieceNames {
		if match := way.name().FindStringSubmatch(name); match != nil {
			return i, match
		}
	}
	return 0, nil
}

func base(path string) string { return printable(filepath.Base(path)) }

// newPieceSet puts pieces in order and says what is wrong with them. It is nil for files that
// are named like pieces and may be none, such as "m.gguf.bak".
func newPieceSet(whole string, list []piece, from int) *pieceSet {
	slices.SortFunc(list, func(a, b piece) int { return cmp.Compare(a.number, b.number) })
	counted := list[0].count > 0
	if !counted {
		list = together(list)
	}
	switch first := list[0]; {
	case counted:
		from = min(first.number, 0) // some count from part0of3
	case len(list) > 1 && first.number <= from && beginsWithMagic(list[1].path):
		return nil // models of their own, as the second download of one by wget is
	case first.number <= from && (beginsWithMagic(first.path) || first.size == 0 && len(list) > 1 && IsModelFile(whole)):
		from = first.number
	case first.number > 0 && len(list) > 1 && list[len(list)-1].number-first.number == len(list)-1:
		from = 0 // they follow each other, and the first is missing
	default:
		return nil
	}
	set := &pieceSet{whole: whole, fault: pieceFault(base(whole), list, from), count: list[0].count}
	for _, p := range list {
		set.paths = append(set.paths, p.path)
	}
	return set
}

// together leaves out what stands further behind pieces than there are any.
func together(list []piece) []piece {
	for i := 1; i < len(list); i++ {
		if list[i].number-list[i-1].number-1 > i {
			return list[:i]
		}
	}
	return list
}

// beginsWithMagic reports whether a file begins like a model.
func beginsWithMagic(path string) bool {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false // opening a pipe would wait for somebody to write
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, len(magic))
	_, err = io.ReadFull(f, head)
	return err == nil && string(head) == magic
}

// wholeOf returns the path of the file that path is a piece of, or of which only pieces are
// there, and the path itself for any other.
func (o *opener) wholeOf(path string) (string, error) {
	if o.far != nil {
		return path, nil
	}
	_, match := matchPiece(filepath.Base(path))
	if _, err := os.Lstat(path); match == nil && err == nil {
		return path, nil
	}
	for whole, set := range o.findPieces(filepath.Dir(path)) {
		if whole != path && !slices.Contains(set.paths, path) {
			continue
		}
		if set.fault != "" {
			return "", errors.New(printable(filepath.Dir(path)) + ": " + set.fault)
		}
		return whole, nil
	}
	return path, nil
}

// findPieces looks once for the pieces in a folder.
func (o *opener) findPieces(dir string) map[string]*pieceSet {
	if sets, known := o.pieces[dir]; known || o.far != nil {
		return sets
	}
	if o.pieces == nil {
		o.pieces = map[string]map[string]*pieceSet{}
	}
	o.pieces[dir] = piecesIn(dir)
	return o.pieces[dir]
}

// piecesOf returns the pieces of the file that path names, nil where it is no file in pieces.
func (o *opener) piecesOf(path string) *pieceSet {
	if set := o.pieces[filepath.Dir(path)][path]; set != nil && set.fault == "" {
		return set
	}
	return nil
}

// modelNames lists the model files in a folder, those that lie there in pieces too, sorted.
func (o *opener) modelNames(dir string) ([]string, error) {
	names, err := modelNames(dir)
	for whole, set := range o.findPieces(dir) {
		if set.fault == "" {
			names = append(names, filepath.Base(whole))
		}
	}
	slices.Sort(names)
	return names, err
}
