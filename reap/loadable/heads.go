package loadable

import "ggufreap/gguf"

// A headSize is the lengths of an attention head: of its key and its value, and what of the
// key is rotated.
type headSize struct{ key, value, rot uint64 }

// readHeads takes the sizes of heads, those of blocks with a sliding window too.
func (l *loader) readHeads() {
	if heads := l.heads(0); heads > 0 {
		l.full.key = l.numberOr("attention.key_length", l.E/heads)
		l.full.value = l.numberOr("attention.value_length", l.E/heads)
		l.full.rot = l.numberOr("rope.dimension_count", l.full.key)
	}
	l.sliding = headSize{
		key:   l.numberOr("attention.key_length_swa", l.full.key),
		value: l.numberOr("attention.value_length_swa", l.full.value),
		rot:   l.numberOr("rope.dimension_count_swa", l.full.rot),
	}
	l.slide(func(int) bool { return false })
}

// slide says which blocks have a sliding window. The first one's sizes are those that
// llama.cpp takes for all where it does not ask by block.
func (l *loader) slide(windowed func(block int) bool) {
	l.windowed = windowed
	first := l.head(0)
	l.keyLen, l.valueLen, l.rot = first.key, first.value, first.rot
}

// head returns the sizes of a block's heads.
func (l *loader) head(block int) headSize {
	if l.windowed(block) {
		return l.sliding
	}
	return l.full
}

// q, k and v return what a block's heads make together.
func (l *loader) q(block int) uint64 { return l.head(block).key * l.heads(block) }
func (l *loader) k(block int) uint64 { return l.head(block).key * l.kv(block) }
func (l *loader) v(block int) uint64 { return l.head(block).value * l.kv(block) }

const windowPattern = "attention.sliding_window_pattern"

// slideEvery gives all blocks of the trunk a sliding window but the last one of every few, or
// the first one: of as many as usual or as the metadata states, which may list the blocks too.
func (l *loader) slideEvery(usual uint64, fullFirst bool) {
	if l.value(windowPattern).Type() == gguf.Array {
		l.slideListed()
		return
	}
	period, full := l.keyOr(windowPattern, usual), uint64(0)
	if !fullFirst {
		full = period - 1
	}
	l.slide(func(block int) bool {
		return block < l.trunk && (period == 0 || uint64(block)%period != full)
	})
}

// slideListed gives those blocks a sliding window that a list in the metadata names. It may be
// shorter or longer than the model.
func (l *loader) slideListed() {
	v := l.value(windowPattern)
	if place := l.keyPlace(l.md.ArchKey(windowPattern)); v.Type() != gguf.Array {
		l.refuse(place, "is no list, llama.cpp does not load %s without one", l.arch)
		l.stopped = true
	} else if v.Len() > maxBlocks {
		l.refuse(place, "has %s, llama.cpp takes %d at most", entries(v.Len()), maxBlocks)
		l.stopped = true
	} else {
		l.checkList(windowPattern, gguf.Uint32, int(v.Len()))
	}
	each := l.perBlock(windowPattern)
	l.slide(func(block int) bool { return each(block) != 0 })
}

// hasWindow reads the length of the sliding window, and reports whether there is one.
func (l *loader) hasWindow() bool { return l.keyOr("attention.sliding_window", 0) > 0 }

// mayWindow is slideEvery for an architecture that also loads without a sliding window.
func (l *loader) mayWindow(usual uint64, fullFirst bool) {
	if l.hasWindow() {
		l.may(gguf.Float32, "rope.freq_base_swa")
		l.slideEvery(usual, fullFirst)
	}
}

// clamps reads the bounds of the gate of every block.
func (l *loader) clamps(blocks int) {
	l.checkList("swiglu_clamp_exp", gguf.Float32, blocks)
	l.checkList("swiglu_clamp_shexp", gguf.Float32, blocks)
}

const rotatedSections = "rope.dimension_sections"

// sections reads how many numbers of a head each of several rotations takes.
func (l *loader) sections() { l.checkList(rotatedSections, gguf.Int32, 4) }

// keyless reports whether a block has no heads for keys, which tells those with something else
// in the place of attention.
func (l *loader) keyless(block int) bool { return l.kv(block) == 0 }

// needAny wants a key of any type.
func (l *loader) needAny(suffix string) {
	if _, there := l.md.Arch(suffix); !there {
		l.refuse(l.keyPlace(l.md.ArchKey(suffix)), "is not there, llama.cpp does not load %s without it", l.arch)
	}
}
