package main

import (
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
	"ggufreap/manifest"
	"ggufreap/manifest/stage"
	"ggufreap/reap"
	"ggufreap/reap/planfile"
)

const pruneHelp = `Write the derivative of a model that keeps some of its routed experts.

Usage:
  ggufreap prune [flags] -o DIR ARTIFACT

Each kept expert is copied byte for byte, and so is everything that is not
routed. Of the metadata only the expert count, the split keys and the keys that
state the derivation change. DIR gets the shards, plan.json, pin.json.zst with
the digests of all parts and, last of all, MANIFEST.sha256: a folder with a
manifest is a finished release. The source is only read.

` + interruptHelp + `
What to keep:
      --plan FILE        a plan, ours or a keep or drop list of another tool
` + chooseHelp + rulesHelp + `
The source's bytes:
      --source-pin FILE  stop at the first part that is read and is not the one
                         that this pin has
      --pin-source FILE  read the dropped experts too, once, and write the pin
                         of the source; shards are then written one by one

How to cut (as many shards as the source has, unless the preset says otherwise):
` + splitHelp + `
Output:
  -o, --output DIR       the folder of the release; it must be empty or new
      --name STEM        stem of the file names (SOURCE-REAPn)
      --resume           go on with a release that was interrupted in DIR
      --force            accept a folder that is not empty
      --no-provenance-keys
                         leave out the reap.* keys that state the derivation
      --workers N        shards written at once (two for each processor)
      --dry-run          print the exact files and bytes, and stop
      --json             print a JSON document
      --type ID=B/E      teach a type: B bytes store E elements (repeatable)
` + progressHelp + `  -h, --help             show this text

Examples:
  ggufreap prune --preset reap568 -o K3-REAP568 K3-00001-of-00009.gguf
  ggufreap prune --plan plan.json --max-shard-size 45GB -o K3-REAP568 K3
  ggufreap prune --keep 96 --dry-run Qwen3-30B-A3B.gguf
`

func pruneCommand(con *ui.Console) *cli.Command {
	flags := slices.Concat(chooseFlags(), ruleFlags(), splitFlags())
	return &cli.Command{
		Name:               "prune",
		CustomHelpTemplate: pruneHelp,
		Flags: append(append(flags, progressFlags(con)...),
			&cli.StringFlag{Name: "plan"},
			&cli.StringFlag{Name: "source-pin"},
			&cli.StringFlag{Name: "pin-source"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}},
			&cli.StringFlag{Name: "name"},
			&cli.BoolFlag{Name: "resume"},
			&cli.BoolFlag{Name: "force"},
			&cli.BoolFlag{Name: "no-provenance-keys"},
			&cli.IntFlag{Name: "workers"},
			&cli.BoolFlag{Name: "dry-run"},
			&cli.BoolFlag{Name: "json"},
			typeFlag(),
		),
		Action: func(c *cli.Context) error { return pruneAction(con, c) },
	}
}

func pruneAction(con *ui.Console, c *cli.Context) error {
	if err := checkFolder(c); err != nil {
		return err
	}
	if c.IsSet("source-pin") && c.IsSet("pin-source") {
		return args.Usagef("--source-pin and --pin-source contradict each other: the one checks the source, the other takes its word")
	}
	s, err := openSource(c)
	if err != nil {
		return err
	}
	defer s.Close()
	warnOfSource(con, s)
	if c.IsSet("pin-source") {
		if err := manifest.CheckDocument(s.Model, manifest.Declared{}); err != nil {
			return err
		}
	}
	if err := s.bindPin(c.Context, c.String("source-pin")); err != nil {
		return err
	}
	d, err := newDerivative(con, c, s)
	if err != nil {
		return err
	}
	r := d.release(c)
	if !c.Bool("dry-run") {
		if err := writeDerivative(con, c, d, r); err != nil {
			return err
		}
	}
	return reportRelease(con, c, r, d)
}

// A derivative is a pruned model that is settled to the last byte, and not written yet.
type derivative struct {
	source   *source
	plan     *reap.Plan
	document []byte // the plan's
	layout   *gguf.Layout
	stem     string
}

// newDerivative reads or makes the plan and lays its output out.
func newDerivative(con *ui.Console, c *cli.Context, s *source) (*derivative, error) {
	plan, err := planFor(con, c, s)
	if err != nil {
		return nil, err
	}
	d := &derivative{source: s, plan: plan}
	if d.stem, err = stemFlag(c, derivedStem(s.Name, plan.KeepCount)); err != nil {
		return nil, err
	}
	if d.document, err = planfile.Encode(plan); err != nil {
		return nil, err
	}
	provenance := reap.Provenance{Plan: plan, PlanDigest: manifest.DigestBytes(d.document).String(), SourceWeights: s.weights()}
	if c.Bool("no-provenance-keys") {
		provenance = reap.Provenance{}
	}
	contents, err := derive(c, s, plan, provenance)
	if err != nil {
		return nil, err
	}
	split, err := pruneSplit(c, s)
	if err != nil {
		return nil, err
	}
	if d.layout, err = gguf.NewLayout(contents, split); err != nil {
		return nil, s.named(err)
	}
	return d, s.named(manifest.CheckNames(d.layout))
}

func planFor(con *ui.Console, c *cli.Context, s *source) (*reap.Plan, error) {
	path := c.String("plan")
	switch {
	case path == "":
		ch, err := choose(con, c, s)
		if err != nil {
			return nil, err
		}
		return ch.plan, nil
	case choosing(c):
		return nil, args.Usagef("--plan and the choosing flags contradict each other, give one or the other")
	}
	return loadPlan(path, s, func(plan *reap.Plan) error { return applyRules(c, plan, s.experts) })
}

// derive returns the contents of the model that a plan makes of a source.
func derive(c *cli.Context, s *source, plan *reap.Plan, provenance reap.Provenance) (gguf.Contents, error) {
	views, err := reap.Views(c.Context, s.Model, s.experts, plan)
	if err != nil {
		return gguf.Contents{}, s.named(err)
	}
	md, err := reap.Metadata(s.Model, s.experts, plan, provenance, c.StringSlice("copy-key")...)
	if err != nil {
		return gguf.Contents{}, s.named(err)
	}
	return gguf.Contents{Version: s.Files[0].Version, Metadata: md, Views: views}, nil
}

// derivedStem names a derivative after its source: "X" that keeps 568 is "X-REAP568".
func derivedStem(name string, keep int) string {
	return fmt.Sprintf("%s-REAP%d", name, keep)
}

// pruneSplit settles the cut: what the flags say, else the preset's, else the source's.
func pruneSplit(c *cli.Context, s *source) (gguf.Split, error) {
	split, given, err := readSplit(c)
	if err != nil || given {
		return split, err
	}
	if name := c.String("preset"); name != "" {
		preset, err := reap.FindPreset(name)
		return gguf.Split{Shards: preset.Shards}, err
	}
	return gguf.Split{Shards: s.Shards}, nil
}

// release is what prune writes.
func (d *derivative) release(c *cli.Context) *release {
	return &release{
		task:      "prune",
		folder:    c.String("output"),
		stem:      d.stem,
		layout:    d.layout,
		source:    d.source.Model,
		slabs:     slabCount(d.source.experts, d.plan.KeepCount),
		documents: []smallFile{{planName, d.document}},
		origin: []stage.Fact{
			{Name: "plan", Digest: manifest.DigestBytes(d.document)},
			{Name: "source's structure digest", Digest: d.source.structure},
		},
	}
}

// planName is the plan's file name in a release.
const planName = "plan.json"

// reportRelease prints what was, or would be, written.
func reportRelease(con *ui.Console, c *cli.Context, r *release, d *derivative) error {
	if c.Bool("json") {
		return con.JSON(r.document())
	}
	con.Field("source", "%s, %s, %s", text.Safe(d.source.Name), text.Safe(d.source.experts.Architecture), text.Count(d.source.Shards, "shard"))
	con.Field("keep", "%d of %d experts in each of %s", d.plan.KeepCount, d.plan.NumExperts, text.Count(len(d.plan.Layers), "layer"))
	con.Field("criterion", "%s", criterionText(d.plan.Criterion))
	con.Field("source bytes", "%s", sourceBytes(c, r, d))
	describeRelease(con, r)
	return nil
}
