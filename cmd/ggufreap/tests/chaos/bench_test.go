//go:build unix

package chaos

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"ggufreap/cmd/ggufreap/internal/programtest"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/manifest"
)

// A bench is the built program, a source, and what a command makes of it undisturbed.
type bench struct {
	t       *testing.T
	program string
	args    []string // the command, without the output folder and the source
	files   []string // of the source
	source  map[string]string
	want    map[string]string
	took    time.Duration
	tally
}

// A tally counts what a session did, and prints it when the test ends.
type tally struct {
	kills, faults int
	lost          int // bytes of sources and releases that are missing or wrong in the end
}

// newBench makes a bench of a prune.
func newBench(t *testing.T, session string, spec gguftest.Spec, args ...string) *bench {
	t.Helper()
	return newBenchOf(t, session, spec, append([]string{"prune"}, args...)...)
}

func newBenchOf(t *testing.T, session string, spec gguftest.Spec, args ...string) *bench {
	t.Helper()
	dir := t.TempDir()
	var err error
	b := &bench{t: t, program: programtest.Path(t), args: args}
	if b.files, err = spec.Write(filepath.Join(dir, "source"), gguf.Split{Shards: 5}); err != nil {
		t.Fatal(err)
	}
	b.source = programtest.Folder(t, filepath.Dir(b.files[0]))
	out := filepath.Join(dir, "reference")
	started := time.Now()
	if r := b.run(out); r.Code != programtest.OK {
		t.Fatalf("exit %d\n%s", r.Code, r.Stderr)
	}
	b.took = time.Since(started)
	b.want = programtest.Folder(t, out)
	t.Cleanup(func() {
		b.lost += programtest.LostBytes(programtest.Folder(t, filepath.Dir(b.files[0])), b.source)
		fmt.Printf("chaos: %s: kills survived: %d, faults injected: %d, bytes lost: %d\n", session, b.kills, b.faults, b.lost)
		if b.lost > 0 {
			t.Errorf("%d bytes are lost", b.lost)
		}
	})
	return b
}

// size returns the bytes of the release.
func (b *bench) size() int64 {
	var n int64
	for _, data := range b.want {
		n += int64(len(data))
	}
	return n
}

// line is the command line that writes the release into out.
func (b *bench) line(out string, more ...string) []string {
	return slices.Concat(b.args, more, []string{"-o", out, b.files[0]})
}

// run runs the program to its end.
func (b *bench) run(out string, more ...string) programtest.Result {
	b.t.Helper()
	return b.wait(b.start(b.line(out, more...)))
}

// A process is a run of the program that may not have ended.
type process struct {
	*exec.Cmd
	stdout, stderr bytes.Buffer
}

func (b *bench) start(args []string) *process {
	b.t.Helper()
	return b.startCommand(b.program, args...)
}

func (b *bench) startCommand(name string, args ...string) *process {
	b.t.Helper()
	p := &process{Cmd: exec.Command(name, args...)}
	p.Stdout, p.Stderr = &p.stdout, &p.stderr
	if err := p.Start(); err != nil {
		b.t.Fatal(err)
	}
	return p
}

// wait returns how a process ended; one that was killed has exit code -1.
func (b *bench) wait(p *process) programtest.Result {
	b.t.Helper()
	err := p.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		b.t.Fatal(err)
	}
	return programtest.Result{Stdout: p.stdout.String(), Stderr: p.stderr.String(), Code: p.ProcessState.ExitCode()}
}

// compare counts what a folder that should be the finished release lacks.
func (b *bench) compare(out, what string) {
	b.t.Helper()
	got := programtest.Folder(b.t, out)
	lost := programtest.LostBytes(got, b.want)
	b.lost += lost
	if lost > 0 || len(got) != len(b.want) {
		b.t.Errorf("%s: %d bytes are missing or wrong, %d files, want %d", what, lost, len(got), len(b.want))
	}
}

// goOn resumes what is in out, which must then be the release.
func (b *bench) goOn(out, what string) {
	b.t.Helper()
	if !finished(out) {
		if r := b.run(out, "--resume"); r.Code != programtest.OK {
			b.t.Errorf("%s: going on: exit %d\n%s", what, r.Code, r.Stderr)
			return
		}
	}
	b.compare(out, what)
}

// checkList holds a folder that has a list of sums to it.
func (b *bench) checkList(out, what string) {
	b.t.Helper()
	data, err := os.ReadFile(filepath.Join(out, manifest.SumsName))
	if err != nil {
		return
	}
	if string(data) != b.want[manifest.SumsName] {
		b.t.Errorf("%s: the list of sums is not the release's", what)
	}
	for name, want := range b.want {
		if got, err := os.ReadFile(filepath.Join(out, name)); err != nil || string(got) != want {
			b.t.Errorf("%s: the list stands beside %q, which is missing or wrong: %v", what, name, err)
		}
	}
}
