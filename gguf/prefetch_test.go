package gguf

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// watchedSource notes which of its bytes are announced, and when they are read.
type watchedSource struct {
	data      []byte
	announced []bool
	lead      int64 // announced and not read
	greatest  int64 // lead
	longest   int64 // announcement
	late      int64 // bytes read that were not announced
	unused    int64 // bytes announced
}

func newWatchedSource(size int) *watchedSource {
	return &watchedSource{data: make([]byte, size), announced: make([]bool, size)}
}

func (s *watchedSource) Prefetch(off, n int64) {
	for i := off; i < off+n; i++ {
		s.announced[i] = true
	}
	s.lead += n
	s.unused += n
	s.longest, s.greatest = max(s.longest, n), max(s.greatest, s.lead)
}

func (s *watchedSource) ReadAt(p []byte, off int64) (int, error) {
	for i := range p {
		if !s.announced[off+int64(i)] {
			s.late++
		}
	}
	s.lead -= int64(len(p))
	s.unused -= int64(len(p))
	return copy(p, s.data[off:]), nil
}

// TestPrefetching copies tensors of many sizes from two sources, with gaps of many sizes
// between their extents.
func TestPrefetching(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 5 {
		sources := []*watchedSource{newWatchedSource(40 << 20), newWatchedSource(40 << 20)}
		var at [2]int64
		var c Contents
		c.Version, c.Metadata = 3, NewMetadata()
		var small int64 // bytes between extents that are announced with them
		for i := range 30 {
			var v View
			which := rng.IntN(2)
			for range 1 + rng.IntN(20) {
				length := 1 + rng.Int64N([]int64{10, 1000, 400 << 10}[rng.IntN(3)])
				gap := rng.Int64N([]int64{1, 100, 300 << 10}[rng.IntN(3)])
				if gap <= prefetchGap {
					small += gap
				}
				offset := at[which] + gap
				v.Extents = append(v.Extents, Extent{sources[which], offset, length})
				at[which] = offset + length
			}
			if at[which] > 38<<20 {
				continue
			}
			v.Name, v.Type, v.Shape = string(rune(0x61+i)), I8, []uint64{uint64(v.Size())}
			c.Views = append(c.Views, v)
		}
		layout, err := NewLayout(c, Split{})
		if err != nil {
			t.Fatal(err)
		}
		if err := layout.Shards[0].Write(context.Background(), io.Discard, make([]byte, 256<<10), nil); err != nil {
			t.Fatal(err)
		}
		for _, s := range sources {
			if s.late > 0 {
				t.Errorf("%d bytes were read that were not announced", s.late)
			}
			if s.unused > small {
				t.Errorf("%d bytes were announced and not read, at most %d lie in small gaps", s.unused, small)
			}
			if s.longest > prefetchStep+small || s.greatest > prefetchWindow+small {
				t.Errorf("%d bytes announced at once, %d ahead", s.longest, s.greatest)
			}
		}
	}
}

// Announcing what is not there, or after closing, is harmless.
func TestPrefetchOfAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, []byte("abc"), 0o666); err != nil {
		t.Fatal(err)
	}
	pool := newFilePool()
	s, err := pool.source(path)
	if err != nil {
		t.Fatal(err)
	}
	f := &File{r: s}
	f.Prefetch(0, 3)
	f.Prefetch(1, 1<<40)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	pool.close()
	f.Prefetch(0, 3)
	(&File{r: bytes.NewReader(nil)}).Prefetch(0, 1)
}
