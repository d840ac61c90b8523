package stage

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/manifest"
	"ggufreap/manifest/lists"
)

// chaos multiplies the random sessions.
var chaos = flag.Int("chaos", 1, "how many times to repeat the sessions with random faults")

// memPath is what messages call the folder of a memDisk.
const memPath = "release/folder"

// reference is the folder of a run that nothing disturbs.
func reference(t *testing.T, r Release) (files map[string]string, operations int) {
	t.Helper()
	d := &memDisk{}
	if err := runOn(d, r, Options{Workers: 1}); err != nil {
		t.Fatal(err)
	}
	return d.files(), d.count
}

// runOn writes a release as the command does.
func runOn(d *memDisk, r Release, o Options) error {
	f, err := openFine(d, r, o)
	if err != nil {
		return err
	}
	_, err = writeAll(f)
	return errors.Join(err, f.Close())
}

// openFine opens the folder of a disk, to keep what is written in small parts.
func openFine(d *memDisk, r Release, o Options) (*Folder, error) {
	f, err := open(d, memPath, r, o)
	if err == nil {
		f.least = 64
	}
	return f, err
}

// isFinished reports whether the folder says that it is a finished release.
func isFinished(files map[string]string) bool {
	_, list := files[manifest.SumsName]
	_, journal := files[manifest.JournalName]
	return list && !journal
}

// checkSound fails when a folder has a list of sums and not what it lists. want is what a
// finished release holds, nil when it may be one of several.
func checkSound(t *testing.T, d *memDisk, want map[string]string, what string) {
	t.Helper()
	files := d.files()
	if isFinished(files) && want != nil && !maps.Equal(files, want) {
		t.Fatalf("%s: the folder says that it is finished, but holds %q", what, slices.Sorted(maps.Keys(files)))
	}
	list, ok := files[manifest.SumsName]
	if !ok {
		return
	}
	sums, err := lists.ReadSums(strings.NewReader(list))
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	for _, sum := range sums {
		if sum.SHA256 != sha256.Sum256([]byte(files[sum.Name])) {
			t.Fatalf("%s: the list stands beside %q, of which it is not the sum", what, sum.Name)
		}
	}
}

// A tally counts what a session did to releases, and prints it when the test ends.
type tally struct {
	kills, faults, kept int
	lost                int // bytes that a folder lacks or has wrong in the end
}

func newTally(t *testing.T, session string) *tally {
	c := &tally{}
	t.Cleanup(func() {
		fmt.Printf("chaos: simulated disk, %s: kills survived: %d, faults injected: %d, bytes lost: %d\n", session, c.kills, c.faults, c.lost)
	})
	return c
}

// finish resumes until the release is whole and compares it with want.
func (c *tally) finish(t *testing.T, d *memDisk, r Release, want map[string]string, what string) {
	t.Helper()
	if !isFinished(d.files()) {
		if err := runOn(d, r, Options{Resume: true}); err != nil {
			t.Errorf("%s: going on: %v", what, err)
		}
	}
	c.compare(t, d, want, what)
}

// compare counts what the folder lacks of want.
func (c *tally) compare(t *testing.T, d *memDisk, want map[string]string, what string) {
	t.Helper()
	got := d.files()
	lost := lostBytes(got, want)
	if c.lost += lost; lost > 0 || len(got) != len(want) {
		t.Fatalf("%s: %d bytes are lost or wrong; the folder holds %q, want %q", what, lost,
			slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
}

// lostBytes counts the bytes of want that got has not.
func lostBytes(got, want map[string]string) int {
	lost := 0
	for name, data := range want {
		for i := range len(data) {
			if i >= len(got[name]) || got[name][i] != data[i] {
				lost++
			}
		}
		lost += max(len(got[name])-len(data), 0)
	}
	return lost
}

// TestFaultAtEveryOperation makes each operation of a run fail in turn. The run must say
// so and name the place, leave nothing or what a run can go on with, and that one must
// give the same folder.
func TestFaultAtEveryOperation(t *testing.T) {
	r := testRelease(t, 3)
	want, operations := reference(t, r)
	count := newTally(t, "output faults")
	seen := map[string]int{}
	for failAt := 1; failAt <= operations; failAt++ {
		d := &memDisk{failAt: failAt}
		err := runOn(d, r, Options{Workers: 1})
		what := fmt.Sprintf("operation %d, %s", failAt, d.failed)
		seen[d.failed]++
		count.faults++
		if !errors.Is(err, errInjected) {
			t.Fatalf("%s: got %v, want the injected fault", what, err)
		}
		if !strings.Contains(err.Error(), memPath) {
			t.Errorf("%s: %v does not name the place", what, err)
		}
		checkSound(t, d, want, what)
		if d.names != nil {
			count.kept++
			checkKept(t, d, what)
		}
		d.restart()
		count.finish(t, d, r, want, what)
	}
	for _, op := range []string{"make folder", "lock", "truncate", "create", "reserve", "write", "sync", "close", "rename", "remove", "sync folder"} {
		if seen[op] == 0 {
			t.Errorf("%s was never made to fail", op)
		}
	}
}

// checkKept makes sure that only what is durable, and the names already given, stay
// beside the journal.
func checkKept(t *testing.T, d *memDisk, what string) {
	t.Helper()
	data, ok := d.files()[manifest.JournalName]
	if !ok {
		if !isFinished(d.files()) {
			t.Errorf("%s: left %q without a journal", what, slices.Sorted(maps.Keys(d.files())))
		}
		return
	}
	_, kept, _, err := parseJournal([]byte(data))
	if err != nil || len(kept) == 0 {
		t.Errorf("%s: kept a journal of %d shards: %v", what, len(kept), err)
	}
}

// TestKillAtEveryOperation ends the process at each operation of a run in turn, and at a
// random one of the run that goes on, until the release is whole.
func TestKillAtEveryOperation(t *testing.T) {
	r := testRelease(t, 3)
	want, operations := reference(t, r)
	seed := newSeed(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	count := newTally(t, "kills at each operation")
	for dieAt := 1; dieAt <= operations; dieAt++ {
		d := &memDisk{dieAt: dieAt}
		for runOn(d, r, Options{Workers: 1, Resume: true}) != nil {
			what := fmt.Sprintf("seed %d, killed at operation %d, later at %d, %s", seed, dieAt, d.dieAt, d.failed)
			if !d.dead {
				t.Fatalf("%s: a run failed that was not killed", what)
			}
			count.kills++
			checkSound(t, d, want, what)
			if isFinished(d.files()) {
				break
			}
			d.restart()
			d.dieAt = 1 + rng.IntN(2*operations)
		}
		d.restart()
		count.finish(t, d, r, want, fmt.Sprintf("seed %d, killed at operation %d", seed, dieAt))
	}
}

// TestPowerCut ends the process at random operations and loses what was not synced.
func TestPowerCut(t *testing.T) {
	r := testRelease(t, 3)
	want, operations := reference(t, r)
	seed := newSeed(t)
	rng := rand.New(rand.NewPCG(seed, 2))
	count := newTally(t, "power cuts")
	for range 150 * *chaos {
		d := &memDisk{}
		for {
			d.dieAt = 1 + rng.IntN(operations+operations/4)
			at := d.dieAt
			err := runOn(d, r, Options{Workers: 1 + rng.IntN(3), Resume: true})
			if err == nil {
				break
			}
			what := fmt.Sprintf("seed %d, cut %d at operation %d, %s", seed, count.kills, at, d.failed)
			if !d.dead {
				t.Fatalf("%s: a run failed that was not cut: %v", what, err)
			}
			count.kills++
			d.cutPower(rng)
			checkSound(t, d, want, what)
			d.restart()
			if isFinished(d.files()) {
				break
			}
		}
		d.restart()
		count.finish(t, d, r, want, fmt.Sprintf("seed %d, after %d cuts", seed, count.kills))
	}
}

// newSeed returns a seed that a failing test names.
func newSeed(t *testing.T) uint64 {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return seed
}

// A faultySource fails at one of its reads.
type faultySource struct {
	io.ReaderAt
	faults *sourceFaults
}

type sourceFaults struct {
	mu     sync.Mutex
	count  int
	failAt int
	short  bool // give fewer bytes in place of an error
}

func (f *faultySource) ReadAt(p []byte, off int64) (int, error) {
	f.faults.mu.Lock()
	f.faults.count++
	now := f.faults.count == f.faults.failAt
	f.faults.mu.Unlock()
	switch {
	case now && f.faults.short:
		n, _ := f.ReaderAt.ReadAt(p[:len(p)/2], off)
		return n, io.EOF
	case now:
		return 0, errInjected
	}
	return f.ReaderAt.ReadAt(p, off)
}

// TestFaultAtEveryRead makes each read of the source fail, or give too few bytes.
func TestFaultAtEveryRead(t *testing.T) {
	want, _ := reference(t, testRelease(t, 3))
	count := newTally(t, "source faults")
	for _, short := range []bool{false, true} {
		for failAt := 1; ; failAt++ {
			faults := &sourceFaults{failAt: failAt, short: short}
			r := faultyRelease(t, faults)
			d := &memDisk{}
			err := runOn(d, r, Options{Workers: 1})
			if faults.count < failAt {
				break
			}
			count.faults++
			what := fmt.Sprintf("read %d, short %t", failAt, short)
			cause := errInjected
			if short {
				cause = io.ErrUnexpectedEOF
			}
			if !errors.Is(err, cause) || !strings.Contains(err.Error(), "tensor ") || !strings.Contains(err.Error(), "at byte ") {
				t.Fatalf("%s: got %v, want the fault, its tensor and its place", what, err)
			}
			checkSound(t, d, want, what)
			count.finish(t, d, r, want, what)
		}
	}
	if count.faults < 10 {
		t.Errorf("only %d faults were injected", count.faults)
	}
}

// faultyRelease is testRelease with faults in its source.
func faultyRelease(t *testing.T, faults *sourceFaults) Release {
	t.Helper()
	r := testRelease(t, 3)
	r.Layout = testLayout(t, gguftest.Mixed(1), 3, func(c *gguf.Contents) {
		for _, v := range c.Views {
			for i, e := range v.Extents {
				v.Extents[i].Source = &faultySource{e.Source, faults}
			}
		}
	})
	return r
}

// TestCancelAtEveryWrite interrupts a run at each step of its progress.
func TestCancelAtEveryWrite(t *testing.T) {
	r := testRelease(t, 3)
	want, _ := reference(t, r)
	count := newTally(t, "interrupts")
	for stop := 1; ; stop++ {
		d := &memDisk{}
		ctx, cancel := context.WithCancel(context.Background())
		steps := 0
		f, err := openFine(d, r, Options{Workers: 1, Progress: func(int64, int64) {
			if steps++; steps == stop {
				cancel()
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.WriteShards(ctx)
		cancel()
		count.kills++
		if steps < stop {
			f.Close()
			return
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatalf("step %d: got %v, want %v", stop, err, context.Canceled)
		}
		if (f.Kept() > 0) != (d.names != nil) {
			t.Fatalf("step %d: %d bytes are kept, the folder holds %q", stop, f.Kept(), slices.Sorted(maps.Keys(d.files())))
		}
		count.finish(t, d, r, want, fmt.Sprintf("step %d", stop))
	}
}
