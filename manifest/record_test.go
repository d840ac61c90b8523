package manifest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/manifest/internal/modeltest"
)

// countingReader counts how often each byte is read.
type countingReader struct {
	data   []byte
	mu     sync.Mutex
	read   []int
	fickle bool // each time it is another byte
}

func (c *countingReader) ReadAt(p []byte, off int64) (int, error) {
	n, err := bytes.NewReader(c.data).ReadAt(p, off)
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range n {
		if c.fickle {
			p[i] ^= byte(c.read[off+int64(i)])
		}
		c.read[off+int64(i)]++
	}
	return n, err
}

// countedModel writes contents as shards and opens them on countingReaders, whose counts
// begin at zero then.
func countedModel(t *testing.T, c gguf.Contents, s gguf.Split) (*gguf.Model, []*countingReader) {
	t.Helper()
	var files []*gguf.File
	var readers []*countingReader
	for _, path := range modeltest.Write(t, t.TempDir(), "m", c, s) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		r := &countingReader{data: data, read: make([]int, len(data))}
		f, err := gguf.NewFile(filepath.Base(path), r, int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		readers, files = append(readers, r), append(files, f)
	}
	m, err := gguf.NewModel("m", files...)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range readers {
		clear(r.read)
	}
	return m, readers
}

// keptViews are the views of a model that keeps experts of some tensors.
func keptViews(m *gguf.Model, keep map[string][]int) []gguf.View {
	var views []gguf.View
	for _, t := range m.Tensors() {
		v := t.View()
		if list := keep[t.Name]; list != nil {
			whole := v.Extents[0]
			slab := whole.Length / int64(t.Shape[len(t.Shape)-1])
			v.Shape = slices.Concat(v.Shape[:len(v.Shape)-1], []uint64{uint64(len(list))})
			v.Extents = nil
			for _, id := range list {
				v.Append(gguf.Extent{Source: whole.Source, Offset: whole.Offset + int64(id)*slab, Length: slab})
			}
		}
		views = append(views, v)
	}
	return views
}

func TestRecorder(t *testing.T) {
	want := mustPin(t, modeltest.New(t, modeltest.MoE(), gguf.Split{Shards: 3}), BuildOptions{Slabs: modeltest.MoESlabs(modeltest.MoEExperts)})
	for name, test := range map[string]struct {
		keep    []int
		shards  int
		workers int
		once    bool
	}{
		"ascending":                {[]int{0, 2, 3, 7}, 5, 1, true},
		"all":                      {[]int{0, 1, 2, 3, 4, 5, 6, 7, 8}, 5, 1, true},
		"the last":                 {[]int{8}, 1, 1, true},
		"out of order":             {[]int{8, 1, 5, 4}, 5, 1, false},
		"several workers":          {[]int{0, 2, 3, 7}, 5, 4, false},
		"several workers, one out": {[]int{8, 1, 5, 4}, 7, 8, false},
	} {
		t.Run(name, func(t *testing.T) {
			m, readers := countedModel(t, modeltest.MoE(), gguf.Split{Shards: 3})
			var last int64
			recorder, err := NewRecorder(t.Context(), m, BuildOptions{Slabs: modeltest.MoESlabs(modeltest.MoEExperts), Workers: test.workers, Progress: func(done, total int64) { last = total - done }})
			if err != nil {
				t.Fatal(err)
			}
			keep := map[string][]int{}
			for _, tensor := range m.Tensors() {
				if modeltest.MoESlabs(1)(tensor.Name) > 0 {
					keep[tensor.Name] = test.keep
				}
			}
			views := keptViews(m, keep)
			written := writeViews(t, m, recorder.Views(views), test.shards, test.workers)
			pin, err := recorder.Finish(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if last != 0 {
				t.Errorf("progress ends %d bytes short", last)
			}
			if !reflect.DeepEqual(pin, want) {
				t.Errorf("got %+v, want %+v", pin, want)
			}
			for i, r := range readers {
				for at, n := range r.read {
					if n == 0 || test.once && n > 1 {
						t.Fatalf("byte %d of file %d was read %d times", at, i, n)
					}
				}
			}
			if direct := writeViews(t, m, views, test.shards, 1); !reflect.DeepEqual(written, direct) {
				t.Error("what was written through the recorder differs from what was written directly")
			}
			d := NewDerivation(pin)
			d.Keep = func(tensor string) []int { return keep[tensor] }
			d.File = func(string) string { return "F" }
			if err := d.CheckAll(written); err != nil {
				t.Error(err)
			}
		})
	}
}

// writeViews writes views as so many shards and returns their pin.
func writeViews(t *testing.T, m *gguf.Model, views []gguf.View, shards, workers int) *Pin {
	t.Helper()
	layout, err := gguf.NewLayout(gguf.Contents{Version: 3, Metadata: m.Metadata(), Views: views}, gguf.Split{Shards: shards})
	if err != nil {
		t.Fatal(err)
	}
	n := int(views[3].Shape[len(views[3].Shape)-1])
	pin, err := draftOf{stem: "r", layout: layout, slabs: modeltest.MoESlabs(n), workers: workers}.write(t, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return pin
}

// TestRecorderWithoutReaders reads everything itself.
func TestRecorderWithoutReaders(t *testing.T) {
	m := modeltest.New(t, modeltest.Contents(1), gguf.Split{Shards: 2})
	recorder, err := NewRecorder(t.Context(), m, BuildOptions{Slabs: gguftest.MixedSlabs})
	if err != nil {
		t.Fatal(err)
	}
	pin, err := recorder.Finish(t.Context())
	if err != nil || !reflect.DeepEqual(pin, mustPin(t, m, BuildOptions{Slabs: gguftest.MixedSlabs})) {
		t.Errorf("got %+v, %v", pin, err)
	}
}

func TestRecorderNamesThePlaceOfAReadError(t *testing.T) {
	m := modeltest.Broken(t, modeltest.MoE(), 100, modeltest.ErrInjected)
	recorder, err := NewRecorder(t.Context(), m, BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	last := recorder.Views(keptViews(m, nil))[len(m.Tensors())-1].Extents[0]
	_, err = last.Source.ReadAt(make([]byte, 10), last.Offset)
	if !errors.Is(err, modeltest.ErrInjected) || !strings.HasPrefix(err.Error(), "disk/m.gguf: reading at byte ") {
		t.Errorf("got %v", err)
	}
	if _, err := recorder.Finish(t.Context()); !errors.Is(err, modeltest.ErrInjected) {
		t.Errorf("got %v", err)
	}
}

func TestRecorderCanBeCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	m := modeltest.New(t, modeltest.Contents(1), gguf.Split{})
	recorder, err := NewRecorder(ctx, m, BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	e := recorder.Views(keptViews(m, nil))[7].Extents[0]
	if _, err := io.ReadFull(io.NewSectionReader(e.Source, e.Offset, e.Length), make([]byte, 10)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestRecorderLanes writes shards in lanes, side by side. The pin is the same, and no byte of
// the source is read more than twice: once by the lane that comes to its file first, and by
// one that ends within the file.
func TestRecorderLanes(t *testing.T) {
	slabs := modeltest.MoESlabs(modeltest.MoEExperts)
	want := mustPin(t, modeltest.New(t, modeltest.MoE(), gguf.Split{Shards: 3}), BuildOptions{Slabs: slabs})
	for most := range 7 {
		m, readers := countedModel(t, modeltest.MoE(), gguf.Split{Shards: 3})
		recorder, err := NewRecorder(t.Context(), m, BuildOptions{Slabs: slabs})
		if err != nil {
			t.Fatal(err)
		}
		layout, err := gguf.NewLayout(m.Contents(), gguf.Split{Shards: 5})
		if err != nil {
			t.Fatal(err)
		}
		lanes := recorder.Lanes(layout, most)
		var group sync.WaitGroup
		next := 0
		for _, n := range lanes {
			shards := layout.Shards[next : next+n]
			group.Go(func() {
				for _, shard := range shards {
					if err := shard.Write(t.Context(), io.Discard, make([]byte, 100), nil); err != nil {
						t.Error(err)
					}
				}
			})
			next += n
		}
		group.Wait()
		if next != len(layout.Shards) || len(lanes) > max(most, 1) || most == 2 && len(lanes) != 2 {
			t.Errorf("at most %d lanes: %d", most, lanes)
		}
		pin, err := recorder.Finish(t.Context())
		if err != nil || !reflect.DeepEqual(pin, want) {
			t.Errorf("%d lanes: got %+v, %v", most, pin, err)
		}
		for i, r := range readers {
			for at, n := range r.read {
				if n == 0 || n > 2 || len(lanes) == 1 && n > 1 {
					t.Fatalf("%d lanes: byte %d of file %d was read %d times", most, at, i, n)
				}
			}
		}
	}
}

// TestLanesAreOneFile wants the readers of one file to say so, whatever their lane.
func TestLanesAreOneFile(t *testing.T) {
	m := modeltest.New(t, modeltest.Contents(1), gguf.Split{})
	recorder, err := NewRecorder(t.Context(), m, BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	origin := func() io.ReaderAt {
		recorded := recorder.Views(m.Contents().Views)[0].Extents[0].Source
		return recorded.(interface{ Origin() io.ReaderAt }).Origin()
	}
	if a, b := origin(), origin(); a != b {
		t.Errorf("two lanes read %v and %v", a, b)
	}
}

// TestRecorderAdopts gives Recorders what one was told of some files: these do not pass again,
// readers get them all the same, and the pin is the same.
func TestRecorderAdopts(t *testing.T) {
	o := BuildOptions{Slabs: modeltest.MoESlabs(modeltest.MoEExperts), IDs: func(tensor string) ([]byte, bool) { return nil, tensor == "token_embd.weight" }}
	type passed struct {
		File
		tensors []Tensor
	}
	told := map[int]passed{}
	var want *Pin
	for _, adopt := range [][]int{nil, {0}, {1}, {2, 0}, {0, 1, 2}} {
		for _, read := range []bool{false, true} {
			m, readers := countedModel(t, modeltest.MoE(), gguf.Split{Shards: 3})
			r, err := NewRecorder(t.Context(), m, o)
			if err != nil {
				t.Fatal(err)
			}
			bytes := m.FileBytes()
			for _, i := range adopt {
				if err := r.Adopt(i, told[i].File, told[i].tensors); err != nil {
					t.Fatal(err)
				}
				bytes -= m.Files[i].Size
			}
			var mu sync.Mutex
			r.Passed = func(i int, f File, tensors []Tensor) {
				mu.Lock()
				defer mu.Unlock()
				told[i] = passed{f, slices.Clone(tensors)}
				if slices.Contains(adopt, i) {
					t.Errorf("adopting %d: file %d passed again", adopt, i)
				}
			}
			if read {
				writeViews(t, m, r.Views(keptViews(m, nil)), 1, 1)
				for _, i := range adopt {
					for _, tensor := range m.Files[i].Tensors {
						bytes += tensor.Size
					}
				}
			}
			pin, err := r.Finish(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if want == nil {
				want = pin
			}
			if !reflect.DeepEqual(pin, want) || r.Bytes() != bytes {
				t.Errorf("adopting %d: %d bytes were read, want %d; got %+v", adopt, r.Bytes(), bytes, pin)
			}
			for i, reader := range readers {
				if most := slices.Max(reader.read); most > 1 || !read && slices.Contains(adopt, i) && most > 0 {
					t.Errorf("adopting %d: bytes of file %d were read %d times", adopt, i, most)
				}
			}
		}
	}
}

// TestRecorderAdoptsWhatFits refuses what is of another file, and what is not whole.
func TestRecorderAdoptsWhatFits(t *testing.T) {
	o := BuildOptions{Slabs: modeltest.MoESlabs(modeltest.MoEExperts)}
	m := modeltest.New(t, modeltest.MoE(), gguf.Split{Shards: 3})
	pin := mustPin(t, m, o)
	own := pin.Tensors[:len(m.Files[0].Tensors)]
	slabbed := slices.IndexFunc(own, func(t Tensor) bool { return t.Slabs != nil && t.Slabs.BLAKE3 != nil })
	for name, change := range map[string]func(f *File, tensors []Tensor) []Tensor{
		"size":   func(f *File, l []Tensor) []Tensor { f.Size++; return l },
		"name":   func(f *File, l []Tensor) []Tensor { f.Name = "x.gguf"; return l },
		"fewer":  func(_ *File, l []Tensor) []Tensor { return l[1:] },
		"tensor": func(_ *File, l []Tensor) []Tensor { l[0].Name = "x"; return l },
		"shape":  func(_ *File, l []Tensor) []Tensor { l[0].Shape = []uint64{1}; return l },
		"slabs":  func(_ *File, l []Tensor) []Tensor { l[slabbed].Slabs = nil; return l },
		"digests": func(_ *File, l []Tensor) []Tensor {
			s := *l[slabbed].Slabs
			s.BLAKE3 = s.BLAKE3[32:]
			l[slabbed].Slabs = &s
			return l
		},
	} {
		r, err := NewRecorder(t.Context(), m, o)
		if err != nil {
			t.Fatal(err)
		}
		f := pin.Files[0]
		tensors := change(&f, slices.Clone(own))
		if r.Adopt(0, f, tensors) == nil {
			t.Errorf("another %s was adopted", name)
		}
	}
}
