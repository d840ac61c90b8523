package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ggufreap/cmd/ggufreap/internal/ui"
)

// consoleBlock is a block of a page that shows commands and what they print.
var consoleBlock = regexp.MustCompile("(?s)```console\n(.*?)```")

// pages returns the paths of all pages of the project, by their place in it.
func pages(t *testing.T) map[string]string {
	t.Helper()
	paths := map[string]string{}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != root && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		if err == nil && filepath.Ext(path) == ".md" {
			name, _ := filepath.Rel(root, path)
			paths[filepath.ToSlash(name)] = path
		}
		return err
	})
	if err != nil || len(paths) == 0 {
		t.Fatal("no pages:", err)
	}
	return paths
}

// TestPages runs the commands of each page's console blocks in order and holds what is
// shown to what they print. With -update the page is written anew.
func TestPages(t *testing.T) {
	for name, path := range pages(t) {
		if consoleBlock.MatchString(readPage(t, path)) {
			t.Run(name, func(t *testing.T) { testPage(t, path) })
		}
	}
}

// TestPagePublishes runs what PUBLISHING.md publishes with, on the demo's model, and wants the
// card to leave nothing open that a flag says.
func TestPagePublishes(t *testing.T) {
	_, shown, _ := strings.Cut(readPage(t, pages(t)["cmd/ggufreap/PUBLISHING.md"]), "\n## Publish it\n")
	shown, _, _ = strings.Cut(shown, "\n## ")
	t.Chdir(t.TempDir())
	succeed(t, "demo")
	t.Chdir("ggufreap-demo")
	writeText(t, "LICENSE", "The license.\n")
	names := strings.NewReplacer("plan568.json", "plan.json", "K3.pin.json.zst", "source.pin.json.zst", "\\\n", " ")
	ran := 0
	for line := range strings.Lines(names.Replace(shown)) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == "ggufreap" {
			ran++
			if r := ggufreap(t, words[1:]...); r.code != exitOK || strings.Contains(r.stderr, "does not say") {
				t.Errorf("%s: exit %d\n%s", line, r.code, r.stderr)
			}
		}
	}
	if ran < 5 {
		t.Errorf("%d commands were found, want at least 5", ran)
	}
}

func testPage(t *testing.T, path string) {
	shown := readPage(t, path)
	t.Chdir(t.TempDir())
	succeed(t, "demo")
	t.Chdir("ggufreap-demo")
	got := consoleBlock.ReplaceAllStringFunc(shown, func(block string) string {
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
	if got != shown {
		t.Errorf("the page shows what the commands do not print; with -update it is written anew\n%s", firstDifference(got, shown))
	}
}

func readPage(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
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

// TestPagesNameEveryCommand holds the pages to the commands that exist.
func TestPagesNameEveryCommand(t *testing.T) {
	shown := ""
	for _, path := range pages(t) {
		shown += readPage(t, path)
	}
	for _, cmd := range newApp(ui.New(nil, nil, nil)).Commands {
		if !cmd.Hidden && cmd.Name != "version" && !strings.Contains(shown, "ggufreap "+cmd.Name) {
			t.Errorf("no page mentions ggufreap %s", cmd.Name)
		}
	}
}
