package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ggufreap/cmd/ggufreap/internal/programtest"
	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/manifest"
)

// TestRecipes runs the shell recipes of manifest/IDENTITY.md as they stand there, with
// b3sum, sort and jq, on the model that demo makes.
func TestRecipes(t *testing.T) {
	for _, tool := range []string{"b3sum", "jq"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Fatalf("%v: make tools installs it", err)
		}
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "manifest", "IDENTITY.md"))
	if err != nil {
		t.Fatal(err)
	}
	program := programtest.Path(t)
	t.Chdir(t.TempDir())
	if _, err := gguftest.K3(gguftest.K3Options{}).Write(filepath.Join("ggufreap-demo", "source"), gguf.Split{Shards: gguftest.K3Shards}); err != nil {
		t.Fatal(err)
	}
	succeed(t, "pin", "-o", "x.json", filepath.Join("ggufreap-demo", "source"))
	pin, err := manifest.ReadPin("x.json")
	if err != nil {
		t.Fatal(err)
	}
	rest := string(page)
	for _, want := range []manifest.Digest{pin.WeightsDigest, pin.PinDigest} {
		var recipe string
		var found bool
		_, rest, _ = strings.Cut(rest, "\n```sh\n")
		if recipe, rest, found = strings.Cut(rest, "```\n"); !found {
			t.Fatal("IDENTITY.md lacks a recipe")
		}
		shell := exec.Command("sh", "-eu", "-c", recipe)
		shell.Env = append(os.Environ(), "PATH="+filepath.Dir(program)+string(filepath.ListSeparator)+os.Getenv("PATH"))
		shell.Stderr = os.Stderr
		out, err := shell.Output()
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(string(out)); got != want.Sum.String() {
			t.Errorf("the recipe gives %q, the pin says %s", got, want.Sum)
		}
		if !strings.HasPrefix(strings.TrimSpace(rest), "It prints `"+want.Sum.String()+"`") {
			t.Errorf("IDENTITY.md does not say that it prints %s", want.Sum)
		}
	}
}
