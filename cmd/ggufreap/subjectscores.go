package main

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/manifest"
	"ggufreap/reap"
)

// readScores reads the scores of --scores, or computes those of a plan by a proxy.
func (s *subject) readScores(con *ui.Console, c *cli.Context) error {
	if path := c.String("scores"); path != "" {
		return s.useScoresOfPlan(con, c, path)
	}
	if path := s.scoresBeside(); path != "" {
		err := s.useScoresOfPlan(con, c, path)
		if err == nil || c.Context.Err() != nil {
			return err
		}
		s.scores, s.measured = nil, nil
		con.Warnf("the plan's scores beside it are not drawn: %s", err)
		return nil
	}
	if s.plan == nil || s.source == nil {
		return nil
	}
	if s.plan.Criterion.Name == reap.Given {
		con.Notef("%s is lists alone: --scores FILE brings scores to draw", text.Safe(s.name))
		return nil
	}
	info, known := reap.FindCriterion(s.plan.Criterion.Name)
	if !known || info.Evidence == reap.Measured {
		con.Warnf("the plan's scores, by %s, are in no file that was given: --scores FILE", text.Safe(s.plan.Criterion.Name))
		return nil
	}
	seed, err := strconv.ParseUint(orZero(s.plan.Criterion.Parameters["seed"]), 10, 64)
	if err != nil {
		return fmt.Errorf("%s: seed %q is no number", text.Safe(s.path), s.plan.Criterion.Parameters["seed"])
	}
	scores, err := score(con, c.Context, s.source, s.plan.Criterion.Name, seed)
	if err != nil {
		return err
	}
	s.scores = scores
	return s.sameScores()
}

// scoresBeside finds the file that a measured plan was made of beside the plan, "" where none has
// its sum.
func (s *subject) scoresBeside() string {
	if s.plan == nil || s.plan.Criterion.Evidence != reap.Measured {
		return ""
	}
	for _, in := range s.plan.Criterion.Inputs {
		path := filepath.Join(filepath.Dir(filepath.Clean(s.path)), filepath.Base(in.File))
		f, _, err := manifest.OpenRegular(path)
		if err != nil {
			continue
		}
		got, err := reap.HashInput(in.File, f)
		f.Close()
		if err == nil && got.SHA256 == in.SHA256 {
			return path
		}
	}
	return ""
}

func orZero(s string) string {
	if s == "" {
		return "0"
	}
	return s
}

// sameScores says whether the scores are those that the plan was made of.
func (s *subject) sameScores() error {
	if s.plan == nil || s.plan.ScoresDigest == "" {
		return nil
	}
	digest, err := manifest.DigestOf(s.scores)
	if err != nil {
		return err
	}
	said := "those that the plan was made of"
	if digest.String() != s.plan.ScoresDigest {
		said = "not those that the plan was made of"
	}
	s.fact("scores shown", "%s: %s", s.scores.Criterion.Name, said)
	return nil
}

// readScoreFile makes a score file the subject.
func (s *subject) readScoreFile(con *ui.Console, c *cli.Context, path string) error {
	if s.experts == nil {
		s.experts = shapeOfFile(path)
	}
	if s.experts == nil {
		return hint.With(args.Usagef("%s: neither a plan, a pin nor scores that say what model they are of", text.Safe(s.name)), "--model MODEL brings the model")
	}
	s.title = "Scores " + text.Safe(s.name)
	if err := s.useScores(con, c, path); err != nil {
		return err
	}
	s.lead = fmt.Sprintf("How %d experts in each of %s rank.", s.experts.Count, text.Count(len(s.scores.Layers), "layer"))
	return nil
}

// useScoresOfPlan does so beside a plan, which tells less of its model than scores do.
func (s *subject) useScoresOfPlan(con *ui.Console, c *cli.Context, path string) error {
	if s.source == nil {
		s.widen(shapeOfFile(path))
	}
	return s.useScores(con, c, path)
}

// useScores reads a score file and ranks by it.
func (s *subject) useScores(con *ui.Console, c *cli.Context, path string) error {
	m, input, err := readMeasurements(c.Context, con, path, s.experts)
	if err != nil {
		return err
	}
	names := m.Criteria()
	criterion := c.String("criterion")
	if criterion == "" && s.plan != nil {
		for _, name := range names {
			if name == s.plan.Criterion.Name {
				criterion = name
			}
		}
	}
	if criterion == "" && len(names) > 0 {
		criterion = names[0]
	}
	if s.scores, err = m.Scores(criterion); err != nil {
		return fmt.Errorf("%s: %w", text.Safe(path), err)
	}
	s.measured = m
	if err := s.scores.Check(s.experts, true).Err(); err != nil {
		return fmt.Errorf("%s: %w", text.Safe(path), err)
	}
	if path == s.path {
		input.File = s.name
	}
	s.fact("scores", "%s, sha256 %s", input.File, input.SHA256)
	s.fact("ranked by", "%s", criterionText(s.scores.Criterion))
	s.fact("can be ranked by", "%s", strings.Join(names, ", "))
	s.fact("tokens", "%s", tokensText(m.Tokens))
	return s.sameScores()
}

func tokensText(n int) string {
	if n == 0 {
		return "Not specified"
	}
	return text.Grouped(n)
}
