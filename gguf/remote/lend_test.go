package remote

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
)

// readLent reads a range by what is lent and, where nothing is, by reading.
func readLent(f *File, off, end int64) ([]byte, error) {
	var got []byte
	for off < end {
		n, err := f.Lend(off, min(1+rand.Int64N(2<<20), end-off), func(p []byte) error {
			runtime.Gosched()
			got = append(got, p...)
			return nil
		})
		if n == 0 && err == nil {
			p := make([]byte, min(1+rand.Int64N(1<<19), end-off))
			_, err = f.ReadAt(p, off)
			got, n = append(got, p...), int64(len(p))
		}
		if err != nil {
			return got, err
		}
		off += n
	}
	return got, nil
}

// TestLend takes announced ranges by what is lent, each by itself and by several at once, who
// are in one another's way: the bytes are right, and nothing is left.
func TestLend(t *testing.T) {
	for _, readers := range []int{1, 3} {
		data := randomBytes(30 << 20)
		h := hubWith(t, data)
		c := client(t, h, nil)
		f := open(t, c, "hf://org/model")
		for off := int64(5); off < f.Size(); {
			n := min(1+rand.Int64N(3<<20), f.Size()-off)
			f.Prefetch(off, n)
			var group sync.WaitGroup
			for range readers {
				group.Go(func() {
					if got, err := readLent(f, off, off+n); err != nil || !bytes.Equal(got, data[off:off+n]) {
						t.Errorf("%d readers: %d bytes at %d: %d came, other ones perhaps, %v", readers, n, off, len(got), err)
					}
				})
			}
			group.Wait()
			off += n
		}
		if c.queue.used != 0 || len(f.pieces) != 0 {
			t.Errorf("%d readers: %d bytes and %d pieces are left", readers, c.queue.used, len(f.pieces))
		}
	}
}

// TestLendAsksOnce lends announced bytes as they came, without another request, and passes on
// what the one who uses them says.
func TestLendAsksOnce(t *testing.T) {
	data := randomBytes(3 << 20)
	h := hubWith(t, data)
	f := open(t, client(t, h, nil), "hf://org/model")
	if _, err := f.ReadAt(make([]byte, 1), 2<<20+200); err != nil { // the store's address is known
		t.Fatal(err)
	}
	before := f.client.requests.Load()
	f.Prefetch(100, 2<<20)
	if n, err := f.Lend(2<<20+100, 10, nil); n != 0 || err != nil {
		t.Errorf("of bytes that nobody announced %d are lent, %v", n, err)
	}
	var lent []byte
	for off := int64(100); off < 2<<20+100; {
		n, err := f.Lend(off, 1<<30, func(p []byte) error { lent = append(lent, p...); return nil })
		if n == 0 || err != nil {
			t.Fatalf("at %d: %d lent, %v", off, n, err)
		}
		off += n
	}
	if !bytes.Equal(lent, data[100:2<<20+100]) {
		t.Error("other bytes are lent")
	}
	if asked := f.client.requests.Load() - before; asked != 1 {
		t.Errorf("%d requests for one range", asked)
	}
	full := errors.New("no room")
	f.Prefetch(0, 100<<10)
	if _, err := f.Lend(64<<10, 10, func([]byte) error { return full }); err != full {
		t.Errorf("the error is %v, want %v", err, full)
	}
}
