package verify

import (
	"fmt"
	"slices"
	"strings"

	"ggufreap/manifest"
)

// A group is the slabbed tensors of one block, in which experts stand in one order.
type group struct {
	block           string
	release, source []*manifest.Tensor
	index           []map[string][]int // experts of the source's tensors by slab, see find
}

// group returns the group that a tensor belongs to.
func (p *prover) group(tensor string) *group {
	block := blockOf(tensor)
	i := slices.IndexFunc(p.groups, func(g *group) bool { return g.block == block })
	if i < 0 {
		i = len(p.groups)
		p.groups = append(p.groups, &group{block: block})
	}
	return p.groups[i]
}

func (g *group) add(release, source *manifest.Tensor) {
	g.release = append(g.release, release)
	g.source = append(g.source, source)
}

// blockOf returns "blk.7" for "blk.7.ffn_up_exps.weight", and the whole name of a tensor
// that is in no block.
func blockOf(tensor string) string {
	if rest, ok := strings.CutPrefix(tensor, "blk."); ok {
		if number, _, ok := strings.Cut(rest, "."); ok {
			return "blk." + number
		}
	}
	return tensor
}

// blocks finds the experts of every block, and compares them with the plan.
func (p *prover) blocks() {
	for _, g := range p.groups {
		if !p.sameCounts(g) {
			continue
		}
		if n := g.release[0].Slabs.Count; n != p.kept() {
			p.find(KindStructure, g.release[0].Name, manifest.NoExpert, "has %d experts, %s has %d", n, p.groups[0].block, p.kept())
		}
		p.proof.Layers = append(p.proof.Layers, LayerProof{g.block, p.recover(g)})
	}
	p.placeStrays()
	p.report.tellSlabs(p.facts, p.at)
	p.comparePlan()
}

// sameCounts wants as many experts in all tensors of a block.
func (p *prover) sameCounts(g *group) bool {
	same := true
	for i, r := range g.release {
		if a, b := r.Slabs.Count, g.release[0].Slabs.Count; a != b {
			p.find(KindStructure, r.Name, manifest.NoExpert, "has %d experts, tensor %q of the layer has %d", a, g.release[0].Name, b)
			same = false
		}
		if a, b := g.source[i].Slabs.Count, g.source[0].Slabs.Count; a != b {
			p.find(KindStructure, r.Name, manifest.NoExpert, "had %d experts in the source, tensor %q of the layer had %d", a, g.release[0].Name, b)
			same = false
		}
	}
	return same
}

// expert returns what identifies an expert in all tensors of a block together.
func expert(tensors []*manifest.Tensor, i int) string {
	var id []byte
	for _, t := range tensors {
		id = append(id, t.Slabs.At(i)...)
	}
	return string(id)
}

// recover returns the source's expert that each expert of a block is. An expert is found
// only when all its slabs are the same expert's. Experts that are equal to the last bit
// cannot be told apart: they are taken as the plan has them, or else in ascending order.
// What is not found is proven slab by slab.
func (p *prover) recover(g *group) []int {
	ids := map[string][]int{}
	for i := range g.source[0].Slabs.Count {
		id := expert(g.source, i)
		ids[id] = append(ids[id], i)
	}
	free := make(map[string][]int, len(ids))
	for id, list := range ids {
		free[id] = slices.Clone(list)
	}
	keep := make([]int, g.release[0].Slabs.Count)
	for i := range keep {
		keep[i] = manifest.NoExpert
		id := expert(g.release, i)
		if at := slices.Index(free[id], p.planned(g.block, i)); at >= 0 {
			keep[i] = free[id][at]
			free[id] = slices.Delete(free[id], at, at+1)
		}
	}
	for i := range keep {
		id := expert(g.release, i)
		switch {
		case keep[i] != manifest.NoExpert:
		case len(free[id]) > 0:
			keep[i], free[id] = free[id][0], free[id][1:]
		case len(ids[id]) > 0:
			keep[i] = ids[id][0]
			p.note(slabFact{kind: KindExperts, tensors: g.release, whole: true, is: "is", are: "are", rest: "there already",
				first: fmt.Sprintf("is the source's expert %d of %s, which is there already", keep[i], g.block)}, i)
		default:
			keep[i] = p.diagnose(g, i)
			continue
		}
		for _, r := range g.release {
			p.proveSlab(r)
		}
	}
	g.index = nil // it is large, and not needed any more
	return keep
}

func (p *prover) proveSlab(t *manifest.Tensor) {
	p.prove(t.Name, t.Size/int64(t.Slabs.Count), ProvenExperts)
}

// note adds an expert to a fact of its tensor that is known, or else the fact.
func (p *prover) note(f slabFact, expert int) {
	key := factKey{f.tensors[0], f.rest}
	at, known := p.known[key]
	if !known {
		at = len(p.facts)
		p.known[key] = at
		p.facts = append(p.facts, f)
	}
	p.facts[at].add(expert)
}

// A factKey tells the facts about one tensor apart.
type factKey struct {
	tensor *manifest.Tensor
	rest   string
}

// diagnose looks at an expert whose slabs are not all the same expert's. It takes the
// expert for the one that most of its slabs are, and says what is wrong with the others.
func (p *prover) diagnose(g *group, i int) (most int) {
	matches := make([][]int, len(g.release))
	votes := map[int]int{}
	most = manifest.NoExpert
	for n, r := range g.release {
		matches[n] = g.find(n, r.Slabs.At(i))
		for _, j := range matches[n] {
			if votes[j]++; most == manifest.NoExpert || votes[j] > votes[most] {
				most = j
			}
		}
	}
	for n, r := range g.release {
		switch {
		case len(matches[n]) == 0:
			p.stray(stray{r, i})
		case slices.Contains(matches[n], most):
			p.proveSlab(r)
		default:
			p.note(slabFact{kind: KindExperts, tensors: []*manifest.Tensor{r}, is: "does", are: "do", rest: "not fit the other tensors of the layer",
				first: fmt.Sprintf("is the source's expert %d, other tensors of the layer have expert %d there", matches[n][0], most)}, i)
		}
	}
	return most
}

// find returns the experts that a slab is of the source's tensor n of the block.
func (g *group) find(n int, slab []byte) []int {
	if g.index == nil {
		g.index = make([]map[string][]int, len(g.source))
	}
	if g.index[n] == nil {
		g.index[n] = map[string][]int{}
		for j := range g.source[n].Slabs.Count {
			id := string(g.source[n].Slabs.At(j))
			g.index[n][id] = append(g.index[n][id], j)
		}
	}
	return g.index[n][string(slab)]
}
