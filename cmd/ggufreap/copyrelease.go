package main

import (
	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/release"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/gguf"
)

// copyRelease is the release that a command makes of all tensors of a model, with what goes
// over from the model's own release.
func copyRelease(con *ui.Console, c *cli.Context, m *gguf.Model, layout *gguf.Layout) (*release.Release, error) {
	stem, err := stemFlag(c, m.Name)
	if err != nil {
		return nil, err
	}
	r := &release.Release{
		Task:   c.Command.Name,
		Folder: c.String("output"),
		Stem:   stem,
		Layout: layout,
		Source: m,
		Slabs:  soundSlabs(m),
		IDs:    soundIDs(m),
		Whole:  true,
		Inputs: typedInputs(c),
	}
	return r, carryOver(con, m, r)
}

// writeCopy writes such a release, see [produce].
func writeCopy(con *ui.Console, c *cli.Context, r *release.Release, show func() error) error {
	if err := judgeLayout(con, c, r); err != nil {
		return err
	}
	return produce(con, c, r, func() error { return release.Write(c.Context, con, r, writeOptions(c)) }, show)
}

// produce does what the flags of a command that makes a release ask for: it writes all of it or
// the part of --only, and shows it. A dry run shows what would be written, and then whether there
// is room.
func produce(con *ui.Console, c *cli.Context, r *release.Release, write, show func() error) error {
	if c.IsSet("only") {
		if finished, err := writePart(con, c, r); err != nil || !finished {
			return err
		}
		return show()
	}
	if c.Bool("dry-run") {
		if err := show(); err != nil {
			return err
		}
		return r.CheckRoom(writeOptions(c))
	}
	if err := write(); err != nil {
		return err
	}
	return show()
}
