package manifest

import (
	"bytes"
	"fmt"
	"iter"
	"slices"

	"ggufreap/gguf"
)

// A Change says how a tensor or a key of one artifact differs from another's.
type Change string

// The changes, seen from the first artifact to the second.
const (
	Added    Change = "added"    // only the second has it
	Removed  Change = "removed"  // only the first has it
	Retyped  Change = "retyped"  // another type
	Reshaped Change = "reshaped" // the same type, another shape
	Changed  Change = "changed"  // other bytes
)

// A TensorChange is a tensor by which two artifacts differ.
type TensorChange struct {
	Name   string
	Change Change
	A, B   *Tensor // nil where there is none
	// Slabs are the indexes of the slabs that differ in a changed tensor, when both pins
	// have its slabs.
	Slabs []int
}

// CompareTensors returns the tensors by which b differs from a: those of a in its order,
// then those that only b has. Names, types, shapes without outer dims of 1, and data
// count; order, sharding and metadata do not. There are none when the weights digests are
// equal and both pins say the same of every expert, as pins of one artifact do.
func CompareTensors(a, b *Pin) []TensorChange {
	return slices.Collect(TensorChanges(a, b))
}

// TensorChanges yields what CompareTensors returns: there can be very many.
func TensorChanges(a, b *Pin) iter.Seq[TensorChange] {
	return func(yield func(TensorChange) bool) {
		inB := places(b)
		inBoth := make([]bool, len(b.Tensors)) // of b's
		for i := range a.Tensors {
			t := &a.Tensors[i]
			var other *Tensor
			if place, there := inB[t.Name]; there {
				inBoth[place], other = true, &b.Tensors[place]
			}
			c := compareTensor(t, other)
			if c == "" {
				continue
			}
			change := TensorChange{Name: t.Name, Change: c, A: t, B: other}
			if c == Changed {
				change.Slabs = differingSlabs(change.A, change.B)
			}
			if !yield(change) {
				return
			}
		}
		for i := range b.Tensors {
			if t := &b.Tensors[i]; !inBoth[i] && !yield(TensorChange{Name: t.Name, Change: Added, B: t}) {
				return
			}
		}
	}
}

// places returns the index of each tensor by its name. One table for two pins is enough to
// compare them, and there can be very many tensors.
func places(p *Pin) map[string]int32 {
	m := make(map[string]int32, len(p.Tensors))
	for i := range p.Tensors {
		m[p.Tensors[i].Name] = int32(i)
	}
	return m
}

// ByName returns the tensors of a pin by their names.
func ByName(p *Pin) map[string]*Tensor {
	m := make(map[string]*Tensor, len(p.Tensors))
	for i := range p.Tensors {
		m[p.Tensors[i].Name] = &p.Tensors[i]
	}
	return m
}

// compareTensor returns "" for tensors that are the same.
func compareTensor(a, b *Tensor) Change {
	switch {
	case b == nil:
		return Removed
	case a.Type != b.Type:
		return Retyped
	case !sameShape(a.Shape, b.Shape):
		return Reshaped
	case a.BLAKE3 != b.BLAKE3 || len(differingSlabs(a, b)) > 0 || otherOrder(a, b):
		return Changed
	}
	return ""
}

// sameShape compares shapes without outer dims of 1.
func sameShape(a, b []uint64) bool {
	return slices.Equal(gguf.CanonicalShape(a), gguf.CanonicalShape(b))
}

// OtherDims lists the tensors of a that b has of the same shape, but for stored dims of 1
// at its outer end, which identity leaves out.
func OtherDims(a, b *Pin) []string {
	var names []string
	inB := ByName(b)
	for _, t := range a.Tensors {
		if other := inB[t.Name]; other != nil && len(t.Shape) != len(other.Shape) && sameShape(t.Shape, other.Shape) {
			names = append(names, t.Name)
		}
	}
	return names
}

// differingSlabs lists the slabs in which tensors of one shape differ, as far as both have
// some.
func differingSlabs(a, b *Tensor) []int {
	if a.Slabs == nil || b.Slabs == nil || a.Slabs.Count != b.Slabs.Count {
		return nil
	}
	var list []int
	for i := range a.Slabs.Count {
		if !bytes.Equal(a.Slabs.At(i), b.Slabs.At(i)) {
			list = append(list, i)
		}
	}
	return list
}

// otherOrder reports whether tables of ids go with another order of experts.
func otherOrder(a, b *Tensor) bool {
	return a.IDs != nil && b.IDs != nil && len(a.IDs.Nearest) > 0 && len(b.IDs.Nearest) > 0 && !bytes.Equal(a.IDs.Nearest, b.IDs.Nearest)
}

// SameKeyOrder reports whether the keys other than split.* that both have stand in the
// same order.
func SameKeyOrder(a, b *gguf.Metadata) bool {
	next, stop := iter.Pull(commonKeys(b, a))
	defer stop()
	for key := range commonKeys(a, b) {
		if other, _ := next(); other != key {
			return false
		}
	}
	return true
}

// commonKeys yields the keys of md, other than split.*, that the other has too.
func commonKeys(md, other *gguf.Metadata) iter.Seq[string] {
	return func(yield func(string) bool) {
		for key := range md.All() {
			if _, ok := other.Get(key); ok && !isSplitKey(key) && !yield(key) {
				return
			}
		}
	}
}

// SameOrder reports whether the tensors that both artifacts have stand in the same order.
func SameOrder(a, b *Pin) bool {
	inB, last := places(b), int32(-1)
	for _, t := range a.Tensors {
		place, there := inB[t.Name]
		if there && place < last {
			return false
		}
		if there {
			last = place
		}
	}
	return true
}

// A KeyChange is a metadata key by which two artifacts differ.
type KeyChange struct {
	Key    string
	Change Change          // not [Reshaped]
	A, B   gguf.Value      // the zero Value where there is none
	Where  gguf.Difference // of a changed key
}

// CompareMetadata yields the keys other than split.* by which b differs from a: those of
// a in its order, then those that only b has. Types and values count, order and byte
// order do not. It reads long values from their files, and ends with an error when one
// cannot be read.
func CompareMetadata(a, b *gguf.Metadata) iter.Seq2[KeyChange, error] {
	return compareKeys(a, b, func(key string) bool { return !isSplitKey(key) })
}

// CompareSplitKeys is [CompareMetadata] for the keys that begin with "split.".
func CompareSplitKeys(a, b *gguf.Metadata) iter.Seq2[KeyChange, error] {
	return compareKeys(a, b, isSplitKey)
}

func compareKeys(a, b *gguf.Metadata, counts func(key string) bool) iter.Seq2[KeyChange, error] {
	return func(yield func(KeyChange, error) bool) {
		for key, value := range a.All() {
			if !counts(key) {
				continue
			}
			c, err := compareKey(key, value, b)
			if (c.Change != "" || err != nil) && !yield(c, err) || err != nil {
				return
			}
		}
		for key, value := range b.All() {
			if _, ok := a.Get(key); ok || !counts(key) {
				continue
			}
			if !yield(KeyChange{Key: key, Change: Added, B: value}, nil) {
				return
			}
		}
	}
}

// compareKey returns no change where b has the same value.
func compareKey(key string, value gguf.Value, b *gguf.Metadata) (KeyChange, error) {
	c := KeyChange{Key: key, A: value}
	var ok bool
	if c.B, ok = b.Get(key); !ok {
		c.Change = Removed
		return c, nil
	}
	if value.TypeName() != c.B.TypeName() {
		c.Change = Retyped
		return c, nil
	}
	var err error
	if c.Where, err = gguf.Compare(value, c.B); err != nil {
		return c, fmt.Errorf("key %q: %w", key, err)
	}
	if !c.Where.Same() {
		c.Change = Changed
	}
	return c, nil
}
