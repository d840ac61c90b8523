package reap

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

	"ggufreap/gguf"
)

// Experts says where a model keeps what belongs to its routed experts.
type Experts struct {
	Architecture string
	Count        int      // routed experts in each layer
	Used         int      // experts chosen for a token, the most of any layer; 0 when the metadata does not tell
	Shared       int      // experts that are always active; never pruned
	Groups       int      // routing groups, 1 when experts are not grouped
	GroupsUsed   int      // groups chosen for a token, 1 when experts are not grouped
	Gating       Gating   // 0 when the metadata does not tell
	Layers       []*Layer // the blocks that route, ascending

	// grouped says that the metadata states a group count, be it 1.
	grouped bool
	// used are the experts used in each block, when the metadata has a list.
	used []uint64

	// Notes are facts that the user should know and that stop nothing.
	Notes []string
}

// A Layer is one block of the model that routes.
type Layer struct {
	Block   int  // N of the tensor names "blk.N."
	Draft   bool // a next-token-prediction (MTP) block behind the trunk
	Tensors []*RoutedTensor
}

// A RoutedTensor holds one slab for each routed expert, or, for the [IDTable] role,
// the ids of routed experts.
type RoutedTensor struct {
	*gguf.Tensor
	Role      Role
	SlabBytes int64 // bytes of one expert; 0 for an id table
}

// Dims returns the shape in as many dims as the role has: dims of 1 at the outer end may be
// stored beyond those. A shape of more dims than that is returned as it is.
func (t *RoutedTensor) Dims() []uint64 {
	dims := slices.Clone(gguf.CanonicalShape(t.Shape))
	for len(dims) < roleDims[t.Role] {
		dims = append(dims, 1)
	}
	return dims
}

// withExperts returns the stored shape for another number of experts.
func (t *RoutedTensor) withExperts(count int) []uint64 {
	shape := slices.Clone(t.Shape)
	shape[roleDims[t.Role]-1] = uint64(count)
	return shape
}

// ErrDense says that a model has no routed experts.
var ErrDense = errors.New("the model has no routed experts, so there is nothing to prune")

// ReadExperts returns the expert map of a model that can be pruned. The error is
// [ErrDense] or the [Faults] that stand in the way. Tensors of unknown meaning that are
// named in copied are taken for ones that have nothing for each expert.
func ReadExperts(m *gguf.Model, copied ...string) (*Experts, error) {
	e, faults := FindExperts(m, copied...)
	if err := faults.Err(); err != nil {
		return nil, err
	}
	if e == nil {
		return nil, ErrDense
	}
	return e, nil
}

// FindExperts returns what can be told about the routed experts of a model, however
// odd, and the faults that keep it from being pruned. It returns nil for a model that
// has no tensor of a routed expert. copied is that of [ReadExperts].
func FindExperts(m *gguf.Model, copied ...string) (*Experts, Faults) {
	f := &finder{copied: copied, md: m.Metadata(), layers: map[int]*Layer{}, present: map[int]bool{}, kinds: map[string]namePlace{}}
	f.readMetadata()
	for _, t := range m.Tensors() {
		f.place(t)
	}
	if len(f.layers) == 0 && len(f.legacy) == 0 && len(f.faults) == 0 {
		return nil, nil
	}
	f.sortLayers()
	f.checkCounts()
	f.checkUnplaced()
	f.checkLayers()
	f.checkArchitecture()
	f.checkDraft()
	return &f.experts, append(f.faults, f.metadataFaults...)
}

// Layer returns the layer with the given block number, nil when it does not route.
func (e *Experts) Layer(block int) *Layer {
	i, found := slices.BinarySearchFunc(e.Layers, block, func(l *Layer, b int) int { return l.Block - b })
	if !found {
		return nil
	}
	return e.Layers[i]
}

// Blocks returns the block numbers of the layers, ascending.
func (e *Experts) Blocks() []int {
	blocks := make([]int, len(e.Layers))
	for i, l := range e.Layers {
		blocks[i] = l.Block
	}
	return blocks
}

// Tensors yields every routed tensor, layer by layer.
func (e *Experts) Tensors() iter.Seq2[*Layer, *RoutedTensor] {
	return func(yield func(*Layer, *RoutedTensor) bool) {
		for _, l := range e.Layers {
			for _, t := range l.Tensors {
				if !yield(l, t) {
					return
				}
			}
		}
	}
}

// Tensor returns the layer's tensor with the given role, or nil.
func (l *Layer) Tensor(role Role) *RoutedTensor {
	for _, t := range l.Tensors {
		if t.Role == role {
			return t
		}
	}
	return nil
}

// ExpertBytes returns the bytes that one expert takes in the layer.
func (l *Layer) ExpertBytes() int64 {
	var n int64
	for _, t := range l.Tensors {
		n += t.SlabBytes
	}
	return n
}

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

// UsedIn returns the experts that a block uses for a token: [Experts.Used], unless the
// metadata has a number for each block.
func (e *Experts) UsedIn(block int) int {
	switch {
	case e.used == nil:
		return e.Used
	case block < len(e.used):
		return int(min(e.used[block], math.MaxInt32))
	}
	return 0
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

// SplitBlock cuts "blk.7.ffn_norm.weight" into 7 and "ffn_norm.weight".
func SplitBlock(name string) (block int, rest string, ok bool) {
	name, ok = strings.CutPrefix(name, "blk.")
	if !ok {
		return 0, "", false
	}
	digits, rest, ok := strings.Cut(name, ".")
	if !ok {
		return 0, "", false
	}
	block, ok = parseID(digits)
	return block, rest, ok
}

// parseID reads a number in plain decimal: no sign, no leading zero, no spaces.
func parseID(s string) (int, bool) {
	if len(s) > 1 && s[0] == '0' {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 31)
	return int(n), err == nil
}

func tensorPlace(t *gguf.Tensor) string { return fmt.Sprintf("tensor %q", t.Name) }
