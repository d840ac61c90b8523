package verify

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ggufreap/gguf/words"
	"ggufreap/manifest"
)

// A slabFact is what is wrong with experts of one tensor, or of all tensors of a block.
type slabFact struct {
	kind    Kind
	tensors []*manifest.Tensor // that were measured; the first gives its name to the fact
	whole   bool               // it is of a block, and tensors are all that it has
	experts []expertRun        // ascending
	// is and are begin what is said of one and of several, rest ends it.
	is, are, rest string
	first         string // what is said of the first expert, or of the only one; "" for no more
}

// An expertRun is experts that follow each other: there can be a million.
type expertRun struct{ first, n int }

// add adds the next expert.
func (f *slabFact) add(expert int) {
	if last := len(f.experts) - 1; last >= 0 && f.experts[last].first+f.experts[last].n == expert {
		f.experts[last].n++
		return
	}
	f.experts = append(f.experts, expertRun{expert, 1})
}

// list lists the experts.
func (f *slabFact) list() []int {
	var list []int
	for _, r := range f.experts {
		for i := range r.n {
			list = append(list, r.first+i)
		}
	}
	return list
}

// key is the same for facts that are told together.
func (f *slabFact) key() string { return fmt.Sprint(f.kind, f.whole, f.rest, f.experts) }

// A placer says where in its file the data of a tensor is.
type placer struct {
	file   func(tensor string) string // nil where nobody can tell
	offset func(tensor string) int64  // likewise
}

func (p placer) fileOf(tensor string) string {
	if p.file == nil {
		return ""
	}
	return p.file(tensor)
}

// whole returns the bytes of a tensor.
func (p placer) whole(t *manifest.Tensor) []Part { return p.part(t, 0, t.Size) }

// part returns bytes of a tensor, none where nobody can tell or there are none.
func (p placer) part(t *manifest.Tensor, from, length int64) []Part {
	if p.offset == nil || length == 0 {
		return nil
	}
	return []Part{{p.fileOf(t.Name), t.Name, p.offset(t.Name) + from, length}}
}

// slabs returns the bytes of experts of a tensor; those that follow each other are one part.
func (p placer) slabs(t *manifest.Tensor, experts []expertRun) []Part {
	size := t.Size / int64(t.Slabs.Count)
	var parts []Part
	for _, r := range experts {
		parts = append(parts, p.part(t, int64(r.first)*size, int64(r.n)*size)...)
	}
	return parts
}

// tellSlabs adds a finding for each fact; tensors and layers that share one are told
// together.
func (r *Report) tellSlabs(facts []slabFact, at placer) {
	var keys []string // in the order of the first that has each
	shared := map[string][]slabFact{}
	for _, f := range facts {
		key := f.key()
		if shared[key] == nil {
			keys = append(keys, key)
		}
		shared[key] = append(shared[key], f)
	}
	for _, key := range keys {
		r.Add(sharedFinding(shared[key], at))
	}
}

// sharedFinding words a fact that tensors or blocks share.
func sharedFinding(facts []slabFact, at placer) Finding {
	f := facts[0]
	name := f.tensors[0].Name
	found := Finding{Kind: f.kind, Expert: manifest.NoExpert}
	for _, f := range facts {
		for _, t := range f.tensors {
			found.Parts = append(found.Parts, at.slabs(t, f.experts)...)
		}
	}
	if len(facts) == 1 {
		found.File, found.Tensor = at.fileOf(name), name
		if len(f.experts) == 1 && f.experts[0].n == 1 {
			found.Expert, found.What = f.experts[0].first, cmp.Or(f.first, f.is+" "+f.rest)
			return found
		}
	}
	list := f.list()
	n := len(list)
	found.What = fmt.Sprintf("%s %s %s %s", words.Verb(n, "expert", "experts"), rangeList(list), words.Verb(n, f.is, f.are), f.rest)
	of := ""
	if len(facts) > 1 {
		found.What, of = placesOf(facts)+found.What, fmt.Sprintf(" of tensor %q", name)
	}
	if f.first != "" {
		found.What += fmt.Sprintf("; expert %d%s %s", list[0], of, f.first)
	}
	return found
}

// placesOf names the layers and the tensors that share a fact: "layers 1 to 3, tensor
// "ffn_up_exps.weight" of each: ".
func placesOf(facts []slabFact) string {
	var layers []int
	var roles, names []string
	for _, f := range facts {
		name := f.tensors[0].Name
		names = append(names, name)
		block := blockOf(name)
		if layer, err := strconv.Atoi(strings.TrimPrefix(block, "blk.")); err == nil && !slices.Contains(layers, layer) {
			layers = append(layers, layer)
		}
		if role := strings.TrimPrefix(name, block+"."); !slices.Contains(roles, role) {
			roles = append(roles, role)
		}
	}
	place := fmt.Sprintf("%s %s", words.Verb(len(layers), "layer", "layers"), rangeList(layers))
	switch {
	case len(layers) == 0:
		return "tensors " + nameList(names) + ": "
	case facts[0].whole:
		return place + ": "
	case len(roles) == 1:
		return fmt.Sprintf("%s, tensor %q of each: ", place, roles[0])
	}
	return fmt.Sprintf("%s, %s (%s): ", place, words.Count(len(facts), "tensor"), nameList(roles))
}
