package gguf

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"ggufreap/gguf/words"
)

// only lists the files of the one artifact that a folder holds. What goes beside a model is
// no rival of it.
func (o *opener) only(dir string) ([]string, error) {
	dir, err := ModelFolder(dir)
	if err != nil {
		return nil, err
	}
	names, err := o.modelNames(dir)
	if err != nil {
		return nil, err
	}
	sets, beside := o.setAside(o.sets(dir, names))
	switch {
	case len(sets) > 0:
		o.aside = o.asides(beside)
	case len(beside) > 0:
		if folders := FoldersOfModels(dir); len(folders) > 0 {
			return nil, fmt.Errorf("%s: holds no model, but %s; there are models in %s", printable(dir), asideList(o.asides(beside)), nameList(folders))
		}
		sets = beside
	}
	switch len(sets) {
	case 0:
		return nil, fmt.Errorf("%s: no .gguf file in this folder%s", printable(dir), lookalikes(dir))
	case 1:
		return sets[0].paths, o.checkPlaces(dir, sets[0])
	}
	artifacts := make([]string, len(sets))
	for i, set := range sets {
		artifacts[i] = filepath.Base(set.paths[0])
	}
	return nil, fmt.Errorf("%s: holds %d models, name one of them: %s", printable(dir), len(artifacts), nameList(artifacts))
}

// asideList joins a few artifacts for a message, with what they are.
func asideList(list []Aside) string {
	var names []string
	for _, a := range list {
		names = append(names, fmt.Sprintf("%s (%s)", a.File, a.Kind))
	}
	return nameList(names)
}

// modelNames lists the model files in a folder, sorted.
func modelNames(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if name := e.Name(); IsModelFile(name) && !isDir(dir, e) {
			names = append(names, name)
		}
	}
	return names, nil
}

func isDir(dir string, e fs.DirEntry) bool {
	if e.Type()&fs.ModeSymlink == 0 {
		return e.IsDir()
	}
	info, err := os.Stat(filepath.Join(dir, e.Name()))
	return err == nil && info.IsDir()
}

// Bounds of the search for models below a folder that has none: a hub keeps those of a
// repository in snapshots/REVISION, and in folders below.
const (
	lookDepth   = 5
	lookFolders = 1000
)

// lookalikes says what a folder without models holds that people take for one:
// subfolders with models, and downloads that did not finish.
func lookalikes(dir string) string {
	folders, parts := FoldersOfModels(dir), unfinished(dir)
	switch {
	case len(folders) > 0:
		return "; models are in " + nameList(folders)
	case BrokenPieces(dir) != "":
		return "; " + BrokenPieces(dir)
	case len(parts) > 0:
		return "; downloads may be unfinished: " + nameList(parts)
	}
	return ""
}

// foldersWithModels lists the folders below dir/sub that hold models, named from dir. What
// lies below such a folder is not looked at.
func foldersWithModels(dir, sub string, depth int, budget *int) []string {
	entries, _ := os.ReadDir(filepath.Join(dir, sub))
	var found []string
	for _, e := range entries {
		if *budget == 0 || !isDir(filepath.Join(dir, sub), e) {
			continue
		}
		*budget--
		below := filepath.Join(sub, e.Name())
		if names, _ := modelNames(filepath.Join(dir, below)); len(names) > 0 {
			found = append(found, below)
		} else if depth > 1 {
			found = append(found, foldersWithModels(dir, below, depth-1, budget)...)
		}
	}
	return found
}

// unfinished lists the files of a folder that are named like parts of a download.
func unfinished(dir string) []string {
	entries, _ := os.ReadDir(dir)
	var parts []string
	for _, e := range entries {
		if strings.Contains(e.Name(), ".gguf.") && !isDir(dir, e) {
			parts = append(parts, e.Name())
		}
	}
	return parts
}

// nameList joins a few names for a message.
func nameList(names []string) string {
	const most = 5
	var shown []string
	for _, name := range names[:min(len(names), most)] {
		shown = append(shown, printable(name))
	}
	if len(names) > most {
		shown = append(shown, fmt.Sprintf("and %s more", words.Group(len(names)-most)))
	}
	return strings.Join(shown, ", ")
}
