package main

import (
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
