package main

import (
	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/progress"
)

// progressFlags are the flags of every command that reads tensor data.
func progressFlags(con *ui.Console) []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Destination: &con.Quiet, Usage: "show no progress"},
		args.OneOf(&cli.StringFlag{Name: "progress", Value: progress.Auto, Destination: &con.Progress,
			Usage: "`MODE`: auto, bar, plain, json or none (auto: a bar on a terminal, lines where TERM is dumb, nothing elsewhere; json: a line a second for programs, on stderr)"},
			progress.Auto, progress.Bar, progress.Plain, progress.JSON, progress.None),
	}
}
