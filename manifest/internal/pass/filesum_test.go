package pass

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
)

// streams are files of odd and even sizes around the size of a piece.
func streams(rng *rand.Rand, n int) [][]byte {
	list := make([][]byte, n)
	for i := range list {
		list[i] = make([]byte, rng.IntN(5)*pieceSize+[]int{0, 1, 63, 64, 1000}[rng.IntN(5)])
		for j := range list[i] {
			list[i][j] = byte(j) ^ byte(i*31) ^ byte(j>>8)
		}
	}
	return list
}

// writePieces writes p in parts of random sizes, each in a buffer that is then spoilt.
func writePieces(h *Hasher, p []byte, rng *rand.Rand) {
	buf := make([]byte, 2*pieceSize)
	for len(p) > 0 {
		n := copy(buf[:1+rng.IntN(len(buf))], p)
		h.Write(buf[:n])
		clear(buf[:n])
		p = p[n:]
	}
}

// TestSumsOfManyFiles takes the sums of files side by side, with fewer files than
// workers and with more, and with fewer workers than processors and with more.
func TestSumsOfManyFiles(t *testing.T) {
	for _, workers := range []int{0, 1, 2, 3, 7} {
		for _, files := range []int{0, 1, 2, 5, 20} {
			data := streams(rand.New(rand.NewPCG(uint64(files), 1)), files)
			sums := make([][sha256.Size]byte, files)
			err := ForEach(context.Background(), files, workers, func(_ context.Context, i int, w *Worker) error {
				h := w.Hasher()
				writePieces(h, data[i], rand.New(rand.NewPCG(uint64(i), 2)))
				sums[i] = h.Sum()
				if h.size != int64(len(data[i])) {
					t.Errorf("counted %d bytes of %d", h.size, len(data[i]))
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			for i, p := range data {
				if sums[i] != sha256.Sum256(p) {
					t.Errorf("%d workers, file %d of %d, %d bytes: wrong sum", workers, i, files, len(p))
				}
			}
		}
	}
}

// Work that ends in the middle of a file, whose last piece may wait for its turn still,
// spoils neither the sums of others nor the end of the call.
func TestSumsWhenFilesAreGivenUp(t *testing.T) {
	data := streams(rand.New(rand.NewPCG(9, 9)), 12)
	odd := errors.New("odd")
	sums := make([][sha256.Size]byte, len(data))
	for range 5 {
		err := ForEach(context.Background(), len(data), 4, func(_ context.Context, i int, w *Worker) error {
			h := w.Hasher()
			h.Write(data[i])
			if i == 9 {
				return odd
			}
			if i%2 == 1 {
				return nil
			}
			sums[i] = h.Sum()
			return nil
		})
		if !errors.Is(err, odd) {
			t.Fatalf("error is %v", err)
		}
		for i := 0; i < 8; i += 2 {
			if sums[i] != sha256.Sum256(data[i]) {
				t.Errorf("file %d has a wrong sum", i)
			}
		}
	}
}

// One goroutine's file is hashed by another that has none.
func TestIdleWorkersHelp(t *testing.T) {
	if runtime.GOMAXPROCS(0) < 2 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	}
	q := NewSums()
	q.join(2)
	left := make(chan struct{})
	go func() {
		q.leave()
		close(left)
	}()
	h := newHasher(q)
	data := make([]byte, pieceSize)
	h.Write(data)
	q.mu.Lock()
	for !h.pieces[0].done { // nobody asks for it
		q.changed.Wait()
	}
	q.mu.Unlock()
	if h.Sum() != sha256.Sum256(data) {
		t.Error("wrong sum")
	}
	q.leave()
	<-left
}

func BenchmarkHasher(b *testing.B) {
	for _, size := range []int{64 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			data := make([]byte, size)
			h := NewHasher()
			b.SetBytes(int64(size))
			for b.Loop() {
				h.Write(data)
			}
		})
	}
}
