package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// consoleBlock is a block of the README that shows commands and what they print.
var consoleBlock = regexp.MustCompile("(?s)```console\n(.*?)```")

// TestReadme runs the commands of the README's console blocks in order and holds what is
// shown to what they print. With -update the README is written anew.
func TestReadme(t *testing.T) {
	path, err := filepath.Abs("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	succeed(t, "demo")
	t.Chdir("ggufreap-demo")
	got := consoleBlock.ReplaceAllStringFunc(string(readme), func(block string) string {
		var b strings.Builder
		for line := range strings.Lines(block) {
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				b.WriteString(line + transcribe(t, strings.TrimSpace(command)))
			}
		}
		return "```console\n" + b.String() + "```"
	})
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want := string(readme); got != want {
		t.Errorf("the README shows what the commands do not print; with -update it is written anew\n%s", firstDifference(got, want))
	}
}

// transcribe returns what a command prints: ours is run here, any other by a shell.
func transcribe(t *testing.T, command string) string {
	t.Helper()
	words := strings.Fields(command)
	if words[0] != "ggufreap" {
		out, err := exec.Command("sh", "-c", command).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
		return string(out)
	}
	r := ggufreap(t, words[1:]...)
	return trimLines(r.stdout + r.stderr)
}

// trimLines removes what stands at the end of lines and cannot be seen.
func trimLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// firstDifference shows the first lines that differ.
func firstDifference(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return "got:  " + a[i] + "\nwant: " + b[i]
		}
	}
	return "one is longer"
}

// TestReadmeNamesEveryCommand holds the README to the commands that exist.
func TestReadmeNamesEveryCommand(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, cmd := range newApp(newConsole(nil, nil, nil)).Commands {
		if !slices.Contains([]string{"version"}, cmd.Name) && !strings.Contains(string(readme), "ggufreap "+cmd.Name) {
			t.Errorf("the README does not mention ggufreap %s", cmd.Name)
		}
	}
}
