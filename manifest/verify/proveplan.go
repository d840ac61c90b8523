package verify

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"ggufreap/gguf/words"
	"ggufreap/manifest"
)

// planned returns the source's expert that expert i of a block should be, or NoExpert.
func (p *prover) planned(block string, i int) int {
	number, err := strconv.Atoi(strings.TrimPrefix(block, "blk."))
	if list := p.options.Keep[number]; err == nil && i < len(list) {
		return list[i]
	}
	return manifest.NoExpert
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
