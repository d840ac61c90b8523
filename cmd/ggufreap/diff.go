package main

import (
	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/diff"
	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/inspect"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/gguf"
	"ggufreap/manifest"
)

const diffHelp = `Compare two models, or pins of them.

Usage:
  ggufreap diff [flags] A B

A and B are models or pins (.json, .json.zst). Models are read whole. The answer
lists the tensors that were added, removed or changed, or have another type or
shape, with the experts whose bytes differ; and the metadata keys likewise, with
the first place where a long value differs (items and bytes count from 0). What
does not make a model another one is noted apart: order, sharding, split keys,
the version of the format, bytes that belong to no tensor. A pin has no metadata
values, only their digests.

Data is compared byte by byte. Where one model is little endian and the other
big endian, names, types and shapes are compared, and metadata by value.

Flags:

Exit codes:
  0  same weights and same metadata
  1  they differ
  2  the comparison could not be carried out
  75 not now: a disk, the network or memory failed; try again

Examples:
  ggufreap diff K3.gguf K3-00001-of-00009.gguf
  ggufreap diff K3.pin.json.zst K3-00001-of-00009.gguf
`

func diffCommand(con *ui.Console) *cli.Command {
	return &cli.Command{
		Name:        "diff",
		Usage:       "compare two models or pins",
		Description: diffHelp,
		Flags: append([]cli.Flag{
			readersFlag(),
			jsonFlag(),
			typeFlag(),
		}, append(fetchFlags(), progressFlags(con)...)...),
		Action: func(c *cli.Context) error { return diffAction(con, c) },
	}
}

func diffAction(con *ui.Console, c *cli.Context) error {
	if c.NArg() != 2 {
		return hint.With(args.Usagef("diff takes two models or pins, got %d", c.NArg()), "ggufreap diff A B")
	}
	var sides [2]*diff.Side
	for i := range sides {
		var err error
		open := func(path string) (*gguf.Model, error) { return openPaths(con, c, path) }
		if sides[i], err = diff.Open(con.In, c.Args().Get(i), open); err != nil {
			return err
		}
		defer sides[i].Close()
	}
	for _, s := range sides {
		if s.Model != nil {
			inspect.Warn(con, s.Model)
		}
	}
	if err := diff.Measure(c.Context, con, sides, func(m *gguf.Model) manifest.BuildOptions { return pinOptions(c, m) }); err != nil {
		return err
	}
	d, err := diff.Compare(sides[0], sides[1])
	if err != nil {
		return err
	}
	if c.Bool("json") {
		err = con.JSON(d.Document())
	} else {
		diff.Show(con, d)
	}
	if err == nil && !d.Same() {
		err = errDiffers
	}
	return err
}
