package reap

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ggufreap/gguf"
)

// checkCounts compares the last dimension of every routed tensor with the model's
// expert count, and sets the slab sizes where they agree.
func (f *finder) checkCounts() {
	e := &f.experts
	counts := f.layerCounts()
	if e.Count == 0 && len(counts) > 0 {
		e.Count = int(min(counts[0].count, maxExperts))
	}
	for _, l := range e.Layers {
		for _, t := range l.Tensors {
			f.checkTensor(l, t)
		}
	}
	for _, c := range counts {
		if c.count != uint64(e.Count) {
			f.faults.Add(layerList(c.blocks), "%d experts, but the model's expert count is %d; one count must hold for all layers", c.count, e.Count)
		}
	}
	if len(counts) == 0 {
		return
	}
	if e.Count < 2 {
		f.faults.Add(fmt.Sprintf("key %q", f.md.ArchKey("expert_count")), "%d routed experts, as in tensor %q, want at least 2 to choose from", e.Count, e.Layers[0].Tensors[0].Name)
	}
	if e.Count > maxExperts {
		f.faults.Add("", "%d routed experts, at most %d are supported", e.Count, maxExperts)
	}
	if e.Used > e.Count {
		f.faults.Add("", "%d experts used of %d", e.Used, e.Count)
	}
	if e.Used == 0 && len(f.metadataFaults) == 0 {
		f.faults.Add(fmt.Sprintf("key %q", f.md.ArchKey("expert_used_count")), "0, want at least 1")
	}
	f.checkGroups()
}

// maxExperts bounds memory and time where a file states a count that no model has;
// llama.cpp stops at 1024.
const maxExperts = 1 << 12

func (f *finder) checkGroups() {
	e := &f.experts
	if e.Groups == 1 {
		return
	}
	if e.Groups >= e.Count || e.Count%e.Groups != 0 {
		f.faults.Add("", "%d experts in %d groups: llama.cpp wants groups of equal size, and fewer groups than experts", e.Count, e.Groups)
	}
	if e.GroupsUsed < 1 || e.GroupsUsed >= e.Groups {
		f.faults.Add("", "%d groups used of %d: llama.cpp wants at least 1 and fewer than all", e.GroupsUsed, e.Groups)
	}
}

type layerCount struct {
	count  uint64
	blocks []int
}

// layerCounts groups the layers by the expert count of their stacked projections,
// the most frequent count first, then the greater.
func (f *finder) layerCounts() []layerCount {
	blocks := map[uint64][]int{}
	for _, l := range f.experts.Layers {
		for _, t := range l.Tensors {
			dims := t.Dims()
			if roleDims[t.Role] != 3 || len(dims) != 3 {
				continue
			}
			list := blocks[dims[2]]
			if len(list) == 0 || list[len(list)-1] != l.Block {
				blocks[dims[2]] = append(list, l.Block)
			}
		}
	}
	var counts []layerCount
	for n, list := range blocks {
		counts = append(counts, layerCount{n, list})
	}
	slices.SortFunc(counts, func(a, b layerCount) int {
		return cmp.Or(cmp.Compare(len(b.blocks), len(a.blocks)), cmp.Compare(b.count, a.count))
	})
	return counts
}

// stacks reports whether the projections of a layer have so many experts: then it is the key that
// is wrong.
func (l *Layer) stacks(experts uint64) bool {
	return slices.ContainsFunc(l.Tensors, func(t *RoutedTensor) bool {
		dims := t.Dims()
		return roleDims[t.Role] == 3 && len(dims) == 3 && dims[2] == experts
	})
}

// checkTensor checks the shape of one routed tensor and finds its slab size.
func (f *finder) checkTensor(l *Layer, t *RoutedTensor) {
	where := tensorPlace(t.Tensor)
	dims := t.Dims()
	if len(dims) != roleDims[t.Role] {
		f.faults.Add(where, "%d dims, want %d", len(dims), roleDims[t.Role])
		return
	}
	if t.Role == IDTable {
		f.checkTable(l.Block, t)
		return
	}
	count := uint64(f.experts.Count)
	if rows := dims[len(dims)-1]; rows != count {
		switch {
		case t.Role == Router && rows > count && !l.stacks(rows):
			f.faults.Add(where, "%d rows for %d experts: rows of shared experts follow (as in Inkling), which needs an order of its own; not supported", rows, count)
		case roleDims[t.Role] != 3: // the projections are reported by layer
			f.faults.Add(where, "last dimension is %d, want %d, the expert count", rows, count)
		}
		return
	}
	if count == 0 {
		return // reported once, by the key
	}
	size, err := routedSize(t)
	if err != nil {
		f.faults.Add(where, "%v", err)
		return
	}
	if size == 0 { // a file could list more experts than it has bytes
		f.faults.Add(where, "shape %v has no elements", t.Shape)
		return
	}
	t.SlabBytes = size / int64(count)
}

// maxTableRow bounds the memory of replacing ids, which grows with experts and ids of a row.
const maxTableRow = 32

func (f *finder) checkTable(block int, t *RoutedTensor) {
	if t.Type != gguf.I32 {
		f.faults.Add(tensorPlace(t.Tensor), "type %s, want I32", t.Type)
	}
	used, count, row := uint64(f.experts.UsedIn(block)), uint64(f.experts.Count), t.Dims()[0]
	switch {
	case used != 0 && row != used:
		f.faults.Add(tensorPlace(t.Tensor), "rows of %d ids, want %d, the experts used", row, used)
	case row == 0 || row > count:
		f.faults.Add(tensorPlace(t.Tensor), "rows of %d ids, want 1 to %d, the expert count: the ids of a token differ", row, count)
	case row > maxTableRow:
		f.faults.Add(tensorPlace(t.Tensor), "rows of %d ids, at most %d are supported", row, maxTableRow)
	}
}

// routedSize returns the bytes of a routed tensor without padding. It is a multiple
// of the rows, so slabs can be cut.
func routedSize(t *RoutedTensor) (int64, error) {
	info, known := t.Type.Info()
	if len(t.Dims()) == 1 && (!known || info.Elements != 1) {
		return 0, fmt.Errorf("type %s stores experts in blocks, which cannot be cut", t.Type)
	}
	if !t.Opaque {
		return t.Size, nil
	}
	if known {
		return 0, fmt.Errorf("type %s: rows of %d elements are not whole blocks of %d", t.Type, t.Shape[0], info.Elements)
	}
	return opaqueSize(t.Tensor)
}

// opaqueSize finds the size of a tensor whose type is not known. Only its span is
// given, and the span ends in less than one alignment of padding; the size is certain
// when exactly one number of whole bytes for each row fits.
func opaqueSize(t *gguf.Tensor) (int64, error) {
	rows := uint64(1) // at most the elements, which were counted without overflow
	for _, d := range t.Shape[1:] {
		rows *= d
	}
	span, alignment := uint64(t.Size), uint64(t.File().Alignment)
	if rows == 0 || span < rows {
		return 0, fmt.Errorf("type %s: %d bytes for %d rows", t.Type, span, rows)
	}
	size := span - span%rows
	if span-size >= alignment {
		return 0, fmt.Errorf("type %s is not known, and its %d bytes do not divide into %d rows", t.Type, span, rows)
	}
	if size >= rows && span-(size-rows) < alignment {
		return 0, fmt.Errorf("type %s is not known, and its %d bytes can hold more than one length of %d rows", t.Type, span, rows)
	}
	return int64(size), nil
}

// checkUnplaced looks at the tensors that no rule places: one that could belong to
// experts must not be copied unchanged, unless it is named as to be copied.
func (f *finder) checkUnplaced() {
	var chunked []int
	for _, block := range slices.Sorted(maps.Keys(f.others)) {
		_, routes := f.layers[block]
		for _, t := range f.others[block] {
			_, name, _ := SplitBlock(t.Name)
			switch {
			case strings.Contains(name, "_chexps."):
				if len(chunked) == 0 || chunked[len(chunked)-1] != block {
					chunked = append(chunked, block)
				}
			case strings.Contains(name, "_exps"):
				f.faults.Add(tensorPlace(t), "unknown tensor of routed experts")
			case routes:
				f.checkUnknown(t)
			}
		}
	}
	if len(f.layers) > 0 {
		for _, t := range f.outside {
			f.checkUnknown(t)
		}
	}
	if len(chunked) > 0 {
		f.faults.Add(layerList(chunked), "chunk experts (\"_chexps\", as in grovemoe): each is weighted by the probability of the routed expert with the chunk's number, and pruning changes which that is; not supported")
	}
	if blocks := slices.Sorted(maps.Keys(f.legacy)); len(blocks) > 0 {
		f.faults.Add(layerList(blocks), "one tensor for each expert (such as %q): an old layout that llama.cpp no longer loads; convert the model again", "blk.0.ffn_up.0.weight")
	}
}

// checkUnknown notes a tensor of unknown role that has as many rows, or entries in a row, as
// there are experts.
func (f *finder) checkUnknown(t *gguf.Tensor) {
	if i := slices.Index(t.Shape, uint64(f.experts.Count)); i >= 0 && f.experts.Count > 0 && !slices.Contains(f.copied, t.Name) {
		f.faults.Add(tensorPlace(t), "shape %v has the expert count, %d, and its role is not known", t.Shape, t.Shape[i])
	}
}
