package chaos

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"ggufreap/cmd/ggufreap/internal/programtest"
)

// TestRepairWithoutRights refuses to repair what may not be written to, by a user who is not the
// administrator, and changes nothing and leaves nothing.
func TestRepairWithoutRights(t *testing.T) {
	files := programtest.WriteModel(t, programtest.SmallK3(), 3)
	dir, good := t.TempDir(), filepath.Dir(files[0])
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // that of all of the test's folders
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "ggufreap")
	if err := os.WriteFile(program, programtest.ReadFile(t, programtest.Path(t)), 0o755); err != nil {
		t.Fatal(err)
	}
	programtest.Succeed(t, "pin", "-o", filepath.Join(dir, "pin.json.zst"), files[0])
	for _, file := range files {
		programtest.WriteText(t, filepath.Join(dir, filepath.Base(file)), string(programtest.ReadFile(t, file)))
	}
	damaged := filepath.Join(dir, filepath.Base(files[1]))
	if err := programtest.Flip(damaged, -1); err != nil {
		t.Fatal(err)
	}
	before := programtest.Folder(t, dir)
	for what, modes := range map[string][2]os.FileMode{"file": {0o777, 0o444}, "folder": {0o555, 0o666}} {
		if err := os.Chmod(damaged, modes[1]); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, modes[0]); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(program, "repair", "--from", good, dir)
		cmd.Dir = "/"
		if os.Geteuid() == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		r := programtest.RunCommand(t, cmd)
		if r.Code != programtest.Failed || !strings.Contains(r.Stderr, "permission denied") {
			t.Errorf("%s: exit %d\n%s%s", what, r.Code, r.Stdout, r.Stderr)
		}
		if !maps.Equal(programtest.Folder(t, dir), before) {
			t.Errorf("%s: the folder was changed", what)
		}
	}
	if err := os.Chmod(dir, 0o777); err != nil { // so that it can be removed
		t.Fatal(err)
	}
}
