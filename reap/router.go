package reap

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"ggufreap/gguf"
)

// maxRow bounds the memory for a row; the widest models have a few ten thousand.
const maxRow = 1 << 16

// eachRows decodes a tensor n rows at a time, at the end maybe fewer. The slices are used
// again for the next rows.
func eachRows(t *gguf.Tensor, n int, fn func(first int, rows [][]float64) error) error {
	decode, size := floatDecoder(t)
	switch {
	case decode == nil:
		return fmt.Errorf("tensor %q: type %s is not read as numbers, want F32, F16 or BF16", t.Name, t.Type)
	case len(t.Shape) == 0 || t.Shape[0] == 0 || t.Shape[0] > maxRow:
		return fmt.Errorf("tensor %q: shape %v has no usable rows", t.Name, t.Shape)
	}
	width, count := int(t.Shape[0]), int(t.Elements()/t.Shape[0])
	raw, rows := make([]byte, n*width*size), make([][]float64, n)
	for i := range rows {
		rows[i] = make([]float64, width)
	}
	in := t.Reader()
	t.Announce()
	for first := 0; first < count; first += n {
		rows = rows[:min(n, count-first)]
		if got, err := io.ReadFull(in, raw[:len(rows)*width*size]); err != nil {
			return fmt.Errorf("%s: tensor %q: row %d: %w", t.File().Name, t.Name, first+got/(width*size), err)
		}
		for i, row := range rows {
			decode(row, raw[i*width*size:][:width*size])
		}
		if err := fn(first, rows); err != nil {
			return err
		}
	}
	return nil
}

// floatDecoder returns a function that widens elements to float64, which is exact,
// and the bytes of an element; nil for a type that is not read.
func floatDecoder(t *gguf.Tensor) (decode func(dst []float64, src []byte), size int) {
	order := t.File().Order
	switch {
	case t.Type == gguf.F32 && order == binary.ByteOrder(binary.LittleEndian):
		return decodeSingle, 4
	case t.Type == gguf.F32:
		return func(dst []float64, src []byte) {
			for i := range dst {
				dst[i] = float64(math.Float32frombits(order.Uint32(src[4*i:])))
			}
		}, 4
	case t.Type == gguf.BF16: // the upper half of an F32
		return func(dst []float64, src []byte) {
			for i := range dst {
				dst[i] = float64(math.Float32frombits(uint32(order.Uint16(src[2*i:])) << 16))
			}
		}, 2
	case t.Type == gguf.F16:
		return func(dst []float64, src []byte) { decodeHalf(dst, src, order) }, 2
	}
	return nil, 0
}

// decodeSingle widens little-endian F32, in which nearly all routers are stored: it does
// not ask for the byte order of each element.
func decodeSingle(dst []float64, src []byte) {
	number := func(p []byte) float64 { return float64(math.Float32frombits(binary.LittleEndian.Uint32(p))) }
	for len(dst) >= 4 && len(src) >= 16 {
		dst[0], dst[1], dst[2], dst[3] = number(src), number(src[4:]), number(src[8:]), number(src[12:])
		dst, src = dst[4:], src[16:]
	}
	for i := range dst {
		dst[i] = number(src[4*i:])
	}
}

// decodeHalf widens IEEE binary16: 1 sign, 5 exponent and 10 fraction bits.
func decodeHalf(dst []float64, src []byte, order binary.ByteOrder) {
	for i := range dst {
		bits := order.Uint16(src[2*i:])
		exponent, fraction := int(bits>>10&0x1f), float64(bits&0x3ff)
		var x float64
		switch exponent {
		case 0:
			x = math.Ldexp(fraction, -24)
		case 0x1f:
			x = math.Inf(1)
			if fraction != 0 {
				x = math.NaN()
			}
		default:
			x = math.Ldexp(1024+fraction, exponent-25)
		}
		if bits>>15 != 0 {
			x = -x
		}
		dst[i] = x
	}
}

// readVector decodes a tensor of one dimension.
func readVector(t *gguf.Tensor) ([]float64, error) {
	if dims := gguf.CanonicalShape(t.Shape); len(dims) != 1 {
		return nil, fmt.Errorf("tensor %q: %d dims, want 1", t.Name, len(dims))
	}
	var vector []float64
	err := eachRows(t, 1, func(_ int, rows [][]float64) error {
		vector = rows[0]
		return nil
	})
	return vector, err
}
