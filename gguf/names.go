package gguf

import "hash/maphash"

// A nameIndex is a list of tensors that finds them by name. Every open fills one, so
// it is leaner than a map: nearly all names are not there yet, and finding that out
// takes one look at a byte of a small array.
type nameIndex struct {
	list   []*Tensor
	hashes []uint32 // of the names in list
	marks  []uint8  // a slot each: some bits of a hash, 0 when empty
	places []uint32 // a slot each: a place in list
	used   int      // slots
}

// nameSeed is that of all indexes, so that hashes of one serve in another.
var nameSeed = maphash.MakeSeed()

func hashName(name string) uint32 { return uint32(maphash.String(nameSeed, name) >> 32) }

// newNameIndex returns an index with room for n tensors.
func newNameIndex(n int64) nameIndex {
	slots := 64
	for 3*int64(slots) < 4*n {
		slots *= 2
	}
	x := nameIndex{list: make([]*Tensor, 0, n), hashes: make([]uint32, 0, n)}
	x.makeSlots(slots)
	return x
}

func (x *nameIndex) makeSlots(n int) { x.marks, x.places = make([]uint8, n), make([]uint32, n) }

// add appends a tensor. It returns the place of the first one with the same name, or
// -1 when there is none.
func (x *nameIndex) add(t *Tensor) int { return x.addHashed(t, hashName(t.Name)) }

// addHashed is add for a name whose hash is known.
func (x *nameIndex) addHashed(t *Tensor, hash uint32) int {
	if 4*x.used >= 3*len(x.marks) {
		x.grow()
	}
	slot, first := x.look(t.Name, hash)
	if first < 0 {
		x.fill(slot, len(x.list), hash)
	}
	x.list, x.hashes = append(x.list, t), append(x.hashes, hash)
	return first
}

// find returns the first tensor of that name, or nil.
func (x *nameIndex) find(name string) *Tensor {
	if x.used == 0 {
		return nil
	}
	if _, place := x.look(name, hashName(name)); place >= 0 {
		return x.list[place]
	}
	return nil
}

// look returns the slot where a name stands, or should, and its place in the list or -1.
func (x *nameIndex) look(name string, hash uint32) (slot, place int) {
	last, mark := uint32(len(x.marks)-1), markOf(hash)
	for at := hash & last; ; at = (at + 1) & last {
		switch x.marks[at] {
		case 0:
			return int(at), -1
		case mark:
			if place = int(x.places[at]); x.hashes[place] == hash && x.list[place].Name == name {
				return int(at), place
			}
		}
	}
}

// fill takes an empty slot for a place in the list.
func (x *nameIndex) fill(slot, place int, hash uint32) {
	x.marks[slot], x.places[slot] = markOf(hash), uint32(place)
	x.used++
}

// markOf makes a mark of the bits of a hash that do not choose its slot, unless there
// are very many.
func markOf(hash uint32) uint8 { return 0x80 | uint8(hash>>25) }

// grow quadruples the slots.
func (x *nameIndex) grow() {
	x.makeSlots(4 * len(x.marks))
	x.used = 0
	for place, hash := range x.hashes {
		if slot, first := x.look(x.list[place].Name, hash); first < 0 {
			x.fill(slot, place, hash)
		}
	}
}
