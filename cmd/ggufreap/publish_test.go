package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestPublish makes a release with card, evidence, license and source pin, and has a stranger
// check the folder with nothing else.
func TestPublish(t *testing.T) {
	published := evidenceFile(t, "four-node-reap568.yaml")
	model := reportFolder(t)
	if err := os.WriteFile("terms.txt", []byte("Terms.\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	prune := []string{"prune", "--plan", "plan.json", "--card", "--license", "mit", "--license-file", "terms.txt", "--evidence", published, "--base-model", "owner/small", "--nodes", "2"}
	said := succeed(t, append(prune, "--source-pin", "source.json", "-o", "out", model)...)
	if !strings.HasSuffix(said, "\nupload          the whole folder, out: 2 shards, plan.json, source.pin.json.zst, LICENSE, evidence.yaml, README.md, pin.json.zst, MANIFEST.sha256\n") {
		t.Errorf("the last line does not say what to upload:\n%s", said)
	}
	same := func(a, b string) {
		t.Helper()
		x, err := os.ReadFile(a)
		if err != nil {
			t.Fatal(err)
		}
		if y, err := os.ReadFile(b); err != nil || !bytes.Equal(x, y) {
			t.Errorf("%s and %s differ (%v)", a, b, err)
		}
	}
	same("out/LICENSE", "terms.txt")
	same("out/evidence.yaml", published)
	succeed(t, append(prune, "--pin-source", "taken.json", "-o", "out2", model)...)
	same("out/source.pin.json.zst", "out2/source.pin.json.zst")
	succeed(t, "card", "--check", "out/README.md", "out")
	if r := succeed(t, "verify", "out"); !strings.Contains(r, "unproven        0 bytes") {
		t.Errorf("the folder alone does not prove the derivation:\n%s", r)
	}
	if diff := succeed(t, "diff", "out/source.pin.json.zst", "source.json"); !strings.Contains(diff, "weights         same") {
		t.Errorf("another pin was put in:\n%s", diff)
	}
	for _, name := range []string{"README.md", "evidence.yaml", "source.pin.json.zst", "LICENSE"} {
		data, err := os.ReadFile(filepath.Join("out2", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join("out2", name), append(data, ' '), 0o644); err != nil {
			t.Fatal(err)
		}
		if r := ggufreap(t, "verify", "out2"); r.code != exitDiffers || !strings.Contains(r.stdout, name) {
			t.Errorf("a byte more in %s: %+v", name, r)
		}
		if err := os.WriteFile(filepath.Join("out2", name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	succeed(t, "verify", "out2")
	succeed(t, "prune", "--plan", "plan.json", "--source-pin", "source.json", "--no-source-pin", "-o", "bare", model)
	if exists("bare/source.pin.json.zst") {
		t.Error("--no-source-pin leaves it in")
	}
	succeed(t, "prune", "--plan", "plan.json", "-o", "unpinned", model)
	if exists("unpinned/source.pin.json.zst") || exists("unpinned/README.md") {
		t.Error("a release that nobody asked it for has a source pin or a card")
	}
}

// TestPublishRefuses wants what cannot go into a release to be said before it is written.
func TestPublishRefuses(t *testing.T) {
	published := evidenceFile(t, "four-node-reap568.yaml")
	model := reportFolder(t)
	if err := os.WriteFile("bad.yaml", []byte("rows: 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		want string
		args []string
	}{
		{"is for --card", []string{"--license", "mit"}},
		{"one file of evidence", []string{"--evidence", published, "--evidence", published}},
		{"rows is", []string{"--card", "--evidence", "bad.yaml"}},
		{"no such file", []string{"--license-file", "missing"}},
	} {
		r := ggufreap(t, append(append([]string{"prune", "--plan", "plan.json", "-o", "out"}, c.args...), model)...)
		if r.code != exitFailed || !strings.Contains(r.stderr, c.want) || exists("out") {
			t.Errorf("%q: %+v, want %q", c.args, r, c.want)
		}
	}
}

// TestLaunchScripts runs the launch scripts with a program in llama-server's place, and has
// shellcheck look at them where it is installed.
func TestLaunchScripts(t *testing.T) {
	reportFolder(t)
	echo, err := exec.LookPath("echo")
	if err != nil {
		t.Fatal(err)
	}
	for nodes, want := range map[string]string{
		"1": "/small-REAP4-00001-of-00002.gguf -ngl 99 -c 4096 --jinja\n",
		"2": " --jinja --rpc a:1 --split-mode layer --tensor-split ",
	} {
		dir := "recipes" + nodes
		succeed(t, "card", "--recipes", dir, "--nodes", nodes, "cut")
		run := exec.Command("sh", filepath.Join(dir, "serve.sh"))
		run.Env = append(os.Environ(), "LLAMA_SERVER="+echo, "WORKERS=a:1")
		out, err := run.CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s machines: %v, %q, want %q", nodes, err, out, want)
		}
		if shellcheck, err := exec.LookPath("shellcheck"); err == nil {
			scripts, _ := filepath.Glob(filepath.Join(dir, "*.sh"))
			if out, err := exec.Command(shellcheck, scripts...).CombinedOutput(); err != nil {
				t.Errorf("%s", out)
			}
		}
	}
	for _, dir := range []string{"cut", "cut/recipes", "elsewhere/recipes"} {
		succeed(t, "card", "--recipes", dir, "cut")
		run := exec.Command("sh", filepath.Join(dir, "serve.sh"))
		run.Env = append(os.Environ(), "LLAMA_SERVER="+echo)
		out, err := run.Output()
		if words := strings.Fields(string(out)); err != nil || len(words) < 2 || !exists(words[1]) {
			t.Errorf("the script in %s serves %s (%v), which is not there", dir, out, err)
		}
	}
	succeed(t, "verify", "cut")
	if !exists("recipes2/rpc-worker.sh") || exists("recipes1/rpc-worker.sh") {
		t.Error("a worker's script is missing, or there for one machine")
	}
}
