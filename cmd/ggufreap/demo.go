package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/engines"
	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/release"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
)

const demoHelp = `Try the whole path on a small model that is made on the spot.

Usage:
  ggufreap demo [flags]

Makes a model of the kimi-k3 architecture with random weights, 25 MB in
nine shards with 896 routed experts in each of four layers; pins it; measures
its experts in llama.cpp, where that is found (see: ggufreap help engine); plans
and prunes it to 568 experts in fourteen shards; and verifies that the release
is made of the pinned bytes. Each step is shown as the command that does it. The
files stay for you to look at.

Flags:

Examples:
  ggufreap demo
  ggufreap demo -o /tmp/demo
`

func demoCommand(con *ui.Console) *cli.Command {
	return &cli.Command{
		Name:        "demo",
		Usage:       "try it all on a small model made on the spot",
		Description: demoHelp,
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: "ggufreap-demo", Usage: "`DIR`: the folder to work in, empty or new (ggufreap-demo)"},
		}, progressFlags(con)...),
		Action: func(c *cli.Context) error { return demoAction(con, c) },
	}
}

func demoAction(con *ui.Console, c *cli.Context) error {
	if err := args.None(c); err != nil {
		return err
	}
	dir := c.String("output")
	if err := checkEmptyFolder(dir); err != nil {
		return err
	}
	source := filepath.Join(dir, "source")
	con.Printf("Making a small kimi-k3 model in %s\n", text.Safe(source))
	files, err := gguftest.K3(gguftest.K3Options{}).Write(source, gguf.Split{Shards: gguftest.K3Shards})
	if err != nil {
		return err
	}
	measures, err := canMeasure(con, c.Context)
	if err != nil {
		return err
	}
	for _, step := range demoSteps(dir, files[0], measures) {
		con.Printf("\n%s\n", step.why)
		if err := show(con, c.Context, step.args); err != nil {
			return err
		}
	}
	release := demoRelease(dir)
	con.Printf("\nThe source is in %s, the release in %s.\n", text.Safe(source), text.Safe(release))
	con.Printf("Any program can check it:  cd %s && sha256sum -c MANIFEST.sha256\n", args.ShellQuote(release))
	return nil
}

// canMeasure reports whether there is a llama.cpp to measure experts with, and says what is done
// without one.
func canMeasure(con *ui.Console, ctx context.Context) (bool, error) {
	e, err := engines.Usable(ctx, "")
	if err == nil {
		return true, e.Close()
	}
	if ctx.Err() != nil {
		return false, err
	}
	con.Printf("\nIts experts are not measured but ranked by a proxy, since no llama.cpp can be used here:\n%s.\n\"ggufreap help engine\" says where to get it.\n", text.Safe(err.Error()))
	return false, nil
}

func demoRelease(dir string) string { return filepath.Join(dir, "release") }

// A demoStep is a command of ours, and what it is for.
type demoStep struct {
	why  string
	args []string
}

// demoSteps are the way from a model to a checked release.
func demoSteps(dir, model string, measures bool) []demoStep {
	var (
		pin     = filepath.Join(dir, "source.pin.json.zst")
		scores  = filepath.Join(dir, "source.scores.npz")
		plan    = filepath.Join(dir, release.PlanName)
		release = demoRelease(dir)
		why     = "Choose 568 of the 896 experts in every layer"
		choice  = []string{"plan", "--preset", "reap568", "--pin", pin, "-o", plan}
		check   = []string{"verify", "--source-pin", pin, "--expect", "experts=568,shards=14"}
	)
	steps := []demoStep{{"Record hashes of its files, tensors and experts", []string{"pin", "-o", pin, model}}}
	if measures {
		steps = append(steps, demoStep{"Measure its experts in llama.cpp, on text that it writes itself", []string{"calibrate", "--self-text", "2048", "-o", scores, model}})
		choice = append(choice, "--from", scores)
		check = append(check, "--engine")
		why += ".\nIts weights are random, and no text reaches all of its experts: among those that none\nreached the choice is a tie, as the plan says"
	}
	return append(steps,
		demoStep{why, append(choice, model)},
		demoStep{"Write the model that keeps them, in fourteen shards", []string{"prune", "--plan", plan, "--source-pin", pin, "--shards", "14", "-o", release, model}},
		demoStep{"Check the release, and that all its bytes are the source's", append(check, release)},
	)
}

// show prints a command as it would be typed, and runs it.
func show(con *ui.Console, ctx context.Context, words []string) error {
	line := append([]string{"ggufreap"}, words...)
	con.Printf("%s\n", con.Paint(ui.Bold, "$ "+args.CommandLine(line)))
	con.Flush()
	return runCommand(ctx, con, line)
}

// checkEmptyFolder refuses a folder that holds anything.
func checkEmptyFolder(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(entries) > 0 {
		return hint.With(args.Usagef("folder %s is not empty", text.Safe(dir)), "remove it, or choose another with -o DIR")
	}
	return nil
}
