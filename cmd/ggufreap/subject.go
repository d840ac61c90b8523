package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/files"
	"ggufreap/cmd/ggufreap/internal/page"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
	"ggufreap/gguf/remote"
	"ggufreap/manifest"
	"ggufreap/reap"
	"ggufreap/reap/scorefile"
)

// A subject is what a report is about: any of a plan, scores, a pin and a release, with what
// flags bring beside it.
type subject struct {
	path  string // of a copy, where it came from standard input
	name  string // as it is shown
	input *files.Input
	title string
	lead  string
	facts []page.Fact

	plan      *reap.Plan
	source    *source       // of --model, or nil
	experts   *reap.Experts // of the model, or as far as plan or scores tell
	scores    *reap.Scores
	measured  *scorefile.Measurements
	pin       *manifest.Pin
	sourcePin *manifest.Pin
	release   *gguf.Model
}

func (s *subject) close() {
	if s.input != nil {
		s.input.Close()
	}
	if s.source != nil {
		s.source.Close()
	}
	if s.release != nil {
		s.release.Close()
	}
}

// paths are the files that must not be written to.
func (s *subject) paths(c *cli.Context) []string {
	list := []string{s.path}
	for _, name := range []string{"scores", "compare", "source-pin"} {
		if path := c.String(name); path != "" {
			list = append(list, path)
		}
	}
	if s.source != nil {
		list = append(list, s.source.OnDisk()...)
	}
	if s.release != nil {
		list = append(list, s.release.OnDisk()...)
	}
	return list
}

func (s *subject) fact(name, format string, args ...any) {
	s.facts = append(s.facts, page.Fact{Name: name, Value: text.Safe(fmt.Sprintf(format, args...))})
}

// readSubject finds out what the argument is, and reads it.
func readSubject(con *ui.Console, c *cli.Context) (*subject, error) {
	s := &subject{path: c.Args().First(), name: filepath.Base(files.Name(c.Args().First()))}
	err := s.read(con, c)
	if err == nil && s.experts != nil && s.scores == nil {
		err = s.readScores(con, c)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *subject) read(con *ui.Console, c *cli.Context) error {
	if remote.IsAddress(s.path) {
		return s.openRelease(con, c, "Model ", "What the model is made of, by its headers.")
	}
	if files.IsStream(s.path) {
		var err error
		if s.input, err = files.OpenInput(con.In, s.path); err != nil {
			return err
		}
		s.path = s.input.Name()
	}
	info, err := os.Stat(s.path)
	if err != nil {
		return err
	}
	if model := c.String("model"); model != "" {
		if err := s.openModel(con, c, model); err != nil {
			return err
		}
	}
	if info.IsDir() {
		return s.readRelease(con, c)
	}
	if gguf.IsModelFile(s.path) {
		return s.openRelease(con, c, "Model ", "What the model is made of.")
	}
	if pin, err := manifest.ReadPin(s.path); err == nil {
		s.readPin(pin)
		return nil
	}
	if planned, err := s.readPlanFile(); planned || err != nil {
		return err
	}
	return s.readScoreFile(con, c, s.path)
}

// readPlanFile reads the file if it is a plan. Of any other in JSON it takes what that says of
// its model.
func (s *subject) readPlanFile() (planned bool, err error) {
	head := make([]byte, 1)
	if f, err := os.Open(s.path); err == nil {
		f.Read(head)
		f.Close()
	}
	if head[0] != '{' {
		return false, nil
	}
	data, err := files.Read(s.path)
	if err != nil {
		return false, err
	}
	plan, err := s.decodePlan(data)
	switch {
	case err != nil && (plan != nil || isPlan(data)):
		return false, fmt.Errorf("%s: %w", text.Safe(s.name), err)
	case plan != nil:
		s.usePlan(plan, s.name)
	case s.experts == nil:
		s.experts = shapeOf(data)
	}
	return plan != nil, nil
}

// openModel opens the model of --model.
func (s *subject) openModel(con *ui.Console, c *cli.Context, path string) error {
	m, err := openPaths(con, c, path)
	if err != nil {
		return err
	}
	s.source = &source{Model: m}
	if err := s.source.read(); err != nil {
		return err
	}
	s.experts = s.source.experts
	return nil
}
