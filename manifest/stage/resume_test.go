package stage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/manifest"
)

// unfinished leaves a release on a disk whose first n shards are finished, and of which
// something of the next is kept.
func unfinished(t *testing.T, d *memDisk, r Release, n int) {
	t.Helper()
	stopped := false
	o := Options{Workers: 1}
	var f *Folder
	o.Unchanged = func() error {
		if stopped || f.Kept() <= sizeOf(r, n) {
			return nil
		}
		stopped = true
		return errInjected
	}
	f, err := openFine(d, r, o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteShards(t.Context()); !errors.Is(err, errInjected) {
		t.Fatalf("got %v, want %v", err, errInjected)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if kept := f.Kept(); kept <= sizeOf(r, n) || kept >= sizeOf(r, n+1) {
		t.Fatalf("%d bytes are kept, want more than %d and less than %d", kept, sizeOf(r, n), sizeOf(r, n+1))
	}
}

// sizeOf returns the bytes of the first n shards.
func sizeOf(r Release, n int) int64 {
	var size int64
	for _, shard := range r.Layout.Shards[:n] {
		size += shard.Size
	}
	return size
}

func TestResumeGoesOn(t *testing.T) {
	r := testRelease(t, 3)
	want, _ := reference(t, r)
	whole := mustOpen(t, filepath.Join(t.TempDir(), "r"), r, Options{})
	wantPin, err := writeAll(whole)
	if err != nil {
		t.Fatal(err)
	}
	d := &memDisk{}
	unfinished(t, d, r, 2)
	if got, want := slices.Sorted(maps.Keys(d.files())), []string{manifest.JournalName, releaseNames[0] + ".part", releaseNames[1] + ".part", releaseNames[2] + ".part"}; !slices.Equal(got, want) {
		t.Errorf("kept %q, want %q", got, want)
	}
	var last int64
	f, err := openFine(d, r, Options{Resume: true, Progress: func(done, _ int64) { last = done }})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	kept := f.Kept()
	pin, err := writeAll(f)
	if err != nil {
		t.Fatal(err)
	}
	if resumed, redone := f.Resumed(); resumed != kept || len(redone) > 0 {
		t.Errorf("resumed %d bytes and redid %q, want %d and none", resumed, redone, kept)
	}
	if !maps.Equal(d.files(), want) {
		t.Error("the folder differs from that of one run")
	}
	if !reflect.DeepEqual(pin, wantPin) {
		t.Error("the pin differs from that of one run")
	}
	if last != r.Layout.Bytes() {
		t.Errorf("progress ended at %d, want %d", last, r.Layout.Bytes())
	}
	third := r.Layout.Shards[2]
	wantRead, wantWritten := kept+third.TensorBytes()-dataBefore(third, kept-sizeOf(r, 2)), r.Layout.Bytes()-kept
	for name, data := range want {
		if !gguf.IsModelFile(name) {
			wantWritten += int64(len(data))
		}
	}
	if read, written := f.Traffic(); read != wantRead || written != wantWritten {
		t.Errorf("read %d and wrote %d bytes, want %d and %d", read, written, wantRead, wantWritten)
	}
}

// TestResumeRedoesDamage changes what an interrupted run finished.
func TestResumeRedoesDamage(t *testing.T) {
	r := testRelease(t, 3)
	want, _ := reference(t, r)
	part := releaseNames[0] + ".part"
	for what, damage := range map[string]func(d *memDisk){
		"flipped": func(d *memDisk) { d.names[part].data[1000] ^= 1 },
		"cut":     func(d *memDisk) { d.names[part].data = d.names[part].data[:1000] },
		"longer":  func(d *memDisk) { d.names[part].data = append(d.names[part].data, 0) },
		"missing": func(d *memDisk) { delete(d.names, part) },
		"swapped": func(d *memDisk) {
			other := releaseNames[1] + ".part"
			d.names[part], d.names[other] = d.names[other], d.names[part]
		},
	} {
		t.Run(what, func(t *testing.T) {
			d := &memDisk{}
			unfinished(t, d, r, 2)
			damage(d)
			var last int64
			f, err := openFine(d, r, Options{Resume: true, Progress: func(done, _ int64) {
				if done < last || done > r.Layout.Bytes() {
					t.Errorf("progress went from %d to %d of %d", last, done, r.Layout.Bytes())
				}
				last = done
			}})
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if _, err := writeAll(f); err != nil {
				t.Fatal(err)
			}
			if _, redone := f.Resumed(); !slices.Contains(redone, releaseNames[0]) {
				t.Errorf("redid %q, want %q among them", redone, releaseNames[0])
			}
			if !maps.Equal(d.files(), want) {
				t.Error("the folder differs from that of one run")
			}
		})
	}
}

func TestResumeRefusesAnotherRelease(t *testing.T) {
	contents := func(change func(c *gguf.Contents)) func(t *testing.T, r *Release) {
		return func(t *testing.T, r *Release) { r.Layout = testLayout(t, gguftest.Mixed(1), 3, change) }
	}
	for what, test := range map[string]struct {
		change func(t *testing.T, r *Release)
		want   string
	}{
		"plan":      {func(_ *testing.T, r *Release) { r.Origin[0].Digest = manifest.DigestBytes(nil) }, "the plan is blake3:"},
		"no plan":   {func(_ *testing.T, r *Release) { r.Origin = nil }, "the unfinished run had a plan"},
		"stem":      {func(_ *testing.T, r *Release) { r.Stem = "other" }, `shard 1 is "other-00001-of-00003.gguf", it was "out-00001`},
		"documents": {func(_ *testing.T, r *Release) { r.Documents = append(r.Documents, "README.md") }, "it has 2 documents, it had 1"},
		"shards":    {func(t *testing.T, r *Release) { *r = testRelease(t, 4) }, "it has 4 shards, it had 3"},
		"metadata": {contents(func(c *gguf.Contents) { c.Metadata.Set("general.architecture", gguf.TextValue("tesu")) }),
			`"out-00001-of-00003.gguf" has other metadata or another tensor table`},
		"size": {contents(func(c *gguf.Contents) {
			c.Metadata.Set("general.name", gguf.TextValue("more than a few bytes, so that it grows"))
		}), `"out-00001-of-00003.gguf" has `},
		"ranges": {contents(func(c *gguf.Contents) {
			v := viewNamed(c, "blk.1.ffn_up_exps.weight")
			half := v.Extents[0].Length / 2
			v.Extents = []gguf.Extent{{Source: v.Extents[0].Source, Offset: half, Length: half}, {Source: v.Extents[0].Source, Length: half}}
		}), "is made of other source ranges"},
	} {
		t.Run(what, func(t *testing.T) {
			r := testRelease(t, 3)
			d := &memDisk{}
			unfinished(t, d, r, 1)
			before := d.files()
			r.Origin = slices.Clone(r.Origin)
			test.change(t, &r)
			_, err := open(d, memPath, r, Options{Resume: true})
			if !errors.Is(err, ErrDifferent) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %v with %q", err, ErrDifferent, test.want)
			}
			if !maps.Equal(d.files(), before) {
				t.Error("the folder was changed")
			}
		})
	}
}

// TestResumeRefusesAnotherSource changes files that a release is made from.
func TestResumeRefusesAnotherSource(t *testing.T) {
	now := time.Now()
	for what, test := range map[string]struct {
		change func(paths []string) ([]string, error)
		want   string
	}{
		"size":  {func(p []string) ([]string, error) { return p, os.Truncate(p[0], 5) }, "has 5 bytes, it had 6"},
		"time":  {func(p []string) ([]string, error) { return p, os.Chtimes(p[0], now, now.Add(1)) }, "was modified at"},
		"name":  {func(p []string) ([]string, error) { return []string{p[0] + "x"}, os.Rename(p[0], p[0]+"x") }, `is "mx", it was "m"`},
		"count": {func(p []string) ([]string, error) { return append(p, p[0]), nil }, "has 2 files, it had 1"},
	} {
		t.Run(what, func(t *testing.T) {
			paths := []string{filepath.Join(t.TempDir(), "m")}
			if err := errors.Join(os.WriteFile(paths[0], []byte("source"), 0o666), os.Chtimes(paths[0], now, now)); err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(t.TempDir(), "r")
			r := testRelease(t, 3)
			f := mustOpen(t, dir, r, Options{Sources: paths})
			if _, err := f.WriteShards(context.Background()); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			paths, err := test.change(paths)
			if err != nil {
				t.Fatal(err)
			}
			_, err = Open(dir, r, Options{Sources: paths, Resume: true})
			if !errors.Is(err, ErrDifferent) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %v with %q", err, ErrDifferent, test.want)
			}
		})
	}
}

// TestChangedSourceDoesNotCount lets the source change while it is read.
func TestChangedSourceDoesNotCount(t *testing.T) {
	r := testRelease(t, 3)
	want, _ := reference(t, r)
	d := &memDisk{}
	asked := 0
	f, err := openFine(d, r, Options{Workers: 1, Unchanged: func() error {
		if asked++; asked > 1 {
			return errInjected
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	first := f.lanes()[0][0] // the largest
	_, err = f.WriteShards(context.Background())
	if !errors.Is(err, errInjected) || !strings.Contains(err.Error(), "source changed") {
		t.Errorf("got %v, want the change of the source", err)
	}
	f.Close()
	if got, want := slices.Sorted(maps.Keys(d.files())), []string{manifest.JournalName, releaseNames[first] + ".part"}; !slices.Equal(got, want) {
		t.Errorf("kept %q, want %q", got, want)
	}
	count := newTally(t, "changed source")
	count.faults++
	count.finish(t, d, r, want, "after the change")
}

func TestResumeWithoutAnInterruptedRun(t *testing.T) {
	r := testRelease(t, 3)
	want, _ := reference(t, r)
	d := &memDisk{}
	if err := runOn(d, r, Options{Resume: true}); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(d.files(), want) {
		t.Error("the folder differs from that of one run")
	}
	for _, o := range []Options{{Resume: true}, {}, {Resume: true, Force: true}} {
		if err := runOn(d, r, o); !errors.Is(err, ErrFinished) {
			t.Errorf("a finished release, resume %t, force %t: got %v", o.Resume, o.Force, err)
		}
	}
	if !maps.Equal(d.files(), want) {
		t.Error("the finished release was changed")
	}
	if err := runOn(d, r, Options{Force: true}); err != nil || !maps.Equal(d.files(), want) {
		t.Errorf("writing it again: %v", err)
	}
}

// TestFinishedReleaseThatIsAnother changes what a finished release holds, or what is to be
// there. It is neither finished nor overwritten.
func TestFinishedReleaseThatIsAnother(t *testing.T) {
	shard := releaseNames[1]
	for what, test := range map[string]struct {
		change func(d *memDisk, r *Release)
		want   string
	}{
		"a shard is missing":   {func(d *memDisk, _ *Release) { delete(d.names, shard) }, `"` + shard + `" is missing`},
		"a shard is cut short": {func(d *memDisk, _ *Release) { d.names[shard].data = d.names[shard].data[:1000] }, "has 1,000 bytes"},
		"a header is changed":  {func(d *memDisk, _ *Release) { d.names[shard].data[50] ^= 1 }, "other metadata or another tensor table"},
		"a document":           {func(_ *memDisk, r *Release) { r.Known = map[string]manifest.Sum{"plan.json": {1}} }, `"plan.json" has another sha256`},
		"one more document":    {func(_ *memDisk, r *Release) { r.Documents = append(r.Documents, "x") }, `"x" is missing`},
		"another stem":         {func(_ *memDisk, r *Release) { r.Stem = "x" }, "is no part of this one"},
		"a list that is none":  {func(d *memDisk, _ *Release) { d.names[manifest.SumsName].data = []byte("x") }, "finished release that is not this one"},
	} {
		r := testRelease(t, 3)
		d := &memDisk{}
		if err := runOn(d, r, Options{}); err != nil {
			t.Fatal(err)
		}
		test.change(d, &r)
		before := d.files()
		for _, resume := range []bool{false, true} {
			if err := runOn(d, r, Options{Resume: resume}); !errors.Is(err, ErrOther) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: got %v, want %v with %q", what, err, ErrOther, test.want)
			}
		}
		if !maps.Equal(d.files(), before) {
			t.Errorf("%s: the folder was changed", what)
		}
	}
}

func TestUnfinishedReleaseIsNotOverwritten(t *testing.T) {
	r := testRelease(t, 3)
	d := &memDisk{}
	unfinished(t, d, r, 1)
	before := d.files()
	for _, force := range []bool{false, true} {
		if err := runOn(d, r, Options{Force: force}); !errors.Is(err, ErrUnfinished) {
			t.Errorf("force %t: got %v, want %v", force, err, ErrUnfinished)
		}
	}
	d.names["stranger"] = &memFile{}
	if err := runOn(d, r, Options{Resume: true}); err == nil || !strings.Contains(err.Error(), `"stranger"`) {
		t.Errorf("a file of somebody else's: got %v", err)
	}
	delete(d.names, "stranger")
	if !maps.Equal(d.files(), before) {
		t.Error("the folder was changed")
	}
}

// TestForcedReleaseResumes replaces a release, and loses power at each operation.
func TestForcedReleaseResumes(t *testing.T) {
	old, r := testRelease(t, 3), testRelease(t, 3)
	r.Layout = testLayout(t, gguftest.Mixed(2), 3, func(c *gguf.Contents) { c.Metadata.Set("general.name", gguf.TextValue("new")) })
	forced := func() *memDisk {
		d := &memDisk{}
		if err := runOn(d, old, Options{}); err != nil {
			t.Fatal(err)
		}
		d.names["README.md"] = &memFile{data: []byte("kept"), synced: []byte("kept")}
		d.synced = maps.Clone(d.names)
		d.restart()
		return d
	}
	d := forced()
	if err := runOn(d, r, Options{Force: true, Workers: 1}); err != nil {
		t.Fatal(err)
	}
	want, operations := d.files(), d.count
	if !strings.Contains(want[manifest.SumsName], "README.md") {
		t.Errorf("the list lacks the file that was there: %s", want[manifest.SumsName])
	}
	seed := newSeed(t)
	rng := rand.New(rand.NewPCG(seed, 3))
	count := newTally(t, "power cuts while replacing")
	for dieAt := 1; dieAt <= operations; dieAt++ {
		d := forced()
		d.dieAt = dieAt
		if err := runOn(d, r, Options{Force: true, Workers: 1}); err == nil {
			t.Fatalf("operation %d was never reached", dieAt)
		}
		count.kills++
		what := fmt.Sprintf("seed %d, cut at operation %d, %s", seed, dieAt, d.failed)
		d.cutPower(rng)
		checkSound(t, d, nil, what)
		d.restart()
		if err := runOn(d, r, Options{Force: true, Resume: true}); err != nil && !errors.Is(err, ErrFinished) {
			t.Fatalf("%s: %v", what, err)
		}
		count.compare(t, d, want, what)
	}
}

func TestTwoRunsInOneFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "r")
	r := testRelease(t, 3)
	first := mustOpen(t, dir, r, Options{})
	for _, o := range []Options{{}, {Force: true}, {Resume: true}} {
		f, err := Open(dir, r, o)
		if err == nil {
			f.Close()
			t.Fatalf("%+v: a second run was let in", o)
		}
		if o.Resume && !errors.Is(err, ErrInUse) {
			t.Errorf("%+v: got %v, want %v", o, err, ErrInUse)
		}
	}
	if _, err := writeAll(first); err != nil {
		t.Fatal(err)
	}
	if got, want := folderNames(t, dir), append([]string{manifest.SumsName}, releaseNames...); !slices.Equal(got, want) {
		t.Errorf("folder holds %q, want %q", got, want)
	}
}

func TestFreeSpaceIsCheckedFirst(t *testing.T) {
	r := testRelease(t, 3)
	var need int64
	for _, shard := range r.Layout.Shards {
		need += (shard.Size + 511) / 512 * 512
	}
	d := &memDisk{size: need - 1}
	var space *SpaceError
	if err := runOn(d, r, Options{}); !errors.As(err, &space) || *space != (SpaceError{memPath, need, need - 1}) {
		t.Errorf("got %v, want %+v", err, SpaceError{memPath, need, need - 1})
	}
	if d.names != nil {
		t.Errorf("left %q", slices.Sorted(maps.Keys(d.files())))
	}
}

// TestDiskFull lets the disk fill up in the middle of the copying, and then makes room
// for what is left.
func TestDiskFull(t *testing.T) {
	for _, full := range []error{syscall.ENOSPC, syscall.EDQUOT} {
		t.Run(full.Error(), func(t *testing.T) { fillDisk(t, full) })
	}
}

func fillDisk(t *testing.T, full error) {
	r := testRelease(t, 3)
	want, _ := reference(t, r)
	d := &memDisk{full: full}
	f, err := openFine(d, r, Options{Workers: 1, Progress: func(done, _ int64) {
		if done > r.Layout.Shards[0].Size {
			d.size = r.Layout.Shards[0].Size + 4000
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteShards(context.Background())
	if !errors.Is(err, full) || !strings.Contains(err.Error(), gguf.ShardName("out", 1, 3)) {
		t.Errorf("got %v, want %v and the file", err, full)
	}
	if want := "bytes of shards are still to be written"; !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	left := r.Layout.Bytes() - d.used() + int64(len(d.names[manifest.JournalName].data))
	d.size = d.used() + left - 1
	var space *SpaceError
	if err := runOn(d, r, Options{Resume: true}); !errors.As(err, &space) || space.Need-space.Free < 1 || space.Need > left+3*511 {
		t.Errorf("one byte too few: got %v", err)
	}
	d.size = 0
	count := newTally(t, full.Error())
	count.faults++
	count.finish(t, d, r, want, "with room again")
}

// TestAnotherReleaseIsToldApart begins a release where another one is unfinished: without
// Resume too it says that the other cannot be gone on with.
func TestAnotherReleaseIsToldApart(t *testing.T) {
	d := &memDisk{}
	unfinished(t, d, testRelease(t, 3), 1)
	if err := runOn(d, testRelease(t, 2), Options{}); !errors.Is(err, ErrDifferent) {
		t.Errorf("got %v, want %v", err, ErrDifferent)
	}
}

// TestMovedFolderIsNoticed moves the folder when all is written but the names.
func TestMovedFolderIsNoticed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "r")
	moved := dir + "-moved"
	f := mustOpen(t, dir, testRelease(t, 3), Options{})
	if _, err := f.WriteShards(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := f.WriteFile("plan.json", func(w io.Writer) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir, moved); err != nil {
		t.Fatal(err)
	}
	if err := f.Publish(t.Context()); !errors.Is(err, ErrMoved) {
		t.Errorf("got %v, want %v", err, ErrMoved)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if !errors.Is(f.Lost(), ErrMoved) {
		t.Errorf("lost is %v, want %v", f.Lost(), ErrMoved)
	}
	if _, err := os.Stat(filepath.Join(moved, manifest.SumsName)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the list of sums: %v", err)
	}
	if _, err := writeAll(mustOpen(t, moved, testRelease(t, 3), Options{Resume: true})); err != nil {
		t.Errorf("going on where it is now: %v", err)
	}
}

// TestChangedSourceIsLost changes the source once a shard is finished.
func TestChangedSourceIsLost(t *testing.T) {
	changed := false
	o := Options{Unchanged: func() error {
		if changed {
			return errors.New("changed")
		}
		return nil
	}}
	f := mustOpen(t, filepath.Join(t.TempDir(), "r"), testRelease(t, 3), o)
	if _, err := f.WriteShards(t.Context()); err != nil {
		t.Fatal(err)
	}
	changed = true
	f.Close()
	if !errors.Is(f.Lost(), ErrSource) {
		t.Errorf("lost is %v, want %v", f.Lost(), ErrSource)
	}
}

// TestResumeWhereNothingCanBeRemoved runs where names cannot be removed from some operation on,
// again and again, and then where they can: nothing is in the way of going on, whatever is left.
func TestResumeWhereNothingCanBeRemoved(t *testing.T) {
	r := testRelease(t, 3)
	want, operations := reference(t, r)
	count := newTally(t, "names that cannot be removed")
	for from := 1; from <= operations; from++ {
		d := &memDisk{keeps: true, keepsFrom: from}
		for range 3 {
			err := runOn(d, r, Options{Resume: true})
			count.faults++
			if isFinished(d.files()) {
				break
			}
			if err == nil {
				t.Fatalf("from operation %d on: no error, and no release", from)
			}
			d.restart()
			d.keepsFrom = 1
		}
		d.keeps = false
		d.restart()
		count.finish(t, d, r, want, fmt.Sprintf("from operation %d on", from))
	}
}
