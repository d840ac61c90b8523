package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"ggufreap/gguf"
	"ggufreap/reap"
	"ggufreap/reap/planfile"
)

const planHelp = `Choose the routed experts that a derivative keeps.

Usage:
  ggufreap plan [flags] ARTIFACT

The plan lists, for each layer, the experts to keep, with the criterion they
were ranked by and the digest of the model they were ranked for. Scores rank
from high to low, equal scores by the lower expert number, so the same model and
flags give the same plan everywhere.

Flags:
` + chooseHelp + rulesHelp + `      --shards N         count --fit and --explain in N files (as many as the
                         source has, or the preset says)
      --pin FILE         the source's pin: the plan then names its weights too
      --explain          show each layer: score kept, score at the cut, ties,
                         experts without tokens; and a table of keep counts
      --compare FILE     hold the plan against another one, or against what
                         other scores choose
      --split-half       hold each kind of text against all others, where FILE
                         keeps their scores apart
  -o, --output FILE      write the plan to FILE
      --force            replace FILE if it exists
      --json             print the plan document, or what --explain, --compare
                         and --split-half tell
      --type ID=B/E      teach a type: B bytes store E elements (repeatable)
` + progressHelp + `  -h, --help             show this text

Examples:
  ggufreap plan --preset reap568 -o plan.json K3-00001-of-00009.gguf
  ggufreap plan --keep 96 -o plan.json Qwen3-30B-A3B.gguf
  ggufreap plan --preset reap568 --from reap_saliency.npz --explain K3.gguf
  ggufreap plan --fit-per-node 4x119GB --shards 16 -o plan.json K3.gguf
`

func planCommand(con *console) *cli.Command {
	return &cli.Command{
		Name:               "plan",
		CustomHelpTemplate: planHelp,
		Flags: append(slices.Concat(chooseFlags(), ruleFlags(), con.progressFlags()),
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}},
			&cli.BoolFlag{Name: "force"},
			&cli.BoolFlag{Name: "json"},
			&cli.StringFlag{Name: "pin"},
			&cli.BoolFlag{Name: "explain"},
			&cli.StringFlag{Name: "compare"},
			&cli.BoolFlag{Name: "split-half"},
			&cli.IntFlag{Name: "shards"},
			typeFlag(),
		),
		Action: func(c *cli.Context) error { return planAction(con, c) },
	}
}

func planAction(con *console, c *cli.Context) error {
	s, err := openSource(c)
	if err != nil {
		return err
	}
	defer s.Close()
	con.warnOfSource(s)
	if err := s.bindPin(c.Context, c.String("pin")); err != nil {
		return err
	}
	ch, err := con.choose(c, s)
	if err != nil {
		return err
	}
	document, err := planfile.Encode(ch.plan)
	if err != nil {
		return err
	}
	contents, err := derive(c, s, ch.plan, reap.Provenance{})
	if err != nil {
		return err
	}
	x, err := con.explain(c, s, ch)
	if err != nil {
		return err
	}
	output := c.String("output")
	if output != "" {
		if _, err := writeDocument(output, c.Bool("force"), s.Paths(), writerOf(document)); err != nil {
			return err
		}
	}
	switch {
	case c.Bool("json") && x.asked:
		return con.json(x.document(ch))
	case c.Bool("json"):
		con.printf("%s", document)
		return nil
	}
	con.describePlan(s, ch.plan, contents)
	if ch.measured != nil {
		con.describeMeasurements(ch)
	}
	con.field("written", "%s", orNothing(output))
	con.describeExplanation(x)
	return nil
}

func orNothing(path string) string {
	if path == "" {
		return "nothing; -o FILE writes the plan"
	}
	return safe(path)
}

// describePlan prints what a plan keeps of a model and what that saves.
func (con *console) describePlan(s *source, plan *reap.Plan, contents gguf.Contents) {
	con.field("source", "%s, %s, %s", safe(s.Name), safe(s.experts.Architecture), count(s.Shards, "shard"))
	con.field("keep", "%d of %d experts in each of %s", plan.KeepCount, plan.NumExperts, count(len(plan.Layers), "layer"))
	con.field("criterion", "%s", criterionText(plan.Criterion))
	before, after := s.TensorBytes(), contentBytes(contents)
	con.field("tensor data", "%s", sizeText(after))
	con.field("was", "%s", sizeText(before))
	con.field("saves", "%s, %.1f %%", sizeText(before-after), 100*float64(before-after)/float64(max(before, 1)))
	label := "advice"
	for _, line := range reap.KeepAdvice(plan.KeepCount) {
		con.field(label, "%s", line)
		label = ""
	}
}

// describeMeasurements prints what measured scores come from and what else they allow.
func (con *console) describeMeasurements(ch *choice) {
	m := ch.measured
	text := m.Format
	if m.Tokens > 0 {
		text += ", " + count(m.Tokens, "token")
	}
	con.field("measured", "%s, %s", safe(ch.plan.Criterion.Inputs[0].File), text)
	if other := slices.DeleteFunc(m.Criteria(), func(name string) bool { return name == ch.plan.Criterion.Name }); len(other) > 0 {
		con.field("", "the file can be ranked by %s too", strings.Join(other, ", "))
	}
	if d := m.Source.StructureDigest; d != "" && d != ch.plan.Source.StructureDigest {
		con.field("", "measured on %s, which is built otherwise than this model (other types or shapes)", safe(m.Source.Name))
	}
	for _, note := range m.Notes {
		con.field("", "%s", note)
	}
	switch rule := ch.plan.Rules.DraftLayers; rule {
	case reap.DraftMass, reap.DraftNorm:
		con.field("draft layers", "not measured: ranked by %s, a proxy", rule)
	case reap.DraftAsLast:
		con.field("draft layers", "not measured: they keep what the last layer before them keeps")
	}
}

// criterionText says what kind of evidence a criterion is.
func criterionText(c reap.Criterion) string {
	if c.Name == reap.Given {
		text := "given: lists of another tool"
		if len(c.Inputs) > 0 {
			text += ", " + safe(c.Inputs[0].File)
		}
		return text
	}
	info, known := reap.FindCriterion(c.Name)
	if !known {
		return safe(c.Name)
	}
	return c.Name + ": " + info.Honesty()
}

func contentBytes(c gguf.Contents) int64 {
	var n int64
	for _, v := range c.Views {
		n += v.Size()
	}
	return n
}
