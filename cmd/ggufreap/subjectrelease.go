package main

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/files"
	"ggufreap/cmd/ggufreap/internal/release"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/manifest"
)

func (s *subject) readPin(pin *manifest.Pin) {
	s.pin = pin
	a := pin.Artifact
	s.title = "Pin of " + text.Safe(a.Name)
	s.lead = "What the model is made of, by the digests of all its parts."
	s.artifactFacts(a, pin)
}

func (s *subject) artifactFacts(a manifest.Artifact, pin *manifest.Pin) {
	s.fact("model", "%s, %s, %s", a.Name, a.Architecture, text.Files(a.Shards))
	s.fact("files", "%s", text.Size(a.FileBytes))
	s.fact("tensor data", "%s", text.Size(a.TensorBytes))
	s.fact("pin digest", "%s", pin.PinDigest)
	s.fact("weights digest", "%s", pin.WeightsDigest)
	s.fact("metadata digest", "%s", pin.MetadataDigest)
}

// openRelease opens the model of a folder, or one that is named by a file.
func (s *subject) openRelease(con *ui.Console, c *cli.Context, title, lead string) error {
	var err error
	if s.release, err = openPaths(con, c, s.path); err != nil {
		return err
	}
	s.title, s.lead = title+text.Safe(s.release.Name), lead
	return nil
}

// readRelease reads the documents of a folder, and the headers of its model. One without
// documents is just a model.
func (s *subject) readRelease(con *ui.Console, c *cli.Context) error {
	title, lead := "Release ", "What is in the folder, and what it was made from."
	if !isRegular(filepath.Join(s.path, manifest.SumsName)) && !isRegular(filepath.Join(s.path, release.PlanName)) {
		title, lead = "Model ", "What is in the folder."
	}
	if err := s.openRelease(con, c, title, lead); err != nil {
		return err
	}
	pin, err := manifest.ReadPin(filepath.Join(s.path, manifest.PinName))
	switch {
	case err == nil:
		s.pin = pin
		s.artifactFacts(pin.Artifact, pin)
	case errors.Is(err, fs.ErrNotExist):
		s.fact("model", "%s, %s, %s", s.release.Name, s.release.Metadata().Architecture(), text.Files(s.release.Shards))
		s.fact("pin", "Not specified")
	default:
		return err
	}
	if err := s.readSourcePin(c); err != nil {
		return err
	}
	plan, err := release.ReadPlan(s.path)
	switch {
	case err != nil:
		return err
	case plan == nil:
		s.fact("plan", "Not specified")
	default:
		s.usePlan(plan, release.PlanName)
	}
	return nil
}

func (s *subject) readSourcePin(c *cli.Context) error {
	path := c.String("source-pin")
	given := path != ""
	if !given {
		path = filepath.Join(s.path, release.SourcePinName)
	}
	pin, err := files.ReadPin(c.App.Reader, path)
	if !given && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	s.sourcePin = pin
	return err
}
