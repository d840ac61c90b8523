package gguf

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxRef bounds the name of a revision in a hub's cache: a hash has 40 digits.
const maxRef = 256

// ModelFolder returns the folder in which the files of a model lie: dir itself, or, where
// dir is a repository in a hub's cache (models--org--name, with the folders blobs, refs and
// snapshots), the snapshot that refs/main names. Without that reference the only snapshot
// is meant. A cache whose snapshot is not there is an error.
func ModelFolder(dir string) (string, error) {
	snapshots := filepath.Join(dir, "snapshots")
	entries, err := os.ReadDir(snapshots)
	if err != nil {
		return dir, nil // no cache
	}
	if names, err := modelNames(dir); err != nil || len(names) > 0 {
		return dir, err
	}
	revision, err := readRef(filepath.Join(dir, "refs", "main"))
	switch {
	case errors.Is(err, fs.ErrNotExist) && len(entries) == 1 && isDir(snapshots, entries[0]):
		revision = entries[0].Name()
	case errors.Is(err, fs.ErrNotExist):
		return dir, nil
	case err != nil:
		return "", err
	}
	snapshot := filepath.Join(snapshots, revision)
	if info, err := os.Stat(snapshot); err != nil || !info.IsDir() {
		there := ""
		if folders := FoldersOfModels(dir); len(folders) > 0 {
			there = "; there are models in " + nameList(folders)
		}
		return "", fmt.Errorf("%s: refs/main names the snapshot %q, which is not there%s", printable(dir), revision, there)
	}
	return snapshot, nil
}

// readRef reads the name of a revision. One that leads out of its folder is an error.
func readRef(path string) (string, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: is %s, want a regular file", printable(path), kindOf(info.Mode()))
	}
	if err != nil {
		return "", err
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxRef+1))
	if err != nil {
		return "", err
	}
	revision := strings.TrimSpace(string(data))
	if len(data) > maxRef || revision == "" || revision == "." || revision == ".." || strings.ContainsAny(revision, `/\`) {
		return "", fmt.Errorf("%s: is not the name of a snapshot: %.80q", printable(path), revision)
	}
	return revision, nil
}
