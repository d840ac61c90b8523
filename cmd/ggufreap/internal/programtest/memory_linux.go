package programtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"ggufreap/cmd/ggufreap/internal/programtest/peak"
)

// Measured makes cmd measure itself, and returns a function that tells, once it has run,
// the most memory that it had, in bytes.
func Measured(t testing.TB, cmd *exec.Cmd) func() int64 {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "peak")
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	cmd.Env = append(cmd.Env, peak.Variable+"="+file)
	cmd.Args = append([]string{self, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = self
	return func() int64 {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		most, err := strconv.ParseInt(string(text), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return most
	}
}
