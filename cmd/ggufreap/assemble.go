package main

import (
	"time"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/calibration"
	"ggufreap/cmd/ggufreap/internal/document"
	"ggufreap/cmd/ggufreap/internal/files"
	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/manifest/parts"
	"ggufreap/manifest/stage"
)

const assembleHelp = `Join the parts that tasks with --only have done.

Usage:
  ggufreap assemble [flags] DIR
  ggufreap assemble [flags] scores.part-I-of-N.sums

DIR is the folder to which prune or reshard wrote the parts of a release. It
must have the record of every part, all of the same plan, source, cut and
program, and the files that they tell of. Then the pin is written,
MANIFEST.sha256 last, and the records and what tasks left behind are removed:
the folder is the release that one run without --only writes, byte for byte. Of
parts of a pin FILE gets the pin, of those of a verification all that was found
is listed; the records stay then.

Only records are read, not the files' bytes, unless --recheck reads all. Where
parts are missing, or a file does not have the size that its record says,
nothing is written, and the parts to submit again are listed as a job array.

Of parts of calibrate any one is named; all are added up, and scores.npz and
scores.json written beside them, bit for bit those of one run.

Flags:

Exit codes:
  0  joined, or found joined already
  1  parts are missing or damaged: submit those that are listed again; or parts
     of a verification have found something
  2  the request could not be carried out: as when records are of different work
  75 not now: a disk, the network or memory failed; try again

Examples:
  ggufreap prune --plan plan.json --only 3/14 -o K3-REAP568 K3
  ggufreap assemble K3-REAP568
  ggufreap pin --only 2/9 -o K3.parts K3
  ggufreap assemble -o K3.pin.json.zst K3.parts
  ggufreap assemble scores.part-1-of-14.sums
`

func assembleCommand(con *ui.Console) *cli.Command {
	return &cli.Command{
		Name:        "assemble",
		Usage:       "join the parts that many tasks have done",
		Description: assembleHelp,
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "of parts of a pin: write the pin to `FILE`, compressed if it ends in .zst"},
			&cli.BoolFlag{Name: "force", Usage: "replace FILE if it exists"},
			&cli.BoolFlag{Name: "recheck", Usage: "read all files and hold them against the records"},
			&cli.DurationFlag{Name: "wait", Value: defaultWait, Usage: "`TIME`: ask again so long for names that are not there, as network file systems may not show them yet (65s)"},
			readersFlag(),
			jsonFlag(),
		}, progressFlags(con)...),
		Action: func(c *cli.Context) error { return assembleAction(con, c) },
	}
}

// defaultWait is a little more than NFS keeps in mind that a name is not there: acdirmax is
// 60 seconds unless an administrator has changed it.
const defaultWait = 65 * time.Second

func assembleAction(con *ui.Console, c *cli.Context) error {
	if c.NArg() != 1 {
		return hint.With(args.Usagef("assemble takes one folder, got %d", c.NArg()), "ggufreap assemble DIR")
	}
	folder := c.Args().First()
	if err := checkNamed("a folder", folder); err != nil {
		return err
	}
	if _, _, ok := calibration.ParsePartName(folder); ok {
		return assembleScores(con, c, folder)
	}
	wait := stage.Wait{Time: c.Duration("wait"), Begun: func(parts int) {
		con.Notef("assemble: %s, waiting up to %s for names that this machine may not see yet (--wait)", missingParts(parts), c.Duration("wait"))
	}}
	g, err := stage.Gather(c.Context, folder, wait)
	if err != nil {
		return err
	}
	defer g.Close()
	a := &assembly{Schema: "ggufreap/assembly/v1", Folder: document.Text(folder)}
	if err := a.join(con, c, g); err != nil {
		return err
	}
	return a.report(con, c)
}

// missingParts says how many parts are not there yet, 0 where that is not known.
func missingParts(n int) string {
	if n == 0 {
		return "no part is there"
	}
	return text.Count(n, "part") + " not there"
}

// join joins the parts unless some are to be done again.
func (a *assembly) join(con *ui.Console, c *cli.Context, g *stage.Gathering) error {
	a.Parts = g.Parts()
	if record := g.Record(); record != nil {
		a.Task = &record.Task
	}
	if (g.Record() == nil || g.Record().Task == "pin") && !g.Listed() {
		return a.joinPin(c, g)
	}
	if g.Record() != nil && g.Record().Task == "verify" {
		return a.joinFindings(g)
	}
	if c.IsSet("output") {
		return args.Usagef("-o names the pin that parts of a pin come to, these are parts of a release: it is written where they are")
	}
	if g.Listed() {
		return a.joined(g)
	}
	if err := g.CheckFiles(c.Context); err != nil {
		return err
	}
	if c.Bool("recheck") {
		p := con.StartProgress("recheck", 0)
		if err := g.Recheck(c.Context, c.Int("workers"), p.Set); err != nil {
			return err
		}
		p.Finish()
	}
	if len(g.Faults()) > 0 {
		a.takeFaults(g)
		return nil
	}
	var err error
	if a.pin, err = g.Publish(); err != nil {
		return err
	}
	a.Joined = true
	_, err = g.Clear()
	return err
}

// joinPin writes the pin that parts of one come to. The records stay, so that this can be done
// again.
func (a *assembly) joinPin(c *cli.Context, g *stage.Gathering) error {
	if len(g.Faults()) > 0 {
		a.takeFaults(g)
		return nil
	}
	pin, err := g.Pin()
	if err != nil {
		return err
	}
	a.pin, a.Joined = pin, true
	a.written = c.String("output")
	_, err = files.WritePin(a.written, pin, c.Bool("force"), nil)
	return err
}

// joinFindings says what all parts of a verification have found.
func (a *assembly) joinFindings(g *stage.Gathering) error {
	if len(g.Faults()) > 0 {
		a.takeFaults(g)
		return nil
	}
	pin, err := g.Pin()
	if err != nil {
		return err
	}
	a.pin, a.Joined = pin, true
	for _, f := range g.Findings() {
		a.Findings = append(a.Findings, findingDocument{document.Text(f.File), document.Text(f.What)})
	}
	return nil
}

// joined ends what an earlier run began to clear.
func (a *assembly) joined(g *stage.Gathering) error {
	if err := g.CheckListed(); err != nil {
		return err
	}
	a.Joined = true
	_, err := g.Clear()
	return err
}

// takeFaults takes note of the parts that are to be done again.
func (a *assembly) takeFaults(g *stage.Gathering) {
	var numbers []int
	for _, f := range g.Faults() {
		numbers = append(numbers, f.Part)
		a.Again = append(a.Again, againDocument{f.Part, document.Text(f.Why)})
	}
	a.Array = parts.Array(numbers)
}
