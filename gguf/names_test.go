package gguf

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// An index agrees with a map on every name, of which some are there twice, while it grows
// far beyond the room that it was made with, and when it is filled from the hashes of
// another one.
func TestNameIndex(t *testing.T) {
	const n = 30_000
	rng := rand.New(rand.NewPCG(1, 2))
	grown := newNameIndex(10)
	first := map[string]int{}
	for i := range n {
		name := fmt.Sprintf("blk.%d.w", rng.IntN(n))
		want, there := first[name]
		if !there {
			want, first[name] = -1, i
		}
		if got := grown.add(&Tensor{Name: name}); got != want {
			t.Fatalf("tensor %d, %s: found at %d, want %d", i, name, got, want)
		}
	}
	exact := newNameIndex(n)
	for i, tensor := range grown.list {
		exact.addHashed(tensor, grown.hashes[i])
	}
	for _, x := range []nameIndex{grown, exact} {
		for name, place := range first {
			if got := x.find(name); got != x.list[place] {
				t.Fatalf("%s: found %v, want tensor %d", name, got, place)
			}
		}
		if len(x.list) != n || x.find("blk.0.v") != nil {
			t.Errorf("%d tensors, want %d, and %v found for a name that is not there", len(x.list), n, x.find("blk.0.v"))
		}
	}
	if (&nameIndex{}).find("a") != nil {
		t.Error("an index of nothing finds a tensor")
	}
}

// Names with the same hash are told apart, those whose hashes differ in the bits that
// choose a slot only too.
func TestNameIndexOfEqualHashes(t *testing.T) {
	x := newNameIndex(0)
	for i := range 1000 {
		name := fmt.Sprint(i)
		if got := x.addHashed(&Tensor{Name: name}, uint32(i%3)); got != -1 {
			t.Fatalf("tensor %d found at %d", i, got)
		}
		if got := x.addHashed(&Tensor{Name: name}, uint32(i%3)); got != 2*i {
			t.Fatalf("tensor %d again: found at %d, want %d", i, got, 2*i)
		}
	}
}
