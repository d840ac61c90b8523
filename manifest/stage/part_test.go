package stage

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"ggufreap/manifest"
	"ggufreap/manifest/parts"
	"ggufreap/manifest/stage/internal/disk"
)

const planText = "{}\n"

// partRelease is a release as the command writes it: with a plan and a pin.
func partRelease(t testing.TB, shards int) Release {
	t.Helper()
	r := testRelease(t, shards)
	r.Documents = []string{"plan.json", manifest.PinName}
	r.Known = map[string]manifest.Sum{"plan.json": sha256.Sum256([]byte(planText))}
	return r
}

// wholeRelease is the folder that one run writes.
func wholeRelease(t *testing.T, r Release) map[string]string {
	t.Helper()
	d := &memDisk{}
	f, err := open(d, memPath, r, Options{})
	if err != nil {
		t.Fatal(err)
	}
	pin, err := f.WriteShards(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for name, write := range map[string]func(io.Writer) error{
		"plan.json":      func(w io.Writer) error { _, err := io.WriteString(w, planText); return err },
		manifest.PinName: func(w io.Writer) error { return manifest.EncodePin(w, manifest.PinName, pin) },
	} {
		if err := f.WriteFile(name, write); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(f.Publish(context.Background()), f.Close()); err != nil {
		t.Fatal(err)
	}
	return d.files()
}

// runPart does a part as the command does.
func runPart(d disk.Disk, r Release, i, n int) error {
	p, err := openPart(d, memPath, r, Options{Workers: 1}, Share{Part: i, Parts: n, Task: "prune", Program: "test"})
	if errors.Is(err, ErrFinished) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = p.Write(context.Background(), map[string][]byte{"plan.json": []byte(planText)})
	return errors.Join(err, p.Close())
}

// joinAll joins the parts, and returns those that are to be done again.
func joinAll(d *memDisk) ([]Fault, error) { return joinWaiting(d, Wait{}) }

func joinWaiting(d *memDisk, wait Wait) ([]Fault, error) {
	g, err := gather(context.Background(), d, memPath, wait)
	if err != nil {
		return nil, err
	}
	defer g.Close()
	switch {
	case g.Listed():
		err = g.CheckListed()
	default:
		if err = g.CheckFiles(context.Background()); err == nil && len(g.Faults()) == 0 {
			_, err = g.Publish()
		}
		if err != nil || len(g.Faults()) > 0 {
			return g.Faults(), err
		}
	}
	if err == nil {
		_, err = g.Clear()
	}
	return nil, err
}

// inParts does all parts in some order, and joins them. It ends at the first error.
func inParts(d *memDisk, r Release, order []int) error {
	for _, i := range order {
		if err := runPart(d, r, i+1, len(order)); err != nil {
			return err
		}
	}
	faults, err := joinAll(d)
	if err == nil && len(faults) > 0 {
		err = fmt.Errorf("part %d is to be done again: %s", faults[0].Part, faults[0].Why)
	}
	return err
}

// TestPartsOnASimulatedDisk ends the tasks of a release at every operation: it fails, the
// process dies, power is lost, or a rename is done and its answer lost. Then all parts are
// done again and joined: the folder is that of one run.
func TestPartsOnASimulatedDisk(t *testing.T) {
	r := partRelease(t, 5)
	want := wholeRelease(t, r)
	rng := rand.New(rand.NewPCG(newSeed(t), 18))
	c := newTally(t, "in parts")
	for _, n := range []int{1, 3, 8} {
		undisturbed := &memDisk{}
		if err := inParts(undisturbed, r, rng.Perm(n)); err != nil {
			t.Fatal(err)
		}
		c.compare(t, undisturbed, want, fmt.Sprintf("%d parts", n))
		for _, how := range []string{"fails", "fails where nothing can be renamed", "dies", "loses power", "loses its answer"} {
			stride := max(13 / *chaos, 1)
			for at := 1 + rng.IntN(stride); at <= undisturbed.count; at += stride {
				what := fmt.Sprintf("%d parts, operation %d %s", n, at, how)
				d := &memDisk{}
				switch how {
				case "fails", "fails where nothing can be renamed":
					d.failAt, d.fixed = at, how != "fails"
				case "loses its answer":
					d.lostAt = at
				default:
					d.dieAt = at
				}
				err := inParts(d, r, rng.Perm(n))
				if how == "loses its answer" && err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				if d.failed != "" {
					c.faults++
				}
				checkSound(t, d, nil, what)
				if how == "loses power" {
					d.cutPower(rng)
				}
				d.restart()
				if err := inParts(d, r, rng.Perm(n)); err != nil {
					t.Fatalf("%s: done again: %v", what, err)
				}
				c.kills++
				c.compare(t, d, want, what)
			}
		}
	}
}

// TestPartGoesOn ends a task behind each of its shards. The next one writes the others, and of
// those that were finished no more than 4 % of the part: smaller ones are not noted each.
func TestPartGoesOn(t *testing.T) {
	r := partRelease(t, 5)
	share := Share{Part: 1, Parts: 1, Task: "prune", Program: "test"}
	documents := map[string][]byte{"plan.json": []byte(planText)}
	for finished := range 5 {
		d, settled := &memDisk{}, 0
		first, err := openPart(d, memPath, r, Options{Workers: 1, Unchanged: func() error {
			if settled++; settled > finished {
				return errInjected
			}
			return nil
		}}, share)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := first.Write(context.Background(), documents); !errors.Is(err, errInjected) {
			t.Fatal(err)
		}
		first.Close()
		second, err := openPart(d, memPath, r, Options{Workers: 1}, share)
		if err != nil {
			t.Fatal(err)
		}
		if got, all, redo := second.Found(); got > finished || all || redo != "" {
			t.Errorf("%d shards were finished: found %d, all %t, redo %q", finished, got, all, redo)
		}
		if _, err := second.Write(context.Background(), documents); err != nil {
			t.Fatal(err)
		}
		var want int64
		for _, shard := range r.Layout.Shards[finished:] {
			want += shard.Size
		}
		if _, written := second.Traffic(); written < want || written > want+second.Bytes()/unkeptShare {
			t.Errorf("%d shards were finished: %d bytes were written, want %d", finished, written, want)
		}
		third, err := openPart(d, memPath, r, Options{}, share)
		if err != nil {
			t.Fatal(err)
		}
		if got, all, redo := third.Found(); got != 5 || !all || redo != "" {
			t.Errorf("all are there: found %d, all %t, redo %q", got, all, redo)
		}
	}
}

// TestPartsTwiceAtOnce lets another task of some part, or a join, run before each operation of
// a task: as doubles do that a scheduler starts. Nothing else is written than by one run.
func TestPartsTwiceAtOnce(t *testing.T) {
	r := partRelease(t, 4)
	want := wholeRelease(t, r)
	rng := rand.New(rand.NewPCG(newSeed(t), 19))
	const n = 3
	undisturbed := &memDisk{}
	if err := inParts(undisturbed, r, rng.Perm(n)); err != nil {
		t.Fatal(err)
	}
	joined := 0
	stride := max(3 / *chaos, 1)
	for at := 1 + rng.IntN(stride); at <= undisturbed.count; at += stride {
		for i, second := range []string{"a task", "all tasks and the join", "a task", "all tasks and the join"} {
			d := &memDisk{otherAt: at, fixed: i >= 2}
			var others error
			d.other = func() {
				if second == "a task" {
					others = runPart(d, r, 1+rng.IntN(n), n)
					return
				}
				if others = inParts(d, r, rng.Perm(n)); others == nil {
					joined++
				}
			}
			err := inParts(d, r, rng.Perm(n))
			what := fmt.Sprintf("%s at operation %d, names fixed %t", second, at, d.fixed)
			if others != nil {
				t.Errorf("%s: %v", what, others)
			}
			checkSound(t, d, nil, what)
			if err != nil { // the folder was joined meanwhile, and its temporary file removed
				if err = inParts(d, r, rng.Perm(n)); err != nil {
					t.Errorf("%s: done again: %v", what, err)
				}
			}
			if got := d.files(); !maps.Equal(got, want) {
				t.Errorf("%s: the folder holds %q, want %q, or other bytes", what, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
			}
		}
	}
	if joined == 0 {
		t.Error("no join ran while a task did")
	}
}

// TestJoinAsksAgain hides names and sizes as a network file system does that remembers what
// was there before: they are asked for again.
func TestJoinAsksAgain(t *testing.T) {
	r := partRelease(t, 4)
	want := wholeRelease(t, r)
	const shard = "out-00002-of-00004.gguf"
	for name, hide := range map[string]func(d *memDisk) (show func()){
		"the folder": func(d *memDisk) func() {
			names := d.names
			d.names = nil
			return func() { d.names = names }
		},
		"a record": func(d *memDisk) func() { return d.hide(parts.Name(2, 2)) },
		"all records": func(d *memDisk) func() {
			first, second := d.hide(parts.Name(1, 2)), d.hide(parts.Name(2, 2))
			return func() { first(); second() }
		},
		"a shard":  func(d *memDisk) func() { return d.hide(shard) },
		"the plan": func(d *memDisk) func() { return d.hide("plan.json") },
		"a shard's size": func(d *memDisk) func() {
			show := d.hide(shard)
			d.names[shard] = &memFile{}
			return show
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &memDisk{}
			for i := range 2 {
				if err := runPart(d, r, i+1, 2); err != nil {
					t.Fatal(err)
				}
			}
			show, waited := hide(d), 0
			faults, err := joinWaiting(d, Wait{Time: 10 * time.Minute, Begun: func(int) { waited++; show() }})
			if err != nil || len(faults) > 0 || waited != 1 {
				t.Errorf("waited %d times, parts again: %v, %v", waited, faults, err)
			}
			if !maps.Equal(d.files(), want) {
				t.Error("the release is another one")
			}
		})
	}
}

// hide takes a name away until the returned function gives it back.
func (d *memDisk) hide(name string) (show func()) {
	file := d.names[name]
	delete(d.names, name)
	return func() { d.names[name] = file }
}

// TestPartsOfOtherWork refuses to write or to join parts of different releases in one folder.
func TestPartsOfOtherWork(t *testing.T) {
	r := partRelease(t, 4)
	for name, change := range map[string]func(r *Release, n *int){
		"another plan":          func(r *Release, _ *int) { r.Origin = []Fact{{Name: "plan", Digest: manifest.DigestBytes(nil)}} },
		"another cut":           func(r *Release, _ *int) { *r = partRelease(t, 5) },
		"other documents":       func(r *Release, _ *int) { r.Known = map[string]manifest.Sum{"plan.json": {1}} },
		"another number":        func(_ *Release, n *int) { *n = 3 },
		"another stem":          func(r *Release, _ *int) { r.Stem = "other" },
		"another order of work": func(r *Release, _ *int) { r.Documents = []string{manifest.PinName, "plan.json"} },
	} {
		d := &memDisk{}
		if err := runPart(d, r, 1, 2); err != nil {
			t.Fatal(err)
		}
		before := d.files()
		other, n := r, 2
		change(&other, &n)
		for i := 1; i <= n; i++ {
			if err := runPart(d, other, i, n); err == nil {
				t.Errorf("%s: part %d was written beside %s", name, i, parts.Name(1, 2))
			}
		}
		if !maps.Equal(d.files(), before) {
			t.Errorf("%s: what was refused changed the folder", name)
		}
	}
}

// A shutDisk has a file that may not be opened.
type shutDisk struct {
	*memDisk
	name string
}

type shutFolder struct {
	disk.Folder
	name string
}

func (d shutDisk) Open(path string) (disk.Folder, error) {
	f, err := d.memDisk.Open(path)
	return shutFolder{f, d.name}, err
}

func (f shutFolder) Open(name string) (disk.InputFile, error) {
	if name == f.name {
		return nil, fmt.Errorf("%q: %w", name, fs.ErrPermission)
	}
	return f.Folder.Open(name)
}

// TestPartsThatMayNotBeRead joins parts of which a record, a shard or a document may not be
// opened: to do the part again would change nothing.
func TestPartsThatMayNotBeRead(t *testing.T) {
	r, d := partRelease(t, 3), &memDisk{}
	for i := range 3 {
		if err := runPart(d, r, i+1, 3); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"PART-2-of-3.json", r.shardName(1), "plan.json"} {
		g, err := gather(context.Background(), shutDisk{d, name}, memPath, Wait{})
		if err == nil {
			err = errors.Join(g.CheckFiles(context.Background()), g.Close())
		}
		if !errors.Is(err, fs.ErrPermission) || strings.Count(err.Error(), name) != 1 {
			t.Errorf("%s: got %v, want %v and the name, once", name, err, fs.ErrPermission)
		}
	}
}
