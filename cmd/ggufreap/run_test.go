package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/help"
	"ggufreap/cmd/ggufreap/internal/programtest"
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
	return ggufreapFrom(t, "", args...)
}

// ggufreapFrom does so with a text on standard input.
func ggufreapFrom(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	con := ui.New(strings.NewReader(stdin), &stdout, &stderr)
	code := run(context.Background(), con, nil, append([]string{"ggufreap"}, args...))
	r := result{stdout.String(), stderr.String(), code}
	if err := programtest.CheckDocuments(programtest.Result{Stdout: r.stdout, Stderr: r.stderr, Code: r.code}, args); err != nil {
		t.Error(err)
	}
	return r
}

// What tests of other packages have too, by short names.
var (
	bare, vector          = programtest.Bare, programtest.Vector
	smallMoE, smallK3     = programtest.SmallMoE, programtest.SmallK3
	changeBytes           = programtest.ChangeBytes
	write, writeModel     = programtest.Write, programtest.WriteModel
	openModel, tensorData = programtest.OpenModel, programtest.TensorData
	exists, folder, flip  = programtest.Exists, programtest.Folder, programtest.Flip
	readFile, writeText   = programtest.ReadFile, programtest.WriteText
	validate              = programtest.Validate
)

// goldenDir is absolute: tests change the folder they run in.
var goldenDir, _ = filepath.Abs(filepath.Join("testdata", "golden"))

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

func TestHelpWithoutACommand(t *testing.T) {
	screen := help.App(newApp(ui.New(nil, &bytes.Buffer{}, &bytes.Buffer{})))
	if r := ggufreap(t, "--help"); r != (result{screen, "", exitOK}) {
		t.Errorf("--help gives %+v", r)
	}
	if r := ggufreap(t); r != (result{"", screen + "ggufreap: error: no command given\n", exitFailed}) {
		t.Errorf("no command gives %+v", r)
	}
}

// TestHelpOfEveryCommand holds commands to what help, completion and the order of words rest
// on: each flag says what it does and what its value is called, and takes a value in all
// commands or in none.
func TestHelpOfEveryCommand(t *testing.T) {
	app := newApp(ui.New(nil, &bytes.Buffer{}, &bytes.Buffer{}))
	valued := map[string]bool{}
	for _, cmd := range app.Commands {
		if cmd.Hidden {
			continue
		}
		screen := help.Command(cmd)
		for _, part := range []string{"Usage:\n  ggufreap " + cmd.Name + " ", "\n  -h, --help             show this text\n"} {
			if !strings.Contains(screen, part) {
				t.Errorf("%s: the help screen lacks %q", cmd.Name, part)
			}
		}
		if cmd.Usage == "" {
			t.Errorf("%s: no line for the list of commands", cmd.Name)
		}
		for _, s := range help.Sections(cmd.Flags) {
			for _, f := range s.Flags {
				if f.Text == "" || f.Takes != (f.Value != "") {
					t.Errorf("%s: --%s has the text %q, takes a value %v and calls it %q", cmd.Name, f.Name, f.Text, f.Takes, f.Value)
				}
				if before, known := valued[f.Name]; known && before != f.Takes {
					t.Errorf("%s: --%s takes a value, or does not, unlike in another command", cmd.Name, f.Name)
				}
				valued[f.Name] = f.Takes
			}
		}
	}
	for _, cmd := range app.Commands {
		for line := range strings.Lines(help.Command(cmd)) {
			if text.Columns(strings.TrimSuffix(line, "\n")) > 80 {
				t.Errorf("%s: help line is wider than 80 columns: %s", cmd.Name, line)
			}
		}
	}
}

// TestFlagsAnywhere gives flags behind arguments and before the command.
func TestFlagsAnywhere(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, smallMoE(), gguf.Split{})
	want := succeed(t, "inspect", "--key", "general.architecture", "--json", "small.gguf")
	for _, words := range [][]string{
		{"inspect", "small.gguf", "--json", "--key", "general.architecture"},
		{"inspect", "--json", "small.gguf", "--key=general.architecture"},
		{"--key", "general.architecture", "inspect", "small.gguf", "-json"},
		{"--json", "--key", "general.architecture", "inspect", "--", "small.gguf"},
	} {
		if got := succeed(t, words...); got != want {
			t.Errorf("%q gives %s", words, got)
		}
	}
	refuse(t, `--key takes one value and is given two, "general.name" and "general.type"`, "inspect", "small.gguf", "--key", "general.name", "--key=general.type")
	refuse(t, `--output takes one value and is given two, "a" and "b"`, "plan", "-o", "a", "--keep", "4", "small.gguf", "--output", "b")
	succeed(t, "inspect", "--keep", "4", "small.gguf", "--keep", "2", "--json", "--json")
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
	code := run(ctx, con, nil, []string{"ggufreap", "plan", "--keep", "4", "small.gguf"})
	if code != exitInterrupted || stderr.String() != "ggufreap: error: interrupted\n" || stdout.Len() > 0 {
		t.Errorf("exit %d, stderr %q, stdout %q", code, stderr.String(), stdout.String())
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestOutputThatCannotBeWritten(t *testing.T) {
	var stderr bytes.Buffer
	con := ui.New(nil, fullDisk{}, &stderr)
	code := run(context.Background(), con, nil, []string{"ggufreap", "version"})
	if code != exitFailed || stderr.String() != "ggufreap: error: no space left on device\n" {
		t.Errorf("exit %d, stderr %q", code, stderr.String())
	}
}

func readText(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
