package tally

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// The binary form, little-endian: the mark; the number of tokens; the number of layers; then
// for each layer, by block number, the block, the number of experts, and for each expert its
// tokens, the words of its four sums, the least significant first, and the greatest norm.
const mark = "GRTALLY1"

// expertBytes is the size of one expert's entry.
const expertBytes = 8 + 4*8*sumWords + 8

// Bounds on what is decoded; llama.cpp stops at 512 layers and 1024 experts.
const (
	maxLayers  = 1 << 12
	maxExperts = 1 << 12
)

// sums lists an expert's sums in the order of the binary form.
func (e *Expert) sums() [4]*Sum { return [4]*Sum{&e.Gate, &e.Norm, &e.Saliency, &e.Energy} }

// Append appends the binary form. Equal tallies have equal bytes.
func (t *Tally) Append(b []byte) []byte {
	b = append(b, mark...)
	b = binary.LittleEndian.AppendUint64(b, t.Tokens)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(t.Layers)))
	for _, block := range t.Blocks() {
		experts := t.Layers[block]
		b = binary.LittleEndian.AppendUint32(b, uint32(block))
		b = binary.LittleEndian.AppendUint32(b, uint32(len(experts)))
		for i := range experts {
			e := &experts[i]
			b = binary.LittleEndian.AppendUint64(b, e.Tokens)
			for _, s := range e.sums() {
				for _, w := range s.words {
					b = binary.LittleEndian.AppendUint64(b, w)
				}
			}
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(e.Greatest))
		}
	}
	return b
}

var errShort = errors.New("sums end too early")

// Decode reads the binary form, which must be the whole of b.
func Decode(b []byte) (*Tally, error) {
	if len(b) < len(mark)+12 || string(b[:len(mark)]) != mark {
		return nil, fmt.Errorf("no sums: they begin with %q", mark)
	}
	b = b[len(mark):]
	t := &Tally{Tokens: binary.LittleEndian.Uint64(b), Layers: map[int][]Expert{}}
	layers := binary.LittleEndian.Uint32(b[8:])
	b = b[12:]
	if layers > maxLayers {
		return nil, fmt.Errorf("sums of %d layers, at most %d are read", layers, maxLayers)
	}
	last := -1
	for range layers {
		if len(b) < 8 {
			return nil, errShort
		}
		block, experts := int(binary.LittleEndian.Uint32(b)), int(binary.LittleEndian.Uint32(b[4:]))
		b = b[8:]
		switch {
		case block <= last || block > math.MaxInt32:
			return nil, fmt.Errorf("sums of layer %d follow those of layer %d", block, last)
		case experts > maxExperts:
			return nil, fmt.Errorf("layer %d: sums of %d experts, at most %d are read", block, experts, maxExperts)
		case len(b) < experts*expertBytes:
			return nil, errShort
		}
		last = block
		t.Layers[block] = make([]Expert, experts)
		for i := range t.Layers[block] {
			t.Layers[block][i].decode(b[i*expertBytes:])
		}
		b = b[experts*expertBytes:]
	}
	if len(b) > 0 {
		return nil, fmt.Errorf("%d bytes after the sums", len(b))
	}
	return t, nil
}

func (e *Expert) decode(b []byte) {
	e.Tokens = binary.LittleEndian.Uint64(b)
	b = b[8:]
	for _, s := range e.sums() {
		for i := range s.words {
			s.words[i] = binary.LittleEndian.Uint64(b)
			b = b[8:]
		}
	}
	e.Greatest = math.Float64frombits(binary.LittleEndian.Uint64(b))
}
