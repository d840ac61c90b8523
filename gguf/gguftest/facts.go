package gguftest

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"ggufreap/gguf"
)

//go:embed architectures.txt
var factsText string

// facts are what the file architectures.txt says of one architecture.
type facts struct {
	hidden string
	keys   []keyFact
	parts  []partFact // the first holds the tensors outside of blocks
}

// A keyFact is a key under the architecture. Its values may stand for sizes.
type keyFact struct {
	suffix, typ string
	values      []string
}

// A partFact holds the tensors of all the given blocks.
type partFact struct {
	blocks  []int
	tensors []tensorFact
}

type tensorFact struct {
	name   string
	dims   []string
	scaled bool
}

// allFacts reads the file once. Its keys are the architectures and "common".
var allFacts = sync.OnceValues(func() (map[string]*facts, error) { return parseFacts(factsText) })

func parseFacts(text string) (map[string]*facts, error) {
	all := map[string]*facts{}
	var f *facts
	for i, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		if len(words) == 1 || f == nil && words[0] != "arch" {
			return nil, fmt.Errorf("architectures.txt:%d: %q", i+1, line)
		}
		if words[0] == "arch" {
			f = &facts{parts: make([]partFact, 1)}
			all[words[1]] = f
			continue
		}
		if err := f.add(words); err != nil {
			return nil, fmt.Errorf("architectures.txt:%d: %w", i+1, err)
		}
	}
	return all, nil
}

func (f *facts) add(words []string) error {
	switch words[0] {
	case "key":
		if len(words) < 3 {
			return fmt.Errorf("key %q has no type", words[1])
		}
		f.keys = append(f.keys, keyFact{words[1], words[2], words[3:]})
	case "hidden":
		f.hidden = words[1]
	case "blocks":
		var part partFact
		for _, word := range words[1:] {
			n, err := strconv.Atoi(word)
			if err != nil {
				return err
			}
			part.blocks = append(part.blocks, n)
		}
		f.parts = append(f.parts, part)
	default:
		t := tensorFact{name: words[0], dims: words[1:]}
		if last := len(t.dims) - 1; t.dims[last] == "scaled" {
			t.dims, t.scaled = t.dims[:last], true
		}
		part := &f.parts[len(f.parts)-1]
		part.tensors = append(part.tensors, t)
	}
	return nil
}

// blocks returns the tensors of each block.
func (f *facts) blocks() [][]tensorFact {
	byBlock := map[int][]tensorFact{}
	for _, part := range f.parts[1:] {
		for _, n := range part.blocks {
			byBlock[n] = part.tensors
		}
	}
	var list [][]tensorFact
	for _, n := range slices.Sorted(maps.Keys(byBlock)) {
		list = append(list, byBlock[n])
	}
	return list
}

// sizes are what the letters in facts stand for.
type sizes struct{ hidden, width, experts int }

func (s sizes) number(word string) (int64, error) {
	switch word {
	case "E":
		return int64(s.hidden), nil
	case "2E":
		return 2 * int64(s.hidden), nil
	case "F":
		return int64(s.width), nil
	case "2F":
		return 2 * int64(s.width), nil
	case "F/2":
		return int64(s.width / 2), nil
	case "N":
		return int64(s.experts), nil
	}
	return strconv.ParseInt(word, 10, 64)
}

// value makes the metadata value of a key.
func (s sizes) value(k keyFact) (gguf.Value, error) {
	elem, array := strings.CutSuffix(k.typ, "[]")
	if !array && len(k.values) != 1 {
		return gguf.Value{}, fmt.Errorf("key %q has %d values", k.suffix, len(k.values))
	}
	typ, ok := factTypes[elem]
	if !ok {
		return gguf.Value{}, fmt.Errorf("key %q: type %q", k.suffix, k.typ)
	}
	items := make([]gguf.Value, len(k.values))
	for i, word := range k.values {
		var err error
		if items[i], err = s.scalar(typ, word); err != nil {
			return gguf.Value{}, fmt.Errorf("key %q: %w", k.suffix, err)
		}
	}
	if array {
		return gguf.ArrayValue(typ, items...), nil
	}
	return items[0], nil
}

// factTypes are the value types that facts have.
var factTypes = map[string]gguf.ValueType{
	"u32": gguf.Uint32, "i32": gguf.Int32, "f32": gguf.Float32, "bool": gguf.Bool, "str": gguf.Text,
}

func (s sizes) scalar(typ gguf.ValueType, word string) (gguf.Value, error) {
	switch typ {
	case gguf.Float32:
		x, err := strconv.ParseFloat(word, 32)
		return gguf.Float32Value(float32(x)), err
	case gguf.Bool:
		b, err := strconv.ParseBool(word)
		return gguf.BoolValue(b), err
	case gguf.Text:
		return gguf.TextValue(word), nil
	}
	n, err := s.number(word)
	if typ == gguf.Int32 {
		return gguf.Int32Value(int32(n)), err
	}
	return gguf.Uint32Value(uint32(n)), err
}
