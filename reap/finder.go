package reap

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"ggufreap/gguf"
)

// A finder collects the expert map of one model.
type finder struct {
	md      *gguf.Metadata
	experts Experts
	layers  map[int]*Layer
	present map[int]bool // draft blocks that have any tensor
	block   int          // that of the tensor before
	prefix  string       // what its name begins with
	kinds   map[string]namePlace
	// others are the tensors of each block that no rule places, and those outside of blocks.
	others  map[int][]*gguf.Tensor
	outside []*gguf.Tensor
	copied  []string // tensors that are not to be looked at
	// legacy holds the blocks with one tensor for each expert.
	legacy map[int]bool
	faults Faults
	// metadataFaults matter only when the model turns out to have routed experts.
	metadataFaults Faults
	draft          int // draft blocks that the metadata announces
	draftFrom      int // the first of them
	blockCount     int
	blocksKnown    bool // block_count is a number, or absent
}

// readMetadata takes the counts that the architecture's keys state.
func (f *finder) readMetadata() {
	e := &f.experts
	e.Groups, e.GroupsUsed, f.draftFrom = 1, 1, math.MaxInt
	if e.Architecture = f.md.Architecture(); e.Architecture == "" {
		f.metadataFaults.Add(fmt.Sprintf("key %q", gguf.KeyArchitecture), "names no architecture, so the counts of experts are not known")
		return
	}
	e.Count, _ = f.count("expert_count", true)
	f.readUsed()
	e.Shared, _ = f.count("expert_shared_count", false)
	groups, _ := f.count("expert_group_count", false)
	e.Groups, e.grouped = max(1, groups), groups > 0
	if e.Groups > 1 {
		e.GroupsUsed, _ = f.count("expert_group_used_count", true)
	}
	if stored, ok := f.count("expert_gating_func", false); ok {
		e.Gating = gatingOf(e.Architecture, uint64(stored))
	}
	f.blockCount, f.blocksKnown = f.count("block_count", false)
	f.draft, _ = f.count("nextn_predict_layers", false)
	if f.draft > 0 && f.blocksKnown {
		f.draftFrom = f.blockCount - f.draft
	}
}

// readUsed takes the experts used for a token: one number, or one for each block.
func (f *finder) readUsed() {
	v, _ := f.md.Arch("expert_used_count")
	list, ok := v.Uints()
	if !ok || v.Type() != gguf.Array || len(list) == 0 {
		f.experts.Used, _ = f.count("expert_used_count", true)
		return
	}
	f.experts.used = list
	f.experts.Used = int(min(slices.Max(list), math.MaxInt32))
}

// count reads a small number under the architecture, 0 when it is absent. It reports false,
// and notes a fault, when a required one is absent or one has another form.
func (f *finder) count(suffix string, required bool) (int, bool) {
	key := f.md.ArchKey(suffix)
	v, ok := f.md.Get(key)
	if !ok {
		if required {
			f.metadataFaults.Add(fmt.Sprintf("key %q", key), "absent")
		}
		return 0, !required
	}
	n, ok := v.Uint()
	if !ok || n > math.MaxInt32 {
		f.metadataFaults.Add(fmt.Sprintf("key %q", key), "%s, want one small number for the whole model", v.Describe())
		return 0, false
	}
	return int(n), true
}

// place sorts one tensor into its layer, by name only.
func (f *finder) place(t *gguf.Tensor) {
	block, name, ok := f.splitBlock(t.Name)
	if !ok {
		if strings.Contains(t.Name, "_exps.") {
			f.faults.Add(tensorPlace(t), "expert tensor outside a layer %q", "blk.N.")
		} else if !outsider(t.Name) {
			f.outside = append(f.outside, t)
		}
		return
	}
	switch place := f.kind(name); place.kind {
	case kindAdapter:
		f.faults.Add(tensorPlace(t), "an adapter of a routed tensor is not pruned: merge it or remove it first")
	case kindRouted:
		l := f.layer(block)
		switch other := l.Tensor(place.role); {
		case other == nil:
		case other.Name == t.Name:
			f.faults.Add(tensorPlace(t), "stands twice")
		default:
			f.faults.Add(tensorPlace(t), "same role as tensor %q", other.Name)
		}
		l.Tensors = append(l.Tensors, &RoutedTensor{Tensor: t, Role: place.role})
	case kindLegacy:
		if f.legacy == nil {
			f.legacy = map[int]bool{}
		}
		f.legacy[block] = true
	case kindUnplaced:
		if f.others == nil {
			f.others = map[int][]*gguf.Tensor{}
		}
		f.others[block] = append(f.others[block], t)
	}
}

// splitBlock is SplitBlock with a memory, and notes that the block is there: the tensors
// of a block mostly follow each other.
func (f *finder) splitBlock(name string) (block int, rest string, ok bool) {
	if f.prefix != "" && strings.HasPrefix(name, f.prefix) {
		return f.block, name[len(f.prefix):], true
	}
	if block, rest, ok = SplitBlock(name); ok {
		f.block, f.prefix = block, name[:len(name)-len(rest)]
		if block >= f.draftFrom {
			f.present[block] = true
		}
	}
	return block, rest, ok
}

// kind is kindOf with a memory: the layers of a model share a few names.
func (f *finder) kind(name string) namePlace {
	place, known := f.kinds[name]
	if !known {
		place = kindOf(name)
		if len(f.kinds) < maxKinds {
			f.kinds[name] = place
		}
	}
	return place
}

// maxKinds is far more than the names that the layers of a model share.
const maxKinds = 1024

func (f *finder) layer(block int) *Layer {
	l := f.layers[block]
	if l == nil {
		l = &Layer{Block: block, Draft: block >= f.draftFrom}
		f.layers[block] = l
	}
	return l
}

func (f *finder) sortLayers() {
	for _, l := range f.layers {
		f.experts.Layers = append(f.experts.Layers, l)
	}
	slices.SortFunc(f.experts.Layers, func(a, b *Layer) int { return a.Block - b.Block })
}
