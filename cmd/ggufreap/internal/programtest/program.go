// Package programtest runs the built program in tests, and has the models and files that
// tests of several packages share. A package of such tests calls [Main] in its TestMain.
//
// Tests in the command's own package call the program in process, which is quicker; those
// that kill it, limit it or measure it need a process of its own, and are packages below
// cmd/ggufreap/tests, so that they run beside the others.
package programtest

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"ggufreap/cmd/ggufreap/internal/engines"
	"ggufreap/reap/engine/enginetest"
)

// The exit codes of the program.
const (
	OK       = 0
	Differs  = 1
	Failed   = 2
	TryAgain = 75
)

// A Result is what one run of the program left. One that was killed has the code -1.
type Result struct {
	Stdout, Stderr string
	Code           int
}

var program = enginetest.Build{Package: "ggufreap/cmd/ggufreap"}

// Main runs the tests of a package and ends the process. What the program prints does not
// depend on what the machine has: it finds no engine but the one that a test names.
func Main(m *testing.M) {
	os.Setenv(engines.Variable, "off")
	code := m.Run()
	Remove()
	enginetest.Remove()
	os.Exit(code)
}

// Path builds the program, once a test's process, and returns where it is.
func Path(t testing.TB) string {
	t.Helper()
	return program.Path(t)
}

// Remove removes what [Path] built. A TestMain calls it at the end.
func Remove() { program.Remove() }

// Run runs the program with arguments and no terminal.
func Run(t testing.TB, args ...string) Result {
	t.Helper()
	r := RunCommand(t, exec.Command(Path(t), args...))
	if err := CheckDocuments(r, args); err != nil {
		t.Error(err)
	}
	return r
}

// RunCommand runs a command to its end, whatever that is.
func RunCommand(t testing.TB, cmd *exec.Cmd) Result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return Result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// Succeed runs the program, which must exit with 0, and returns what it printed.
func Succeed(t testing.TB, args ...string) string {
	t.Helper()
	r := Run(t, args...)
	if r.Code != OK {
		t.Fatalf("%s: exit %d\n%s%s", strings.Join(args, " "), r.Code, r.Stdout, r.Stderr)
	}
	return r.Stdout
}

// Want fails where a program is missing that a test compares with.
func Want(t testing.TB, name string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Fatalf("%v: make tools installs it", err)
	}
}
