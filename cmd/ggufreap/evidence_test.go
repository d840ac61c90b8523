package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggufreap/manifest/evidence"
)

// evidenceFile returns the path of a file that package evidence is tested with.
func evidenceFile(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("../../manifest/evidence/testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestEvidence takes a file from the template over a check to tables, and imports.
func TestEvidence(t *testing.T) {
	published, bench := evidenceFile(t, "three-node-iq1s.yaml"), evidenceFile(t, "import/bench.json")
	t.Chdir(t.TempDir())
	succeed(t, "evidence", "init", "-o", "evidence.yaml")
	golden(t, "evidence/template.txt", transcript(ggufreap(t, "evidence", "check", "evidence.yaml"), "evidence", "check", "evidence.yaml"))
	if r := ggufreap(t, "evidence", "init", "-o", "evidence.yaml"); r.code != exitOK {
		t.Errorf("writing the same again: %+v", r)
	}
	golden(t, "evidence/published.txt", succeed(t, "evidence", "show", published))
	if schema := succeed(t, "evidence", "schema"); schema != string(evidence.JSONSchema()) {
		t.Errorf("schema:\n%s", schema)
	}

	text, err := os.ReadFile(published)
	if err != nil {
		t.Fatal(err)
	}
	entered := strings.Replace(string(text), "correct: 14", "correct: 18", 1) + "notes: [lossless]\n"
	if err := os.WriteFile("shortcut.yaml", []byte(entered), 0o644); err != nil {
		t.Fatal(err)
	}
	r := ggufreap(t, "evidence", "check", "shortcut.yaml", "evidence.yaml")
	golden(t, "evidence/shortcut.txt", transcript(r, "evidence", "check", "shortcut.yaml", "evidence.yaml"))
	if r.code != exitDiffers {
		t.Errorf("exit %d, want %d", r.code, exitDiffers)
	}

	succeed(t, "evidence", "import", "-o", "bench.yaml", bench)
	succeed(t, "evidence", "check", "bench.yaml")
	if shown := succeed(t, "evidence", "show", "bench.yaml"); !strings.Contains(shown, "7100.002165 ± 140.341520 (standard deviation)") {
		t.Errorf("shown:\n%s", shown)
	}
}

// TestEvidenceRefuses wants a clear error for what cannot be done.
func TestEvidenceRefuses(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("nothing.txt", []byte("hello"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"evidence"}, {"evidence", "chek"}, {"evidence", "check"}, {"evidence", "init", "x"}, {"evidence", "check", "missing.yaml"},
		{"evidence", "show", "--json", "nothing.txt"}, {"evidence", "show", "nothing.txt"}, {"evidence", "import", "nothing.txt"}, {"evidence", "import", "-o", "nothing.txt", "nothing.txt"},
	} {
		if r := ggufreap(t, args...); r.code != exitFailed || r.stdout != "" || !strings.Contains(r.stderr, "error: ") {
			t.Errorf("%q: %+v", args, r)
		}
	}
	if text, _ := os.ReadFile("nothing.txt"); string(text) != "hello" {
		t.Error("a source was written to")
	}
}

// TestEvidenceOfATemplate says of a file that nobody filled in that it is not.
func TestEvidenceOfATemplate(t *testing.T) {
	reportFolder(t)
	succeed(t, "evidence", "init", "-o", "evidence.yaml")
	if said := succeed(t, "evidence", "check", "--json", "evidence.yaml"); !strings.Contains(said, `"filled_in": false`) {
		t.Errorf("check says\n%s", said)
	}
	card := succeed(t, "card", "-o", "-", "--evidence", "evidence.yaml", "cut")
	if !strings.Contains(card, "That file is not filled in.") || !strings.Contains(card, "What this model can do: Not specified") || strings.Contains(card, "retry\\_policy") {
		t.Errorf("a card of a template:\n%s", card)
	}
	if shown := succeed(t, "evidence", "show", "evidence.yaml"); shown != "" {
		t.Errorf("shown is\n%s", shown)
	}
	writeFile(t, "bad.yaml", []byte("schema: ggufreap/evidence/v1\nrows: [{id: a}]\n"))
	r := ggufreap(t, "evidence", "show", "bad.yaml")
	for line := range strings.Lines(r.stderr) {
		if !strings.HasPrefix(line, "ggufreap: error: bad.yaml: line 2: ") {
			t.Errorf("a line does not say where: %q", line)
		}
	}
}
