package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
)

var update = flag.Bool("update", false, "write the golden files anew")

// A result is what one run of the program left.
type result struct {
	stdout, stderr string
	code           int
}

// ggufreap runs the program with arguments and no terminal.
func ggufreap(t *testing.T, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	con := ui.New(strings.NewReader(""), &stdout, &stderr)
	code := run(con, context.Background(), nil, append([]string{"ggufreap"}, args...))
	return result{stdout.String(), stderr.String(), code}
}

// goldenDir is absolute: tests change the folder they run in.
var goldenDir, _ = filepath.Abs(filepath.Join("testdata", "golden"))

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// golden compares got with a file in testdata/golden, or writes it with -update.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join(goldenDir, name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; got:\n%s\nwant:\n%s", path, got, want)
	}
}

// transcript writes a run as a terminal would show it, both streams apart.
func transcript(r result, words ...string) string {
	var b strings.Builder
	b.WriteString("$ " + args.CommandLine(append([]string{"ggufreap"}, words...)) + "\n")
	b.WriteString(r.stdout)
	if r.stderr != "" {
		b.WriteString("--- stderr\n" + r.stderr)
	}
	b.WriteString("--- exit " + string(rune('0'+r.code)) + "\n")
	return b.String()
}

func TestUsage(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
	}{
		{"help", []string{"help"}},
		{"help-command", []string{"help", "version"}},
		{"command-help-flag", []string{"version", "--help"}},
		{"command-help-flag-argument", []string{"version", "--help", "x"}},
		{"help-unknown", []string{"help", "inspekt"}},
		{"unknown-command", []string{"frobnicate"}},
		{"unknown-command-near", []string{"versoin"}},
		{"unknown-command-file", []string{"my model.gguf"}},
		{"unknown-flag", []string{"version", "--jsn"}},
		{"unknown-root-flag", []string{"--verion"}},
		{"unknown-short-flag", []string{"version", "-x"}},
		{"missing-value", []string{"inspect", "--key"}},
		{"bad-number", []string{"inspect", "--keep", "many", "m.gguf"}},
		{"extra-argument", []string{"version", "x"}},
		{"no-artifact", []string{"inspect"}},
		{"trailing-flag", []string{"version", "x", "--json"}},
		{"trailing-flag-value", []string{"inspect", "--json", "my model.gguf", "--key", "general.name", "--tensors"}},
		{"trailing-flag-joined", []string{"inspect", "m.gguf", "--key=general.name"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := ggufreap(t, tc.args...)
			golden(t, "usage/"+tc.name+".txt", transcript(r, tc.args...))
		})
	}
}

func TestHelpWithoutACommand(t *testing.T) {
	if r := ggufreap(t, "--help"); r != (result{appHelp, "", exitOK}) {
		t.Errorf("--help gives %+v", r)
	}
	if r := ggufreap(t); r != (result{"", appHelp + "ggufreap: error: no command given\n", exitFailed}) {
		t.Errorf("no command gives %+v", r)
	}
}

// TestHelpNamesEveryFlag holds the hand-written help texts to the flags that exist.
func TestHelpNamesEveryFlag(t *testing.T) {
	app := newApp(ui.New(nil, &bytes.Buffer{}, &bytes.Buffer{}))
	written := regexp.MustCompile(`(?m)^ +(?:-[a-z], )?--([a-z-]+)`)
	for _, cmd := range app.Commands {
		if !strings.Contains(appHelp, "\n  "+cmd.Name+" ") {
			t.Errorf("the help text of the program lacks %s", cmd.Name)
		}
		if cmd.Name == "help" {
			continue
		}
		help := cmd.CustomHelpTemplate
		var documented, defined []string
		for _, m := range written.FindAllStringSubmatch(help, -1) {
			documented = append(documented, m[1])
		}
		for _, f := range cmd.Flags {
			defined = append(defined, f.Names()[0])
		}
		slices.Sort(documented)
		slices.Sort(defined)
		if !slices.Equal(documented, defined) {
			t.Errorf("%s: help names flags %q, defined are %q", cmd.Name, documented, defined)
		}
		for line := range strings.Lines(help) {
			if text.Columns(strings.TrimSuffix(line, "\n")) > 80 {
				t.Errorf("%s: help line is wider than 80 columns: %s", cmd.Name, line)
			}
		}
	}
}

func TestSeparatorKeepsNamesThatLookLikeFlags(t *testing.T) {
	var got []string
	con := ui.New(nil, &bytes.Buffer{}, &bytes.Buffer{})
	app := newApp(con)
	cmd := &cli.Command{Name: "take", Action: func(c *cli.Context) error {
		got = c.Args().Slice()
		return nil
	}}
	args.Prepare(cmd)
	app.Commands = append(app.Commands, cmd)
	if err := app.Run([]string{"ggufreap", "take", "--", "--odd.gguf", "b"}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"--odd.gguf", "b"}; !slices.Equal(got, want) {
		t.Errorf("arguments %q, want %q", got, want)
	}
}

func TestInterrupted(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, smallMoE(), gguf.Split{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var stdout, stderr bytes.Buffer
	con := ui.New(nil, &stdout, &stderr)
	code := run(con, ctx, nil, []string{"ggufreap", "plan", "--keep", "4", "small.gguf"})
	if code != exitFailed || stderr.String() != "ggufreap: error: interrupted\n" || stdout.Len() > 0 {
		t.Errorf("exit %d, stderr %q, stdout %q", code, stderr.String(), stdout.String())
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestOutputThatCannotBeWritten(t *testing.T) {
	var stderr bytes.Buffer
	con := ui.New(nil, fullDisk{}, &stderr)
	code := run(con, context.Background(), nil, []string{"ggufreap", "version"})
	if code != exitFailed || stderr.String() != "ggufreap: error: no space left on device\n" {
		t.Errorf("exit %d, stderr %q", code, stderr.String())
	}
}
