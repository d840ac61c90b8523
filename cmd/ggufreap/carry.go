package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ggufreap/cmd/ggufreap/internal/files"
	"ggufreap/cmd/ggufreap/internal/hub"
	"ggufreap/cmd/ggufreap/internal/release"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
	"ggufreap/manifest"
)

// carriedNames are the documents of a release that stay true when its metadata or its cut
// changes: the experts and their source are the same.
var carriedNames = []string{release.PlanName, release.SourcePinName, licenseName}

// carryOver puts the documents of the release that a model is into the release that is made of
// it, and says which files of its folder are not put in, since they speak of the files as they
// were.
func carryOver(con *ui.Console, m *gguf.Model, r *release.Release) error {
	dir := filepath.Dir(m.Paths()[0])
	if _, err := os.Stat(filepath.Join(dir, manifest.SumsName)); hub.Of(m) != nil || err != nil {
		return nil // no release
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // it may be read, but not listed
	}
	var left []string
	for _, e := range entries {
		name := e.Name()
		switch {
		case slices.Contains(carriedNames, name):
			data, err := files.Read(filepath.Join(dir, name))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			r.Documents = append(r.Documents, release.File{Name: name, Data: data})
		case name != manifest.SumsName && name != manifest.PinName && !gguf.IsModelFile(name):
			left = append(left, text.Safe(name))
		}
	}
	if len(left) > 0 {
		con.Notef("not carried over, since it may speak of the files as they were: %s", strings.Join(left, ", "))
	}
	return nil
}
