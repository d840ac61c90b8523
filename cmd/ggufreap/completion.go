package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/completion"
	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/ui"
)

const completionHelp = `Print a script that makes a shell complete commands, flags and their values.

Usage:
  ggufreap completion [flags] bash|zsh|fish|powershell

The script asks ggufreap what fits, so it need not be renewed with the program.

Flags:

Examples:
  source <(ggufreap completion bash)
  ggufreap completion fish > ~/.config/fish/completions/ggufreap.fish
`

func completionCommand(con *ui.Console) *cli.Command {
	return &cli.Command{
		Name:        "completion",
		Usage:       "print a script that makes a shell complete commands and flags",
		Description: completionHelp,
		Action: func(c *cli.Context) error {
			shell := c.Args().First()
			if c.NArg() != 1 || !slices.Contains(completion.Shells, shell) {
				return hint.With(args.Usagef("completion takes the name of a shell: %s", strings.Join(completion.Shells, ", ")), "ggufreap completion bash")
			}
			con.Printf("%s", completion.Script(shell))
			return nil
		},
	}
}

// completeCommand is asked by the scripts, and not by people.
func completeCommand(con *ui.Console, app *cli.App) *cli.Command {
	return &cli.Command{
		Name:            completion.Command,
		Hidden:          true,
		HideHelp:        true,
		HideHelpCommand: true,
		Flags:           []cli.Flag{&cli.StringFlag{Name: "last"}}, // behind the arguments, for shells that drop an empty one
		Action: func(c *cli.Context) error {
			words := c.Args().Slice()
			if c.IsSet("last") {
				words = append(words, c.String("last"))
			}
			con.Printf("%s", completion.Complete(app, words))
			return nil
		},
	}
}
