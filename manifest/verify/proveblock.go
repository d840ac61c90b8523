package verify

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"ggufreap/gguf/words"
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

// planned returns the source's expert that expert i of a block should be, or NoExpert.
func (p *prover) planned(block string, i int) int {
	number, err := strconv.Atoi(strings.TrimPrefix(block, "blk."))
	if list := p.options.Keep[number]; err == nil && i < len(list) {
		return list[i]
	}
	return manifest.NoExpert
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

// A stray is a slab that is no expert of the source's tensor of that name.
type stray struct {
	tensor *manifest.Tensor
	expert int
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

// comparePlan compares the keep lists that were found with those of the plan.
// Blocks that differ alike are told together.
func (p *prover) comparePlan() {
	if p.options.Keep == nil {
		return
	}
	found := map[string][]int{}
	for _, b := range p.proof.Layers {
		found[b.Layer] = b.Keep
	}
	var facts []string // in the order of their first blocks
	blocks := map[string][]int{}
	tell := func(number int, fact string) {
		if fact == "" {
			return
		}
		if blocks[fact] == nil {
			facts = append(facts, fact)
		}
		blocks[fact] = append(blocks[fact], number)
	}
	for _, number := range slices.Sorted(maps.Keys(p.options.Keep)) {
		planned := p.options.Keep[number]
		keep, ok := found[fmt.Sprintf("blk.%d", number)]
		switch {
		case !ok:
			tell(number, fmt.Sprintf("no experts to compare, the plan keeps %d", len(planned)))
		default:
			tell(number, planFact(keep, planned))
		}
	}
	for _, b := range p.proof.Layers {
		number, err := strconv.Atoi(strings.TrimPrefix(b.Layer, "blk."))
		if _, ok := p.options.Keep[number]; err == nil && !ok {
			tell(number, fmt.Sprintf("%d experts, the plan does not name the layer", len(b.Keep)))
		}
	}
	for _, fact := range facts {
		p.findIn(blocks[fact], fact)
	}
}

// planFact says in what the experts that were found in a block differ from those that the
// plan keeps, "" where they do not.
func planFact(found, planned []int) string {
	if len(found) != len(planned) {
		return fmt.Sprintf("%d experts, the plan keeps %d", len(found), len(planned))
	}
	var extra, missing []int
	first := -1
	for i, id := range found {
		if id == manifest.NoExpert || id == planned[i] {
			continue
		}
		if first < 0 {
			first = i
		}
		if !slices.Contains(planned, id) {
			extra = append(extra, id)
		}
		if !slices.Contains(found, planned[i]) {
			missing = append(missing, planned[i])
		}
	}
	switch {
	case first < 0:
		return ""
	case len(extra)+len(missing) == 0:
		return fmt.Sprintf("the plan's experts in another order: at place %d expert %d, the plan says %d", first, found[first], planned[first])
	}
	var parts []string
	if len(extra) > 0 {
		parts = append(parts, fmt.Sprintf("%s kept, which the plan drops", expertsAre(extra)))
	}
	if len(missing) > 0 {
		parts = append(parts, fmt.Sprintf("%s not kept, which the plan keeps", expertsAre(missing)))
	}
	return strings.Join(parts, "; ")
}

// expertsAre writes "expert 3 is" or "experts 1, 3 to 7 and 12 are".
func expertsAre(ids []int) string {
	return words.Verb(len(ids), "expert ", "experts ") + rangeList(ids) + words.Verb(len(ids), " is", " are")
}

// rangeList writes numbers in ascending order, those that follow each other as ranges.
func rangeList(ids []int) string {
	ids = slices.Sorted(slices.Values(ids))
	var parts []string
	for len(ids) > 0 {
		n := 1
		for n < len(ids) && ids[n] == ids[n-1]+1 {
			n++
		}
		switch {
		case n > 2:
			parts = append(parts, fmt.Sprintf("%d to %d", ids[0], ids[n-1]))
		default:
			n = 1
			parts = append(parts, strconv.Itoa(ids[0]))
		}
		ids = ids[n:]
	}
	if len(parts) == 1 {
		return parts[0]
	}
	const most = 12
	if more := len(parts) - most; more > 0 {
		parts = append(parts[:most], fmt.Sprintf("%d more", more))
	}
	return strings.Join(parts[:len(parts)-1], ", ") + " and " + parts[len(parts)-1]
}

// findIn notes a difference from the plan in blocks. One is named by its first tensor, too.
func (p *prover) findIn(blocks []int, fact string) {
	tensor := ""
	for _, g := range p.groups {
		if len(blocks) == 1 && g.block == fmt.Sprintf("blk.%d", blocks[0]) {
			tensor = g.release[0].Name
		}
	}
	p.find(KindPlan, tensor, manifest.NoExpert, "%s %s: %s", words.Verb(len(blocks), "layer", "layers"), rangeList(blocks), fact)
}

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
