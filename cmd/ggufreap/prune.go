package main

import (
	"slices"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/release"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/manifest"
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
      --source-digest D  refuse a source whose pin has another pin digest
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
			&cli.StringFlag{Name: "source-digest"},
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
	if c.IsSet("source-digest") && !c.IsSet("source-pin") && !c.IsSet("pin-source") {
		return args.Usagef("--source-digest is what the source's pin must have: give it with --source-pin, or have it taken with --pin-source")
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
	if err := s.bindPin(c, c.String("source-pin")); err != nil {
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

// reportRelease prints what was, or would be, written.
func reportRelease(con *ui.Console, c *cli.Context, r *release.Release, d *derivative) error {
	if c.Bool("json") {
		return con.JSON(r.Document())
	}
	con.Field("source", "%s, %s, %s", text.Safe(d.source.Name), text.Safe(d.source.experts.Architecture), text.Count(d.source.Shards, "shard"))
	con.Field("keep", "%d of %d experts in each of %s", d.plan.KeepCount, d.plan.NumExperts, text.Count(len(d.plan.Layers), "layer"))
	con.Field("criterion", "%s", criterionText(d.plan.Criterion))
	con.Field("source bytes", "%s", sourceBytes(c, r, d))
	release.Describe(con, r)
	return nil
}
