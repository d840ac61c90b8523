package main

import (
	"os"
	"strings"
	"testing"
)

// TestCard writes a card, has a person add to it, renews it, and looks for what no longer fits.
func TestCard(t *testing.T) {
	published := evidenceFile(t, "four-node-reap568.yaml")
	reportFolder(t)
	flags := []string{"--source-pin", "source.json", "--license", "mit", "--base-model", "owner/small", "--evidence", published, "--nodes", "2", "cut"}
	make := func(path string) string {
		t.Helper()
		succeed(t, append([]string{"card", "-o", path}, flags...)...)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	fits := func(path string, code int) result {
		t.Helper()
		r := ggufreap(t, append([]string{"card", "--check", path}, flags...)...)
		if r.code != code {
			t.Errorf("check of %s: %+v", path, r)
		}
		return r
	}
	first := make("a.md")
	if second := make("b.md"); first != second {
		t.Error("two cards of one release differ")
	}
	golden(t, "card/card.md", first)
	fits("a.md", exitOK)
	for _, want := range []string{"base_model: owner/small", "license: mit", "a proxy from the weights alone: not measured, not lossless", "75.09", "**Not executed**", "ggufreap verify"} {
		if !strings.Contains(first, want) {
			t.Errorf("no %q", want)
		}
	}

	mine := strings.Replace(first, "# small-REAP4\n", "# My model\n\nI made this.\n", 1)
	mine = strings.Replace(mine, "---\n\n# My", "# mine: <kept>\nlanguage: de\n---\n\n# My", 1) + "\nThe end, mine too.\n"
	if err := os.WriteFile("mine.md", []byte(mine), 0o644); err != nil {
		t.Fatal(err)
	}
	fits("mine.md", exitOK)
	if again := make("mine.md"); again != mine {
		t.Errorf("a card that fits was changed:\n%s", firstDifference(again, mine))
	}
	stale := strings.Replace(mine, "75.09", "95.09", 1)
	stale = strings.Replace(stale, "4 of 8", "6 of 8", 1)
	if err := os.WriteFile("mine.md", []byte(stale), 0o644); err != nil {
		t.Fatal(err)
	}
	r := fits("mine.md", exitDiffers)
	for _, want := range []string{"summary, line", "evidence, line", "95.09", "75.09"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("check says nothing of %q:\n%s", want, r.stdout)
		}
	}
	if again := make("mine.md"); again != mine {
		t.Errorf("renewed:\n%s", firstDifference(again, mine))
	}
}

// TestCardRefuses wants a clear error, and nothing written, for what makes no card.
func TestCardRefuses(t *testing.T) {
	model := reportFolder(t)
	for name, text := range map[string]string{
		"open.md":    "<!-- ggufreap:begin run -->\n",
		"front.md":   "---\na: [\n---\n",
		"unended.md": "---\na: b\n",
		"other.yaml": "schema: ggufreap/evidence/v1\nrelease: {pin_digest: \"blake3:" + strings.Repeat("0", 64) + "\"}\nnotes: [x]\nsetups: {s: {kind: configured}}\n",
		"bad.yaml":   "schema: ggufreap/evidence/v1\nrows: [{id: a}]\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		want string
		args []string
	}{
		{"nothing says where", []string{"cut"}},
		{"contradict each other", []string{"-o", "x.md", "--check", "y.md", "cut"}},
		{"from which a card takes its digests", []string{"-o", "x.md", model}},
		{"does not end", []string{"-o", "open.md", "cut"}},
		{"front matter", []string{"-o", "front.md", "cut"}},
		{"front matter does not end", []string{"-o", "unended.md", "cut"}},
		{"evidence for the release with", []string{"-o", "x.md", "--evidence", "other.yaml", "cut"}},
		{"line 2", []string{"-o", "x.md", "--evidence", "bad.yaml", "cut"}},
		{"are for --license other", []string{"-o", "x.md", "--license-name", "x", "cut"}},
		{"would be taken for a model", []string{"-o", "cut/small-REAP4-00001-of-00002.gguf", "cut"}},
		{"no such file", []string{"--check", "missing.md", "cut"}},
	} {
		r := ggufreap(t, append([]string{"card"}, c.args...)...)
		if r.code != exitFailed || !strings.Contains(r.stderr, c.want) {
			t.Errorf("%q: exit %d, %s, want %q", c.args, r.code, r.stderr, c.want)
		}
		if exists("x.md") {
			t.Fatalf("%q left a card", c.args)
		}
	}
}
