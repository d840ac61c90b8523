package verify

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"ggufreap/manifest"
)

// A stray is a slab that is no expert of the source's tensor of that name.
type stray struct {
	tensor *manifest.Tensor
	expert int
}

// maxSought bounds the slabs that are looked for in the whole source: three quarters of those
// of the largest model.
const maxSought = 1 << 18

// stray takes note of a slab to be looked for, or says what it is not.
func (p *prover) stray(s stray) {
	if s.tensor.Slabs.Bytes == nil && len(p.strays) < maxSought {
		p.strays = append(p.strays, s)
		return
	}
	p.noteStray(s, stray{})
}

// noteStray says where in the source a slab is, if anywhere.
func (p *prover) noteStray(s, place stray) {
	f := slabFact{kind: KindDigest, tensors: []*manifest.Tensor{s.tensor}, is: "is", are: "are", rest: "not among the source's"}
	if place.tensor != nil {
		f.rest = "of the source's " + placeName(place.tensor.Name, s.tensor.Name)
		f.first = fmt.Sprintf("is expert %d of the source's tensor %q", place.expert, place.tensor.Name)
	}
	p.note(f, s.expert)
}

// placeStrays looks for the strays in the other tensors of the source, by their digests.
func (p *prover) placeStrays() {
	id := func(s stray) []byte { return s.tensor.Slabs.At(s.expert) }
	order := make([]int32, len(p.strays))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return bytes.Compare(id(p.strays[a]), id(p.strays[b])) })
	places := make([]stray, len(p.strays))
	for n := range p.source.Tensors {
		t := &p.source.Tensors[n]
		for i := 0; len(order) > 0 && i < t.SlabCount(); i++ {
			slab := t.Slabs.At(i)
			at, _ := slices.BinarySearchFunc(order, slab, func(k int32, slab []byte) int { return bytes.Compare(id(p.strays[k]), slab) })
			for ; at < len(order) && bytes.Equal(id(p.strays[order[at]]), slab); at++ {
				if place := &places[order[at]]; place.tensor == nil {
					*place = stray{t, i}
				}
			}
		}
	}
	for i, s := range p.strays {
		p.noteStray(s, places[i])
	}
}

// placeName says of which tensor of the source a slab is: of which layer, where it is the one
// of the same name there.
func placeName(source, release string) string {
	block, own := blockOf(source), blockOf(release)
	if block != own && block != source && strings.TrimPrefix(source, block) == strings.TrimPrefix(release, own) {
		return "layer " + strings.TrimPrefix(block, "blk.")
	}
	return fmt.Sprintf("tensor %q", source)
}
