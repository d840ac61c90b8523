package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
)

// block is a block of a page: its kind and its text.
var block = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```")

// TestScoreFilesOfThePage chooses experts by every score file that SELECTION.md shows, with
// the model that it describes.
func TestScoreFilesOfThePage(t *testing.T) {
	page := readPage(t, pages(t)["reap/SELECTION.md"])
	t.Chdir(t.TempDir())
	model := gguftest.K3(gguftest.K3Options{Name: "model", Layers: 3, Experts: 4, Used: 2, Hidden: 32, Latent: 32, Width: 32})
	write(t, with(model, func(md *gguf.Metadata) { md.Set("fixture.texts", gguf.TextsValue("not four")) }), gguf.Split{})
	examples := 0
	for _, b := range block.FindAllStringSubmatch(page, -1) {
		if b[1] != "json" && b[1] != "csv" {
			continue
		}
		examples++
		writeFile(t, "scores", []byte(b[2]))
		if r := ggufreap(t, "plan", "--keep", "3", "--from", "scores", "model.gguf"); r.code != exitOK {
			t.Errorf("%s\nof\n%s", r.stderr, b[2])
		}
	}
	if examples != 4 {
		t.Errorf("%d examples of score files, want 4", examples)
	}
}

// TestJSONOfPages wants every JSON block to be JSON, and to keep to its schema if it is one of
// our documents.
func TestJSONOfPages(t *testing.T) {
	for name, path := range pages(t) {
		for _, b := range block.FindAllStringSubmatch(readPage(t, path), -1) {
			if b[1] != "json" {
				continue
			}
			text := jsontext.Value(b[2])
			if !text.IsValid() {
				t.Errorf("%s: no JSON:\n%s", name, text)
			}
			if strings.Contains(b[2], `"schema": "ggufreap/`) {
				if _, err := validate(text); err != nil {
					t.Errorf("%s: %v in\n%s", name, err, text)
				}
			}
		}
	}
}

// commandLine is a command of ours that a page shows, without what a shell does with it.
var commandLine = regexp.MustCompile(`(?m)^ *(?:\$ )?(ggufreap [a-z][^#|>&;\n]*)`)

// code is what a page shows as typed: blocks and indented lines.
var code = regexp.MustCompile("(?ms)^```.*?^```|^    [^\n]*")

// commandsToCome are on pages already. One that exists leaves this list.
var commandsToCome = []string{}

// TestCommandLinesOfPages wants every command that a page shows to be one, with flags that it
// has.
func TestCommandLinesOfPages(t *testing.T) {
	for name, path := range pages(t) {
		shown := strings.Join(code.FindAllString(readPage(t, path), -1), "\n")
		for _, m := range commandLine.FindAllStringSubmatch(shown, -1) {
			words := strings.Fields(m[1])
			if err := parses(words); err != nil && !slices.Contains(commandsToCome, words[1]) {
				t.Errorf("%s: %s: %v", name, m[1], err)
			}
		}
	}
	for _, name := range commandsToCome {
		if newApp(ui.New(nil, nil, nil)).Command(name) != nil {
			t.Errorf("%s has come", name)
		}
	}
}

// parses has a command line read and nothing done.
func parses(words []string) error {
	app := newApp(ui.New(nil, &strings.Builder{}, &strings.Builder{}))
	for _, cmd := range app.Commands {
		cmd.Action = func(*cli.Context) error { return nil }
		for _, sub := range cmd.Subcommands {
			sub.Action = cmd.Action
		}
	}
	return app.Run(words)
}

// link is a link to another file.
var link = regexp.MustCompile(`\]\(([^):#]+)(?:#[^)]*)?\)`)

func TestLinksOfPages(t *testing.T) {
	for name, path := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(readPage(t, path), -1) {
			if to := filepath.Join(filepath.Dir(path), m[1]); !exists(to) {
				t.Errorf("%s links to %s, which is not there", name, m[1])
			}
		}
	}
}

// message is a line that a page says the program prints to stderr.
var message = regexp.MustCompile(`(?m)^ *ggufreap: (?:error|hint|warning): (.*)$`)

// TestMessagesOfPages wants every message that a page quotes to be one that the program can
// print: made of the texts in its source.
func TestMessagesOfPages(t *testing.T) {
	formats := sourceFormats(t)
	seen := 0
	for name, path := range pages(t) {
		page := consoleBlock.ReplaceAllString(readPage(t, path), "") // those are run
		for _, m := range message.FindAllStringSubmatch(page, -1) {
			seen++
			if !formats.say(m[1]) {
				t.Errorf("%s: nothing in the program says %q", name, m[1])
			}
		}
	}
	if seen == 0 {
		t.Error("no page quotes a message")
	}
	for said, want := range map[string]bool{
		"5 of 14 shards are finished and stay in K3-REAP568; to go on: ggufreap prune --resume": false,
		`output folder "x" holds an unfinished release that is like this one: it has 9 shards`:  false,
		"interrupted": true,
	} {
		if formats.say(said) != want {
			t.Errorf("%q: want %v", said, want)
		}
	}
}

// formats are the texts that messages are made of.
type formats []*regexp.Regexp

// few words can stand where a text has a place for a name or a number, or behind it.
const few = 3

// say reports whether a message is one of the texts, with few words or another of the texts
// where it has a place for them, or several texts with colons between.
func (fs formats) say(message string) bool {
	if strings.HasPrefix(message, "ggufreap ") {
		return parses(strings.Fields(message)) == nil
	}
	for _, format := range fs {
		if parts := format.FindStringSubmatch(message); parts != nil && fs.sayAll(parts[1:], len(message)) {
			return true
		}
	}
	for i := range len(message) {
		if strings.HasPrefix(message[i:], ": ") && fs.say(message[:i]) && fs.say(message[i+2:]) {
			return true
		}
	}
	return false
}

func (fs formats) sayAll(parts []string, most int) bool {
	for _, part := range parts {
		if len(strings.Fields(part)) > few && (len(part) >= most || !fs.say(part)) {
			return false
		}
	}
	return true
}

var (
	verb  = regexp.MustCompile(`%[-+# 0-9.]*[a-zA-Z%]`)
	words = regexp.MustCompile(`[a-z]{2,}`)
)

// newFormat makes a pattern of a text of the source, nil of one that says nothing.
func newFormat(s string) *regexp.Regexp {
	if !words.MatchString(verb.ReplaceAllString(s, "")) || strings.Contains(s, "\n") {
		return nil
	}
	pattern, last := "", 0
	for _, at := range verb.FindAllStringIndex(s, -1) {
		pattern += regexp.QuoteMeta(s[last:at[0]])
		switch s[at[1]-1] {
		case '%':
			pattern += "%"
		case 'q':
			pattern += `"[^"]*"`
		case 'd', 'f', 'x':
			pattern += `[-0-9.,a-f]+`
		default:
			pattern += "(.+)"
		}
		last = at[1]
	}
	pattern += regexp.QuoteMeta(s[last:])
	if last < len(s) {
		pattern += "((?: .*)?)"
	}
	return regexp.MustCompile("^" + pattern + "$")
}

// sourceFormats makes a pattern of every text of the program.
func sourceFormats(t *testing.T) formats {
	t.Helper()
	var list formats
	inspect := func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			s, _ := strconv.Unquote(lit.Value)
			if format := newFormat(s); format != nil {
				list = append(list, format)
			}
		}
		return true
	}
	for _, dir := range []string{"cmd", "manifest", "reap", "gguf"} {
		err := filepath.WalkDir(filepath.Join("..", "..", dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, inspect)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return list
}
