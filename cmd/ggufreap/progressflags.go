package main

import (
	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/progress"
)

// progressHelp describes the flags of progressFlags.
const progressHelp = `  -q, --quiet            show no progress
      --progress MODE    auto, bar, plain or none (auto: a bar on a terminal,
                         lines where TERM is dumb, nothing elsewhere)
`

// progressFlags are the flags of every command that reads tensor data.
func progressFlags(con *ui.Console) []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Destination: &con.Quiet},
		&cli.StringFlag{Name: "progress", Value: progress.Auto, Destination: &con.Progress,
			Action: func(_ *cli.Context, mode string) error {
				switch mode {
				case progress.Auto, progress.Bar, progress.Plain, progress.None:
					return nil
				}
				return args.Usagef("--progress is %q, want auto, bar, plain or none", mode)
			}},
	}
}
