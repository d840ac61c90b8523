package gguftest

import (
	"encoding/binary"
	"math"

	"ggufreap/gguf"
)

// A rule generates blocks of one type. It draws exactly words words for a block.
type rule struct {
	words uint64
	fill  func(p []byte, w words, f Fill)
}

// maxBlock is the size of the largest block that has a rule.
const maxBlock = 144

// Layouts of blocks are those of ggml's ggml-common.h.
var rules = map[gguf.Type]rule{
	gguf.F32:   {1, fillF32},
	gguf.F16:   {1, fillF16},
	gguf.BF16:  {1, fillBF16},
	gguf.Q8_0:  {5, fillQ8_0},
	gguf.Q4_K:  {19, fillQ4_K},
	gguf.IQ1_S: {7, fillIQ1_S},
	gguf.MXFP4: {3, fillMXFP4},
	gguf.NVFP4: {5, fillNVFP4},
}

var randomRule = rule{1, func(p []byte, w words, _ Fill) { randomBytes(p, &w) }}

func randomBytes(p []byte, w *words) {
	for ; len(p) >= 8; p = p[8:] {
		binary.LittleEndian.PutUint64(p, w.next())
	}
	if len(p) > 0 {
		for r := w.next(); len(p) > 0; p = p[1:] {
			p[0] = byte(r)
			r >>= 8
		}
	}
}

// number draws a value. The conversions keep a compiler from fusing the product and the
// sum, which would round differently on some processors.
func number(w *words, f Fill) float32 {
	unit := float32(int64(w.next()>>39)-1<<24) * (1.0 / (1 << 24)) // 25 bits: exact, in [-1, 1)
	return f.Mean + float32(unit*f.Spread)
}

func fillF32(p []byte, w words, f Fill) {
	for ; len(p) >= 4; p = p[4:] {
		binary.LittleEndian.PutUint32(p, math.Float32bits(number(&w, f)))
	}
}

func fillF16(p []byte, w words, f Fill) {
	for ; len(p) >= 2; p = p[2:] {
		bits := math.Float32bits(number(&w, f))
		h := half(int(bits>>23&0xff)-127, uint16(bits>>13&0x3ff))
		binary.LittleEndian.PutUint16(p, h|uint16(bits>>16&0x8000))
	}
}

func fillBF16(p []byte, w words, f Fill) {
	for ; len(p) >= 2; p = p[2:] {
		binary.LittleEndian.PutUint16(p, uint16(math.Float32bits(number(&w, f))>>16))
	}
}

// fillQ8_0: f16 scale d, 32 signed bytes q; the value is d*q.
func fillQ8_0(p []byte, w words, f Fill) {
	e, ok := exponent(f.Spread, 128)
	for ; len(p) >= 34 && ok; p = p[34:] {
		binary.LittleEndian.PutUint16(p, half(e-1, uint16(w.next()>>54)))
		randomBytes(p[2:34], &w)
	}
	clear(p)
}

// fillQ4_K: f16 d and dmin, twelve bytes of packed 6-bit scales sc and minima m, 256
// nibbles q; the value is d*sc*q - dmin*m. With dmin = 7.5*d random bits have a mean of
// zero.
func fillQ4_K(p []byte, w words, f Fill) {
	e, ok := exponent(f.Spread, 63*15)
	for ; len(p) >= 144 && ok; p = p[144:] {
		step := int(w.next() >> 63) // d is one of two powers of two
		binary.LittleEndian.PutUint16(p, half(e-step, 0))
		binary.LittleEndian.PutUint16(p[2:], half(e-step+2, 0x380)) // 7.5 = 4 * 1.875
		randomBytes(p[4:144], &w)
	}
	clear(p)
}

// fillIQ1_S: f16 d, 32 low bytes of grid indices, eight u16 of high index bits, scale s of
// three bits and sign of the shift; the value is d*(2s+1)*(grid ± 1/8) with grid in -1, 0,
// 1. Every bit pattern is a valid one.
func fillIQ1_S(p []byte, w words, f Fill) {
	e, ok := exponent(f.Spread, 17)
	for ; len(p) >= 50 && ok; p = p[50:] {
		binary.LittleEndian.PutUint16(p, half(e-1, uint16(w.next()>>54)))
		randomBytes(p[2:50], &w)
	}
	clear(p)
}

// fillMXFP4: a power of two as a byte biased by 127, 32 nibbles e2m1 of at most 6.
func fillMXFP4(p []byte, w words, f Fill) {
	e, ok := exponent(f.Spread, 6)
	for ; len(p) >= 17 && ok; p = p[17:] {
		p[0] = byte(max(e+127-int(w.next()>>63), 1))
		randomBytes(p[1:17], &w)
	}
	clear(p)
}

// fillNVFP4: four scales e4m3 without sign, bias 7, one for every 16 of 64 nibbles e2m1.
func fillNVFP4(p []byte, w words, f Fill) {
	e, ok := exponent(f.Spread, 6)
	field := byte(min(max(e-1+7, 1), 14)) // 0 is subnormal, 15 holds the NaN
	for ; len(p) >= 36 && ok; p = p[36:] {
		for i, r := 0, w.next(); i < 4; i++ {
			p[i] = field<<3 | byte(r>>(8*i)&7)
		}
		randomBytes(p[4:36], &w)
	}
	clear(p)
}

// exponent returns the power of two of a scale, so that scale times most is about spread.
// It reports false for a spread of zero.
func exponent(spread float32, most float64) (int, bool) {
	if spread <= 0 {
		return 0, false
	}
	_, e := math.Frexp(float64(spread) / most)
	return e - 1, true
}

// half encodes 2^e * (1 + m/1024), cut towards zero, as an f16.
func half(e int, m uint16) uint16 {
	switch {
	case e > 15:
		return 0x7bff // the greatest finite one
	case e >= -14:
		return uint16(e+15)<<10 | m
	case e >= -24:
		return (1<<10 | m) >> (-14 - e)
	}
	return 0
}
