package chaos

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"ggufreap/cmd/ggufreap/internal/programtest"

	"ggufreap/gguf/gguftest"
	"ggufreap/manifest"
)

// notRun ends a session that this machine cannot hold, and says so where the counts are
// printed.
func notRun(t *testing.T, session, why string) {
	t.Helper()
	fmt.Printf("chaos: %s: NOT RUN: %s\n", session, why)
	t.Skip(why)
}

// stopAt runs the program until it has kept what it wrote n times, calls change while it is
// stopped, and returns how it ended. A run that was too fast is tried again.
func (b *bench) stopAt(n int, prepare func() (out string), change func(p *process, out string)) (out string, r programtest.Result) {
	b.t.Helper()
	for {
		out = prepare()
		p := b.start(b.line(out, "--workers", "1"))
		stopped := waitUntilKept(out, n)
		p.Process.Signal(syscall.SIGSTOP)
		early := stopped && kept(b.t, out) < b.size()*3/4
		if early {
			b.faults++
			change(p, out)
		}
		p.Process.Signal(syscall.SIGCONT)
		if r = b.wait(p); early {
			return out, r
		}
	}
}

// wantFailure holds a run that failed, and will fail again, to what it must say.
func (b *bench) wantFailure(r programtest.Result, texts ...string) {
	b.t.Helper()
	b.wantEnd(r, programtest.Failed, texts...)
}

func (b *bench) wantEnd(r programtest.Result, code int, texts ...string) {
	b.t.Helper()
	if r.Code != code {
		b.t.Errorf("exit %d, want %d\n%s", r.Code, code, r.Stderr)
	}
	for _, text := range texts {
		if !strings.Contains(r.Stderr, text) {
			b.t.Errorf("stderr lacks %q:\n%s", text, r.Stderr)
		}
	}
}

// TestFileSizeLimit meets RLIMIT_FSIZE, before the run and in the middle.
func TestFileSizeLimit(t *testing.T) {
	b := newBench(t, "file size limits", gguftest.K3(gguftest.K3Options{}), "--preset", "reap568")
	out := filepath.Join(t.TempDir(), "release")
	b.faults++
	limited := b.startCommand("sh", append([]string{"-c", `ulimit -f 2000; exec "$0" "$@"`, b.program}, b.line(out)...)...)
	b.wantFailure(b.wait(limited), `this process may write files of 1,024,000 at most`, `K3-REAP568-00002-of-00014.gguf`)
	if programtest.Exists(out) {
		t.Error("the refused run left a folder")
	}

	out, r := b.stopAt(1, func() string { return filepath.Join(t.TempDir(), "release") }, func(p *process, _ string) {
		limitTo(t, p, syscall.RLIMIT_FSIZE, 1<<20)
	})
	b.wantFailure(r, "file too large", "written and stay in")
	b.goOn(out, "without the limit")
}

// limitTo bounds a resource of a process that runs.
func limitTo(t *testing.T, p *process, resource int, most uint64) {
	t.Helper()
	limit := syscall.Rlimit{Cur: most, Max: most}
	if _, _, errno := syscall.Syscall6(syscall.SYS_PRLIMIT64, uintptr(p.Process.Pid), uintptr(resource), uintptr(unsafe.Pointer(&limit)), 0, 0, 0); errno != 0 {
		t.Fatal(errno)
	}
}

// TestMemoryRunsOut takes the memory from a run: it ends by a signal, not by an exit code that
// says that another try would change nothing.
func TestMemoryRunsOut(t *testing.T) {
	b := newBench(t, "memory limits", gguftest.K3(gguftest.K3Options{}), "--preset", "reap568")
	for b.faults < 3**chaos {
		out, r := b.stopAt(b.faults%5+1, func() string { return filepath.Join(t.TempDir(), "release") }, func(p *process, _ string) {
			limitTo(t, p, syscall.RLIMIT_AS, 1<<20)
		})
		if ended := r.Code == -1; !ended && r.Code != programtest.TryAgain && r.Code != programtest.OK {
			t.Errorf("exit %d\n%s", r.Code, r.Stderr)
		}
		b.goOn(out, "with memory again")
	}
}

// TestSourceChanges writes to a source file, and replaces it, while a run is stopped.
func TestSourceChanges(t *testing.T) {
	b := newBench(t, "changing sources", gguftest.K3(gguftest.K3Options{}), "--preset", "reap568")
	last := b.files[len(b.files)-1]
	info, err := os.Stat(last)
	if err != nil {
		t.Fatal(err)
	}
	aside := last + ".aside"
	for what, change := range map[string]func() error{
		"touched":  func() error { return os.Chtimes(last, time.Time{}, info.ModTime().Add(time.Second)) },
		"longer":   func() error { return os.WriteFile(last, []byte(b.source[filepath.Base(last)]+"x"), 0o666) },
		"cut":      func() error { return os.Truncate(last, info.Size()/2) },
		"replaced": func() error { return os.WriteFile(aside+"2", nil, 0o666) }, // renamed below
	} {
		t.Run(what, func(t *testing.T) {
			if err := os.Link(last, aside); err != nil {
				t.Fatal(err)
			}
			out, r := b.stopAt(1, func() string { return filepath.Join(t.TempDir(), "release") }, func(*process, string) {
				if err := change(); err != nil {
					t.Fatal(err)
				}
				if what == "replaced" {
					if err := os.Rename(aside+"2", last); err != nil {
						t.Fatal(err)
					}
				}
			})
			b.wantFailure(r, filepath.Base(last))
			if strings.Contains(r.Stderr, "to go on") {
				t.Errorf("a way to go on is told, and there is none:\n%s", r.Stderr)
			}
			if programtest.Exists(filepath.Join(out, manifest.SumsName)) {
				t.Error("the folder has a list of sums")
			}
			if r := b.run(out, "--resume"); r.Code != programtest.Failed {
				t.Errorf("going on with the changed source: exit %d\n%s", r.Code, r.Stderr)
			}
			// Bring the source back as it was: same file, same bytes, same time.
			if err := os.Rename(aside, last); err != nil {
				t.Fatal(err)
			}
			os.Remove(aside) // still there where both were links to one file
			if err := os.WriteFile(last, []byte(b.source[filepath.Base(last)]), 0o666); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(last, time.Time{}, info.ModTime()); err != nil {
				t.Fatal(err)
			}
			b.goOn(out, what)
		})
	}
}

// TestInterruptEndsTheLoop interrupts a shell that prunes three times, as Ctrl-C does.
func TestInterruptEndsTheLoop(t *testing.T) {
	b := newBench(t, "loops", gguftest.K3(gguftest.K3Options{}), "--preset", "reap568", "--workers", "1")
	for range 20 {
		dir := t.TempDir()
		p := &process{Cmd: exec.Command("bash", append([]string{"-c", `for i in 1 2 3; do "$@" -o "$0/$i"; echo "went on with $?"; done`, dir, b.program}, b.line("x")...)...)}
		p.Args = slices.DeleteFunc(p.Args, func(word string) bool { return word == "-o" || word == "x" })
		p.Stdout, p.Stderr = &p.stdout, &p.stderr
		p.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		interrupted := waitUntilKept(filepath.Join(dir, "1"), 1)
		syscall.Kill(-p.Process.Pid, syscall.SIGINT)
		r := b.wait(p)
		if !interrupted || !strings.Contains(r.Stderr, "error: interrupted\n") {
			continue // it was too fast
		}
		if r.Stdout != "" {
			t.Errorf("the shell %s", r.Stdout)
		}
		b.kills++
		return
	}
	t.Error("no run was interrupted")
}

// TestNohup closes the terminal of a run that is to go on.
func TestNohup(t *testing.T) {
	b := newBench(t, "nohup", gguftest.K3(gguftest.K3Options{}), "--preset", "reap568", "--workers", "1")
	out := filepath.Join(t.TempDir(), "release")
	p := b.startCommand("sh", append([]string{"-c", `trap "" HUP; exec "$0" "$@"`, b.program}, b.line(out)...)...)
	waitUntilKept(out, 1)
	p.Process.Signal(syscall.SIGHUP)
	if r := b.wait(p); r.Code != programtest.OK || !finished(out) {
		t.Errorf("exit %d\n%s", r.Code, r.Stderr)
	}
}
