package reap

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/big"
	"strings"
	"testing"

	"ggufreap/gguf"
)

// Rows of a router of 8 experts and 16 inputs, and a norm, with round values.
func TestRouterNorm(t *testing.T) {
	row := make([]float32, 16*8)
	gamma := make([]float32, 16)
	for e := range 8 {
		row[16*e] = float32(e)     // times 3
		row[16*e+5] = float32(e)   // times -4
		row[16*e+9] = float32(100) // times 0
	}
	gamma[0], gamma[5] = 3, -4
	r := moe(2)
	for _, b := range []string{"blk.1.", "blk.2."} {
		r.find(b + "ffn_gate_inp.weight").data = floats(row...)
		r.find(b + "ffn_norm.weight").data = floats(gamma...)
	}
	m := r.model(t)
	e := mustExperts(t, m)
	var read int64
	s, err := RouterNormScores(context.Background(), m, e, func(n int64) { read += n })
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range e.Blocks() {
		for expert, got := range s.Layers[b] {
			if want := 5 * float64(expert); got != want {
				t.Errorf("layer %d, expert %d: %v, want %v", b, expert, got, want)
			}
		}
	}
	if read != 2*8*64 {
		t.Errorf("%d bytes reported, want %d", read, 2*8*64)
	}
	if s.Criterion.Name != RouterNorm || s.Criterion.Version != 1 {
		t.Errorf("%+v", s.Criterion)
	}
}

// The norm by architecture: the right tensor counts and no other.
func TestRouterScaleByArchitecture(t *testing.T) {
	for arch, norm := range map[string]string{
		"kimi-k3": "ffn_norm.weight", "glm4moe": "post_attention_norm.weight", "arctic": "ffn_norm_exps.weight",
		"dbrx": "attn_output_norm.weight", "cohere2moe": "attn_norm.weight", "gemma4": "ffn_gate_inp.scale",
		"smallthinker": "",
	} {
		r := moe(1)
		r.arch = arch
		r.remove("ffn_norm.weight")
		ones := make([]float32, 16)
		for i := range ones {
			ones[i] = 1
		}
		r.find("blk.1.ffn_gate_inp.weight").data = floats(append(make([]float32, 7*16), ones...)...)
		scale := 1.0
		if norm != "" {
			scale = 7
			sevens := make([]float32, 16)
			for i := range sevens {
				sevens[i] = 7
			}
			r.add("blk.1."+norm, gguf.F32, 16).data = floats(sevens...)
		}
		m := r.model(t)
		s, err := RouterNormScores(context.Background(), m, mustExperts(t, m), nil)
		if err != nil {
			t.Errorf("%s: %v", arch, err)
			continue
		}
		if arch == "gemma4" {
			scale /= 4 // its router input is divided by the root of its width, 16
		}
		if got, want := s.Layers[1][7], 4*scale; got != want {
			t.Errorf("%s: %v, want %v", arch, got, want)
		}
	}
}

func TestRouterNormErrors(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(r *recipe)
		want  string
	}{
		"no norm":    {func(r *recipe) { r.remove("ffn_norm.weight") }, `layer 1: no norm before the router, want "ffn_norm.weight"`},
		"short norm": {func(r *recipe) { r.find("blk.1.ffn_norm.weight").shape = []uint64{15} }, "rows of 16, but the norm before it has 15"},
		"2-D norm":   {func(r *recipe) { r.find("blk.1.ffn_norm.weight").shape = []uint64{16, 2} }, "2 dims, want 1"},
		"router in Q8": {func(r *recipe) {
			in := r.find("blk.1.ffn_gate_inp.weight")
			in.typ, in.shape = gguf.Q8_0, []uint64{32, 8}
			r.find("blk.1.ffn_norm.weight").shape = []uint64{32}
		}, "type Q8_0 is not read as numbers"},
	} {
		r := moe(1)
		c.spoil(r)
		m := r.model(t)
		_, err := RouterNormScores(context.Background(), m, mustExperts(t, m), nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	m := moe(1).model(t)
	if _, err := RouterNormScores(ctx, m, mustExperts(t, m), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// The sum agrees with exact arithmetic to the rounding of its 2n+2 steps.
func TestScaledNormAccuracy(t *testing.T) {
	row, gamma := make([]float64, 7168), make([]float64, 7168)
	exact := new(big.Float).SetPrec(400)
	for j := range row {
		row[j] = float64(float32(mix64(uint64(j))>>40) / (1 << 23))
		gamma[j] = float64(float32(mix64(uint64(j)+1<<32)>>40) / (1 << 24))
		x := new(big.Float).SetPrec(400).SetFloat64(row[j])
		x.Mul(x, new(big.Float).SetFloat64(gamma[j]))
		exact.Add(exact, x.Mul(x, x))
	}
	want, _ := exact.Sqrt(exact).Float64()
	got := scaledNorms([][]float64{row}, gamma)[0]
	if bound := want * 7168 * 0x1p-53; math.Abs(got-want) > bound {
		t.Errorf("got %v, want %v, difference above %v", got, want, bound)
	}
}

// All 65536 halves against the definition of binary16 in whole numbers.
func TestDecodeHalf(t *testing.T) {
	var dst [1]float64
	for bits := range 1 << 16 {
		decodeHalf(dst[:], binary.LittleEndian.AppendUint16(nil, uint16(bits)), binary.LittleEndian)
		sign, exponent, fraction := bits>>15, bits>>10&31, bits&1023
		want := float64(fraction) / (1 << 24) // subnormal: fraction * 2^-24
		if exponent > 0 {
			want = float64((1024+fraction)<<exponent) / (1 << 25) // (1 + f/1024) * 2^(e-15)
		}
		if exponent == 31 {
			want = math.Inf(1)
			if fraction != 0 {
				want = math.NaN()
			}
		}
		if sign == 1 {
			want = -want
		}
		if got := dst[0]; math.Float64bits(got) != math.Float64bits(want) && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Fatalf("%#04x: %v, want %v", bits, got, want)
		}
	}
}

// F16, BF16 and F32 routers of the same numbers score the same.
func TestRouterTypes(t *testing.T) {
	var wide, half, brain []byte
	for i := range 16 * 8 {
		n := i % 8 // 0 to 7 as halves: exponent and fraction by hand
		wide = append(wide, floats(float32(n))...)
		half = binary.LittleEndian.AppendUint16(half, []uint16{0, 0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700}[n])
		brain = binary.LittleEndian.AppendUint16(brain, uint16(math.Float32bits(float32(n))>>16))
	}
	var scores [][]float64
	for typ, data := range map[gguf.Type][]byte{gguf.F32: wide, gguf.F16: half, gguf.BF16: brain} {
		r := moe(1)
		in := r.find("blk.1.ffn_gate_inp.weight")
		in.typ, in.data = typ, data
		m := r.model(t)
		s, err := RouterNormScores(context.Background(), m, mustExperts(t, m), nil)
		if err != nil {
			t.Fatal(err)
		}
		scores = append(scores, s.Layers[1])
	}
	for i := range scores[0] {
		if scores[0][i] != scores[1][i] || scores[0][i] != scores[2][i] {
			t.Errorf("expert %d: %v, %v, %v", i, scores[0][i], scores[1][i], scores[2][i])
		}
	}
}
