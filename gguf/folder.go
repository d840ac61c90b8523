package gguf

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// only returns a path to the one artifact that a folder holds.
func (o *opener) only(dir string) (string, error) {
	names, err := modelNames(dir)
	if err != nil {
		return "", err
	}
	o.parseUnnamed(dir, names)
	var artifacts []string // one name each
	seen := map[shardName]bool{}
	for _, name := range names {
		set := o.setOf(dir, name)
		if set.count > 0 && seen[set] {
			continue
		}
		seen[set] = true
		artifacts = append(artifacts, name)
	}
	switch len(artifacts) {
	case 0:
		return "", fmt.Errorf("%s: no .gguf file in this folder%s", printable(dir), lookalikes(dir))
	case 1:
		return filepath.Join(dir, artifacts[0]), nil
	}
	return "", fmt.Errorf("%s: holds %d artifacts, name one of them: %s", printable(dir), len(artifacts), nameList(artifacts))
}

// setOf returns what files of one split have in common: stem and count by their names,
// or the count in their keys when they were renamed. A file of its own has count 0.
func (o *opener) setOf(dir, name string) shardName {
	if n, named := parseShardName(name); named {
		return shardName{stem: n.stem, count: n.count}
	}
	f, err := o.file(filepath.Join(dir, name))
	if err != nil || splitCount(f) <= 1 {
		return shardName{}
	}
	return shardName{count: splitCount(f)}
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

// lookalikes says what a folder without models holds that people take for one:
// subfolders with models, and downloads that did not finish.
func lookalikes(dir string) string {
	entries, _ := os.ReadDir(dir)
	var folders, parts []string
	for _, e := range entries {
		if isDir(dir, e) {
			if names, _ := modelNames(filepath.Join(dir, e.Name())); len(names) > 0 {
				folders = append(folders, e.Name())
			}
		} else if strings.Contains(e.Name(), ".gguf.") {
			parts = append(parts, e.Name())
		}
	}
	switch {
	case len(folders) > 0:
		return "; there are in " + nameList(folders)
	case len(parts) > 0:
		return "; downloads may be unfinished: " + nameList(parts)
	}
	return ""
}

// nameList joins a few names for a message.
func nameList(names []string) string {
	const most = 5
	var shown []string
	for _, name := range names[:min(len(names), most)] {
		shown = append(shown, printable(name))
	}
	if len(names) > most {
		shown = append(shown, fmt.Sprintf("and %d more", len(names)-most))
	}
	return strings.Join(shown, ", ")
}
