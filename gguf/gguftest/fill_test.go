package gguftest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"testing"

	"ggufreap/gguf"
)

// whole generates a tensor of the given rows in one read.
func whole(t *testing.T, typ gguf.Type, fill Fill, row, slab, slabs int64) (*source, []byte) {
	t.Helper()
	info, known := typ.Info()
	if !known {
		info = gguf.TypeInfo{Elements: 1, Bytes: 3}
	}
	size := row * slab * slabs / info.Elements * info.Bytes
	s := newSource(7, "x", typ, row*slab, size, fill)
	data := make([]byte, size)
	if n, err := s.ReadAt(data, 0); n != len(data) || err != nil {
		t.Fatalf("%s: read %d of %d bytes: %v", typ, n, size, err)
	}
	return s, data
}

func TestReadsAtAnyOffsetAgree(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, typ := range append(gguf.Types(), gguf.Type(1000)) {
		s, want := whole(t, typ, Fill{Mean: 0.5, Spread: 0.1, Uneven: true}, 256, 3, 5)
		for range 300 {
			off := rng.Int64N(s.size)
			p := make([]byte, rng.Int64N(2*maxBlock)+rng.Int64N(2)*rng.Int64N(s.size))
			n, err := s.ReadAt(p, off)
			end := min(off+int64(len(p)), s.size)
			if !bytes.Equal(p[:n], want[off:end]) {
				t.Fatalf("%s: %d bytes at %d differ from the whole", typ, len(p), off)
			}
			if short := int64(len(p)) > s.size-off; short != (err == io.EOF) {
				t.Fatalf("%s: %d bytes at %d of %d: %v", typ, len(p), off, s.size, err)
			}
		}
	}
}

// fp4 is the value of a nibble e2m1.
func fp4(n byte) float64 {
	v := []float64{0, 0.5, 1, 1.5, 2, 3, 4, 6}[n&7]
	if n&8 != 0 {
		return -v
	}
	return v
}

func f16(p []byte) float64 {
	h := binary.LittleEndian.Uint16(p)
	e, m := int(h>>10&31), float64(h&0x3ff)
	v := math.Ldexp(m, -24)
	switch {
	case e == 31:
		return math.NaN()
	case e > 0:
		v = math.Ldexp(1024+m, e-25)
	}
	if h>>15 == 1 {
		return -v
	}
	return v
}

// decoders turn a block into its values by the formulas of ggml-quants.c. IQ1_S needs a
// table of 2048 grid points there; here its scale alone is looked at, as the greatest value
// it can give.
var decoders = map[gguf.Type]func(p []byte) []float64{
	gguf.F32: func(p []byte) []float64 {
		return []float64{float64(math.Float32frombits(binary.LittleEndian.Uint32(p)))}
	},
	gguf.BF16: func(p []byte) []float64 {
		return []float64{float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(p)) << 16))}
	},
	gguf.F16: func(p []byte) []float64 { return []float64{f16(p)} },
	gguf.Q8_0: func(p []byte) (out []float64) {
		for _, q := range p[2:] {
			out = append(out, f16(p)*float64(int8(q)))
		}
		return out
	},
	gguf.Q4_K: func(p []byte) (out []float64) {
		d, dmin, sc := f16(p), f16(p[2:]), p[4:16]
		for j := range 8 { // 32 values each
			var scale, least byte
			if j < 4 {
				scale, least = sc[j]&63, sc[j+4]&63
			} else {
				scale = sc[j+4]&15 | sc[j-4]>>6<<4
				least = sc[j+4]>>4 | sc[j]>>6<<4
			}
			for _, q := range p[16+32*(j/2) : 48+32*(j/2)] {
				out = append(out, d*float64(scale)*float64(q>>(4*(j%2))&15)-dmin*float64(least))
			}
		}
		return out
	},
	gguf.MXFP4: func(p []byte) (out []float64) {
		for _, q := range p[1:] {
			out = append(out, math.Ldexp(fp4(q), int(p[0])-127), math.Ldexp(fp4(q>>4), int(p[0])-127))
		}
		return out
	},
	gguf.NVFP4: func(p []byte) (out []float64) {
		for i, q := range p[4:] {
			scale := math.Ldexp(8+float64(p[i/8]&7), int(p[i/8]>>3)-10)
			out = append(out, scale*fp4(q), scale*fp4(q>>4))
		}
		return out
	},
	gguf.IQ1_S: func(p []byte) []float64 { return []float64{f16(p) * 15 * 1.125, -f16(p) * 15 * 1.125} },
}

func TestValuesFollowTheFill(t *testing.T) {
	for typ := range rules {
		for _, spread := range []float32{0.01, 0.1, 1.5} {
			t.Run(fmt.Sprint(typ, spread), func(t *testing.T) {
				info, _ := typ.Info()
				_, data := whole(t, typ, Fill{Spread: spread}, 256, 8, 64)
				var most, sum, squares, n float64
				for ; len(data) > 0; data = data[info.Bytes:] {
					for _, v := range decoders[typ](data[:info.Bytes]) {
						if math.IsNaN(v) {
							t.Fatalf("block % x holds a NaN", data[:info.Bytes])
						}
						most = max(most, math.Abs(v))
						sum += v
						squares += v * v
						n++
					}
				}
				if most > 1.001*float64(spread) && typ != gguf.NVFP4 || most < float64(spread)/4 {
					t.Errorf("greatest value %g", most)
				}
				if deviation := math.Sqrt(squares / n); math.Abs(sum/n) > deviation/20 || deviation < float64(spread)/16 {
					t.Errorf("mean %g, deviation %g", sum/n, deviation)
				}
			})
		}
	}
}

func TestUnevenSlabs(t *testing.T) {
	_, data := whole(t, gguf.F32, Fill{Spread: 1, Uneven: true}, 64, 1, 300)
	seen := map[float64]int{}
	for slab := range 300 {
		var most float64
		for i := range 64 {
			v := math.Float32frombits(binary.LittleEndian.Uint32(data[4*(64*slab+i):]))
			most = max(most, math.Abs(float64(v)))
		}
		seen[math.Exp2(math.Ceil(math.Log2(most)))]++
	}
	if len(seen) != 3 || min(seen[0.5], seen[1], seen[2]) < 60 {
		t.Errorf("slabs by the power of two that bounds them: %v, want about 100 each of 0.5, 1 and 2", seen)
	}
}

func TestZeroFillIsZero(t *testing.T) {
	for typ := range rules {
		if _, data := whole(t, typ, Fill{}, 256, 1, 2); !bytes.Equal(data, make([]byte, len(data))) {
			t.Errorf("%s: not all zero", typ)
		}
	}
}

func TestBlocksFitTheScratch(t *testing.T) {
	for typ := range rules {
		if info, _ := typ.Info(); info.Bytes > maxBlock {
			t.Errorf("%s: blocks of %d bytes, scratch of %d", typ, info.Bytes, maxBlock)
		}
	}
}

func BenchmarkSource(b *testing.B) {
	for _, typ := range []gguf.Type{gguf.F32, gguf.Q8_0, gguf.MXFP4, gguf.IQ1_S} {
		b.Run(typ.String(), func(b *testing.B) {
			s := newSource(1, "x", typ, 1<<20, 1<<40, Fill{Spread: 0.1, Uneven: true})
			p := make([]byte, 1<<20)
			b.SetBytes(int64(len(p)))
			for i := range b.N {
				s.ReadAt(p, int64(i%1000)<<20+13)
			}
		})
	}
}
