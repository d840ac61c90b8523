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

// routerNorms names the tensor by which a block's router input is scaled after it was
// normalised, where that is not one of the usual two. Sources: the graphs in
// llama.cpp's src/models.
var routerNorms = map[string]string{
	"arctic":         "ffn_norm_exps.weight",    // experts run beside a dense feed-forward
	"cohere2moe":     "attn_norm.weight",        // attention and experts read the same input
	"dbrx":           "attn_output_norm.weight", // its second norm
	"gemma4":         "ffn_gate_inp.scale",      // the router has a norm of its own
	"nemotron_h_moe": "attn_norm.weight",        // a block has one norm
	"nomic-bert-moe": "attn_output_norm.weight", // norms follow their sublayer
	"smallthinker":   "",                        // reads the residual as it is
}

// usualNorms come before the router in all other architectures, the first one that a
// block has.
var usualNorms = []string{"ffn_norm.weight", "post_attention_norm.weight"}

// routerScale returns the weights that scale the normalised router input of a layer,
// nil when nothing does.
func routerScale(m *gguf.Model, architecture string, l *Layer) ([]float64, error) {
	names := usualNorms
	if name, special := routerNorms[architecture]; special {
		if name == "" {
			return nil, nil
		}
		names = []string{name}
	}
	for _, name := range names {
		if t := m.Tensor(fmt.Sprintf("blk.%d.%s", l.Block, name)); t != nil {
			return readVector(t)
		}
	}
	return nil, fmt.Errorf("layer %d: no norm before the router, want %q", l.Block, names[0])
}
