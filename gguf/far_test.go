package gguf_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
)

// A farFolder holds files far away, and counts what is asked for.
type farFolder struct {
	files    map[string]*gguf.File
	unlisted bool

	mu        sync.Mutex
	requests  map[string]int
	bytes     int64
	announced []int64 // bytes of each range
}

// farAway puts the shards of models into a folder.
func farAway(t *testing.T, split gguf.Split, specs ...gguftest.Spec) *farFolder {
	t.Helper()
	dir := &farFolder{files: map[string]*gguf.File{}, requests: map[string]int{}}
	for _, spec := range specs {
		m, err := spec.Model(split)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range m.Files {
			dir.files[f.Name] = f
		}
	}
	return dir
}

func (d *farFolder) Name() string { return "far://away/" }

func (d *farFolder) Names() ([]string, error) {
	if d.unlisted {
		return nil, fmt.Errorf("no listing: %w", errors.ErrUnsupported)
	}
	return slices.Sorted(maps.Keys(d.files)), nil
}

func (d *farFolder) Open(name string) (gguf.Source, error) {
	f := d.files[name]
	if f == nil {
		return nil, fmt.Errorf("%s%s: %w", d.Name(), name, fs.ErrNotExist)
	}
	return &farSource{d, f}, nil
}

// A farSource is a file of a farFolder.
type farSource struct {
	dir  *farFolder
	file *gguf.File
}

func (s *farSource) Name() string { return s.dir.Name() + s.file.Name }
func (s *farSource) Size() int64  { return s.file.Size }

func (s *farSource) Prefetch(off, n int64) {
	s.dir.mu.Lock()
	defer s.dir.mu.Unlock()
	s.dir.announced = append(s.dir.announced, n)
}

func (s *farSource) FetchAhead() (window, step, gap int64) { return 1 << 20, 1 << 20, 0 }

func (s *farSource) FetchAt(p []byte, off int64) (int, error) { return s.ReadAt(p, off) }

func (s *farSource) ReadAt(p []byte, off int64) (int, error) {
	s.dir.mu.Lock()
	s.dir.requests[s.file.Name]++
	s.dir.bytes += int64(len(p))
	s.dir.mu.Unlock()
	return s.file.ReadAt(p, off)
}

// TestRangesAreThoseAnnounced writes every other slab of the experts in shards, and compares
// the ranges that are announced on the way with those that are computed beforehand.
func TestRangesAreThoseAnnounced(t *testing.T) {
	spec := gguftest.K3(gguftest.K3Options{Experts: 32, Used: 4, Layers: 3, Latent: 512, Width: 128})
	dir := farAway(t, gguf.Split{Shards: 3}, spec)
	m, err := gguf.OpenFolder(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	contents := m.Contents()
	for i, v := range contents.Views {
		if strings.Contains(v.Name, "_exps.") {
			whole, slab := v.Extents[0], v.Extents[0].Length/32
			v.Extents, v.Shape = nil, slices.Clone(v.Shape)
			v.Shape[len(v.Shape)-1] = 16
			for e := range int64(16) {
				v.Append(gguf.Extent{Source: whole.Source, Offset: whole.Offset + 2*e*slab, Length: slab})
			}
			contents.Views[i] = v
		}
	}
	layout, err := gguf.NewLayout(contents, gguf.Split{Shards: 2})
	if err != nil {
		t.Fatal(err)
	}
	count, size := 0, int64(0)
	for _, shard := range layout.Shards {
		n, bytes := gguf.Ranges(shard.Views, 1<<20, 0)
		count, size = count+n, size+bytes
		if err := shard.Write(context.Background(), io.Discard, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	var announced int64
	for _, n := range dir.announced {
		announced += n
	}
	if len(dir.announced) != count || announced != size || size != layout.TensorBytes() {
		t.Errorf("%d ranges of %d bytes announced, %d of %d computed, the model has %d", len(dir.announced), announced, count, size, layout.TensorBytes())
	}
}

// headerBytes is the size of all headers.
func (d *farFolder) headerBytes() int64 {
	var n int64
	for _, f := range d.files {
		n += f.DataOffset
	}
	return n
}

// TestHeadersFromFarAway opens nine-shard models: at most three reads a shard, since finding
// the shard costs a request too, and at most 1.1 times the headers' bytes, also where a
// vocabulary of 163,840 tokens is most of a header of several megabytes. One whose tokens are
// far longer than usual takes a read more.
func TestHeadersFromFarAway(t *testing.T) {
	real := gguftest.K3Real(1536, gguf.IQ1_S)
	for _, tc := range []struct {
		name string
		spec gguftest.Spec
		most int // reads of one shard
	}{
		{"fixture", gguftest.K3(gguftest.K3Options{}), 3},
		{"real", real, 3},
		{"real wide", gguftest.K3Real(3072, gguf.IQ1_S), 3},
		{"vocabulary", real.WithVocabulary("gpt2", 163840, 6), 3},
		{"short tokens", real.WithVocabulary("gpt2", 163840, 5), 3},
		{"longer tokens", real.WithVocabulary("gpt2", 163840, 8), 3},
		{"long tokens", real.WithVocabulary("gpt2", 163840, 12), 3},
		{"very long tokens", real.WithVocabulary("gpt2", 163840, 30), 4},
		{"few tokens", real.WithVocabulary("gpt2", 32000, 6), 3},
		{"many tokens", real.WithVocabulary("gpt2", 262144, 7), 3},
		{"scored tokens", real.WithVocabulary("llama", 128000, 6), 3},
		{"neither", real.WithVocabulary("bert", 64000, 6), 3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := farAway(t, gguf.Split{Shards: gguftest.K3Shards}, tc.spec)
			m, err := gguf.OpenFolder(dir, gguf.ShardName(tc.spec.Name, 3, gguftest.K3Shards))
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			if err := m.Err(); err != nil || len(m.Files) != gguftest.K3Shards {
				t.Fatalf("%d files, %v", len(m.Files), err)
			}
			ratio := float64(dir.bytes) / float64(dir.headerBytes())
			t.Logf("%d bytes of headers, %.3f times as many read, reads %v", dir.headerBytes(), ratio, dir.requests)
			if ratio > 1.1 {
				t.Errorf("%.3f times the headers' bytes, want at most 1.1", ratio)
			}
			all := 0
			for name, n := range dir.requests {
				if all += n; n > tc.most {
					t.Errorf("%s: %d reads", name, n)
				}
			}
			if all > 3*gguftest.K3Shards {
				t.Errorf("%d reads of %d shards", all, gguftest.K3Shards)
			}
			local, err := tc.spec.Model(gguf.Split{Shards: gguftest.K3Shards})
			if err != nil {
				t.Fatal(err)
			}
			for i, f := range m.Files {
				for key, want := range local.Files[i].Metadata.All() {
					got, _ := f.Metadata.Get(key)
					if d, err := gguf.Compare(want, got); err != nil || !d.Same() {
						t.Errorf("%s: key %s differs, %v", f.Name, key, err)
					}
				}
				if len(f.Tensors) != len(local.Files[i].Tensors) || f.DataOffset != local.Files[i].DataOffset {
					t.Errorf("%s: %d tensors, data at %d", f.Name, len(f.Tensors), f.DataOffset)
				}
			}
		})
	}
}

// TestOpenFolder finds shards by their names, listed or asked for.
func TestOpenFolder(t *testing.T) {
	one, other := gguftest.Mixed(1), gguftest.Mixed(2)
	other.Name = "other"
	split := gguf.Split{Shards: 3}
	for _, unlisted := range []bool{false, true} {
		dir := farAway(t, split, one, other)
		dir.unlisted = unlisted
		m, err := gguf.OpenFolder(dir, "other-00002-of-00003.gguf")
		if err != nil {
			t.Fatal(err)
		}
		if m.Name != "other" || len(m.Files) != 3 || m.Err() != nil {
			t.Errorf("unlisted %t: %q of %d files, %v", unlisted, m.Name, len(m.Files), m.Err())
		}
		if _, touched := dir.requests["m-00001-of-00003.gguf"]; touched {
			t.Error("another model's file was read")
		}
		delete(dir.files, "other-00003-of-00003.gguf")
		m, err = gguf.OpenFolder(dir, "other-00001-of-00003.gguf")
		if err != nil || m.Complete() || !slices.Equal(m.Missing, []string{"other-00003-of-00003.gguf"}) {
			t.Errorf("unlisted %t: missing %v, %v", unlisted, m.Missing, err)
		}
		if _, err := gguf.OpenFolder(dir, "none.gguf"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("unlisted %t: a missing file gives %v", unlisted, err)
		}
	}
	dir := farAway(t, split, one, other)
	if _, err := gguf.OpenFolder(dir, ""); err == nil || !strings.Contains(err.Error(), "holds 2 models, name one of them: m-00001-of-00003.gguf, other-00001-of-00003.gguf") {
		t.Errorf("two models give %v", err)
	}
	if m, err := gguf.OpenFolder(farAway(t, split, one), ""); err != nil || len(m.Files) != 3 {
		t.Errorf("one model gives %v", err)
	}
	if _, err := gguf.OpenFolder(&farFolder{}, ""); err == nil || !strings.Contains(err.Error(), "no .gguf file") {
		t.Errorf("no model gives %v", err)
	}
	endless := &farFolder{unlisted: true}
	if _, err := gguf.OpenFolder(endless, "x-00001-of-65535.gguf"); err == nil || !strings.Contains(err.Error(), "too many to be asked for") {
		t.Errorf("65535 shards give %v", err)
	}
}
