package programtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// measureVariable names the file that a measuring process writes its child's peak to.
const measureVariable = "GGUFREAP_TEST_PEAK"

// A child begins with the peak memory of the process that starts it, as Linux counts, and
// that of a test run is large. So a fresh copy of the test program, which has used
// little yet, starts the program that is measured.
func init() {
	file := os.Getenv(measureVariable)
	if file == "" {
		return
	}
	os.Unsetenv(measureVariable)
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	_ = cmd.Run() // its exit code is passed on
	if cmd.ProcessState == nil {
		os.Exit(127)
	}
	peak := int64(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss) << 10
	if err := os.WriteFile(file, strconv.AppendInt(nil, peak, 10), 0o666); err != nil {
		os.Exit(127)
	}
	os.Exit(cmd.ProcessState.ExitCode())
}

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
	cmd.Env = append(cmd.Env, measureVariable+"="+file)
	cmd.Args = append([]string{self, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = self
	return func() int64 {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		peak, err := strconv.ParseInt(string(text), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return peak
	}
}
