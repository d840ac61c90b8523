package chaos

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggufreap/cmd/ggufreap/internal/programtest"
)

// TestSystemCallFaults lets system calls of the program fail, with strace. A run that
// meets the fault must say so and leave what can be gone on with.
func TestSystemCallFaults(t *testing.T) {
	const session = "system call faults"
	strace, err := exec.LookPath("strace")
	if err != nil {
		notRun(t, session, "strace is not installed")
	}
	b := newBench(t, session, programtest.SmallK3(), "--keep", "16", "--shards", "5")
	ended := 0
	log := filepath.Join(t.TempDir(), "log")
	for _, fault := range []string{
		"fsync:error=EIO", "fsync:error=ENOSPC", "fallocate:error=ENOSPC", "fallocate:error=EDQUOT",
		"write:error=EIO", "write:error=ENOSPC", "write:error=EDQUOT", "pwrite64:error=EIO", "pwrite64:error=ENOSPC",
		"pread64:error=EIO", "ftruncate:error=EIO", "renameat:error=EIO", "unlinkat:error=EIO",
		"close:error=EIO", "statfs:error=EIO", "flock:error=EIO", "getdents64:error=EIO", "mkdirat:error=EACCES",
	} {
		for when := 1; when <= min(*chaos, 8); when++ {
			out := filepath.Join(t.TempDir(), "release")
			call, _, _ := strings.Cut(fault, ":")
			what := fmt.Sprintf("%s:when=%d", fault, when)
			r := b.wait(b.startCommand(strace, append([]string{"-f", "--seccomp-bpf", "-qqq", "-o", log,
				"-e", "trace=" + call, "-e", "inject=" + what, b.program}, b.line(out)...)...))
			data, err := os.ReadFile(log)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(data, []byte("(INJECTED)")) {
				b.faults++
			}
			want := programtest.Failed
			if strings.HasSuffix(fault, "=EIO") {
				want = programtest.TryAgain
			}
			if r.Code == want && strings.HasPrefix(r.Stderr, "ggufreap: ") { // a line of it may have met the fault itself
				ended++
			} else if r.Code != programtest.OK {
				t.Errorf("%s: exit %d, want %d\n%s", what, r.Code, want, r.Stderr)
			}
			b.checkList(out, what)
			b.goOn(out, what)
		}
	}
	fmt.Printf("chaos: %s: %d of %d ended the run\n", session, ended, b.faults)
	if ended == 0 {
		t.Error("no fault ended a run")
	}
}

// TestFaultsOfAllCommands lets what commands read fail, with strace, and wants the exit code
// that asks for another try: nothing is known of the model then, nor of what was asked for. The
// short form tries half of the faults in each command.
func TestFaultsOfAllCommands(t *testing.T) {
	const session = "faults of all commands"
	strace, err := exec.LookPath("strace")
	if err != nil {
		notRun(t, session, "strace is not installed")
	}
	b := newBench(t, session, programtest.SmallK3(), "--keep", "16", "--shards", "5")
	t.Chdir(t.TempDir())
	programtest.Succeed(t, "pin", "-o", "pin.json", b.files[0])
	programtest.Succeed(t, "plan", "--keep", "16", "-o", "plan.json", b.files[0])
	programtest.Succeed(t, "prune", "--plan", "plan.json", "-o", "release", b.files[0])
	paths := []string{"-P", filepath.Dir(b.files[0]), "-P", "release", "-P", "plan.json", "-P", "pin.json"}
	released, err := filepath.Glob("release/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range slices.Concat(released, b.files) {
		paths = append(paths, "-P", file)
	}
	log := filepath.Join(t.TempDir(), "log")
	ended := 0
	for n, line := range [][]string{
		{"inspect", b.files[0]}, {"pin", b.files[0]}, {"pin", "--check", "pin.json", b.files[0]}, {"plan", "--keep", "8", b.files[0]},
		{"verify", "release"}, {"verify", "--source", b.files[0], "release"}, {"diff", "release", b.files[0]}, {"diff", "pin.json", b.files[0]},
		{"prune", "--plan", "plan.json", "-o", "out", b.files[0]}, {"reshard", "--shards", "2", "-o", "out", b.files[0]},
		{"card", "release"}, {"report", "-o", "report.html", "plan.json"},
	} {
		os.RemoveAll("out")
		os.Remove("report.html")
		undisturbed := b.wait(b.start(line)).Code // diff finds differences
		for k, fault := range []string{"pread64:error=EIO", "pread64:error=ESTALE", "read:error=EIO", "openat:error=EMFILE", "openat:error=EIO", "newfstatat:error=ETIMEDOUT", "newfstatat:error=ENOMEM", "getdents64:error=EIO"} {
			if *chaos == 1 && (n+k)%2 != 0 {
				continue
			}
			for when := range *chaos {
				call, _, _ := strings.Cut(fault, ":")
				at := 1 + when*3 + (n+k)%3 // not the same ones in all commands
				what := fmt.Sprintf("%s:when=%d", fault, at)
				os.RemoveAll("out")
				os.Remove("report.html")
				r := b.wait(b.startCommand(strace, slices.Concat([]string{"-f", "--seccomp-bpf", "-qqq", "-o", log, "-e", "trace=" + call, "-e", "inject=" + what}, paths, []string{b.program}, line)...))
				data, err := os.ReadFile(log)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Contains(data, []byte("(INJECTED)")) {
					break
				}
				b.faults++
				switch r.Code {
				case programtest.TryAgain:
					ended++
				case undisturbed: // it was asked for again, or not needed
				default:
					t.Errorf("%s, %s: exit %d\n%s%s", line, what, r.Code, r.Stdout, r.Stderr)
				}
			}
		}
	}
	fmt.Printf("chaos: %s: %d of %d ended the run\n", session, ended, b.faults)
	if ended == 0 {
		t.Error("no fault ended a run")
	}
}
