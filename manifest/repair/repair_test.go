package repair

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/manifest"
)

// A bed is a model on disk, a good copy of it that counts what is read, and its pin.
type bed struct {
	dir   string
	files []string // names
	want  map[string][]byte
	good  *gguf.Model
	pin   *manifest.Pin
	read  atomic.Int64
}

// newBed writes the fixture with a few wide experts.
func newBed(t *testing.T) *bed {
	t.Helper()
	spec := gguftest.K3(gguftest.K3Options{Name: "m", Experts: 16, Used: 4, Layers: 3})
	b := &bed{dir: t.TempDir(), want: map[string][]byte{}}
	paths, err := spec.Write(b.dir, gguf.Split{Shards: 3})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b.files = append(b.files, filepath.Base(path))
		b.want[filepath.Base(path)] = data
	}
	if b.good, err = gguf.OpenFolder(b, b.files[0]); err != nil {
		t.Fatal(err)
	}
	routed := func(name string) int {
		if strings.Contains(name, "_exps.") {
			return 16
		}
		return 0
	}
	if b.pin, err = manifest.BuildPin(context.Background(), b.good, manifest.BuildOptions{Slabs: routed}); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bed) Name() string             { return "good://" }
func (b *bed) Names() ([]string, error) { return b.files, nil }

func (b *bed) Open(name string) (gguf.Source, error) { return &goodFile{b, name}, nil }

// A goodFile is a file of the good copy.
type goodFile struct {
	bed  *bed
	name string
}

func (f *goodFile) Name() string { return "good://" + f.name }
func (f *goodFile) Size() int64  { return int64(len(f.bed.want[f.name])) }

func (f *goodFile) ReadAt(p []byte, off int64) (int, error) {
	f.bed.read.Add(int64(len(p)))
	return bytes.NewReader(f.bed.want[f.name]).ReadAt(p, off)
}

func (b *bed) job() *Job {
	return &Job{Dir: b.dir, Sources: []*Source{{Name: "good://", Identity: "good", Model: b.good}}, Pin: b.pin, Workers: 1}
}

// repair finds and mends, and returns what was found.
func (b *bed) repair(t *testing.T, job *Job) *Damage {
	t.Helper()
	d, err := Find(context.Background(), job)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Mend(context.Background()); err != nil {
		t.Fatal(err)
	}
	b.check(t)
	return d
}

// check compares the folder with what it should hold.
func (b *bed) check(t *testing.T) {
	t.Helper()
	for name, want := range b.want {
		if got, err := os.ReadFile(filepath.Join(b.dir, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what it was, %v", name, err)
		}
	}
	if _, err := os.Stat(filepath.Join(b.dir, JournalName)); err == nil {
		t.Error("the journal is left")
	}
}

// change rewrites a file of the folder.
func (b *bed) change(t *testing.T, name string, how func(data []byte) []byte) {
	t.Helper()
	data := how(bytes.Clone(b.want[name]))
	if err := os.WriteFile(filepath.Join(b.dir, name), data, 0o666); err != nil {
		t.Fatal(err)
	}
}

// slab returns a tensor with slabs, its pin and the size of one.
func (b *bed) slab() (*gguf.Tensor, int64) {
	for _, t := range b.good.Tensors() {
		if strings.HasSuffix(t.Name, "ffn_up_exps.weight") {
			return t, t.Size / 16
		}
	}
	return nil, 0
}

// TestOneByteCostsOneExpert flips one byte of one expert: what is read of the good copy is
// that expert and no more.
func TestOneByteCostsOneExpert(t *testing.T) {
	b := newBed(t)
	tensor, slab := b.slab()
	name := b.files[tensor.Shard()]
	b.change(t, name, func(data []byte) []byte {
		data[tensor.DataOffset()+5*slab+17] ^= 0x40
		return data
	})
	before := b.read.Load()
	d := b.repair(t, b.job())
	if len(d.Ranges) != 1 || d.Ranges[0].Length != slab || *d.Ranges[0].Expert != 5 || d.Ranges[0].Tensor != tensor.Name {
		t.Errorf("found %+v", d.Ranges)
	}
	// The header, which is compared, is in memory.
	if got := b.read.Load() - before; got != slab {
		t.Errorf("%d bytes of the good copy were read, want the %d of the expert", got, slab)
	}
}

// TestEveryKindOfDamage mends what can happen to files.
func TestEveryKindOfDamage(t *testing.T) {
	b := newBed(t)
	zeros := func(data []byte, from, to int) []byte {
		clear(data[from:to])
		return data
	}
	for name, how := range map[string]func([]byte) []byte{
		"magic":          func(d []byte) []byte { d[0] = 'X'; return d },
		"header":         func(d []byte) []byte { return zeros(d, 30, 300) },
		"last byte":      func(d []byte) []byte { d[len(d)-1] ^= 1; return d },
		"cut":            func(d []byte) []byte { return d[:len(d)*2/3] },
		"cut to nothing": func(d []byte) []byte { return nil },
		"longer":         func(d []byte) []byte { return append(d, "leftover"...) },
		"a hole":         func(d []byte) []byte { return zeros(d, len(d)/3, len(d)/2) },
		"all zeros":      func(d []byte) []byte { return zeros(d, 0, len(d)) },
		"random bytes": func(d []byte) []byte {
			for range 20 {
				d[rand.IntN(len(d))] ^= byte(1 + rand.IntN(255))
			}
			return d
		},
	} {
		for i, file := range b.files {
			b.change(t, file, how)
			if d := b.repair(t, b.job()); len(d.Files) != 1 {
				t.Errorf("%s of file %d: found %+v", name, i, d.Ranges)
			}
		}
	}
	if err := os.Remove(filepath.Join(b.dir, b.files[1])); err != nil {
		t.Fatal(err)
	}
	b.repair(t, b.job())
	if d := b.repair(t, b.job()); len(d.Ranges) != 0 {
		t.Errorf("found %+v in sound files", d.Ranges)
	}
}

// TestPadding mends bytes that belong to no tensor, and zeros where there should be none.
func TestPadding(t *testing.T) {
	b := newBed(t)
	for _, f := range b.good.Files {
		name, end := base(f), int64(0)
		for _, tensor := range f.Tensors {
			end = tensor.DataOffset() + tensor.Size
			if end%32 != 0 {
				break
			}
		}
		if end%32 == 0 {
			continue
		}
		b.change(t, name, func(data []byte) []byte {
			data[end] = 7
			return data
		})
		b.repair(t, b.job())
		return
	}
	t.Fatal("no tensor of the fixture needs padding")
}

// TestSumsAlone replaces whole files, in steps.
func TestSumsAlone(t *testing.T) {
	b := newBed(t)
	job := b.job()
	job.Pin, job.Sums = nil, map[string]manifest.Sum{}
	for _, f := range b.pin.Files {
		job.Sums[f.Name] = f.SHA256
	}
	b.change(t, b.files[1], func(data []byte) []byte {
		data[1000] ^= 1
		return data
	})
	d := b.repair(t, job)
	if !d.Files[0].Whole || d.Bytes() != 0 || d.Ranges[0].Length != int64(len(b.want[b.files[1]])) {
		t.Errorf("found %+v", d)
	}
}

// A dyingBed ends a run after some reads.
type dyingBed struct {
	*bed
	left   int
	cancel context.CancelFunc
}

func (b *dyingBed) Open(name string) (gguf.Source, error) {
	return &dyingFile{goodFile{b.bed, name}, b}, nil
}

type dyingFile struct {
	goodFile
	bed *dyingBed
}

func (f *dyingFile) ReadAt(p []byte, off int64) (int, error) {
	if f.bed.left--; f.bed.left == 0 {
		f.bed.cancel()
	}
	return f.goodFile.ReadAt(p, off)
}

// TestGoingOn ends a repair after each read of the good copy, and goes on: it does not look
// at the files again, and what was done stays done.
func TestGoingOn(t *testing.T) {
	b := newBed(t)
	tensor, slab := b.slab()
	name := b.files[tensor.Shard()]
	ended := 0
	for reads := 1; reads < 12; reads++ {
		b.change(t, name, func(data []byte) []byte {
			for i := range int64(8) {
				data[tensor.DataOffset()+2*i*slab] ^= 1
			}
			return data
		})
		ctx, cancel := context.WithCancel(context.Background())
		dying := &dyingBed{b, -1, cancel}
		good, err := gguf.OpenFolder(dying, b.files[0])
		if err != nil {
			t.Fatal(err)
		}
		job := b.job()
		job.Sources[0].Model = good
		d, err := Find(ctx, job)
		if err != nil {
			t.Fatal(err)
		}
		dying.left = reads
		if err := d.Mend(ctx); err != nil {
			ended++
			d, err := Find(context.Background(), b.job())
			if err != nil {
				t.Fatal(err)
			}
			if d.Resumed() == 0 && reads > 1 || len(d.Ranges) != 8 {
				t.Errorf("after %d reads: %d of %d ranges were done", reads, d.Resumed(), len(d.Ranges))
			}
			if err := d.Mend(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		cancel()
		b.check(t)
	}
	if ended < 5 {
		t.Errorf("%d runs ended early", ended)
	}
}

// TestBadGoodCopy ends with an error when the copy is damaged too, and again with one that
// looks anew.
func TestBadGoodCopy(t *testing.T) {
	b := newBed(t)
	tensor, slab := b.slab()
	name := b.files[tensor.Shard()]
	at := tensor.DataOffset() + 3*slab
	b.change(t, name, func(data []byte) []byte {
		data[at] ^= 1
		return data
	})
	b.want[name][at+1] ^= 1
	d, err := Find(context.Background(), b.job())
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Mend(context.Background()); err == nil || !strings.Contains(err.Error(), "expert 3") || !strings.Contains(err.Error(), "damaged too") {
		t.Errorf("error is %v", err)
	}
	b.want[name][at+1] ^= 1
	b.repair(t, b.job())
}

// TestRefusals refuses what cannot be a repair before anything is written.
func TestRefusals(t *testing.T) {
	b := newBed(t)
	job := b.job()
	job.Dir = t.TempDir()
	if _, err := Find(context.Background(), job); err == nil || !strings.Contains(err.Error(), "holds none of the files") {
		t.Errorf("an empty folder gives %v", err)
	}
	job = b.job()
	job.Pin = nil
	if _, err := Find(context.Background(), job); err == nil || !strings.Contains(err.Error(), "neither a pin nor") {
		t.Errorf("no truth gives %v", err)
	}
	same, err := gguf.Open(filepath.Join(b.dir, b.files[0]))
	if err != nil {
		t.Fatal(err)
	}
	defer same.Close()
	job = b.job()
	job.Sources[0].Model = same
	if _, err := Find(context.Background(), job); err == nil || !strings.Contains(err.Error(), "is the good copy itself") {
		t.Errorf("the folder itself gives %v", err)
	}
	settled := b.job()
	if err := settled.settle(); err != nil {
		t.Fatal(err)
	}
	for _, journal := range []string{"{}\n", "[1]\n", `{"schema":"ggufreap/repair-journal/v1","source":"good","truth":"` + settled.truth() + `","layout":"` + settled.layout().String() + `","files":[],"ranges":[{"file":"m-00001-of-00003.gguf","kind":"bytes","offset":-1,"length":9}]}` + "\n"} {
		path := filepath.Join(b.dir, JournalName)
		if err := os.WriteFile(path, []byte(journal), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := Find(context.Background(), b.job()); err == nil {
			t.Errorf("journal %q is taken", journal)
		}
		os.Remove(path)
	}
}

// TestTwoRepairs holds a second run off while one is under way, but not one that only looks,
// and leaves nothing in a folder in which nothing is wrong.
func TestTwoRepairs(t *testing.T) {
	b := newBed(t)
	tensor, _ := b.slab()
	b.change(t, b.files[tensor.Shard()], func(data []byte) []byte {
		data[tensor.DataOffset()] ^= 1
		return data
	})
	d, err := Find(context.Background(), b.job())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Find(context.Background(), b.job()); !errors.Is(err, ErrInUse) {
		t.Errorf("a second run gives %v", err)
	}
	look := b.job()
	look.DryRun = true
	if seen, err := Find(context.Background(), look); err != nil || len(seen.Ranges) != 1 {
		t.Errorf("a look gives %+v, %v", seen, err)
	}
	if err := d.Mend(context.Background()); err != nil {
		t.Fatal(err)
	}
	b.check(t)
	b.repair(t, b.job())
}

// TestJournalIsNoLink does not write through a link that somebody put in the journal's place.
func TestJournalIsNoLink(t *testing.T) {
	b := newBed(t)
	target := filepath.Join(t.TempDir(), "precious")
	if err := os.WriteFile(target, []byte("precious"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, filepath.Join(b.dir, JournalName)); err != nil {
		t.Fatal(err)
	}
	if _, err := Find(context.Background(), b.job()); err == nil || !strings.Contains(err.Error(), "is not a regular file") {
		t.Errorf("a link gives %v", err)
	}
	if data, err := os.ReadFile(target); err != nil || string(data) != "precious" {
		t.Errorf("its target is %q, %v", data, err)
	}
}
