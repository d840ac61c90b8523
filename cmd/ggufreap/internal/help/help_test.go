package help

import (
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

func TestCommand(t *testing.T) {
	cmd := &cli.Command{
		Name: "take",
		Description: `Take things.

Usage:
  ggufreap take [flags] THING

Flags:

Examples:
  ggufreap take x
`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write what was taken to `FILE`"},
			&cli.IntFlag{Name: "workers", Usage: "`N`: things taken at once, or one after the other where there is but one hand"},
			&cli.BoolFlag{Name: "hidden", Hidden: true},
			&cli.StringSliceFlag{Name: "a-long-name-of-flag", Category: "What is said", Usage: "`WORD`: one line\nand another one"},
			&cli.StringFlag{Name: "max-shard-size", Category: "What is said", Usage: "`S`: what just fits"},
			&cli.BoolFlag{Name: "json", Usage: "print a JSON document"},
		},
	}
	const want = `Take things.

Usage:
  ggufreap take [flags] THING

Flags:
  -o, --output FILE      write what was taken to FILE
      --workers N        things taken at once, or one after the other where
                         there is but one hand
      --json             print a JSON document

What is said:
      --a-long-name-of-flag WORD
                         one line
                         and another one
      --max-shard-size S what just fits

Examples:
  ggufreap take x
`
	if got := Command(cmd); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestApp(t *testing.T) {
	app := &cli.App{
		Description: "Do things.\n\nCommands:\n\nExamples:\n  x\n",
		Commands: []*cli.Command{
			{Name: "take", Usage: "take a thing"},
			{Name: "secret", Usage: "not for people", Hidden: true},
			{Name: "a-long-command", Usage: "take another thing, and say of it whatever there is to be said, at length"},
		},
	}
	const want = `Do things.

Commands:
  take            take a thing
  a-long-command  take another thing, and say of it whatever there is to be
                  said, at length

Examples:
  x
`
	if got := App(app); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// TestTitlesOfPages wants version and date in the title line of a man page.
func TestTitlesOfPages(t *testing.T) {
	const want = `.TH TAKER 1 "2026-11-30" "ggufreap v1.2.3" "User Commands"`
	if got := string(AppPage(&cli.App{Name: "taker", Description: "taker takes things.\n"}, Edition{"v1.2.3", "2026-11-30"})); !strings.Contains(got, want+"\n") {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}
