package documents

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ggufreap/cmd/ggufreap/internal/programtest"
)

// TestPageSigns types what PUBLISHING.md signs with into a shell, as it stands, by somebody who
// has a key.
func TestPageSigns(t *testing.T) {
	programtest.Want(t, "ssh-keygen")
	page, err := os.ReadFile(filepath.Join("..", "..", "PUBLISHING.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "\n## Sign it\n\n```sh\n")
	typed, _, _ := strings.Cut(section, "```")
	if !found || strings.Count(typed, "\n") < 4 {
		t.Fatalf("the page shows %q", typed)
	}
	home := t.TempDir()
	if err := os.Mkdir(filepath.Join(home, ".ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "me", "-f", filepath.Join(home, ".ssh", "id_ed25519")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	demo := filepath.Join(t.TempDir(), "demo")
	programtest.Succeed(t, "demo", "-o", demo)
	shell := exec.Command("sh", "-e", "-c", typed)
	shell.Dir = demo
	shell.Env = append(os.Environ(), "HOME="+home, "PATH="+filepath.Dir(programtest.Path(t))+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err := shell.CombinedOutput()
	if err != nil || !strings.Contains(string(out), `Good "ggufreap-release@v1" signature for me@example.com`) {
		t.Errorf("%v\n%s", err, out)
	}
}
