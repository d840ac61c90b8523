package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/hub"
	"ggufreap/cmd/ggufreap/internal/release"
	"ggufreap/gguf"
)

// releaseFlags are those of a command that writes a release.
func releaseFlags(folder, stem string) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "`DIR`: " + folder + "; it must be empty or new"},
		&cli.StringFlag{Name: "name", Usage: "`STEM`: stem of the file names (" + stem + ")"},
		&cli.BoolFlag{Name: "resume", Usage: "go on with what was interrupted in DIR; where it is finished already, say so"},
		&cli.BoolFlag{Name: "recheck", Usage: "read all of a release, or part of one, that is found finished, not sizes and headers alone"},
		&cli.BoolFlag{Name: "force", Usage: "accept a folder that is not empty"},
		&cli.IntFlag{Name: "workers", Usage: "`N`: shards written at once (two for each processor)"},
		&cli.BoolFlag{Name: "dry-run", Usage: "print the exact files and bytes, check that DIR has room for them, and stop"},
		jsonFlag(),
	}
}

// checkFolder wants a folder to write to, unless nothing will be written.
func checkFolder(c *cli.Context) error {
	switch folder := c.String("output"); {
	case folder == "" && !c.Bool("dry-run"):
		return hint.With(args.Usagef("no output folder given"), "-o DIR names it; --dry-run shows what would be written")
	case gguf.IsModelFile(folder):
		return hint.With(args.Usagef("-o names a folder, got %q", folder), "-o DIR --name %s", args.ShellQuote(gguf.Stem(folder)))
	}
	return nil
}

// stemFlag returns the stem that --name asks for, or the one that comes of the source's
// name.
func stemFlag(c *cli.Context, ofSource string) (string, error) {
	if !c.IsSet("name") {
		if fault := release.StemFault(ofSource); fault != "" {
			return "", hint.With(fmt.Errorf("the source's name gives the files the stem %q: %s", ofSource, fault), "--name STEM gives them another")
		}
		return ofSource, nil
	}
	stem := strings.TrimSuffix(c.String("name"), ".gguf")
	if fault := release.StemFault(stem); fault != "" {
		return "", args.Usagef("--name is %q: %s", stem, fault)
	}
	return stem, nil
}

// interruptHelp says what Ctrl-C does to a command that writes a release.
const interruptHelp = `Ctrl-C ends the run within a second, keeps what is on disk and says how to go
on. However a run ends, the next one with --resume writes at most 5 % of the
bytes again, and at most 256 MiB for each worker.
`

// writeOptions are how the flags say that a release is written.
func writeOptions(c *cli.Context) release.Options {
	return release.Options{Resume: c.Bool("resume"), Recheck: c.Bool("recheck"), Force: c.Bool("force"), Workers: c.Int("workers"), Typed: hub.Redacted(args.Typed(c))}
}
