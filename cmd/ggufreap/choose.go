package main

import (
	"context"
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"ggufreap/gguf"
	"ggufreap/manifest"
	"ggufreap/reap"
)

// chooseHelp describes the flags of chooseFlags.
const chooseHelp = `      --preset NAME      reap568: keep 568 of 896 experts, in fourteen shards
      --keep N           keep N experts in every layer
      --criterion NAME   how experts are ranked (router-norm):
                         router-norm    deviation of the expert's router logit,
                                        a proxy from the weights alone
                         seeded-random  a baseline for comparisons
      --seed N           seed of seeded-random (0)
      --allow-flat       accept layers in which all experts score the same
`

func chooseFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "preset"},
		&cli.IntFlag{Name: "keep"},
		&cli.StringFlag{Name: "criterion"},
		&cli.Uint64Flag{Name: "seed"},
		&cli.BoolFlag{Name: "allow-flat"},
	}
}

// choosing reports whether any of the choosing flags was given.
func choosing(c *cli.Context) bool {
	for _, f := range chooseFlags() {
		if c.IsSet(f.Names()[0]) {
			return true
		}
	}
	return false
}

// A source is a model whose experts can be chosen from.
type source struct {
	*gguf.Model
	experts   *reap.Experts
	structure manifest.Digest
}

// openSource opens the artifact that the arguments name and refuses one that cannot
// be pruned. The caller closes it.
func openSource(c *cli.Context) (*source, error) {
	m, err := openArtifact(c)
	if err != nil {
		return nil, err
	}
	s := &source{Model: m}
	if err := s.read(); err != nil {
		m.Close()
		return nil, err
	}
	return s, nil
}

func (s *source) read() error {
	if err := s.CheckWritable(); err != nil {
		return err
	}
	var err error
	if s.experts, err = reap.ReadExperts(s.Model); err != nil {
		return err
	}
	s.structure, err = manifest.StructureDigest(s.Model)
	return err
}

// choose makes the plan that the choosing flags ask for.
func (con *console) choose(c *cli.Context, s *source) (*reap.Plan, error) {
	keep, criterion, err := readChoice(c, s.experts)
	if err != nil {
		return nil, err
	}
	scores, err := con.score(c.Context, s, criterion, c.Uint64("seed"))
	if err != nil {
		return nil, err
	}
	plan, err := reap.Choose(s.experts, scores, keep, reap.ChooseOptions{AllowFlat: c.Bool("allow-flat")})
	if err != nil {
		return nil, err
	}
	digest, err := manifest.DigestOf(scores)
	if err != nil {
		return nil, err
	}
	plan.ScoresDigest = digest.String()
	s.claim(plan)
	return plan, nil
}

// claim names the model as the plan's source.
func (s *source) claim(plan *reap.Plan) {
	plan.Source = reap.Source{
		StructureDigest: s.structure.String(),
		Architecture:    s.experts.Architecture,
		Name:            s.Name,
	}
}

// readChoice settles the keep count and the criterion.
func readChoice(c *cli.Context, e *reap.Experts) (keep int, criterion string, err error) {
	keep, criterion = c.Int("keep"), reap.RouterMass
	if name := c.String("preset"); name != "" {
		if c.IsSet("keep") {
			return 0, "", usagef("--preset and --keep both say how many experts to keep, give one of them")
		}
		preset, err := reap.FindPreset(name)
		if err != nil {
			return 0, "", usagef("%w", err)
		}
		if err := preset.Check(e); err != nil {
			return 0, "", err
		}
		keep, criterion = preset.Keep, preset.Criterion
	} else if !c.IsSet("keep") {
		return 0, "", withHint(usagef("nothing says how many experts to keep"), "give --preset reap568 or --keep N; the model has %d", e.Count)
	}
	if c.IsSet("criterion") {
		criterion = c.String("criterion")
	}
	return keep, criterion, nil
}

// score computes the scores of a criterion.
func (con *console) score(ctx context.Context, s *source, criterion string, seed uint64) (*reap.Scores, error) {
	compute := reap.RouterMassScores
	switch criterion {
	case reap.RouterMass:
	case reap.RouterNorm:
		compute = reap.RouterNormScores
	case reap.SeededRandom:
		return reap.RandomScores(s.experts, seed), nil
	default:
		return nil, usagef("--criterion is %q, want %s, %s or %s", criterion, reap.RouterMass, reap.RouterNorm, reap.SeededRandom)
	}
	p := con.startProgress("score", routerBytes(s.experts))
	scores, err := compute(ctx, s.Model, s.experts, p.add)
	p.finish(0)
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

// loadPlan reads a plan file, ours or another tool's, and holds it against the model.
func loadPlan(path string, s *source) (*reap.Plan, error) {
	data, err := readDocument(path)
	if err != nil {
		return nil, err
	}
	plan, err := reap.ReadPlan(data, s.experts)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", safe(path), err)
	}
	if plan.Source.StructureDigest == "" {
		plan.Criterion.Inputs = append(plan.Criterion.Inputs, reap.NewInput(path, data))
		s.claim(plan)
	}
	if got := plan.Source.StructureDigest; got != s.structure.String() {
		return nil, withHint(fmt.Errorf("%s: made for another model: its source has the structure digest %s, this model has %s", safe(path), got, s.structure),
			"make a plan for this model: ggufreap plan")
	}
	if err := plan.Check(s.experts).Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", safe(path), err)
	}
	return plan, nil
}

// maxDocument bounds the documents that are read whole.
const maxDocument = 64 << 20

// readDocument reads a file that is held in memory.
func readDocument(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: not a regular file", safe(path))
	case info.Size() > maxDocument:
		return nil, fmt.Errorf("%s: %d bytes, at most %d are read", safe(path), info.Size(), maxDocument)
	}
	return os.ReadFile(path)
}
