package verify

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"ggufreap/gguf"
	"ggufreap/manifest"
	"ggufreap/manifest/lists"
	"ggufreap/manifest/sign"
)

// VouchedBy returns what beside a model says which bytes it has, "" for nothing: a release's list
// of sums, pin or signature, or what [Release] would hold its files against.
func VouchedBy(m *gguf.Model) (string, error) {
	v := &verifier{dir: filepath.Dir(m.Paths()[0]), report: newReport(m.Name), models: []*gguf.Model{m}}
	for _, name := range slices.Concat([]string{manifest.SumsName, manifest.PinName}, sign.Names) {
		switch _, err := os.Lstat(v.path(name)); {
		case err == nil:
			return name, nil
		case !errors.Is(err, fs.ErrNotExist):
			return "", err
		}
	}
	if err := v.gatherClaims(); err != nil {
		return "", err
	}
	if len(v.claims) > 0 {
		return v.claims[0].by, nil
	}
	return listAbove(m)
}

// listAbove returns the path of a list of sums in a folder above a model's that names a file of
// the model, "" for none.
func listAbove(m *gguf.Model) (string, error) {
	files := map[string]bool{}
	var above []string // folders
	for _, path := range m.Paths() {
		full, err := filepath.Abs(path)
		if err != nil {
			return "", err
		}
		files[full] = true
		for dir := filepath.Dir(full); dir != filepath.Dir(dir) && !slices.Contains(above, filepath.Dir(dir)); dir = filepath.Dir(dir) {
			above = append(above, filepath.Dir(dir))
		}
	}
	for _, dir := range above {
		if list, err := listIn(dir, files); list != "" || err != nil {
			return list, err
		}
	}
	return "", nil
}

// listIn returns the list of sums of a folder that names one of the files. What cannot be read as
// a list names none.
func listIn(dir string, files map[string]bool) (string, error) {
	entries, err := os.ReadDir(dir)
	if gguf.MachineFault(err) {
		return "", err
	}
	for _, e := range entries {
		if name := e.Name(); name != manifest.SumsName && !sumsName.MatchString(name) {
			continue
		}
		path, found := filepath.Join(dir, e.Name()), false
		f, _, err := manifest.OpenRegular(path)
		if err == nil {
			err = lists.EachSum(f, func(s lists.FileSum) error {
				found = found || files[filepath.Join(dir, filepath.FromSlash(s.Name))]
				return nil
			})
			f.Close()
		}
		if found {
			return path, nil
		}
		if gguf.MachineFault(err) {
			return "", err
		}
	}
	return "", nil
}
