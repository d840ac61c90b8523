package main

import (
	"github.com/urfave/cli/v2"

	"ggufreap/gguf"
	"ggufreap/reap"
)

const planHelp = `Choose the routed experts that a derivative keeps.

Usage:
  ggufreap plan [flags] ARTIFACT

The plan lists, for each layer, the experts to keep, with the criterion they
were ranked by and the digest of the model they were ranked for. Scores rank
from high to low, equal scores by the lower expert number, so the same model and
flags give the same plan everywhere.

Flags:
` + chooseHelp + `  -o, --output FILE      write the plan to FILE
      --force            replace FILE if it exists
      --json             print the plan document
      --type ID=B/E      teach a type: B bytes store E elements (repeatable)
  -q, --quiet            show no progress
      --progress MODE    auto, bar, plain or none (auto)
  -h, --help             show this text

Examples:
  ggufreap plan --preset reap568 -o plan.json K3-00001-of-00009.gguf
  ggufreap plan --keep 96 -o plan.json Qwen3-30B-A3B.gguf
`

func planCommand(con *console) *cli.Command {
	return &cli.Command{
		Name:               "plan",
		CustomHelpTemplate: planHelp,
		Flags: append(append(chooseFlags(), con.progressFlags()...),
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}},
			&cli.BoolFlag{Name: "force"},
			&cli.BoolFlag{Name: "json"},
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
	plan, err := con.choose(c, s)
	if err != nil {
		return err
	}
	document, err := plan.Encode()
	if err != nil {
		return err
	}
	contents, err := derive(c.Context, s, plan, reap.Provenance{})
	if err != nil {
		return err
	}
	output := c.String("output")
	if output != "" {
		if err := writeDocument(output, document, c.Bool("force"), s.Paths()); err != nil {
			return err
		}
	}
	if c.Bool("json") {
		con.printf("%s", document)
		return nil
	}
	con.describePlan(s, plan, contents)
	con.field("written", "%s", orNothing(output))
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
