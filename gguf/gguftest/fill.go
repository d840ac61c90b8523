package gguftest

import (
	"hash/fnv"
	"io"
	"math"

	"ggufreap/gguf"
)

// Fill is the rule that a tensor's generated values follow: even between Mean-Spread and
// Mean+Spread. Block types are even around zero up to about Spread, whatever the mean.
// Integer types, and types whose blocks this package cannot make, get random bytes whatever
// the rule. For all others the zero Fill means zeros.
type Fill struct {
	Mean, Spread float32
	// Uneven scales each slab (the elements of one outermost index) by 1/2, 1 or 2, so that
	// experts differ in weight.
	Uneven bool
}

// source generates the bytes of one tensor on demand. It is stateless: any number of
// readers may share it, and a byte depends on nothing but its place, the seed and the
// tensor's name.
type source struct {
	key   uint64
	fill  Fill
	rule  rule
	block int64 // bytes
	slab  int64 // blocks
	size  int64 // bytes
}

// newSource makes the source of size bytes of type t. A slab has slab elements.
func newSource(seed uint64, name string, t gguf.Type, slab, size int64, fill Fill) *source {
	s := &source{key: keyOf(seed, name), fill: fill, rule: randomRule, block: 8, slab: math.MaxInt64, size: size}
	if r, ok := rules[t]; ok {
		info, _ := t.Info()
		s.rule, s.block = r, info.Bytes
		s.slab = max(slab/info.Elements, 1)
	}
	return s
}

// keyOf is the starting state of the words of one tensor.
func keyOf(seed uint64, name string) uint64 {
	h := fnv.New64a()
	io.WriteString(h, name)
	return mix(seed ^ mix(h.Sum64()))
}

// ReadAt generates the bytes at off.
func (s *source) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off >= s.size {
		return 0, io.EOF
	}
	var err error
	if int64(len(p)) > s.size-off {
		p, err = p[:s.size-off], io.EOF
	}
	n := len(p)
	first := off / s.block
	if skip := off - first*s.block; skip > 0 || int64(len(p)) < s.block {
		p = p[s.partial(p, first, skip):]
		first++
	}
	if whole := int64(len(p)) / s.block; whole > 0 {
		s.blocks(p[:whole*s.block], first)
		p = p[whole*s.block:]
		first += whole
	}
	if len(p) > 0 {
		s.partial(p, first, 0)
	}
	return n, err
}

// partial copies what fits of a block from its byte skip on and returns how much that is.
func (s *source) partial(p []byte, block, skip int64) int {
	var scratch [maxBlock]byte
	s.blocks(scratch[:s.block], block)
	return copy(p, scratch[skip:s.block])
}

// blocks generates whole blocks, slab by slab.
func (s *source) blocks(p []byte, first int64) {
	for len(p) > 0 {
		index := first / s.slab
		run := min(int64(len(p))/s.block, (index+1)*s.slab-first)
		w := words{s.key + golden*s.rule.words*uint64(first)}
		s.rule.fill(p[:run*s.block], w, s.scaled(index))
		p = p[run*s.block:]
		first += run
	}
}

// scaled is the fill of one slab.
func (s *source) scaled(slab int64) Fill {
	f := s.fill
	if f.Uneven {
		f.Spread = float32(f.Spread * [3]float32{0.5, 1, 2}[mix(s.key^uint64(slab))%3])
	}
	return f
}

// words is the SplitMix64 sequence (Steele, Lea, Flood: Fast splittable pseudorandom number
// generators, 2014). Its n-th word is a function of the starting state plus n steps, so
// that generation can begin at any block.
type words struct{ state uint64 }

const golden = 0x9e3779b97f4a7c15

func (w *words) next() uint64 {
	w.state += golden
	return mix(w.state)
}

// mix is SplitMix64's output function.
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
