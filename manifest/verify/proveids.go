package verify

import (
	"bytes"
	"slices"

	"ggufreap/manifest"
)

// An idTable is a tensor of expert ids, in the release and in the source.
type idTable struct{ release, source *manifest.Tensor }

// expertIDs proves tables of expert ids. Where the source's pin has the table, pruning is
// done again, replacements and all. Else it must be the source's under its old numbers,
// and where ids of dropped experts were replaced it cannot be proven.
func (p *prover) expertIDs() {
	for _, t := range p.tables {
		name := t.release.Name
		keep := p.keepOf(blockOf(name))
		if keep == nil {
			continue
		}
		if t.source.IDs != nil && t.release.IDs != nil && p.options.NewIDs != nil {
			p.proveTable(t, keep)
			continue
		}
		if p.options.OldIDs == nil {
			continue
		}
		old, err := p.options.OldIDs(name, keep)
		switch {
		case err != nil:
			p.find(KindExperts, name, manifest.NoExpert, "%v", err)
		case old == t.source.BLAKE3:
			p.prove(name, t.release.Size, ProvenIDs)
		case t.release.BLAKE3 == t.source.BLAKE3:
			p.find(KindExperts, name, manifest.NoExpert, "still has the source's expert numbers")
		}
	}
}

// proveTable compares a table with what pruning makes of the source's.
func (p *prover) proveTable(t idTable, keep []int) {
	name := t.release.Name
	want, err := p.options.NewIDs(name, t.source.IDs, keep)
	got := t.release.IDs.Table
	switch {
	case err != nil:
		p.find(KindExperts, name, manifest.NoExpert, "no table can be made of the source's: %v", err)
	case bytes.Equal(got, want):
		p.prove(name, t.release.Size, ProvenIDs)
	case bytes.Equal(got, t.source.IDs.Table):
		p.find(KindExperts, name, manifest.NoExpert, "still has the source's expert numbers")
	default:
		const width = 4 // bytes of an id
		first, others := -1, 0
		for at := 0; at < min(len(got), len(want)); at += width {
			if !bytes.Equal(got[at:at+width], want[at:at+width]) {
				if others++; first < 0 {
					first = at / width
				}
			}
		}
		p.find(KindExperts, name, manifest.NoExpert, "%d of %d ids are not what pruning makes of the source's table; the first is entry %d", others, len(got)/width, first)
	}
}

// keepOf returns the keep list that was found for a block, nil when it was not found whole.
func (p *prover) keepOf(block string) []int {
	for _, b := range p.proof.Layers {
		if b.Layer == block && !slices.Contains(b.Keep, manifest.NoExpert) {
			return b.Keep
		}
	}
	return nil
}
