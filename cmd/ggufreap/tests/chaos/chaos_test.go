//go:build unix

package chaos

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"ggufreap/cmd/ggufreap/internal/programtest"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/gguf/gguftest"
	"ggufreap/manifest"
)

// chaos multiplies the sessions that end the program at random.
var chaos = flag.Int("chaos", 1, "how many times to repeat the sessions with random faults")

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
		if left, _ := filepath.Glob(filepath.Join(filepath.Dir(out), "*.part")); len(left) > 0 {
			t.Errorf("seed %d, session %d: left %q", seed, session, left)
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
	tenths, lanes := [][]int64{{1, 9}, {5}}, []int{2, 16}
	if *chaos > 1 {
		every := []int64{1, 2, 3, 4, 5, 6, 7, 8, 9}
		tenths, lanes = [][]int64{every, every, every}, []int{2, 8, 16}
	}
	for i, workers := range lanes {
		fmt.Printf("chaos: written again of %d MB by %d workers, when killed at", all/1e6, workers)
		for _, tenth := range tenths[i] {
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
