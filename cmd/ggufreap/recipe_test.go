package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/manifest"
)

// TestRecipe runs the shell recipe of manifest/IDENTITY.md as it stands there, with
// b3sum and sort, on the model that demo makes.
func TestRecipe(t *testing.T) {
	if _, err := exec.LookPath("b3sum"); err != nil {
		t.Fatalf("%v: make b3sum installs it", err)
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "manifest", "IDENTITY.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, recipe, _ := strings.Cut(string(page), "\n```sh\n")
	recipe, after, found := strings.Cut(recipe, "```\n")
	if !found {
		t.Fatal("IDENTITY.md has no recipe")
	}
	program := filepath.Join(t.TempDir(), "ggufreap")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Chdir(t.TempDir())
	if _, err := gguftest.K3(gguftest.K3Options{}).Write(filepath.Join("ggufreap-demo", "source"), gguf.Split{Shards: gguftest.K3Shards}); err != nil {
		t.Fatal(err)
	}
	shell := exec.Command("sh", "-eu", "-c", recipe)
	shell.Env = append(os.Environ(), "PATH="+filepath.Dir(program)+string(filepath.ListSeparator)+os.Getenv("PATH"))
	shell.Stderr = os.Stderr
	out, err := shell.Output()
	if err != nil {
		t.Fatal(err)
	}
	succeed(t, "pin", "-o", "x.json", filepath.Join("ggufreap-demo", "source"))
	pin, err := manifest.ReadPin("x.json")
	if err != nil {
		t.Fatal(err)
	}
	want := pin.WeightsDigest.Sum.String()
	if got := strings.TrimSpace(string(out)); got != want {
		t.Errorf("the recipe gives %q, the pin says %s", got, want)
	}
	if !strings.Contains(after, "It prints `"+want+"`") {
		t.Errorf("IDENTITY.md does not say that it prints %s", want)
	}
}
