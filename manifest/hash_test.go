package manifest

import (
	"bytes"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/zeebo/blake3"
)

// hashInChunks feeds data in pieces whose sizes chunk returns.
func hashInChunks(t *testing.T, data []byte, slabs int, chunk func() int) TensorSums {
	t.Helper()
	h := NewTensorHasher()
	if err := h.Reset(int64(len(data)), slabs); err != nil {
		t.Fatal(err)
	}
	for rest := data; len(rest) > 0; {
		n := min(chunk(), len(rest))
		if _, err := h.Write(rest[:n]); err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
	}
	sums, err := h.Sums()
	if err != nil {
		t.Fatal(err)
	}
	return sums
}

// TestTensorHasherSlabs compares with digests taken of whole slices, over slab sizes
// on both sides of BLAKE3's chunk and of the limit for slabs kept as bytes.
func TestTensorHasherSlabs(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for _, slabs := range []int{0, 1, 2, 3, 7, 64} {
		for _, slabSize := range []int{1, 4, 31, 32, 33, 1023, 1024, 1025, 8192, 20000} {
			data := make([]byte, max(slabs, 1)*slabSize)
			for i := range data {
				data[i] = byte(rng.Uint32())
			}
			got := hashInChunks(t, data, slabs, func() int { return 1 + rng.IntN(3*slabSize) })
			if want := Sum(blake3.Sum256(data)); got.BLAKE3 != want {
				t.Errorf("%d slabs of %d: tensor has %s, want %s", slabs, slabSize, got.BLAKE3, want)
			}
			var wantSums, wantBytes []byte
			for i := range slabs {
				slab := data[i*slabSize : (i+1)*slabSize]
				if slabSize <= 32 {
					wantBytes = append(wantBytes, slab...)
				} else {
					sum := blake3.Sum256(slab)
					wantSums = append(wantSums, sum[:]...)
				}
			}
			if !bytes.Equal(got.SlabSums, wantSums) || !bytes.Equal(got.SlabBytes, wantBytes) {
				t.Errorf("%d slabs of %d: slab digests differ", slabs, slabSize)
			}
		}
	}
}

func TestTensorHasherIsReusable(t *testing.T) {
	data := bytes.Repeat([]byte("expert"), 100)
	want := hashInChunks(t, data, 6, func() int { return 17 })
	h := NewTensorHasher()
	if err := h.Reset(1000, 2); err != nil {
		t.Fatal(err)
	}
	io.WriteString(h, strings.Repeat("x", 700)) // left unfinished
	if err := h.Reset(int64(len(data)), 6); err != nil {
		t.Fatal(err)
	}
	h.Write(data)
	got, err := h.Sums()
	if err != nil || got.BLAKE3 != want.BLAKE3 || !bytes.Equal(got.SlabSums, want.SlabSums) {
		t.Errorf("after Reset got %v, %v, want %v", got, err, want)
	}
}

func TestTensorHasherOfNothing(t *testing.T) {
	got := hashInChunks(t, nil, 0, nil)
	if got.BLAKE3.String() != emptyBLAKE3 {
		t.Errorf("got %s, want %s", got.BLAKE3, emptyBLAKE3)
	}
}

func TestTensorHasherRefuses(t *testing.T) {
	h := NewTensorHasher()
	for _, bad := range []struct {
		size  int64
		slabs int
	}{{-1, 0}, {10, -1}, {10, 3}, {0, 2}, {1, 2}} {
		if err := h.Reset(bad.size, bad.slabs); err == nil {
			t.Errorf("%d bytes in %d slabs were accepted", bad.size, bad.slabs)
		}
	}
	if err := h.Reset(10, 2); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Write(make([]byte, 11)); err == nil {
		t.Error("a byte too many was accepted")
	}
	h.Write(make([]byte, 9))
	if _, err := h.Sums(); err == nil {
		t.Error("a byte too few was accepted")
	}
}

func BenchmarkTensorHasher(b *testing.B) {
	for _, c := range []struct {
		name     string
		slabSize int
		slabs    int
	}{{"whole", 4 << 20, 0}, {"experts", 1 << 20, 4}, {"router-rows", 28672, 146}, {"bias", 4, 896}} {
		b.Run(c.name, func(b *testing.B) {
			data := make([]byte, c.slabSize*max(c.slabs, 1))
			h := NewTensorHasher()
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if err := h.Reset(int64(len(data)), c.slabs); err != nil {
					b.Fatal(err)
				}
				for rest := data; len(rest) > 0; {
					n := min(len(rest), 1<<20)
					h.Write(rest[:n])
					rest = rest[n:]
				}
			}
		})
	}
}
