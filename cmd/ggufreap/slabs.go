package main

import (
	"ggufreap/gguf"
	"ggufreap/manifest"
	"ggufreap/reap"
)

// routedSlabs says how many slabs the tensors of a model carry; experts is nil for a
// dense one.
func routedSlabs(experts *reap.Experts) manifest.SlabCount {
	if experts == nil {
		return nil
	}
	return slabCount(experts, experts.Count)
}

// soundSlabs says how many slabs the tensors of a model carry that is to be copied as it
// is: none where its experts are not sound, or cannot be told apart to the byte.
func soundSlabs(m *gguf.Model) manifest.SlabCount {
	experts := soundExperts(m)
	if experts == nil {
		return nil
	}
	slabs := slabCount(experts, experts.Count)
	return func(tensor string) int {
		if n := slabs(tensor); n > 0 && !m.Tensor(tensor).Opaque {
			return n
		}
		return 0
	}
}

// soundIDs says which tensors of such a model are tables of expert ids.
func soundIDs(m *gguf.Model) manifest.IDTables { return idTables(m, soundExperts(m), nil) }

// soundExperts returns the experts of a model, nil where they are not sound.
func soundExperts(m *gguf.Model) *reap.Experts {
	experts, faults := reap.FindExperts(m)
	if len(faults) > 0 {
		return nil
	}
	return experts
}

// slabCount says of every tensor with a slab for each routed expert that it carries n.
func slabCount(experts *reap.Experts, n int) manifest.SlabCount {
	routed := map[string]bool{}
	for _, t := range experts.Tensors() {
		if t.SlabBytes > 0 {
			routed[t.Name] = true
		}
	}
	return func(tensor string) int {
		if routed[tensor] {
			return n
		}
		return 0
	}
}

// idTables says which tensors of a model are tables of expert ids, and what is nearest to
// each expert when those of keep are left, by block; a nil keep leaves all. Where the order
// cannot be told, the pin has the table alone.
func idTables(m *gguf.Model, experts *reap.Experts, keep map[int][]int) manifest.IDTables {
	if experts == nil {
		return nil
	}
	layers := map[string]*reap.Layer{}
	for layer, t := range experts.Tensors() {
		if t.Role == reap.IDTable {
			layers[t.Name] = layer
		}
	}
	return func(tensor string) ([]byte, bool) {
		layer := layers[tensor]
		if layer == nil {
			return nil, false
		}
		nearest, err := reap.Nearest(m, experts, layer, keep[layer.Block])
		if err != nil {
			return nil, true
		}
		return nearest, true
	}
}
