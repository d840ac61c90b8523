package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// secondNames are words for things that have another name on every screen, and phrases that
// stopped readers. Each with what is said in its place.
var secondNames = map[*regexp.Regexp]string{
	regexp.MustCompile(`(?i)\bslabs?\b`):        "expert",
	regexp.MustCompile(`(?i)\bartifacts?\b`):    "model",
	regexp.MustCompile(`(?i)\bparents?\b`):      "source",
	regexp.MustCompile(`(?i)\bcheckpoint of\b`): "model of",
	regexp.MustCompile(`(?i)\bleaves? open\b`):  "not shown",
	regexp.MustCompile(`(?i)\bmay differ\b`):    "allowed",
	regexp.MustCompile(`(?i)\b(is|are) told\b`): "another verb",
	regexp.MustCompile(`\b1 shards?\b`):         "1 file",
}

// TestOneNameForOneThing reads every text of the program with a blank in it, of screens and
// messages of all packages.
func TestOneNameForOneThing(t *testing.T) {
	texts := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && path != "../.."):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		for place, text := range textsOf(t, path) {
			texts++
			for name, better := range secondNames {
				if found := name.FindString(text); found != "" {
					t.Errorf("%s: %q says %q, want %s", place, text, found, better)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if texts < 1000 {
		t.Errorf("%d texts were read, there are thousands", texts)
	}
}

// textsOf returns the strings of a file that have a blank, by their places.
func textsOf(t *testing.T, path string) map[string]string {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		if field, ok := n.(*ast.Field); ok {
			field.Tag = nil
		}
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil && strings.Contains(text, " ") && !strings.HasPrefix(text, "(?") { // a pattern
				texts[files.Position(lit.Pos()).String()] = text
			}
		}
		return true
	})
	return texts
}
