package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/calibration"
	"ggufreap/cmd/ggufreap/internal/files"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
	"ggufreap/reap"
	"ggufreap/reap/planfile"
)

const planHelp = `Choose the routed experts that a pruned model keeps.

Usage:
  ggufreap plan [flags] MODEL

The plan lists, for each layer, the experts to keep, with the criterion they
were ranked by and the digest of the model they were ranked for. Scores rank
from high to low, equal scores by the lower expert number, so the same model and
flags give the same plan everywhere.

Flags:

Examples:
  ggufreap plan --preset reap568 -o plan.json K3-00001-of-00009.gguf
  ggufreap plan --keep 96 -o plan.json Qwen3-30B-A3B.gguf
  ggufreap plan --preset reap568 --from reap_saliency.npz --explain K3.gguf
  ggufreap plan --fit-per-node 4x119GB --shards 16 -o plan.json K3.gguf
`

func planCommand(con *ui.Console) *cli.Command {
	return &cli.Command{
		Name:        "plan",
		Usage:       "choose the routed experts to keep",
		Description: planHelp,
		Flags: slices.Concat(chooseFlags(), ruleFlags(), []cli.Flag{
			&cli.IntFlag{Name: "shards", Usage: "`N`: count --fit and --explain in N files, and say so in the plan (as many as the source has, or the preset says)"},
			&cli.StringFlag{Name: "pin", Usage: "`FILE`: the source's pin: the plan then names its weights too"},
			&cli.BoolFlag{Name: "explain", Usage: "show each layer: score kept, score at the cut, ties, experts without tokens; a table of keep counts; and small pictures of both"},
			&cli.StringFlag{Name: "compare", Usage: "`FILE`: compare the plan with another one, or with what other scores choose"},
			&cli.BoolFlag{Name: "split-half", Usage: "compare each kind of text with all others, if the file of --from has their scores apart"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write the plan to `FILE`"},
			&cli.BoolFlag{Name: "force", Usage: "replace FILE if it exists"},
			&cli.BoolFlag{Name: "json", Usage: "print the plan document, or with --explain, --compare and --split-half what they show"},
			typeFlag(),
		}, progressFlags(con), fetchFlags(), args.In("From an address",
			&cli.StringFlag{Name: "cache", Usage: "keep in `DIR` what was fetched, for the next plan: headers and routers"},
		)),
		Action: func(c *cli.Context) error { return planAction(con, c) },
	}
}

func planAction(con *ui.Console, c *cli.Context) error {
	s, err := openSource(con, c)
	if err != nil {
		return err
	}
	defer s.Close()
	warnOfSource(con, s)
	if err := s.bindPin(c, c.String("pin"), ""); err != nil {
		return err
	}
	ch, err := choose(con, c, s)
	if err != nil {
		return err
	}
	if c.IsSet("shards") {
		ch.plan.Shards = c.Int("shards")
	}
	document, err := planfile.Encode(ch.plan)
	if err != nil {
		return err
	}
	contents, err := derive(c, s, ch.plan, reap.Provenance{})
	if err != nil {
		return err
	}
	x, err := explain(con, c, s, ch)
	if err != nil {
		return err
	}
	return givePlan(con, c, s, ch, x, document, contents)
}

// givePlan writes the plan where it is wanted, and prints it or what there is to say of it.
func givePlan(con *ui.Console, c *cli.Context, s *source, ch *choice, x *explanation, document []byte, contents gguf.Contents) error {
	output := c.String("output")
	if output == files.Stdin && x.asked {
		return args.Usagef("-o - prints the plan alone: leave out --explain, --compare and --split-half, or write the plan to a file")
	}
	if output != "" && output != files.Stdin {
		if _, err := files.Write(output, c.Bool("force"), inputs(c, s.Model), files.Bytes(document)); err != nil {
			return err
		}
	}
	switch {
	case c.Bool("json") && x.asked:
		return con.JSON(x.document(ch))
	case c.Bool("json") || output == files.Stdin:
		con.Printf("%s", document)
		return nil
	}
	adviseToMeasure(con, c, s, ch)
	describePlan(con, s, ch.plan, contents)
	describeWorth(con, s, ch)
	if ch.measured != nil {
		describeMeasurements(con, ch)
	}
	describeFetched(con, s.Model)
	con.Field("written", "%s", orNothing(output))
	describeExplanation(con, x)
	return nil
}

// adviseToMeasure says how to measure, before what was chosen without.
func adviseToMeasure(con *ui.Console, c *cli.Context, s *source, ch *choice) {
	info, _ := reap.FindCriterion(ch.plan.Criterion.Name)
	if info.Evidence != reap.Proxy {
		return
	}
	con.Field("measure", "what these experts do was not measured, and a measured plan is far better than any proxy:")
	model, where := c.Args().First(), ""
	if !onThisMachine(s.Model) {
		model, where = "MODEL", ", where the model's files are"
	}
	con.Field("", "%s%s", args.CommandLine([]string{"ggufreap", "calibrate", "--self-text", "65536", "-o", "scores.npz", model}), where)
	con.Field("", "then plan with --from scores.npz")
}

// describeWorth says what plans of the kind were worth where it could be tried.
func describeWorth(con *ui.Console, s *source, ch *choice) {
	info, _ := reap.FindCriterion(ch.plan.Criterion.Name)
	if info.Evidence == reap.Proxy || info.Name == reap.Count {
		con.Field("expect", "%s", info.Worth)
	}
	if info.Evidence == reap.Proxy && info.Name != reap.RouterMass && hasSelectionBias(s.experts) {
		con.Field("", "its routers have a selection bias, which %s does not read: router-mass, which does, was no better than chance there", info.Name)
	}
	if ch.measured == nil || len(ch.measured.Sources) != 1 {
		return
	}
	if ch.measured.Sources[0].Label == calibration.SelfLabel {
		con.Field("expect", "text that the model wrote itself was measured: on a small trained model such plans were about as good as those of real text of all its kinds; what you use the model for was not asked")
		return
	}
	con.Field("expect", "one kind of text was measured: on a small trained model that cut the divergence on that kind by 30 to 59 %%, and raised it on other kinds by 27 to 92 %%")
}

func hasSelectionBias(e *reap.Experts) bool {
	return slices.ContainsFunc(e.Layers, func(l *reap.Layer) bool { return l.Tensor(reap.SelectionBias) != nil })
}

func orNothing(path string) string {
	if path == "" {
		return "nothing; -o FILE writes the plan"
	}
	return text.Safe(path)
}

// describePlan prints what a plan keeps of a model and what that saves.
func describePlan(con *ui.Console, s *source, plan *reap.Plan, contents gguf.Contents) {
	con.Field("source", "%s, %s, %s", text.Safe(s.Name), text.Safe(s.experts.Architecture), text.Files(s.Shards))
	con.Field("pruning", "%s: %s", s.standing(), s.standing().Meaning())
	con.Field("keep", "%d of %d experts in each of %s", plan.KeepCount, plan.NumExperts, text.Count(len(plan.Layers), "layer"))
	con.Field("criterion", "%s", criterionText(plan.Criterion))
	before, after := s.TensorBytes(), contentBytes(contents)
	con.Field("tensor data", "%s", text.Size(after))
	con.Field("was", "%s", text.Size(before))
	con.Field("saves", "%s, %.1f %%", text.Size(before-after), 100*float64(before-after)/float64(max(before, 1)))
	label := "advice"
	for _, line := range reap.KeepAdvice(plan.KeepCount) {
		con.Field(label, "%s", line)
		label = ""
	}
}

// describeMeasurements prints what measured scores come from and what else they allow.
func describeMeasurements(con *ui.Console, ch *choice) {
	m := ch.measured
	said := m.Format
	if m.Tokens > 0 {
		said += ", " + text.Count(m.Tokens, "token")
	}
	con.Field("measured", "%s, %s", text.Safe(ch.plan.Criterion.Inputs[0].File), said)
	if m.Engine != "" {
		con.Field("", "by %s", text.Safe(m.Engine))
	}
	if other := slices.DeleteFunc(m.Criteria(), func(name string) bool { return name == ch.plan.Criterion.Name }); len(other) > 0 {
		con.Field("", "the file can be ranked by %s too", strings.Join(other, ", "))
	}
	if d := m.Source.StructureDigest; d != "" && d != ch.plan.Source.StructureDigest {
		con.Field("", "measured on %s, which is built otherwise than this model (other types or shapes)", text.Safe(m.Source.Name))
	}
	for _, note := range m.Notes {
		con.Field("", "%s", note)
	}
	switch rule := ch.plan.Rules.DraftLayers; rule {
	case reap.DraftMass, reap.DraftNorm:
		con.Field("draft layers", "not measured: ranked by %s, a proxy", rule)
	case reap.DraftAsLast:
		con.Field("draft layers", "not measured: they keep what the last layer before them keeps")
	}
}

// criterionText says what kind of evidence a criterion is.
func criterionText(c reap.Criterion) string {
	if c.Name == reap.Given {
		said := "given: lists of another tool"
		if len(c.Inputs) > 0 {
			said += ", " + text.Safe(c.Inputs[0].File)
		}
		return said
	}
	info, known := reap.FindCriterion(c.Name)
	if !known {
		return text.Safe(c.Name)
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
