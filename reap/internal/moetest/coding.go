package moetest

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/reap"
)

// A coding is how numbers are stored, and what llama.cpp's processor code makes of numbers that
// meet them in a product, by ggml-quants.c.
type coding struct {
	size, bytes int // of a block
	decode      func(block []byte) []float64
	rounded     func(x []float64) []float64 // nil where they stay as they are
}

var codings = map[gguf.Type]coding{
	gguf.F32:  {1, 4, func(p []byte) []float64 { return []float64{float(p)} }, nil},
	gguf.Q8_0: {32, 34, decodeQ8_0, roundQ8_0},
	gguf.Q4_K: {256, 144, decodeQ4_K, roundQ8_K},
}

// Decode returns the numbers of a tensor of type F32, Q8_0 or Q4_K.
func Decode(t *testing.T, typ gguf.Type, data []byte) []float64 {
	t.Helper()
	c, known := codings[typ]
	if !known {
		t.Fatalf("type %s", typ)
	}
	var numbers []float64
	for ; len(data) > 0; data = data[c.bytes:] {
		numbers = append(numbers, c.decode(data[:c.bytes])...)
	}
	return numbers
}

// rounding is what the first of the tensors of a block that is there makes of the numbers that
// it meets.
func rounding(spec gguftest.Spec, block int, roles ...reap.Role) func([]float64) []float64 {
	for _, role := range roles {
		if tensor := spec.Tensor(fmt.Sprintf("blk.%d.%s", block, role)); tensor != nil {
			return codings[tensor.Type].rounded
		}
	}
	return nil
}

func float(p []byte) float64 { return float64(math.Float32frombits(binary.LittleEndian.Uint32(p))) }

// half reads an f16, whose exponent is not 31.
func half(p []byte) float64 {
	h := binary.LittleEndian.Uint16(p)
	v := math.Ldexp(float64(h&0x3ff), -24)
	if e := int(h >> 10 & 31); e > 0 {
		v = math.Ldexp(1024+float64(h&0x3ff), e-25)
	}
	return math.Copysign(v, float64(1-2*int(h>>15)))
}

// toHalf rounds to the nearest f16, for sizes that it has as normal numbers.
func toHalf(x float32) float64 {
	fraction, exponent := math.Frexp(float64(x))
	return math.Ldexp(math.RoundToEven(fraction*2048), exponent-11)
}

func decodeQ8_0(p []byte) (out []float64) {
	for _, q := range p[2:] {
		out = append(out, half(p)*float64(int8(q)))
	}
	return out
}

func decodeQ4_K(p []byte) (out []float64) {
	d, least, packed := half(p), half(p[2:]), p[4:16]
	for j := range 8 {
		var scale, low byte
		if j < 4 {
			scale, low = packed[j]&63, packed[j+4]&63
		} else {
			scale, low = packed[j+4]&15|packed[j-4]>>6<<4, packed[j+4]>>4|packed[j]>>6<<4
		}
		for _, q := range p[16+32*(j/2) : 48+32*(j/2)] {
			out = append(out, d*float64(scale)*float64(q>>(4*(j%2))&15)-least*float64(low))
		}
	}
	return out
}

// roundQ8_0 rounds blocks of 32 to 127 steps of an f16.
func roundQ8_0(x []float64) (out []float64) {
	for ; len(x) > 0; x = x[32:] {
		var most float32
		for _, v := range x[:32] {
			most = max(most, float32(math.Abs(v)))
		}
		if most == 0 {
			out = append(out, x[:32]...)
			continue
		}
		for _, v := range x[:32] {
			out = append(out, toHalf(most/127)*math.RoundToEven(float64(float32(v)*(127/most))))
		}
	}
	return out
}

// roundQ8_K rounds blocks of 256 to 127 steps of a float32, by the greatest with its sign.
func roundQ8_K(x []float64) (out []float64) {
	for ; len(x) > 0; x = x[256:] {
		var most float32
		for _, v := range x[:256] {
			if math.Abs(v) > math.Abs(float64(most)) {
				most = float32(v)
			}
		}
		if most == 0 {
			out = append(out, x[:256]...)
			continue
		}
		inverse := -127 / most
		for _, v := range x[:256] {
			out = append(out, float64(1/inverse)*min(127, math.RoundToEven(float64(inverse*float32(v)))))
		}
	}
	return out
}
