package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/filekind"
	"ggufreap/cmd/ggufreap/internal/files"
	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/manifest"
	"ggufreap/reap"
	"ggufreap/reap/planfile"
	"ggufreap/reap/scorefile"
)

// chooseFlags say which experts are kept.
func chooseFlags() []cli.Flag {
	return []cli.Flag{
		args.OneOf(&cli.StringFlag{Name: "preset", Usage: "`NAME`: reap568: keep 568 of 896 experts, in fourteen shards"}, presetNames()...),
		&cli.StringFlag{Name: "keep", Usage: "keep `N` experts in every layer, a number or a share: 75%"},
		&cli.StringFlag{Name: "fit", Usage: "keep as many as give files of at most `SIZE` together: 128GiB, 400GB, or bytes"},
		&cli.StringFlag{Name: "fit-per-node", Usage: "`NxSIZE`: keep as many as N machines hold with at most SIZE of files each, shards in order: 4x119GB"},
		&cli.IntFlag{Name: "multiple-of", Usage: "`N`: keep a multiple of N, of as many as fit or of a share"},
		&cli.StringSliceFlag{Name: "from", Usage: "`FILE`: rank by measured scores: npz, saliency JSON, hotness CSV, expert_stats.json, imatrix GGUF and others; or all parts of calibrate --only, which are added up (repeatable)"},
		args.OneOf(&cli.StringFlag{Name: "criterion", Usage: "`NAME`: how experts are ranked. Measured, with --from: " +
			"reap-mean, reap-sum, gate-sum, count and activation-energy, the first that FILE allows.\nProxies from the weights alone, not measured: " +
			"router-norm (the default) and router-mass.\nA baseline for comparisons: seeded-random"}, criterionNames()...),
		&cli.Uint64Flag{Name: "seed", Usage: "`N`: seed of seeded-random (0)"},
		&cli.StringFlag{Name: "always-keep", Usage: "`FILE`: experts to keep whatever their score, in lists"},
		&cli.BoolFlag{Name: "allow-flat", Usage: "accept layers in which all experts score the same"},
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

// A choice is a plan with what it was made of.
type choice struct {
	plan     *reap.Plan
	scores   *reap.Scores
	always   map[int][]int
	measured *scorefile.Measurements // nil unless --from brought scores
}

// choose makes the plan that the choosing flags ask for.
func choose(con *ui.Console, c *cli.Context, s *source) (*choice, error) {
	if err := checkKeepFlags(c, s.experts); err != nil {
		return nil, err
	}
	criterion, err := presetCriterion(c, s)
	if err != nil {
		return nil, err
	}
	ch := &choice{}
	rules := reap.Rules{DroppedIDs: c.String("remap-dropped"), Incomplete: incompleteRule(c, s)}
	if ch.scores, ch.measured, err = readScores(con, c, s, criterion, &rules); err != nil {
		return nil, err
	}
	if err := ch.alwaysKeep(c, s, &rules); err != nil {
		return nil, err
	}
	keep, err := keepCount(c, s, ch.scores.Criterion)
	if err != nil {
		return nil, err
	}
	options := reap.ChooseOptions{AllowFlat: c.Bool("allow-flat"), Always: ch.always, Rules: rules}
	if ch.plan, err = reap.Choose(s.experts, ch.scores, keep, options); err != nil {
		return nil, s.named(explainFlat(err, s.experts, ch.scores, keep, options))
	}
	if err := ch.complete(c, s); err != nil {
		return nil, err
	}
	warnOfTies(con, s.experts, ch)
	s.claim(ch.plan)
	return ch, nil
}

// alwaysKeep reads the experts that --always-keep names.
func (ch *choice) alwaysKeep(c *cli.Context, s *source, rules *reap.Rules) error {
	path := c.String("always-keep")
	if path == "" {
		return nil
	}
	always, input, err := readAlways(c, path, s.experts)
	if err != nil {
		return err
	}
	ch.always, rules.AlwaysKeep = always, input.File
	ch.scores.Criterion.Inputs = append(ch.scores.Criterion.Inputs, input)
	return nil
}

// complete puts into the plan what follows from how it was chosen.
func (ch *choice) complete(c *cli.Context, s *source) error {
	if name := c.String("preset"); name != "" {
		preset, err := reap.FindPreset(name)
		if err != nil {
			return err
		}
		ch.plan.Shards = preset.Shards
	}
	digest, err := manifest.DigestOf(ch.scores)
	if err != nil {
		return err
	}
	ch.plan.ScoresDigest = digest.String()
	if ch.measured != nil {
		ch.plan.Coverage = coverageOf(s, ch)
	}
	return nil
}

// coverageOf says how much of what was measured the plan keeps.
func coverageOf(s *source, ch *choice) *reap.Coverage {
	c := reap.Explain(s.experts, ch.scores, ch.plan.KeepCount, ch.always).Coverage()
	if c == nil {
		return nil
	}
	c.Tokens = ch.measured.Tokens
	for _, text := range ch.measured.Sources {
		c.Texts = append(c.Texts, reap.CoveredText{Label: text.Label, Tokens: text.Tokens})
	}
	return c
}

// explainFlat adds the flag that takes scores of which the only fault is that they are
// all the same.
func explainFlat(err error, e *reap.Experts, scores *reap.Scores, keep int, o reap.ChooseOptions) error {
	o.AllowFlat = true
	if _, other := reap.Choose(e, scores, keep, o); other != nil {
		return err
	}
	return hint.With(err, "--allow-flat accepts layers in which all experts score the same, and keeps the lower numbers")
}

// readAlways reads the experts to keep always: keep lists in any form that a plan has.
func readAlways(c *cli.Context, path string, e *reap.Experts) (map[int][]int, reap.Input, error) {
	data, err := files.ReadInput(c.App.Reader, path)
	if err != nil {
		return nil, reap.Input{}, filekind.ExplainFile(err, path, filekind.Plan)
	}
	lists, err := planfile.Read(data, e)
	if err != nil {
		return nil, reap.Input{}, notPlan(err, path, data)
	}
	return lists.Layers, reap.NewInput(files.Name(path), data), nil
}

// presetCriterion checks the preset, if one is asked for, and returns the criterion that
// ranks when no flag says otherwise.
func presetCriterion(c *cli.Context, s *source) (string, error) {
	name := c.String("preset")
	if name == "" {
		return reap.DefaultCriterion, nil
	}
	preset, err := reap.FindPreset(name)
	if err != nil {
		return "", args.Usagef("%w", err)
	}
	return preset.Criterion, s.named(preset.Check(s.experts))
}

// checkKeepFlags wants one flag to say how many experts to keep.
func checkKeepFlags(c *cli.Context, e *reap.Experts) error {
	var given []string
	for _, name := range []string{"preset", "keep", "fit", "fit-per-node"} {
		if c.IsSet(name) {
			given = append(given, "--"+name)
		}
	}
	if c.IsSet("multiple-of") && c.Int("multiple-of") < 1 {
		return args.Usagef("--multiple-of is %d, want at least 1", c.Int("multiple-of"))
	}
	if c.IsSet("multiple-of") && c.IsSet("preset") {
		return args.Usagef("--multiple-of is for --fit, --fit-per-node and shares; --preset says the number")
	}
	switch len(given) {
	case 0:
		return hint.With(args.Usagef("nothing says how many experts to keep"), "give %s--keep N or --fit SIZE; the model has %d", presetFor(e), e.Count)
	case 1:
		return nil
	}
	return args.Usagef("%s both say how many experts to keep, give one of them", strings.Join(given, " and "))
}

// presetFor names the presets made for the model, as the beginning of a list of flags.
func presetFor(e *reap.Experts) string {
	var list strings.Builder
	for _, p := range reap.Presets {
		if p.Check(e) == nil {
			fmt.Fprintf(&list, "--preset %s, ", p.Name)
		}
	}
	return list.String()
}

// keepCount settles how many experts each layer keeps.
func keepCount(c *cli.Context, s *source, criterion reap.Criterion) (int, error) {
	switch {
	case c.IsSet("preset"):
		preset, err := reap.FindPreset(c.String("preset"))
		return preset.Keep, err
	case c.IsSet("keep"):
		n, share, err := args.Experts(c.String("keep"), s.experts.Count, max(c.Int("multiple-of"), 1))
		if err != nil {
			return 0, args.Usagef("--keep: %w", err)
		}
		if !share && c.IsSet("multiple-of") {
			return 0, args.Usagef("--multiple-of is for --fit, --fit-per-node and shares; --keep says the number")
		}
		return n, nil
	}
	return fitKeep(c, s, criterion)
}

// loadPlan reads a plan file, ours or another tool's, amends it, and holds it against the
// model.
func loadPlan(c *cli.Context, path string, s *source, amend func(*reap.Plan) error) (*reap.Plan, error) {
	data, err := files.ReadInput(c.App.Reader, path)
	if err != nil {
		return nil, filekind.ExplainFile(err, path, filekind.Plan)
	}
	plan, err := planfile.Read(data, s.experts)
	if err != nil {
		return nil, notPlan(err, path, data)
	}
	if err := amend(plan); err != nil {
		return nil, err
	}
	if plan.Source.StructureDigest == "" {
		plan.Criterion.Inputs = append(plan.Criterion.Inputs, reap.NewInput(files.Name(path), data))
		s.claim(plan)
	}
	if got := plan.Source.StructureDigest; got != s.structure.String() {
		return nil, hint.With(fmt.Errorf("%s: made for another model: its source has the structure digest %s, this model has %s", text.Safe(path), got, s.structure),
			"make a plan for this model: ggufreap plan")
	}
	if got, have := plan.Source.WeightsDigest, s.weights(); got != "" && have != "" && got != have {
		return nil, hint.With(fmt.Errorf("%s: made for other weights: its source has the weights digest %s, the pin says %s", text.Safe(path), got, have),
			"make a plan for this model: ggufreap plan")
	}
	if err := plan.Check(s.experts).Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", text.Safe(path), err)
	}
	return plan, nil
}

// notPlan says why the bytes of a file are no plan.
func notPlan(err error, path string, data []byte) error {
	return filekind.Explain(fmt.Errorf("%s: %w", text.Safe(path), err), path, bytes.NewReader(data), filekind.Plan)
}

func presetNames() []string {
	names := make([]string, len(reap.Presets))
	for i, p := range reap.Presets {
		names[i] = p.Name
	}
	return names
}
