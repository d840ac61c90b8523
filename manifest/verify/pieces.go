package verify

import (
	"fmt"
	"path/filepath"
	"slices"

	"ggufreap/gguf"
	"ggufreap/gguf/words"
	"ggufreap/manifest/lists"
)

// piecesOf returns the paths of the pieces of which a file is to be read that is not there, nil
// where there are none.
func piecesOf(path string) []string {
	for _, j := range gguf.PiecesIn(filepath.Dir(path)) {
		if filepath.Base(j.File) == filepath.Base(path) {
			return j.Pieces
		}
	}
	return nil
}

// findPieces takes listed files that lie in pieces for there: their bytes are. The pieces are no
// files of their own; names are those that the list has.
func (v *verifier) findPieces(names map[string]bool) {
	v.missing = slices.DeleteFunc(v.missing, func(s lists.FileSum) bool {
		pieces := piecesOf(v.path(s.Name))
		if pieces == nil {
			return false
		}
		if v.joined == nil {
			v.joined = map[string][]string{}
		}
		v.joined[s.Name] = pieces
		v.listed = append(v.listed, s)
		v.contents[s.Name] = content{model: true}
		for _, piece := range pieces {
			names[v.name(piece)] = true
		}
		v.report.note(s.Name, fmt.Sprintf("is read from %s: %s", words.Count(len(pieces), "piece"), nameList(baseNames(pieces))))
		return true
	})
}

// pathsOf returns the paths of which the bytes of a file of the folder are read.
func (v *verifier) pathsOf(name string) []string {
	if pieces := v.joined[name]; pieces != nil {
		return pieces
	}
	return []string{v.path(name)}
}

func baseNames(paths []string) []string {
	names := make([]string, len(paths))
	for i, path := range paths {
		names[i] = filepath.Base(path)
	}
	return names
}
