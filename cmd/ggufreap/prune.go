package main

import (
	"cmp"
	"slices"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/files"
	"ggufreap/cmd/ggufreap/internal/release"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/manifest"
)

const pruneHelp = `Write a pruned model: one that keeps some of the routed experts of another.

Usage:
  ggufreap prune [flags] -o DIR MODEL

Each kept expert is copied byte for byte, and so is everything that is not
routed. Of the metadata only the expert count, the split keys and the keys that
say what it was made from change. These name the source among the models that
this one was made from (general.base_model.*) where --base-model or its pin,
made with --repo, says where it is published. DIR gets the shards, plan.json,
pin.json.zst with the digests of all parts and, last of all, MANIFEST.sha256: a
folder with a manifest is a finished release. The source is only read.

` + interruptHelp + `
Flags:

Examples:
  ggufreap prune --preset reap568 -o K3-REAP568 K3-00001-of-00009.gguf
  ggufreap prune --plan plan.json --max-shard-size 45GB -o K3-REAP568 K3
  ggufreap prune --keep 96 --dry-run Qwen3-30B-A3B.gguf
`

func pruneCommand(con *ui.Console) *cli.Command {
	return &cli.Command{
		Name:        "prune",
		Usage:       "write the model that keeps the chosen experts",
		Description: pruneHelp,
		Flags: slices.Concat(
			args.In("What to keep", slices.Concat([]cli.Flag{
				&cli.StringFlag{Name: "plan", Usage: "`FILE`: a plan, ours or a keep or drop list of another tool"},
			}, chooseFlags(), ruleFlags())...),
			args.In("The source's bytes",
				&cli.StringFlag{Name: "source-pin", Usage: "`FILE`: stop at the first bytes of the source that are not those of this pin"},
				&cli.StringFlag{Name: "source-digest", Usage: "`D`: refuse a source whose pin has another pin digest"},
				&cli.StringFlag{Name: "pin-source", Usage: "`FILE`: read the dropped experts too, in the same pass, and write the pin of the source"},
			),
			args.In("How to cut (as many shards as the source has, unless the preset says otherwise)", splitFlags()...),
			args.In("Metadata", append(editFlags(), labelFlags()...)...),
			publishFlags(),
			args.In("Sign it, as ggufreap sign does", signFlags()...),
			args.In("Output", slices.Concat(releaseFlags("the folder of the release", "SOURCE-REAPn"), []cli.Flag{
				onlyFlag(),
				&cli.BoolFlag{Name: "no-provenance-keys", Usage: "leave out the keys that say what it was made from: reap.* and general.base_model.*"},
				typeFlag(),
			}, layoutFlags(), progressFlags(con))...),
			fetchFlags(),
		),
		Action: func(c *cli.Context) error { return pruneAction(con, c) },
	}
}

func pruneAction(con *ui.Console, c *cli.Context) error {
	if err := cmp.Or(checkFolder(c), checkOnly(c), checkCardValue(c), checkPruneFlags(c)); err != nil {
		return err
	}
	keys, err := pruneSigners(con, c)
	if err != nil {
		return err
	}
	s, err := openPrunable(con, c)
	if err != nil {
		return err
	}
	defer s.Close()
	d, err := newDerivative(con, c, s)
	if err != nil {
		return err
	}
	noteLabels(con, d.layout.Shards[0].Metadata, d.plan.KeepCount)
	r := d.release(c)
	if err := d.publish(con, c, r, keys); err != nil {
		return err
	}
	if err := judgeLayout(con, c, r); err != nil {
		return err
	}
	if c.IsSet("only") {
		if err := d.bindSource(r); err != nil {
			return err
		}
	}
	write := func() error {
		if err := writeDerivative(con, c, d, r); err != nil {
			return err
		}
		return signDerivative(c, r, keys)
	}
	return produce(con, c, r, write, func() error { return reportRelease(con, c, r, d) })
}

// checkPruneFlags refuses flags about the source's bytes that contradict each other.
func checkPruneFlags(c *cli.Context) error {
	switch {
	case c.IsSet("source-pin") && c.IsSet("pin-source"):
		return args.Usagef("--source-pin and --pin-source contradict each other: the one checks the source, the other takes its word")
	case c.IsSet("source-digest") && !c.IsSet("source-pin") && !c.IsSet("pin-source"):
		return args.Usagef("--source-digest is what the source's pin must have: give it with --source-pin, or have it taken with --pin-source")
	}
	return files.CheckDistinct(c.String("pin-source"), c.String("output"))
}

// openPrunable opens a model that can be pruned, and its pin. The caller closes it.
func openPrunable(con *ui.Console, c *cli.Context) (*source, error) {
	s, err := openSource(con, c)
	if err != nil {
		return nil, err
	}
	err = s.checkLoadable(c)
	if err == nil {
		warnOfSource(con, s)
	}
	if err == nil && c.IsSet("pin-source") {
		err = manifest.CheckDocument(s.Model, manifest.Declared{})
	}
	if err == nil {
		err = s.bindPin(c, c.String("source-pin"), c.String("output"))
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// reportRelease prints what was, or would be, written.
func reportRelease(con *ui.Console, c *cli.Context, r *release.Release, d *derivative) error {
	if c.Bool("json") {
		return con.JSON(r.Document())
	}
	con.Field("source", "%s, %s, %s", text.Safe(d.source.Name), text.Safe(d.source.experts.Architecture), text.Files(d.source.Shards))
	con.Field("pruning", "%s: %s", d.source.standing(), d.source.standing().Meaning())
	con.Field("keep", "%d of %d experts in each of %s", d.plan.KeepCount, d.plan.NumExperts, text.Count(len(d.plan.Layers), "layer"))
	con.Field("criterion", "%s", criterionText(d.plan.Criterion))
	con.Field("source bytes", "%s", sourceBytes(c, r, d))
	describeFetched(con, d.source.Model)
	release.Describe(con, r)
	if c.Bool("card") && !c.Bool("dry-run") {
		con.Field("upload", "the whole folder, %s: %s", text.Safe(r.Folder), r.Upload())
	}
	return nil
}
