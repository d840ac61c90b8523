package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/card"
	"ggufreap/cmd/ggufreap/internal/files"
	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/manifest"
	"ggufreap/manifest/evidence"
)

// evidenceName is the evidence of a release in its folder.
const evidenceName = "evidence.yaml"

// readEvidenceFile reads a file of evidence whose path was typed.
func readEvidenceFile(stdin io.Reader, path string) (card.Evidence, error) {
	data, err := files.ReadInput(stdin, path)
	if err != nil {
		return card.Evidence{}, err
	}
	d, err := evidence.Read(data)
	e := card.Evidence{Name: filepath.Base(files.Name(path)), SHA256: sha256.Sum256(data), Data: data, Document: d}
	return e, evidenceError(path, err)
}

// evidenceError names the file in each fault of it.
func evidenceError(path string, err error) error {
	faults, ok := errors.AsType[evidence.Faults](err)
	if !ok {
		return wrapPath(path, err)
	}
	var list []error
	for _, f := range faults {
		list = append(list, wrapPath(path, errors.New(f.String())))
	}
	return errors.Join(list...)
}

func wrapPath(path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", text.Safe(files.Name(path)), err)
}

// cardEvidence reads the evidence of a card: what flags name; else what the card as it was
// names, and evidence.yaml of the release.
func cardEvidence(c *cli.Context, dir, was string) ([]card.Evidence, error) {
	paths := c.StringSlice("evidence")
	if paths == nil {
		var err error
		if paths, err = statedEvidence(c, dir, was); err != nil {
			return nil, err
		}
	}
	var list []card.Evidence
	for _, path := range paths {
		e, err := readEvidenceFile(c.App.Reader, path)
		if err != nil {
			return nil, err
		}
		e.Inside = path != files.Stdin && isSameFolder(filepath.Dir(path), dir)
		list = append(list, e)
	}
	return list, nil
}

// statedEvidence finds the files that a card says it was made with, beside it, in the release
// or here, and evidence.yaml of the release.
func statedEvidence(c *cli.Context, dir, was string) ([]string, error) {
	var paths []string
	names := card.EvidenceNames(was)
	for _, name := range names {
		path := ""
		for _, place := range []string{dir, filepath.Dir(c.String("check")), filepath.Dir(c.String("output")), "."} {
			if candidate := filepath.Join(place, name); path == "" && isRegular(candidate) {
				path = candidate
			}
		}
		if path == "" {
			return nil, hint.With(fmt.Errorf("the card was made with the evidence in %s, which is neither in the release nor beside the card", text.Safe(name)), "--evidence FILE says where it is, or names another")
		}
		paths = append(paths, path)
	}
	if own := filepath.Join(dir, evidenceName); isRegular(own) && !slices.Contains(names, evidenceName) {
		paths = append(paths, own)
	}
	return paths, nil
}

func isRegular(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// checkEvidence refuses evidence for another release.
func checkEvidence(list []card.Evidence, pin *manifest.Pin) error {
	for _, e := range list {
		if got := e.Release.PinDigest; got != "" && got != pin.PinDigest.String() {
			return fmt.Errorf("%s: evidence for the release with the pin digest %s, this one has %s", text.Safe(e.Name), got, pin.PinDigest)
		}
	}
	return nil
}

// oneEvidence is what goes into a release: one file at most.
func oneEvidence(list []card.Evidence) error {
	if len(list) > 1 {
		return hint.With(args.Usagef("one file of evidence goes into a release, got %d", len(list)), "ggufreap evidence import -o evidence.yaml joins what several tools wrote")
	}
	return nil
}
