package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/release"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/manifest/parts"
	"ggufreap/manifest/stage"
)

// onlyFlag divides a command's work among many tasks.
func onlyFlag() cli.Flag {
	return &cli.StringFlag{Name: "only", Usage: "`I/N`: do part I of N; assemble joins them (auto/N: the part whose number a scheduler gives)"}
}

// shareOf returns which part of its work a command is to do.
func shareOf(c *cli.Context) (stage.Share, error) {
	i, n, err := args.Part(c.String("only"), os.Getenv)
	return stage.Share{Part: i, Parts: n, Task: c.Command.Name, Program: programVersion(), Runner: runnerName()}, err
}

// runnerName is what tells people whose a temporary file is.
func runnerName() string {
	host, _ := os.Hostname()
	plain := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return -1
	}, host)
	return fmt.Sprintf("%s-%d-", plain[:min(len(plain), 24)], os.Getpid())
}

// checkOnly refuses what cannot be said of a part of a release.
func checkOnly(c *cli.Context) error {
	if !c.IsSet("only") {
		return nil
	}
	for _, flag := range aboutAll {
		if c.IsSet(flag.name) {
			return hint.With(args.Usagef("--%s and --only exclude each other", flag.name), "%s", flag.why)
		}
	}
	_, err := shareOf(c)
	return err
}

const signedLater = "the list of sums is signed, which is there once the parts are joined: ggufreap sign signs it then"

// aboutAll are flags that are not for a part of a release.
var aboutAll = []struct{ name, why string }{
	{"pin-source", "the pin of the source needs every byte of it, and a part reads some: ggufreap pin --only takes it in parts"},
	{"card", "the card states sums of the whole release: ggufreap card writes it once the parts are joined"},
	{"ssh-key", signedLater}, {"key", signedLater}, {"provenance", signedLater}, {"builder", signedLater},
	{"force", "a folder that many tasks write to holds their release alone: give one that is empty or new"},
}

// writePart writes one part of a release, or tells of it. Where the release is finished already
// it reports that, and all is left to be told.
func writePart(con *ui.Console, c *cli.Context, r *release.Release) (finished bool, err error) {
	share, err := shareOf(c)
	if err != nil {
		return false, err
	}
	var record *parts.Record
	if !c.Bool("dry-run") {
		record, err = release.WritePart(c.Context, con, r, writeOptions(c), share)
		if err != nil || record == nil {
			return err == nil, err
		}
	}
	switch {
	case c.Bool("json") && record != nil:
		return false, record.Encode(con.Out)
	case c.Bool("json"):
		return false, con.JSON(r.PartDocument(share))
	}
	release.DescribePart(con, r, share, record)
	return false, nil
}
