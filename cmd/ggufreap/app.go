package main

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/help"
	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/gguf"
	"ggufreap/gguf/remote"
)

const appHelp = `ggufreap inspects GGUF models, single files and sharded ones, and keeps the
routed experts you choose.

Usage:
  ggufreap COMMAND [flags] MODEL

MODEL is any shard of a split model, a single .gguf file, a folder that holds
exactly one model, or the address of one: hf://OWNER/REPO, https://...

Commands:

Exit codes:
  0  success
  1  the model is not what it should be
  2  the request could not be carried out, and trying again changes nothing
  75 it could not be carried out now: a disk, the network or memory failed, or
     another run was at work there; the same command may succeed later
  A run that is interrupted ends by the signal itself: shells show 130 after
  Ctrl-C, 143 after kill.

Examples:
  ggufreap inspect Model-00001-of-00009.gguf
  ggufreap demo
  ggufreap prune --preset reap568 -o K3-REAP568 K3-00001-of-00009.gguf
`

// Without this urfave/cli takes --help before an action sees it, and takes a following
// argument for a topic that it does not know.
func init() { cli.HelpFlag = nil }

// commands are those that help lists, in its order. A new command is one more line here, and
// one file.
func commands(con *ui.Console, app *cli.App) []*cli.Command {
	return []*cli.Command{
		inspectCommand(con),
		pinCommand(con),
		calibrateCommand(con),
		planCommand(con),
		pruneCommand(con),
		reshardCommand(con),
		assembleCommand(con),
		editCommand(con),
		diffCommand(con),
		verifyCommand(con),
		repairCommand(con),
		evidenceCommand(con),
		reportCommand(con),
		cardCommand(con),
		signCommand(con),
		engineCommand(con),
		schemaCommand(con),
		demoCommand(con),
		completionCommand(con),
		versionCommand(con),
		manCommand(con, app),
		helpCommand(con, app),
	}
}

// newApp makes the command line.
func newApp(con *ui.Console) *cli.App {
	app := &cli.App{
		Name:                      "ggufreap",
		Description:               appHelp,
		HideHelp:                  true,
		HideHelpCommand:           true,
		HideVersion:               true,
		DisableSliceFlagSeparator: true,
		Reader:                    con.In,
		Writer:                    con.Out,
		ErrWriter:                 con.Err,
		ExitErrHandler:            func(*cli.Context, error) {}, // run decides the exit code
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "help", Aliases: []string{"h"}, Usage: "show the help of the program"},
			&cli.BoolFlag{Name: "version", Usage: "show the version of this program"},
		},
	}
	app.Commands = commands(con, app)
	for _, cmd := range app.Commands {
		args.Prepare(cmd)
	}
	app.Commands = append(app.Commands, completeCommand(con, app))
	app.OnUsageError = func(_ *cli.Context, err error, _ bool) error {
		return args.ExplainUsage(err, &cli.Command{Flags: app.Flags})
	}
	app.Action = func(c *cli.Context) error { return withoutCommand(con, c) }
	return app
}

// withoutCommand answers a command line that names no command of ours.
func withoutCommand(con *ui.Console, c *cli.Context) error {
	switch {
	case c.Bool("help"):
		con.Printf("%s", help.App(c.App))
		return nil
	case c.Bool("version"):
		return printVersion(con, false)
	case c.NArg() == 0:
		fmt.Fprint(con.Err, help.App(c.App))
		return args.Usagef("no command given")
	}
	return unknownCommand(c.App, c.Args().First())
}

func unknownCommand(app *cli.App, name string) error {
	err := args.Usagef("unknown command %q", name)
	var names []string
	for _, cmd := range app.Commands {
		names = append(names, cmd.Name)
	}
	if near := cmp.Or(args.Closest(name, names), elsewhere[strings.ToLower(name)]); near != "" {
		return hint.With(err, "did you mean: ggufreap %s", near)
	}
	if _, statErr := os.Stat(name); statErr == nil || gguf.IsModelFile(name) || remote.IsAddress(name) {
		return hint.With(err, "to look at a model: %s", args.CommandLine([]string{"ggufreap", "inspect", name}))
	}
	return hint.With(err, "see: ggufreap help")
}

// elsewhere are names that other tools have for what commands do.
var elsewhere = map[string]string{
	"info": "inspect", "show": "inspect", "list": "inspect", "ls": "inspect", "dump": "inspect", "stat": "inspect",
	"hash": "pin", "sum": "pin", "checksum": "pin", "lock": "pin",
	"check": "verify", "validate": "verify", "test": "verify",
	"split": "reshard", "merge": "reshard", "shard": "reshard", "gguf-split": "reshard",
	"join": "assemble", "compare": "diff", "fix": "repair", "set": "edit", "metadata": "edit",
	"measure": "calibrate", "score": "calibrate", "imatrix": "calibrate",
	"select": "plan", "choose": "plan", "reap": "prune", "cut": "prune",
	"draw": "report", "plot": "report", "readme": "card",
}

const helpHelp = `Show the help of the program, or of one command.

Usage:
  ggufreap help [COMMAND]

Flags:
`

// helpCommand prints the help of the program or of one command.
func helpCommand(con *ui.Console, app *cli.App) *cli.Command {
	return &cli.Command{
		Name:        "help",
		Usage:       "show this text, or the help of a command",
		Description: helpHelp,
		Action: func(c *cli.Context) error {
			if c.NArg() == 0 {
				con.Printf("%s", help.App(app))
				return nil
			}
			cmd := app.Command(c.Args().First())
			if cmd == nil {
				return unknownCommand(app, c.Args().First())
			}
			con.Printf("%s", help.Command(cmd))
			return nil
		},
	}
}
