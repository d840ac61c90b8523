package release

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/files"
	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/manifest"
	"ggufreap/manifest/lists"
	"ggufreap/manifest/sign"
)

// IsFinished reports whether a folder is a release with a list of sums.
func IsFinished(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, manifest.JournalName))
	info, listErr := os.Stat(filepath.Join(dir, manifest.SumsName))
	return err != nil && listErr == nil && info.Mode().IsRegular()
}

// Amend puts documents into the folder of a finished release, new ones or in the place of those
// that are there, and renews its list of sums. The model is not touched, and not read. What
// changes nothing writes nothing.
//
// A signature over the list no longer fits then. With force the signatures are removed first,
// and returned; without it a signed release is refused. The list comes last: a run that is
// killed leaves a document that the list does not fit yet, and the same command ends it.
func Amend(dir string, documents []File, force bool) (removed []string, err error) {
	sums, err := readSums(dir)
	if err != nil {
		return nil, err
	}
	var changed []File
	relist := false
	for _, d := range documents {
		if !holds(filepath.Join(dir, filepath.FromSlash(d.Name)), d.Data) {
			changed = append(changed, d)
		}
		is := lists.FileSum{Name: d.Name, SHA256: sha256.Sum256(d.Data)}
		relist = relist || !slices.Contains(sums, is)
		sums = append(slices.DeleteFunc(sums, func(s lists.FileSum) bool { return s.Name == d.Name }), is)
	}
	if relist || len(changed) > 0 { // the list is never older than what it lists
		var list bytes.Buffer
		if err := lists.WriteSums(&list, sums); err != nil {
			return nil, err
		}
		changed = append(changed, File{Name: manifest.SumsName, Data: list.Bytes()})
	}
	if len(changed) == 0 {
		return nil, nil
	}
	if removed, err = removeSignatures(dir, force); err != nil {
		return nil, err
	}
	for _, d := range changed {
		path := filepath.Join(dir, filepath.FromSlash(d.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return removed, err
		}
		if err := files.Replace(path, d.Data); err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// readSums reads the list of sums of a release.
func readSums(dir string) ([]lists.FileSum, error) {
	f, _, err := manifest.OpenRegular(filepath.Join(dir, manifest.SumsName))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	sums, err := lists.ReadSums(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", text.Safe(f.Name()), err)
	}
	return sums, nil
}

// holds reports whether a regular file has these bytes.
func holds(path string, data []byte) bool {
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() || info.Size() != int64(len(data)) {
		return false
	}
	there, err := os.ReadFile(path)
	return err == nil && bytes.Equal(there, data)
}

// removeSignatures removes what was signed over the list of sums that is to be renewed.
func removeSignatures(dir string, force bool) ([]string, error) {
	var there []string
	for _, name := range sign.Names {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			there = append(there, name)
		}
	}
	if len(there) > 0 && !force {
		return nil, hint.With(fmt.Errorf("%s is signed: %s would no longer fit what is changed", text.Safe(dir), strings.Join(there, " and ")),
			"--force changes it and removes the signatures; then sign it again: ggufreap sign %s", args.ShellQuote(dir))
	}
	for _, name := range there {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return there, nil
}
