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
	experts, faults := reap.FindExperts(m)
	if experts == nil || len(faults) > 0 {
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
