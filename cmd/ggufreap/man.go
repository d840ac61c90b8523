package main

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/files"
	"ggufreap/cmd/ggufreap/internal/help"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/text"
)

const manHelp = `Print the man page of the program or of a command, or write all of them.

Usage:
  ggufreap man [flags] [COMMAND]
  ggufreap man -o DIR

Flags:

Examples:
  ggufreap man prune | man -l -
  ggufreap man -o ~/.local/share/man/man1
`

func manCommand(con *ui.Console, app *cli.App) *cli.Command {
	return &cli.Command{
		Name:        "man",
		Usage:       "print man pages, or write them into a folder",
		Description: manHelp,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write a page for the program and for each command into the folder `DIR`"},
			&cli.BoolFlag{Name: "force", Usage: "replace pages that exist"},
		},
		Action: func(c *cli.Context) error { return manAction(con, c, app) },
	}
}

func manAction(con *ui.Console, c *cli.Context, app *cli.App) error {
	dir, name := c.String("output"), c.Args().First()
	switch {
	case c.NArg() > 1 || dir != "" && name != "":
		return args.Usagef("man takes one command, or -o DIR and writes the pages of all")
	case dir != "":
		return writePages(con, app, dir, c.Bool("force"))
	case name == "":
		con.Printf("%s", help.AppPage(app, edition()))
		return nil
	}
	cmd := app.Command(name)
	if cmd == nil || cmd.Hidden {
		return unknownCommand(app, name)
	}
	con.Printf("%s", help.Page(app, cmd, edition()))
	return nil
}

// edition says which program the pages are about.
func edition() help.Edition {
	e := help.Edition{Version: buildVersion().Version}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.time" {
				e.Date, _, _ = strings.Cut(s.Value, "T")
			}
		}
	}
	return e
}

// writePages writes all pages into a folder, which is made if it is not there.
func writePages(con *ui.Console, app *cli.App, dir string, force bool) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	pages := map[string][]byte{app.Name: help.AppPage(app, edition())}
	for _, cmd := range help.Commands(app) {
		pages[app.Name+"-"+cmd.Name] = help.Page(app, cmd, edition())
	}
	for name, page := range pages {
		if _, err := files.Write(filepath.Join(dir, name+".1"), force, nil, files.Bytes(page)); err != nil {
			return err
		}
	}
	con.Field("written", "%s in %s", text.Count(len(pages), "page"), text.Safe(dir))
	return nil
}
