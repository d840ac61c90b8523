package peak

import (
	"os"
	"strconv"
	"syscall"
)

// A child begins with the peak memory of the process that starts it, as Linux counts, and
// that of a test run is large. So a fresh copy of the test program, which has used
// little yet, starts the program that is measured.
func init() {
	if file := os.Getenv(Variable); file != "" {
		os.Unsetenv(Variable)
		os.Exit(measure(file, os.Args[1:]))
	}
}

// measure runs a command line, whose program is named by its path, and returns its exit code.
func measure(file string, line []string) int {
	const noStart = 127
	process, err := os.StartProcess(line[0], line, &os.ProcAttr{
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		Sys:   &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return noStart
	}
	state, err := process.Wait()
	if err != nil {
		return noStart
	}
	peak := int64(state.SysUsage().(*syscall.Rusage).Maxrss) << 10
	if err := os.WriteFile(file, strconv.AppendInt(nil, peak, 10), 0o666); err != nil {
		return noStart
	}
	return state.ExitCode()
}
