package portable

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"testing"
)

func TestSpecialValues(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"Exp(0)", Exp(0), 1},
		{"Exp(-0)", Exp(math.Copysign(0, -1)), 1},
		{"Exp(709.78)", Exp(709.78), 1.7928227943945155e308},
		{"Exp(710)", Exp(710), inf},
		{"Exp(Inf)", Exp(inf), inf},
		{"Exp(-746)", Exp(-746), 0},
		{"Exp(-Inf)", Exp(-inf), 0},
		{"Exp(NaN)", Exp(nan), nan},
		{"Log(1)", Log(1), 0},
		{"Log(0)", Log(0), -inf},
		{"Log(-1)", Log(-1), nan},
		{"Log(Inf)", Log(inf), inf},
		{"Log(NaN)", Log(nan), nan},
		{"Log(2)", Log(2), math.Ln2},
		{"Log of the least number", Log(0x1p-1074), -1074 * math.Ln2},
		{"NormalTail(0)", NormalTail(0), 0.5},
		{"NormalTail(Inf)", NormalTail(inf), 0},
		{"NormalTail(-Inf)", NormalTail(-inf), 1},
		{"NormalTail(NaN)", NormalTail(nan), nan},
		{"LogNormalTail(Inf)", LogNormalTail(inf), -inf},
		{"LogNormalTail(-Inf)", LogNormalTail(-inf), 0},
		{"LogNormalTail(NaN)", LogNormalTail(nan), nan},
		{"LogTruncatedSigmoid(3, Inf)", LogTruncatedSigmoid(3, inf), -inf},
		{"LogTruncatedSigmoid(3, -Inf)", LogTruncatedSigmoid(3, -inf), -math.Ln2},
		{"LogTruncatedSigmoid(-1, 0)", LogTruncatedSigmoid(-1, 0), nan},
		{"LogTruncatedSigmoid(Inf, 0)", LogTruncatedSigmoid(inf, 0), nan},
		{"LogTruncatedSigmoid(1, NaN)", LogTruncatedSigmoid(1, nan), nan},
		{"TruncatedSigmoid(3, -Inf)", TruncatedSigmoid(3, -inf), 0.5},
		{"TruncatedSigmoid(3, Inf)", TruncatedSigmoid(3, inf), 0},
		{"TruncatedSigmoid(-1, 0)", TruncatedSigmoid(-1, 0), nan},
		{"TruncatedSigmoid(Inf, 0)", TruncatedSigmoid(inf, 0), nan},
		{"TruncatedSigmoid(1, NaN)", TruncatedSigmoid(1, nan), nan},
	} {
		if c.got != c.want && !(math.IsNaN(c.got) && math.IsNaN(c.want)) {
			t.Errorf("%s is %v, want %v", c.name, c.got, c.want)
		}
	}
}

// TestSameBitsEverywhere holds on every processor: run it there.
func TestSameBitsEverywhere(t *testing.T) {
	const want = "5aa3bf7d6ffd55c74fe0412cb628e8a648bc4a037e6b38df012edb2eeaf9f0a9"
	h := sha256.New()
	put := func(x float64) { binary.Write(h, binary.LittleEndian, math.Float64bits(x)) }
	for i := range 5000 {
		x := spread(i)
		put(Exp(float64(1500*x) - 760)) // converted, or the test itself would be fused
		put(Exp(x - 0.5))
		put(Log(math.Ldexp(x+0.5, i%600-300)))
		put(NormalTail(float64(80*x) - 40))
		put(NormalTail(4 * x))
		put(TruncatedSigmoid(float64(i%50)/7, float64(24*x)-12))
		put(LogNormalTail(float64(600*x) - 9))
		put(LogTruncatedSigmoid(float64(i%50)/7, float64(600*x)-9))
	}
	if got := fmt.Sprintf("%x", h.Sum(nil)); got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
}
