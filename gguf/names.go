package gguf

import "hash/maphash"

// A nameIndex is a list of tensors that finds them by name. Every open fills one, so
// it is leaner than a map: it holds no pointers of its own, and a name that is not
// there yet, as nearly all are, costs one look at memory.
type nameIndex struct {
	list  []*Tensor
	seed  maphash.Seed
	slots []uint64 // half a hash above a place in list plus one; 0 when empty
	used  int
}

// newNameIndex returns an index with room for n tensors.
func newNameIndex(n int64) nameIndex {
	size := 64
	for int64(size) < 2*n {
		size *= 2
	}
	return nameIndex{list: make([]*Tensor, 0, n), seed: maphash.MakeSeed(), slots: make([]uint64, size)}
}

// add appends a tensor. It returns the place of the first one with the same name, or
// -1 when there is none.
func (x *nameIndex) add(t *Tensor) int {
	if 2*x.used > len(x.slots) {
		x.grow()
	}
	x.list = append(x.list, t)
	slot, hash, first := x.look(t.Name)
	if first < 0 {
		x.slots[slot] = hash<<32 | uint64(len(x.list))
		x.used++
	}
	return first
}

// find returns the first tensor of that name, or nil.
func (x *nameIndex) find(name string) *Tensor {
	if x.used == 0 {
		return nil
	}
	if _, _, place := x.look(name); place >= 0 {
		return x.list[place]
	}
	return nil
}

// look returns the slot where a name stands, or should, half its hash, and its place in
// the list or -1.
func (x *nameIndex) look(name string) (slot int, hash uint64, place int) {
	hash = maphash.String(x.seed, name) >> 32
	mask := uint64(len(x.slots) - 1)
	at := hash & mask
	for ; x.slots[at] != 0; at = (at + 1) & mask {
		entry := x.slots[at]
		if place = int(uint32(entry)) - 1; entry>>32 == hash && x.list[place].Name == name {
			return int(at), hash, place
		}
	}
	return int(at), hash, -1
}

// grow quadruples the slots.
func (x *nameIndex) grow() {
	old := x.slots
	x.slots = make([]uint64, 4*len(old))
	mask := uint64(len(x.slots) - 1)
	for _, entry := range old {
		if entry == 0 {
			continue
		}
		at := entry >> 32 & mask
		for x.slots[at] != 0 {
			at = (at + 1) & mask
		}
		x.slots[at] = entry
	}
}
