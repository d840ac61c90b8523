package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
	"ggufreap/manifest"
	"ggufreap/manifest/lists"
)

// checkName refuses to write a document where a file of a release stands, or will: whatever
// the flags say, nothing but the release's own command replaces it.
func checkName(path string) error {
	name := strings.ToLower(filepath.Base(path)) // on some systems names in other cases are the same
	switch {
	case gguf.IsModelFile(name):
		return fmt.Errorf("output %s would be taken for a model", text.Safe(path))
	case name == strings.ToLower(manifest.SumsName) || name == strings.ToLower(manifest.JournalName) || strings.HasSuffix(name, partSuffix):
		return fmt.Errorf("output %s has a name that marks releases", text.Safe(path))
	}
	list, _, err := manifest.OpenRegular(filepath.Join(filepath.Dir(path), manifest.SumsName))
	if err != nil {
		return nil // no release is there
	}
	defer list.Close()
	sums, err := lists.ReadSums(list)
	if err != nil {
		return nil // nor here
	}
	for _, sum := range sums {
		if strings.EqualFold(sum.Name, name) {
			return hint.With(fmt.Errorf("output %s is a file of the release in that folder: its list of sums names it", text.Safe(path)), "write it to another folder")
		}
	}
	return nil
}

// CheckFolder refuses an output path at which no file can be made, for a command that works
// long before it writes.
func CheckFolder(path string) error {
	if IsSink(path) {
		return nil
	}
	tmp, err := createPart(path)
	if err != nil {
		return writing(path, err)
	}
	tmp.Close()
	return os.Remove(tmp.Name())
}

// CheckApart refuses an output path in the folder that a release is written to, by whatever
// spelling or link it leads there.
func CheckApart(path, folder string) error {
	if IsSink(path) || !same(resolve(filepath.Dir(path)), resolve(folder)) {
		return nil
	}
	return hint.With(fmt.Errorf("output %s is in the folder of the release, which holds the release's files alone", text.Safe(path)), "write it beside the folder")
}

// CheckDistinct refuses two outputs of one path, by whatever spelling or link: the later would
// replace the earlier. Streams are left to the command.
func CheckDistinct(paths ...string) error {
	for i, path := range paths {
		for _, other := range paths[:i] {
			if isFileToBe(path) && isFileToBe(other) && same(resolve(path), resolve(other)) {
				return hint.With(fmt.Errorf("output %s is asked for twice, as %s too", text.Safe(path), text.Safe(other)), "each output has a path of its own")
			}
		}
	}
	return nil
}

func isFileToBe(path string) bool { return path != "" && path != Stdin && !IsSink(path) }

// resolve returns a path with links followed as far as it leads to something.
func resolve(path string) string {
	path, err := filepath.Abs(path)
	if err != nil {
		return filepath.Clean(path)
	}
	rest := ""
	for dir := path; ; dir = filepath.Dir(dir) {
		real, err := filepath.EvalSymlinks(dir)
		if err == nil {
			return filepath.Join(real, rest)
		}
		if !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			return path
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}

// same reports whether two paths lead to one folder or file. Of those that are not there yet,
// spellings that differ in case alone may turn out to.
func same(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	if errA == nil && errB == nil {
		return os.SameFile(infoA, infoB)
	}
	return errA != nil && errB != nil && strings.EqualFold(a, b)
}
