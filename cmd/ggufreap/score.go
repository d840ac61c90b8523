package main

import (
	"context"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/calibration"
	"ggufreap/cmd/ggufreap/internal/filekind"
	"ggufreap/cmd/ggufreap/internal/files"
	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/progress"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/reap"
	"ggufreap/reap/scorefile"
)

// readScores makes the scores that --from and --criterion ask for, and states in rules
// how draft layers were ranked when the file does not score them.
func readScores(con *ui.Console, c *cli.Context, s *source, criterion string, rules *reap.Rules) (*reap.Scores, *scorefile.Measurements, error) {
	if c.IsSet("criterion") {
		criterion = c.String("criterion")
	}
	info, _ := reap.FindCriterion(criterion)
	paths := c.StringSlice("from")
	switch {
	case c.IsSet("seed") && criterion != reap.SeededRandom:
		return nil, nil, args.Usagef("--seed is for --criterion %s, here nothing is random", reap.SeededRandom)
	case len(paths) == 0 && info.Evidence == reap.Measured:
		return nil, nil, hint.With(args.Usagef("%s is measured on text", criterion), "--from FILE brings the scores")
	case len(paths) == 0 && c.IsSet("draft-layers"):
		return nil, nil, args.Usagef("--draft-layers is for scores of --from; without it draft layers are ranked as all others")
	case len(paths) == 0:
		scores, err := score(con, c.Context, s, criterion, c.Uint64("seed"))
		return scores, nil, err
	case c.IsSet("criterion") && info.Evidence != reap.Measured:
		return nil, nil, args.Usagef("--from brings measured scores, which %s does not use", criterion)
	}
	m, input, err := readFrom(c.Context, con, paths, s.experts)
	if err != nil {
		return nil, nil, err
	}
	if !c.IsSet("criterion") {
		if names := m.Criteria(); len(names) > 0 {
			criterion = names[0]
		}
	}
	scores, err := m.Scores(criterion)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", text.Safe(paths[0]), err)
	}
	scores.Criterion.Inputs = []reap.Input{input}
	if err := fillDraftLayers(con, c, s, scores, rules); err != nil {
		return nil, nil, err
	}
	return scores, m, nil
}

func criterionNames() []string {
	names := make([]string, len(reap.Criteria))
	for i, c := range reap.Criteria {
		names[i] = c.Name
	}
	return names
}

// readFrom reads a score file, or adds up all parts of one.
func readFrom(ctx context.Context, con *ui.Console, paths []string, e *reap.Experts) (*scorefile.Measurements, reap.Input, error) {
	for _, path := range paths {
		part, err := calibration.IsPart(path)
		switch {
		case err != nil:
			return nil, reap.Input{}, err
		case !part && len(paths) == 1:
			return readMeasurements(ctx, con, path, e)
		case !part:
			return nil, reap.Input{}, hint.With(args.Usagef("--from is given %d files, and %s is no part of scores", len(paths), text.Safe(path)),
				"only parts that calibrate --only has written are added up")
		}
	}
	_, m, err := calibration.Join(ctx, paths, e)
	if err != nil {
		return nil, reap.Input{}, err
	}
	input, err := calibration.JoinedInput(m, e, paths[0])
	return m, input, err
}

// readMeasurements reads a score file, and its digest from all its bytes.
func readMeasurements(ctx context.Context, con *ui.Console, path string, e *reap.Experts) (*scorefile.Measurements, reap.Input, error) {
	f, err := files.OpenInput(con.In, path)
	if err != nil {
		return nil, reap.Input{}, err
	}
	defer f.Close()
	m, err := scorefile.Read(f, f.Size, e)
	if err != nil {
		return nil, reap.Input{}, filekind.Explain(fmt.Errorf("%s: %w", text.Safe(path), err), path, f, filekind.Scores)
	}
	p := con.StartProgress("hash scores", f.Size)
	input, err := reap.HashInput(files.Name(path), &reportingReader{ctx, f, p})
	p.Finish()
	return m, input, err
}

// A reportingReader reports what is read through it, and ends when its context does.
type reportingReader struct {
	ctx context.Context
	r   io.Reader
	p   *progress.Task
}

func (r *reportingReader) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := r.r.Read(b)
	r.p.Add(int64(n))
	return n, err
}

// fillDraftLayers ranks draft layers that were not measured as --draft-layers says.
func fillDraftLayers(con *ui.Console, c *cli.Context, s *source, scores *reap.Scores, rules *reap.Rules) error {
	rule := c.String("draft-layers")
	missing := scores.LacksDraft(s.experts)
	switch {
	case rule == "" && missing:
		return hint.With(fmt.Errorf("%s does not score the draft layers, which keep as many experts as all others", text.Safe(c.StringSlice("from")[0])),
			"--draft-layers router-norm ranks them by their routers alone, as-last-layer keeps what the last layer keeps")
	case rule == "" || !missing:
		return nil
	}
	var other *reap.Scores
	if rule != reap.DraftAsLast {
		var err error
		if other, err = score(con, c.Context, s, rule, 0); err != nil {
			return err
		}
	}
	scores.FillDraft(s.experts, other)
	rules.DraftLayers = rule
	return nil
}

// score computes the scores of a criterion that needs no text.
func score(con *ui.Console, ctx context.Context, s *source, criterion string, seed uint64) (*reap.Scores, error) {
	compute := reap.RouterMassScores
	switch criterion {
	case reap.SeededRandom:
		return reap.RandomScores(s.experts, seed), nil
	case reap.RouterNorm:
		compute = reap.RouterNormScores
	}
	p := con.StartProgress("score", routerBytes(s.experts))
	scores, err := compute(ctx, s.Model, s.experts, p.Add)
	p.Finish()
	return scores, err
}

func routerBytes(e *reap.Experts) int64 {
	var n int64
	for _, t := range e.Tensors() {
		if t.Role == reap.Router {
			n += t.Size
		}
	}
	return n
}
