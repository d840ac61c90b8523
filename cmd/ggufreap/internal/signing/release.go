package signing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ggufreap/cmd/ggufreap/internal/files"
	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/manifest"
	"ggufreap/manifest/lists"
	"ggufreap/manifest/sign"
)

// A Release is a finished folder, as its list of sums describes it.
type Release struct {
	Dir   string
	List  []byte // the bytes of MANIFEST.sha256
	Files []sign.File
}

// Open reads the list of sums of a finished release. That its files are there is checked, not
// what they hold.
func Open(dir string) (*Release, error) {
	if _, err := os.Lstat(filepath.Join(dir, manifest.JournalName)); err == nil {
		return nil, fmt.Errorf("%s is unfinished: it has a file %s", text.Safe(dir), manifest.JournalName)
	}
	path := filepath.Join(dir, manifest.SumsName)
	list, err := files.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, hint.With(fmt.Errorf("%s has no %s: nothing lists what there is to sign", text.Safe(dir), manifest.SumsName),
			"a folder that prune or reshard has written is meant")
	}
	if err != nil {
		return nil, err
	}
	sums, err := lists.ReadSums(bytes.NewReader(list))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", text.Safe(path), err)
	}
	r := &Release{Dir: dir, List: list}
	for _, s := range sums {
		if info, err := os.Stat(r.Path(s.Name)); err != nil {
			return nil, fmt.Errorf("%s lists a file that cannot be found: %w", manifest.SumsName, err)
		} else if !info.Mode().IsRegular() {
			return nil, fmt.Errorf("%s: not a regular file", text.Safe(r.Path(s.Name)))
		}
		r.Files = append(r.Files, sign.File{Name: s.Name, SHA256: s.SHA256})
	}
	return r, nil
}

// Path returns the path of a file of the release.
func (r *Release) Path(name string) string { return filepath.Join(r.Dir, filepath.FromSlash(name)) }

// Sum returns the sum that the list states of a file.
func (r *Release) Sum(name string) (sum [32]byte, ok bool) {
	for _, f := range r.Files {
		if f.Name == name {
			return f.SHA256, true
		}
	}
	return sum, false
}

// Unlisted names what lies in the folder and is neither listed nor a signature.
func (r *Release) Unlisted() ([]string, error) {
	entries, err := os.ReadDir(r.Dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		name := e.Name()
		below := slices.ContainsFunc(r.Files, func(f sign.File) bool { return strings.HasPrefix(f.Name, name+"/") })
		if _, listed := r.Sum(name); !listed && !below && name != manifest.SumsName && !slices.Contains(sign.Names, name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// All lists every file of the folder with its sum: the listed ones as the list has them, the
// others read.
func (r *Release) All(ctx context.Context) ([]sign.File, error) {
	known := make(map[string][32]byte, len(r.Files))
	for _, f := range r.Files {
		known[f.Name] = f.SHA256
	}
	return sign.Folder(ctx, r.Dir, sign.FilesOptions{
		Signature: r.Path(sign.ModelName),
		Known: func(name string) ([32]byte, bool) {
			sum, ok := known[name]
			return sum, ok
		},
	})
}
