package sha256pair

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"math/rand/v2"
	"testing"
)

func random(rng *rand.Rand, n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(rng.Uint32())
	}
	return p
}

// TestWrite feeds two streams in pieces of all kinds and compares with the standard
// library's hash of each.
func TestWrite(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	lengths := []int{0, 1, 63, 64, 65, 127, 128, 192, 1000, 4096}
	for _, aligned := range []bool{true, false} {
		for range 200 {
			a, b := sha256.New(), sha256.New()
			var wholeA, wholeB []byte
			for range 6 {
				n, m := lengths[rng.IntN(len(lengths))], lengths[rng.IntN(len(lengths))]
				if aligned {
					n, m = n/64*64, m/64*64
				}
				p, q := random(rng, n), random(rng, m)
				Write(a, b, p, q)
				wholeA, wholeB = append(wholeA, p...), append(wholeB, q...)
			}
			if sum(a) != sha256.Sum256(wholeA) || sum(b) != sha256.Sum256(wholeB) {
				t.Fatalf("streams of %d and %d bytes: wrong sums", len(wholeA), len(wholeB))
			}
		}
	}
}

// A hash that was used before goes on from where it was.
func TestWriteGoesOn(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	p, q := random(rng, 640), random(rng, 320)
	a, b := sha256.New(), sha256.New()
	a.Write(p[:128])
	Write(a, b, p[128:], q)
	if sum(a) != sha256.Sum256(p) || sum(b) != sha256.Sum256(q) {
		t.Error("wrong sums")
	}
}

// A hash that keeps its state in another way is written to as it is.
func TestWriteToAnotherHash(t *testing.T) {
	p := make([]byte, 256)
	a, b := sha256.New224(), sha256.New()
	Write(struct{ hash.Hash }{a}, b, p, p)
	if got, want := fmt.Sprintf("%x", a.Sum(nil)), fmt.Sprintf("%x", sha256.Sum224(p)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if sum(b) != sha256.Sum256(p) {
		t.Error("the other stream has a wrong sum")
	}
}

// Where the processor has what it takes, the pair must be in use: a state that is no
// longer understood would go unnoticed but for its speed.
func TestFaster(t *testing.T) {
	if Faster() != haveBlocks {
		t.Errorf("blocks are there: %v, and in use: %v", haveBlocks, Faster())
	}
}

func FuzzWrite(f *testing.F) {
	f.Add([]byte("abc"), []byte{}, uint8(1))
	f.Add(make([]byte, 200), make([]byte, 300), uint8(64))
	f.Fuzz(func(t *testing.T, p, q []byte, cut uint8) {
		a, b := sha256.New(), sha256.New()
		i, j := min(int(cut), len(p)), min(int(cut), len(q))
		Write(a, b, p[:i], q[:j])
		Write(a, b, p[i:], q[j:])
		if sum(a) != sha256.Sum256(p) || sum(b) != sha256.Sum256(q) {
			t.Error("wrong sums")
		}
	})
}

func BenchmarkWrite(b *testing.B) {
	const size = 128 << 10
	p, q := make([]byte, size), make([]byte, size)
	x, y := sha256.New(), sha256.New()
	b.Run("pair", func(b *testing.B) {
		b.SetBytes(2 * size)
		for b.Loop() {
			Write(x, y, p, q)
		}
	})
	b.Run("apart", func(b *testing.B) {
		b.SetBytes(2 * size)
		for b.Loop() {
			x.Write(p)
			y.Write(q)
		}
	})
}
