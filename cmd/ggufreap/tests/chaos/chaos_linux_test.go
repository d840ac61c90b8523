package chaos

import (
	"bytes"
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

// mount mounts a file system until the test ends.
func mount(t *testing.T, session, source, kind, options string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount(source, dir, kind, 0, options); err != nil {
		notRun(t, session, fmt.Sprintf("mounting %s: %v", kind, err))
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
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

// TestDiskIsFull writes to a file system that is too small, and to one that fills up in
// the middle of the run.
func TestDiskIsFull(t *testing.T) {
	const session = "full disks"
	b := newBench(t, session, gguftest.K3(gguftest.K3Options{}), "--preset", "reap568")
	disk := mount(t, session, "tmpfs", "tmpfs", "size=8m")
	out := filepath.Join(disk, "release")
	b.faults++
	b.wantFailure(b.run(out, "--dry-run"), "bytes are needed, 8,388,608 are free", "hint: 7.43 MB are lacking")
	b.wantFailure(b.run(out), "bytes are needed, 8,388,608 are free", "hint: 7.43 MB are lacking")
	if programtest.Exists(out) {
		t.Error("the refused run left a folder")
	}

	if err := syscall.Mount("", disk, "", syscall.MS_REMOUNT, "size=20m"); err != nil {
		t.Fatal(err)
	}
	filler := filepath.Join(disk, "filler")
	out, r := b.stopAt(2, func() string {
		if err := os.RemoveAll(out); err != nil {
			t.Fatal(err)
		}
		return out
	}, func(*process, string) {
		f, err := os.Create(filler)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for block := make([]byte, 4096); err == nil; {
			_, err = f.Write(block)
		}
	})
	b.wantFailure(r, "no space left on device", "bytes of shards are still to be written", "written and stay in", "--resume")
	b.wantFailure(b.run(out, "--resume"), "bytes are needed")
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	b.goOn(out, "with room again")
}

// TestTooManyFiles writes to a file system that runs out of names.
func TestTooManyFiles(t *testing.T) {
	const session = "disks without free names"
	b := newBench(t, session, gguftest.K3(gguftest.K3Options{}), "--preset", "reap568")
	disk := mount(t, session, "tmpfs", "tmpfs", "nr_inodes=8")
	out := filepath.Join(disk, "release")
	b.faults++
	b.wantFailure(b.run(out), "no space left on device", "written and stay in")
	if err := syscall.Mount("", disk, "", syscall.MS_REMOUNT, "nr_inodes=100"); err != nil {
		t.Fatal(err)
	}
	b.goOn(out, "with names again")
}

// TestReadOnlyDisk is refused before anything is written.
func TestReadOnlyDisk(t *testing.T) {
	const session = "read-only disks"
	b := newBench(t, session, gguftest.K3(gguftest.K3Options{}), "--preset", "reap568")
	disk := mount(t, session, "tmpfs", "tmpfs", "")
	out := filepath.Join(disk, "release")
	if err := os.Mkdir(out, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("", disk, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{out, filepath.Join(disk, "new")} {
		b.faults++
		b.wantFailure(b.run(dir), "read-only file system", dir)
	}
	if names := programtest.Folder(t, out); len(names) > 0 {
		t.Errorf("left %q", names)
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

// TestBadDisk reads a source on a disk whose blocks are gone.
func TestBadDisk(t *testing.T) {
	const session = "bad disks"
	b := newBench(t, session, gguftest.K3(gguftest.K3Options{}), "--preset", "reap568")
	image := filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(image, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(image, 64<<20); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mkfs.ext4", "-q", "-O", "^has_journal", image).CombinedOutput(); err != nil {
		notRun(t, session, fmt.Sprintf("mkfs.ext4: %v %s", err, out))
	}
	disk := t.TempDir()
	if out, err := exec.Command("mount", "-o", "loop", image, disk).CombinedOutput(); err != nil {
		notRun(t, session, fmt.Sprintf("mounting a loop device: %v %s", err, out))
	}
	t.Cleanup(func() { exec.Command("umount", "-l", disk).Run() })
	var copies []string
	for _, file := range b.files {
		copied := filepath.Join(disk, filepath.Base(file))
		if err := os.WriteFile(copied, []byte(b.source[filepath.Base(file)]), 0o666); err != nil {
			t.Fatal(err)
		}
		copies = append(copies, copied)
	}
	syscall.Sync()
	headers := copies[0] // read now, so that only data is lost
	if r := b.wait(b.start([]string{"inspect", headers})); r.Code != programtest.OK {
		t.Fatalf("exit %d\n%s", r.Code, r.Stderr)
	}
	if err := os.Truncate(image, 8<<20); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("/proc/sys/vm/drop_caches", []byte("1"), 0); err != nil {
		notRun(t, session, err.Error())
	}
	b.faults++
	out := filepath.Join(t.TempDir(), "release")
	b.wantEnd(b.wait(b.start([]string{"prune", "--keep", "568", "-o", out, copies[0]})), programtest.TryAgain, "input/output error", disk)
	if programtest.Exists(filepath.Join(out, manifest.SumsName)) {
		t.Error("the folder has a list of sums")
	}
}

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
// that asks for another try: nothing is known of the model then, nor of what was asked for.
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
		undisturbed := b.wait(b.start(line)).Code // diff finds differences
		for k, fault := range []string{"pread64:error=EIO", "pread64:error=ESTALE", "read:error=EIO", "openat:error=EMFILE", "openat:error=EIO", "newfstatat:error=ETIMEDOUT", "newfstatat:error=ENOMEM", "getdents64:error=EIO"} {
			for when := range 2 * *chaos {
				call, _, _ := strings.Cut(fault, ":")
				at := 1 + when*3 + (n+k)%3 // not the same ones in all commands
				what := fmt.Sprintf("%s:when=%d", fault, at)
				os.RemoveAll("out")
				os.Remove("report.html")
				r := b.wait(b.startCommand(strace, slices.Concat([]string{"-f", "-qqq", "-o", log, "-e", "trace=" + call, "-e", "inject=" + what}, paths, []string{b.program}, line)...))
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
