package calibration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggufreap/cmd/ggufreap/internal/programtest"
)

// TestRoadsOfTheReadme types what the README prunes and checks with in the demo's folder, with
// llama.cpp: word for word but for the length of the text, which takes time.
func TestRoadsOfTheReadme(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	programtest.Succeed(t, "demo", "-o", filepath.Join(dir, "demo"))
	withEngine(t)
	t.Chdir(filepath.Join(dir, "demo"))
	ran := 0
	for _, road := range []string{"Prune it", "Check it"} {
		_, section, _ := strings.Cut(string(readme), "\n## "+road+"\n\n```sh\n")
		typed, _, _ := strings.Cut(section, "```")
		for line := range strings.Lines(typed) {
			ran++
			programtest.Succeed(t, strings.Fields(strings.Replace(line, " 16384 ", " 1024 ", 1))[1:]...)
		}
	}
	if ran != 5 || !programtest.Exists("K3-measured/MANIFEST.sha256") {
		t.Errorf("%d commands ran, want 5 that make a release", ran)
	}
}
