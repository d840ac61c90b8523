package reap

import (
	"errors"
	"iter"
	"math"
	"slices"

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
