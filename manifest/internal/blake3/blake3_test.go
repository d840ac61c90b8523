package blake3

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"testing"

	zeebo "github.com/zeebo/blake3"
)

// sample is the input of the official test vectors: bytes that count to 250.
func sample(n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(i % 251)
	}
	return p
}

func digest(h Hasher, pieces ...[]byte) string {
	h.Reset()
	for _, p := range pieces {
		h.Write(p)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Values of the official test vectors (BLAKE3-team/BLAKE3, test_vectors.json).
func TestOfficialVectors(t *testing.T) {
	for n, want := range map[int]string{
		0:    "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
		1:    "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213",
		1023: "10108970eeda3eb932baac1428c7a2163b0e924c9a9e25b35bba72b28f70bd11",
		1024: "42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7",
		1025: "d00278ae47eb27b34faecf67b4fe263f82d5412916c1ffd97c8cb7fb814b8444",
	} {
		for _, h := range []Hasher{new(wide), New()} {
			if got := digest(h, sample(n)); got != want {
				t.Errorf("%T of %d bytes is %s, want %s", h, n, got, want)
			}
		}
	}
}

// TestSizes compares with another implementation over sizes around every edge of the
// tree: of blocks, chunks, batches, and full levels.
func TestSizes(t *testing.T) {
	data := sample(70 * batchSize)
	h := new(wide)
	var sizes []int
	for chunks := range 70 {
		sizes = append(sizes, chunks*chunkSize)
	}
	for batches := range 71 {
		sizes = append(sizes, batches*batchSize)
	}
	for _, size := range sizes {
		for _, d := range []int{-chunkSize - 1, -65, -1, 0, 1, 63, 64, 65, chunkSize + 1} {
			n := size + d
			if n < 0 || n > len(data) {
				continue
			}
			if got, want := digest(h, data[:n]), fmt.Sprintf("%x", zeebo.Sum256(data[:n])); got != want {
				t.Errorf("%d bytes: got %s, want %s", n, got, want)
			}
		}
	}
}

func TestPieces(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	data := sample(20*batchSize + 77)
	want := fmt.Sprintf("%x", zeebo.Sum256(data))
	h := new(wide)
	for range 30 {
		most := 1 + rng.IntN(3*batchSize)
		var pieces [][]byte
		for rest := data; len(rest) > 0; {
			n := min(len(rest), rng.IntN(most+1))
			pieces = append(pieces, rest[:n])
			rest = rest[n:]
		}
		if got := digest(h, pieces...); got != want {
			t.Fatalf("pieces of at most %d bytes: got %s, want %s", most, got, want)
		}
	}
}

// A sum may be asked for on the way.
func TestSumGoesOn(t *testing.T) {
	data := sample(3*batchSize + 5000)
	h := new(wide)
	for n := 0; n < len(data); {
		k := min(1700, len(data)-n)
		h.Write(data[n : n+k])
		n += k
		if want := zeebo.Sum256(data[:n]); !bytes.Equal(h.Sum(nil), want[:]) {
			t.Fatalf("after %d bytes the sum is wrong", n)
		}
	}
}

// TestHash16 holds the vector code to the plain one, with counters beyond 32 bits, which
// no test could reach by hashing.
func TestHash16(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	in := make([]byte, batchSize)
	for i := range in {
		in[i] = byte(rng.Uint32())
	}
	for _, size := range []int{blockSize, 2 * blockSize, chunkSize} {
		for range 20 {
			var counters [2][lanes]uint32
			for i := range lanes {
				counters[0][i], counters[1][i] = rng.Uint32(), rng.Uint32()
			}
			start, end := rng.Uint32(), rng.Uint32()
			got, want := make([]byte, halfSize), make([]byte, halfSize)
			hash16(got, in, size, &counters, start, end)
			hash16Each(want, in, size, &counters, start, end)
			if !bytes.Equal(got, want) {
				t.Fatalf("inputs of %d bytes differ", size)
			}
		}
	}
}

func FuzzWide(f *testing.F) {
	f.Add(uint32(0), uint32(0))
	f.Add(uint32(batchSize+1), uint32(1))
	f.Fuzz(func(t *testing.T, size, cut uint32) {
		data := sample(int(size % (1 << 20)))
		at := int(cut) % (len(data) + 1)
		if got, want := digest(new(wide), data[:at], data[at:]), fmt.Sprintf("%x", zeebo.Sum256(data)); got != want {
			t.Errorf("%d bytes cut at %d: got %s, want %s", len(data), at, got, want)
		}
	})
}

func BenchmarkHasher(b *testing.B) {
	for _, size := range []int{4 << 10, 64 << 10, 1 << 20} {
		data := make([]byte, size)
		for _, h := range []Hasher{New(), zeebo.New()} {
			b.Run(fmt.Sprintf("%T/%dKiB", h, size>>10), func(b *testing.B) {
				b.SetBytes(int64(size))
				var sum [valueSize]byte
				for b.Loop() {
					h.Reset()
					h.Write(data)
					h.Sum(sum[:0])
				}
			})
		}
	}
}
