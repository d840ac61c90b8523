package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggufreap/cmd/ggufreap/internal/ui/text"
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
		{"does not say which", []string{"-o", "x.md", "--license", "other", "cut"}},
		{"want a name that the hub has", []string{"-o", "x.md", "--license", "a\nb", "cut"}},
		{"want a text on one line", []string{"-o", "x.md", "--base-model", "a\u202eb", "cut"}},
		{"--nodes is 0, want 1 to 1024", []string{"-o", "x.md", "--nodes", "0", "cut"}},
		{"machine 1 gets", []string{"-o", "x.md", "--fit-per-node", "2x1kB", "cut"}},
		{"give one of them", []string{"-o", "x.md", "--fit-per-node", "2x1GB", "--nodes", "2", "cut"}},
		{"writes nothing", []string{"--check", "x.md", "--bom", "y.json", "cut"}},
		{"is no model card", []string{"-o", "cut/small-REAP4-00001-of-00002.gguf", "cut"}},
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

// TestCardKeepsOtherFiles wants a file that card did not write to be as it was, wherever an
// output is said to go.
func TestCardKeepsOtherFiles(t *testing.T) {
	reportFolder(t)
	succeed(t, "pin", "-o", "q.zst", "cut")
	writeFile(t, "foreign.json", []byte(`{"bomFormat":"CycloneDX","specVersion":"1.6","metadata":{"tools":{"components":[{"name":"other"}]}}}`))
	writeFile(t, "notes.txt", []byte("my notes\n"))
	writeFile(t, "wide.md", []byte("\xff\xfe#\x00"))
	writeFile(t, "cut/bom.json", []byte(`{"mine":1}`))
	if err := os.Mkdir("mine", 0o777); err != nil {
		t.Fatal(err)
	}
	writeFile(t, "mine/serve.sh", []byte("#!/bin/sh\necho mine\n"))
	for _, flags := range [][]string{
		{"-o", "q.zst"}, {"-o", "source.json"}, {"-o", "notes.txt"}, {"-o", "wide.md"}, {"--force", "-o", "notes.txt"},
		{"--bom", "q.zst"}, {"--bom", "source.json"}, {"--bom", "notes.txt"}, {"--bom", "foreign.json"}, {"--bom", "cut/bom.json"},
		{"--recipes", "mine"}, {"-o", "new.md", "--bom", "notes.txt"}, {"-o", "cut/README.md", "--bom", "notes.txt"},
	} {
		path := flags[len(flags)-1]
		if path == "mine" {
			path = "mine/serve.sh"
		}
		was := readFile(t, path)
		refuse(t, path+" exists and is no ", append(append([]string{"card"}, flags...), "cut")...)
		if !bytes.Equal(was, readFile(t, path)) || exists("new.md") || exists("cut/README.md") {
			t.Errorf("%q wrote something", flags)
		}
	}
	for range 2 { // what it wrote itself it renews
		succeed(t, "card", "-o", "new.md", "--bom", "b.json", "--recipes", "scripts", "--nodes", "2", "cut")
		succeed(t, "card", "--force", "--bom", "notes.txt", "--recipes", "mine", "cut")
	}
	writeFile(t, "kept.md", []byte("# Mine\n"))
	succeed(t, "card", "-o", "kept.md", "cut")
	if !strings.Contains(string(readFile(t, "kept.md")), "# Mine\n") {
		t.Error("a card lost what a person wrote")
	}
}

// TestTwoOutputsOfOnePath are refused, by whatever spelling, and nothing is written.
func TestTwoOutputsOfOnePath(t *testing.T) {
	model := reportFolder(t)
	if err := os.Symlink(".", "link"); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"card", "-o", "two", "--bom", "two", "cut"},
		{"card", "-o", "two", "--bom", "./two", "cut"},
		{"card", "-o", "two", "--bom", "link/two", "cut"},
		{"card", "-o", "two", "--recipes", "two", "cut"},
		{"card", "-o", "two/serve.sh", "--recipes", "two", "cut"},
		{"card", "-o", "cut/bom.json", "--bom", "cut/bom.json", "cut"},
		{"report", "-o", "two", "--png", "two", "plan.json"},
		{"report", "-o", "two/kept.png", "--png", "two", "plan.json"},
		{"prune", "--keep", "4", "--pin-source", "two", "-o", "link/two", model},
	} {
		refuse(t, "asked for twice", args...)
		if exists("two") || exists("cut/bom.json") {
			t.Fatalf("%q wrote something", args)
		}
	}
}

// TestOutputsThatAreRead are refused with --force too: no file that a flag names is lost.
func TestOutputsThatAreRead(t *testing.T) {
	model := reportFolder(t)
	writeText(t, "keep.json", `{"keep": {"1": [0], "2": [0]}}`)
	writeText(t, "LICENSE", "mine\n")
	outside(t, "", "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "id")
	for path, args := range map[string][]string{
		"other.json":  {"plan", "--keep", "4", "--compare", "other.json", "-o", "other.json", model},
		"keep.json":   {"plan", "--keep", "4", "--always-keep", "keep.json", "-o", "keep.json", model},
		"scores.json": {"plan", "--keep", "4", "--from", "scores.json", "-o", "scores.json", model},
		"plan.json":   {"prune", "--plan", "plan.json", "--pin-source", "plan.json", "-o", "out", model},
		"LICENSE":     {"prune", "--keep", "4", "--license-file", "LICENSE", "--pin-source", "LICENSE", "-o", "out", model},
		"id":          {"prune", "--keep", "4", "--ssh-key", "id", "--pin-source", "id", "-o", "out", model},
	} {
		was := readFile(t, path)
		refuse(t, "output "+path+" is the source "+path, append([]string{args[0], "--force"}, args[1:]...)...)
		if !bytes.Equal(was, readFile(t, path)) {
			t.Errorf("%q replaced %s", args, path)
		}
	}
}

// TestCardInRelease makes a card, evidence, a bill of materials and scripts part of a release,
// renews them, and wants every tool to agree that they are.
func TestCardInRelease(t *testing.T) {
	published := evidenceFile(t, "four-node-reap568.yaml")
	reportFolder(t)
	outside(t, "", "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "id")
	whole := func() {
		t.Helper()
		outside(t, "", "sh", "-c", "cd cut && sha256sum --strict -c --quiet MANIFEST.sha256")
		succeed(t, "verify", "cut")
		succeed(t, "card", "--check", "cut/README.md", "cut")
	}
	shards, err := filepath.Glob("cut/*.gguf")
	if err != nil || len(shards) != 2 {
		t.Fatal(shards, err)
	}
	before := readFile(t, shards[0])
	succeed(t, "card", "-o", "cut/README.md", "--license", "mit", "cut")
	whole()
	succeed(t, "card", "-o", "cut/README.md", "--evidence", published, "--nodes", "2", "--bom", "cut/bom.cdx.json", "--recipes", "cut/recipes", "cut")
	whole()
	listed := string(readFile(t, "cut/MANIFEST.sha256"))
	for _, name := range []string{"README.md", "evidence.yaml", "bom.cdx.json", "recipes/serve.sh", "recipes/rpc-worker.sh"} {
		if !strings.Contains(listed, "  "+name+"\n") {
			t.Errorf("%s is not listed:\n%s", name, listed)
		}
	}
	if text := string(readFile(t, "cut/README.md")); !strings.Contains(text, "license: mit") || !strings.Contains(text, "From `evidence.yaml`, sha256 `") || !strings.Contains(text, "75.09") {
		t.Errorf("the card lost what was said of it:\n%s", text)
	}
	if !bytes.Equal(before, readFile(t, shards[0])) {
		t.Error("the model was touched")
	}

	succeed(t, "sign", "--ssh-key", "id", "cut")
	writeFile(t, "allowed", append([]byte("me "), readFile(t, "id.pub")...))
	succeed(t, "card", "-o", "cut/README.md", "cut") // the same again
	succeed(t, "verify", "--signer", "allowed", "cut")
	signed := readFile(t, "cut/README.md")
	refuse(t, "cut is signed: MANIFEST.sha256.sig would no longer fit", "card", "-o", "cut/README.md", "--nodes", "1", "cut")
	if !bytes.Equal(signed, readFile(t, "cut/README.md")) {
		t.Error("a refused card was written")
	}
	if said := succeed(t, "card", "--force", "-o", "cut/README.md", "--nodes", "1", "cut"); !strings.Contains(said, "removed         MANIFEST.sha256.sig") || exists("cut/MANIFEST.sha256.sig") {
		t.Errorf("the signature that no longer fits stays:\n%s", said)
	}
	whole()

	// A run that was killed between the card and the list is ended by the same command.
	writeFile(t, "cut/README.md", signed)
	differ(t, "README.md", "verify", "cut")
	succeed(t, "card", "-o", "cut/README.md", "cut")
	whole()
	for path, want := range map[string]string{"cut/plan.json": "is no model card", "cut/new.txt": "is called README.md", "cut/" + filepath.Base(shards[0]): "is no model card"} {
		refuse(t, want, "card", "-o", path, "cut")
	}
	refuse(t, "is called bom.json", "card", "--bom", "cut/plan.json", "cut")
	refuse(t, "one file of evidence", "card", "-o", "cut/README.md", "--evidence", published, "--evidence", published, "cut")
	whole()

	writeFile(t, "terms.txt", []byte("Terms.\n"))
	if said := succeed(t, "card", "-o", "cut/README.md", "--license-file", "terms.txt", "cut"); !strings.Contains(said, "evidence.yaml, LICENSE, README.md in the release's MANIFEST.sha256\n") {
		t.Errorf("what is listed is not said:\n%s", said)
	}
	whole()
	if got := string(readFile(t, "cut/LICENSE")); got != "Terms.\n" {
		t.Errorf("the license is %q", got)
	}
	writeFile(t, "terms.txt", []byte("Other terms.\n"))
	refuse(t, "has another LICENSE already", "card", "-o", "cut/README.md", "--license-file", "terms.txt", "cut")
	refuse(t, "elsewhere.md is not in it", "card", "-o", "elsewhere.md", "--license-file", "terms.txt", "cut")
	refuse(t, "with its card", "card", "--bom", "x.cdx.json", "--license-file", "terms.txt", "cut")
	whole()
}

// TestCardFindsItsEvidence takes the evidence that a card names, wherever it lies beside it.
func TestCardFindsItsEvidence(t *testing.T) {
	published := evidenceFile(t, "four-node-reap568.yaml")
	reportFolder(t)
	writeFile(t, "bench.yaml", readFile(t, published))
	succeed(t, "card", "-o", "card.md", "--evidence", "bench.yaml", "cut")
	succeed(t, "card", "--check", "card.md", "cut")
	first := readFile(t, "card.md")
	succeed(t, "card", "-o", "card.md", "cut")
	if !bytes.Equal(first, readFile(t, "card.md")) {
		t.Error("renewed, the card lost its evidence")
	}
	if got := ggufreapFrom(t, string(first), "card", "--check", "-", "cut"); got.code != exitOK {
		t.Errorf("a card from standard input: %+v", got)
	}
	writeFile(t, "bench.yaml", append(readFile(t, published), "notes: [more]\n"...))
	differ(t, "evidence, line", "card", "--check", "card.md", "cut")
	if err := os.Mkdir("elsewhere", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename("bench.yaml", "elsewhere/bench.yaml"); err != nil {
		t.Fatal(err)
	}
	refuse(t, "made with the evidence in bench.yaml", "card", "--check", "card.md", "cut")
	succeed(t, "card", "-o", "elsewhere/card.md", "--evidence", "elsewhere/bench.yaml", "cut")
	succeed(t, "card", "--check", "elsewhere/card.md", "cut")
	if printed := succeed(t, "card", "-o", "-", "--license", "mit", "cut"); !strings.HasPrefix(printed, "---\nlicense: mit\n") || exists("-") {
		t.Errorf("-o - prints\n%s", printed)
	}
}

// TestCardOfMeasuredPlan wants the card to say what the plan knows of its scores, as plan
// --explain tells it.
func TestCardOfMeasuredPlan(t *testing.T) {
	model := reportFolder(t)
	succeed(t, "plan", "--keep", "4", "--from", "scores.json", "-o", "measured.json", model)
	succeed(t, "prune", "--plan", "measured.json", "-o", "measured", model)
	var x explanationDocument
	if err := json.Unmarshal([]byte(succeed(t, "plan", "--keep", "4", "--from", "scores.json", "--explain", "--json", model)), &x); err != nil {
		t.Fatal(err)
	}
	without := 0
	for _, l := range x.Layers {
		without += *l.NeverRouted
	}
	down := func(share float64) string { return fmt.Sprintf("%.2f %%", math.Floor(share*1e4)/100) }
	card := succeed(t, "card", "-o", "-", "measured")
	for _, want := range []string{
		fmt.Sprintf("| score of the kept experts | %s of a layer's on average, %s in the worst layer, %d; of %s without tokens", down(*x.Mass.Mean), down(*x.Mass.Worst), x.Mass.WorstLayer, text.Count(without, "expert")),
		"100 tokens of &lt;/title&gt;&lt;script&gt;", "code (50 tokens)", "scores in `scores.json`, sha256 `",
	} {
		if !strings.Contains(card, want) {
			t.Errorf("no %q in\n%s", want, card)
		}
	}
}
