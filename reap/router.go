package reap

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"ggufreap/gguf"
)

// maxRow bounds the memory for one row; the widest models have a few ten thousand.
const maxRow = 1 << 24

// eachRow decodes a tensor row by row. The slice is used again for the next row.
func eachRow(t *gguf.Tensor, fn func(row int, values []float64) error) error {
	decode, size := floatDecoder(t)
	switch {
	case decode == nil:
		return fmt.Errorf("tensor %q: type %s is not read as numbers, want F32, F16 or BF16", t.Name, t.Type)
	case len(t.Shape) == 0 || t.Shape[0] == 0 || t.Shape[0] > maxRow:
		return fmt.Errorf("tensor %q: shape %v has no usable rows", t.Name, t.Shape)
	}
	width := int(t.Shape[0])
	values, raw := make([]float64, width), make([]byte, width*size)
	in := bufio.NewReaderSize(t.Reader(), 1<<18)
	for row := range int(t.Elements() / t.Shape[0]) {
		if _, err := io.ReadFull(in, raw); err != nil {
			return fmt.Errorf("%s: tensor %q: row %d: %w", t.File().Name, t.Name, row, err)
		}
		decode(values, raw)
		if err := fn(row, values); err != nil {
			return err
		}
	}
	return nil
}

// floatDecoder returns a function that widens elements to float64, which is exact,
// and the bytes of an element; nil for a type that is not read.
func floatDecoder(t *gguf.Tensor) (decode func(dst []float64, src []byte), size int) {
	order := t.File().Order
	switch t.Type {
	case gguf.F32:
		return func(dst []float64, src []byte) {
			for i := range dst {
				dst[i] = float64(math.Float32frombits(order.Uint32(src[4*i:])))
			}
		}, 4
	case gguf.BF16: // the upper half of an F32
		return func(dst []float64, src []byte) {
			for i := range dst {
				dst[i] = float64(math.Float32frombits(uint32(order.Uint16(src[2*i:])) << 16))
			}
		}, 2
	case gguf.F16:
		return func(dst []float64, src []byte) { decodeHalf(dst, src, order) }, 2
	}
	return nil, 0
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
	if len(t.Shape) != 1 {
		return nil, fmt.Errorf("tensor %q: %d dims, want 1", t.Name, len(t.Shape))
	}
	var vector []float64
	err := eachRow(t, func(_ int, values []float64) error {
		vector = values
		return nil
	})
	return vector, err
}
