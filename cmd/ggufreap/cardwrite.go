package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/card"
	"ggufreap/cmd/ggufreap/internal/files"
	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/release"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/manifest"
)

// A cardOutput is a file that card makes.
type cardOutput struct {
	path string
	data []byte
	kind cardKind
}

type cardKind int

const (
	theCard cardKind = iota
	theBOM
	aRecipe
)

// A cardWriter writes what card makes. What lies in the release's own folder becomes part of
// the release.
type cardWriter struct {
	con     *ui.Console
	folder  string // of the release
	force   bool
	facts   *card.Facts
	sources []string

	own []release.File // to become part of the release
}

func (w *cardWriter) write(list []cardOutput) error {
	if len(list) == 1 && list[0].path == files.Stdin {
		w.con.Printf("%s", list[0].data)
		return nil
	}
	if err := w.check(list); err != nil {
		return err
	}
	var others []cardOutput
	for _, o := range list {
		if name, inside := w.inside(o.path); inside {
			w.own = append(w.own, release.File{Name: name, Data: o.data})
		} else {
			others = append(others, o)
		}
	}
	var removed []string
	if len(w.own) > 0 {
		var err error
		if removed, err = release.Amend(w.folder, w.own, w.force); err != nil {
			return err
		}
	}
	for _, o := range others {
		if err := w.put(o); err != nil {
			return err
		}
	}
	return w.describe(list, removed)
}

// check refuses outputs that would harm something, before any is written.
func (w *cardWriter) check(list []cardOutput) error {
	var paths, folders []string
	for _, o := range list {
		if o.path == files.Stdin {
			return args.Usagef("- prints one file, and %d are asked for", len(list))
		}
		paths = append(paths, o.path)
		if o.kind == aRecipe {
			folders = append(folders, filepath.Dir(o.path))
		}
	}
	if err := files.CheckDistinct(append(paths, slices.Compact(folders)...)...); err != nil {
		return err
	}
	for _, o := range list {
		name, inside := w.inside(o.path)
		var err error
		if inside {
			err = ownName(name, o.kind)
		} else {
			err = files.CheckOutput(o.path, true, w.sources)
		}
		if err := cmp.Or(err, o.checkKnown(w.force)); err != nil {
			return err
		}
	}
	return nil
}

// checkKnown refuses to replace what is not what card writes there.
func (o cardOutput) checkKnown(force bool) error {
	if force || o.kind == theCard || files.IsSink(o.path) { // a card was looked at as it was read
		return nil
	}
	if _, err := os.Lstat(o.path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	data, err := files.Read(o.path)
	known, what := card.IsRecipe, "launch script"
	if o.kind == theBOM {
		known, what = card.IsBOM, "bill of materials"
	}
	if err == nil && known(data) {
		return nil
	}
	return hint.With(fmt.Errorf("output %s exists and is no %s of this program", text.Safe(o.path), what), "--force replaces it")
}

// inside returns the name that a path has in the folder of a finished release, if it is there.
func (w *cardWriter) inside(path string) (string, bool) {
	if !release.IsFinished(w.folder) {
		return "", false
	}
	dir, name := filepath.Dir(path), filepath.Base(path)
	for range 4 { // recipes are in a folder of their own
		if isSameFolder(dir, w.folder) {
			return filepath.ToSlash(name), true
		}
		dir, name = filepath.Dir(dir), filepath.Join(filepath.Base(dir), name)
	}
	return "", false
}

func isSameFolder(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

// ownName refuses names under which a release has other things.
func ownName(name string, kind cardKind) error {
	lower := strings.ToLower(name)
	switch {
	case kind == theCard && !strings.HasSuffix(lower, ".md"):
		return args.Usagef("in a release a card is called %s, or NAME.md, got %q", cardName, name)
	case kind == theBOM && lower != "bom.json" && !strings.HasSuffix(lower, ".cdx.json"):
		return args.Usagef("in a release a bill of materials is called bom.json, or NAME.cdx.json, got %q", name)
	}
	return nil
}

// adopt has the evidence that a card in the release rests on put into the release too: under
// its own name where it lies there already, else as evidence.yaml.
func (w *cardWriter) adopt(path string) error {
	if _, inside := w.inside(path); !inside || path == "" {
		return nil
	}
	var strangers []card.Evidence
	for i := range w.facts.Evidence {
		e := &w.facts.Evidence[i]
		if !e.Inside {
			e.Name, e.Inside = evidenceName, true
			strangers = append(strangers, *e)
		}
		w.own = append(w.own, release.File{Name: e.Name, Data: e.Data})
	}
	return oneEvidence(strangers)
}

// putLicense has the license that a flag names put into the release too.
func (w *cardWriter) putLicense(c *cli.Context) error {
	data, err := readLicense(c)
	if data == nil {
		return err
	}
	if _, inside := w.inside(c.String("output")); !inside {
		return hint.With(args.Usagef("--license-file is put into a finished release with its card, and %s is not in it", text.Safe(c.String("output"))), "-o %s", args.ShellQuote(filepath.Join(w.folder, cardName)))
	}
	there, err := os.ReadFile(filepath.Join(w.folder, licenseName))
	if err == nil && !bytes.Equal(there, data) && !w.force {
		return hint.With(fmt.Errorf("the release has another %s already", licenseName), "--force replaces it")
	}
	w.own = append(w.own, release.File{Name: licenseName, Data: data})
	return nil
}

// put writes a file elsewhere.
func (w *cardWriter) put(o cardOutput) error {
	if o.kind == aRecipe {
		if err := os.MkdirAll(filepath.Dir(o.path), 0o777); err != nil {
			return err
		}
	}
	_, err := files.Write(o.path, true, w.sources, files.Bytes(o.data))
	return err
}

// describe says what was written, and makes scripts executable.
func (w *cardWriter) describe(list []cardOutput, removed []string) error {
	w.con.Field("card of", "%s", text.Safe(w.facts.Pin.Artifact.Name))
	w.con.Field("evidence", "%s", text.Count(len(w.facts.Evidence), "file"))
	for _, o := range list {
		if o.kind == aRecipe {
			if err := os.Chmod(o.path, 0o755); err != nil {
				return err
			}
		}
		w.con.Field("written", "%s, %s", text.Safe(o.path), text.Size(int64(len(o.data))))
	}
	if len(w.own) > 0 {
		var names []string
		for _, f := range w.own {
			names = append(names, text.Safe(f.Name))
		}
		w.con.Field("listed", "%s in the release's %s", strings.Join(names, ", "), manifest.SumsName)
	}
	if len(removed) > 0 {
		w.con.Field("removed", "%s, which no longer fit: sign it again, ggufreap sign %s", strings.Join(removed, ", "), args.ShellQuote(w.folder))
	}
	return nil
}
