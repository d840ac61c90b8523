//go:build unix

package chaos

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"ggufreap/cmd/ggufreap/internal/programtest"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/manifest"
)

// chaos multiplies the sessions that end the program at random.
var chaos = flag.Int("chaos", 1, "how many times to repeat the sessions with random faults")

// A bench is the built program, a source, and what prune makes of it undisturbed.
type bench struct {
	t       *testing.T
	program string
	args    []string // of prune, without the output folder and the source
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

func newBench(t *testing.T, session string, spec gguftest.Spec, args ...string) *bench {
	t.Helper()
	dir := t.TempDir()
	var err error
	b := &bench{t: t, program: programtest.Path(t), args: append([]string{"prune"}, args...)}
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

func finished(out string) bool {
	return programtest.Exists(filepath.Join(out, manifest.SumsName)) && !programtest.Exists(filepath.Join(out, manifest.JournalName))
}

// phase says how far a run had come by what it left.
func phase(out string) string {
	journal, _ := os.ReadFile(filepath.Join(out, manifest.JournalName))
	names, _ := filepath.Glob(filepath.Join(out, "*.gguf"))
	switch {
	case finished(out):
		return "after the last byte"
	case len(journal) == 0:
		return "before the first byte"
	case programtest.Exists(filepath.Join(out, manifest.SumsName)):
		return "between list and journal"
	case len(names) > 0:
		return "giving names"
	}
	return "copying"
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

// TestKill kills the program at random points and goes on until the release is whole.
// Half the kills wait for a sign of progress first, so that short phases are hit too.
func TestKill(t *testing.T) {
	b := newBench(t, "kills", gguftest.K3(gguftest.K3Options{}), "--preset", "reap568")
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	phases := map[string]int{}
	wantPin, wantPinned := b.sourcePin()
	plain := b.want
	for session := 0; b.kills < 16**chaos; session++ {
		out := filepath.Join(t.TempDir(), "release")
		pin := out + ".pin.json"
		if b.want = plain; session%4 == 3 {
			b.want = wantPinned
		}
		for {
			what := fmt.Sprintf("seed %d, session %d, after %d kills", seed, session, b.kills)
			args := []string{"--resume", "--workers", fmt.Sprint(1 + rng.IntN(3))}
			if session%4 == 3 {
				args = append(args, "--pin-source", pin)
			}
			p := b.start(b.line(out, args...))
			killAtRandom(p, out, b.took, rng)
			r := b.wait(p)
			if r.Code != -1 && r.Code != programtest.OK {
				t.Fatalf("%s: exit %d\n%s", what, r.Code, r.Stderr)
			}
			b.checkList(out, what)
			if r.Code == -1 {
				b.kills++
				phases[phase(out)]++
			}
			if finished(out) {
				break
			}
		}
		b.compare(out, fmt.Sprintf("seed %d, session %d", seed, session))
		if got, err := os.ReadFile(pin); session%4 == 3 && string(got) != wantPin {
			t.Errorf("seed %d, session %d: the pin of the source is missing or wrong: %v", seed, session, err)
		}
		if t.Failed() {
			break
		}
	}
	fmt.Printf("chaos: kills: %v\n", phases)
}

// sourcePin is what --pin-source writes undisturbed, and the release with it.
func (b *bench) sourcePin() (string, map[string]string) {
	b.t.Helper()
	dir := b.t.TempDir()
	pin := filepath.Join(dir, "source.pin.json")
	if r := b.run(filepath.Join(dir, "release"), "--pin-source", pin); r.Code != programtest.OK {
		b.t.Fatalf("exit %d\n%s", r.Code, r.Stderr)
	}
	data, err := os.ReadFile(pin)
	if err != nil {
		b.t.Fatal(err)
	}
	return string(data), programtest.Folder(b.t, filepath.Join(dir, "release"))
}

// killAtRandom kills a process some time within a run's, or soon after a sign.
func killAtRandom(p *process, out string, took time.Duration, rng *rand.Rand) {
	times := timesKept(out) + 1 + rng.IntN(12)
	signs := []func() bool{
		nil, nil, nil,
		func() bool { return programtest.Exists(filepath.Join(out, manifest.JournalName)) },
		func() bool { return timesKept(out) >= times },
		func() bool { return timesKept(out) >= times },
		func() bool { return phase(out) == "giving names" },
		func() bool { return programtest.Exists(filepath.Join(out, manifest.SumsName+".part")) },
	}
	sign := signs[rng.IntN(len(signs))]
	delay := time.Duration(rng.Int64N(int64(took)))
	if sign != nil {
		delay /= 100
		for deadline := time.Now().Add(3 * took); !sign() && time.Now().Before(deadline); {
			time.Sleep(20 * time.Microsecond)
		}
	}
	time.Sleep(delay)
	p.Process.Kill()
}

// keptLine is what a journal says of bytes that are durable.
var keptLine = regexp.MustCompile(`(?m)^{"shard":(\d+),"size":(\d+),"sha256":"[0-9a-f]{64}"}\n`)

// timesKept counts how often something was noted to be durable.
func timesKept(out string) int {
	journal, _ := os.ReadFile(filepath.Join(out, manifest.JournalName))
	return len(keptLine.FindAll(journal, -1))
}

// kept returns the bytes that a journal says are durable.
func kept(t *testing.T, out string) int64 {
	t.Helper()
	journal, _ := os.ReadFile(filepath.Join(out, manifest.JournalName))
	sizes := map[string]int64{}
	for _, line := range keptLine.FindAllSubmatch(journal, -1) {
		size, err := strconv.ParseInt(string(line[2]), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		sizes[string(line[1])] = size
	}
	var sum int64
	for _, size := range sizes {
		sum += size
	}
	return sum
}

// waitUntilKept waits until something was noted to be durable n times, and reports false
// when the release is finished first.
func waitUntilKept(out string, n int) bool {
	for !finished(out) {
		if timesKept(out) >= n {
			return true
		}
		time.Sleep(20 * time.Microsecond)
	}
	return false
}

// TestInterruptSaysHowToGoOn sends signals, and types what the hint says.
func TestInterruptSaysHowToGoOn(t *testing.T) {
	b := newBench(t, "interrupts", gguftest.K3(gguftest.K3Options{}), "--preset", "reap568", "--workers", "1")
	hint := regexp.MustCompile(`hint: \S+ [kM]B of \S+ MB \(\d+ %\) are written and stay in (\S+); to go on: ggufreap (prune --resume .*)\n`)
	var longest time.Duration
	for i := 0; b.kills < 4**chaos; i++ {
		out := filepath.Join(t.TempDir(), "release")
		p := b.start(b.line(out))
		interrupted := waitUntilKept(out, 1+i%3)
		sent := time.Now()
		signal := []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}[i%3]
		p.Process.Signal(signal)
		r := b.wait(p)
		if !interrupted || r.Code == programtest.OK {
			continue
		}
		longest = max(longest, time.Since(sent))
		b.kills++
		m := hint.FindStringSubmatch(r.Stderr)
		ended := p.ProcessState.Sys().(syscall.WaitStatus)
		if !ended.Signaled() || ended.Signal() != signal || !strings.Contains(r.Stderr, "error: interrupted\n") || m == nil {
			t.Fatalf("%v: ended by %v\n%s", signal, p.ProcessState, r.Stderr)
		}
		if programtest.Exists(filepath.Join(out, manifest.SumsName)) {
			t.Error("an interrupted release has a list of sums")
		}
		again := exec.Command("sh", "-c", args.ShellQuote(b.program)+" "+m[2])
		if text, err := again.CombinedOutput(); err != nil || !strings.Contains(string(text), "going on in ") {
			t.Fatalf("%s: %v\n%s", m[2], err, text)
		}
		b.compare(out, "after an interrupt")
	}
	fmt.Printf("chaos: interrupts: the slowest took %d ms to end\n", longest.Milliseconds())
}

// TestLittleIsWrittenAgain kills runs of a larger model at each tenth of the way, or at some
// of them in the short form, goes on with them, and prints how much is written twice.
func TestLittleIsWrittenAgain(t *testing.T) {
	b := newBench(t, "bytes written again", gguftest.K3(gguftest.K3Options{Latent: 256, Width: 64}), "--preset", "reap568")
	all := b.size()
	tenths := []int64{1, 5, 9}
	if *chaos > 1 {
		tenths = []int64{1, 2, 3, 4, 5, 6, 7, 8, 9}
	}
	for _, workers := range []int{2, 8, 16} {
		fmt.Printf("chaos: written again of %d MB by %d workers, when killed at", all/1e6, workers)
		for _, tenth := range tenths {
			out := filepath.Join(t.TempDir(), "release")
			args := []string{"--workers", fmt.Sprint(workers), "--resume"}
			p := b.start(b.line(out, args...))
			for written(out) < tenth*all/10 && !finished(out) {
				time.Sleep(100 * time.Microsecond)
			}
			p.Process.Kill()
			if r := b.wait(p); r.Code == programtest.OK {
				t.Errorf("%d workers: the run ended before it was killed at %d0 %%", workers, tenth)
				continue
			}
			b.kills++
			again := written(out) - kept(t, out)
			fmt.Printf(" %d0 %%: %.1f %%", tenth, 100*float64(again)/float64(all))
			if again > all/20 {
				t.Errorf("%d workers, killed at %d0 %%: %d of %d bytes are to be written again", workers, tenth, again, all)
			}
			r := b.run(out, args...)
			if r.Code != programtest.OK || strings.Contains(r.Stderr, "written again") {
				t.Errorf("%d workers, killed at %d0 %%: exit %d\n%s", workers, tenth, r.Code, r.Stderr)
			}
			b.compare(out, "after a kill")
			os.RemoveAll(out)
		}
		fmt.Println()
	}
}

// written returns the bytes of the shards that are being written or are.
func written(out string) int64 {
	names, _ := filepath.Glob(filepath.Join(out, "*.gguf*"))
	var n int64
	for _, name := range names {
		if info, err := os.Stat(name); err == nil {
			n += info.Size()
		}
	}
	return n
}

// TestSecondRunIsRefused starts a run while another is stopped in the middle.
func TestSecondRunIsRefused(t *testing.T) {
	b := newBench(t, "second runs", gguftest.K3(gguftest.K3Options{}), "--preset", "reap568", "--workers", "1")
	for b.faults == 0 {
		out := filepath.Join(t.TempDir(), "release")
		p := b.start(b.line(out))
		stopped := waitUntilKept(out, 1)
		p.Process.Signal(syscall.SIGSTOP)
		if stopped && !finished(out) {
			b.faults++
			for _, tc := range []struct{ flag, want string }{
				{"--resume", "is being written to by another run"},
				{"--force", "is being written to by another run"},
				{"--json", "is being written to by another run"},
			} {
				if r := b.run(out, tc.flag); r.Code != programtest.TryAgain || !strings.Contains(r.Stderr, tc.want) {
					t.Errorf("%s: exit %d, want %d and %q in\n%s", tc.flag, r.Code, programtest.TryAgain, tc.want, r.Stderr)
				}
			}
		}
		p.Process.Signal(syscall.SIGCONT)
		if r := b.wait(p); r.Code != programtest.OK {
			t.Fatalf("exit %d\n%s", r.Code, r.Stderr)
		}
		b.compare(out, "after a second run")
	}
}

// TestFolderVanishes removes, moves and replaces the folder while a run is stopped.
func TestFolderVanishes(t *testing.T) {
	b := newBench(t, "vanishing folders", gguftest.K3(gguftest.K3Options{}), "--preset", "reap568", "--workers", "1")
	for what, vanish := range map[string]func(out string) error{
		"removed": func(out string) error {
			err := os.RemoveAll(out)
			for range 100 { // a system call that the stop found under way may add a file
				if err == nil {
					break
				}
				err = os.RemoveAll(out)
			}
			return err
		},
		"moved": func(out string) error { return os.Rename(out, out+"-moved") },
		"replaced": func(out string) error {
			return errors.Join(os.Rename(out, out+"-moved"), os.Mkdir(out, 0o777))
		},
	} {
		for done := false; !done; {
			out := filepath.Join(t.TempDir(), "release")
			p := b.start(b.line(out))
			stopped := waitUntilKept(out, 2)
			p.Process.Signal(syscall.SIGSTOP)
			done = stopped && kept(t, out) < b.size()/2
			if done {
				b.faults++
				if err := vanish(out); err != nil {
					t.Fatal(err)
				}
			}
			p.Process.Signal(syscall.SIGCONT)
			r := b.wait(p)
			if !done {
				continue
			}
			if r.Code != programtest.Failed || !strings.Contains(r.Stderr, out) || strings.Contains(r.Stderr, "to go on") {
				t.Errorf("%s: exit %d, want %d and the folder's name, and no way to go on there, in\n%s", what, r.Code, programtest.Failed, r.Stderr)
			}
			if programtest.Exists(filepath.Join(out, manifest.SumsName)) {
				t.Errorf("%s: the folder has a list of sums", what)
			}
			if moved := out + "-moved"; what != "removed" {
				b.goOn(moved, what)
			} else {
				b.goOn(out, what)
			}
		}
	}
}
