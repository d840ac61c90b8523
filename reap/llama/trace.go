package llama

import (
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
)

// A Node is a tensor of a computation: a result, an input or a weight. It is good for the
// time of the call that gave it out.
type Node struct{ tensor *tensor }

// tensor is the beginning of ggml_tensor (ggml.h).
type tensor struct {
	typ int32
	_   uintptr // buffer
	ne  [4]int64
	_   [4]uint64 // nb
	_   int32     // op
	_   [16]int32 // op_params
	_   int32     // flags
	src [10]*tensor
}

// Types of ggml that a node's numbers can be read of.
const (
	typeF32 = 0
	typeI32 = 26
)

// ggml holds the functions by which a trace looks at tensors.
var ggml struct {
	once    sync.Once
	err     error
	name    func(t *tensor) string
	bytes   func(t *tensor) uint64
	get     func(t *tensor, data *byte, offset, size uint64)
	observe uintptr // the callback that llama.cpp calls
}

// Name returns the tensor's name: that of the file for a weight, llama.cpp's own for a
// result, such as "ffn_moe_out-3".
func (n Node) Name() string { return ggml.name(n.tensor) }

// Shape returns the four dimensions, innermost first.
func (n Node) Shape() [4]int64 { return n.tensor.ne }

// Input returns what the i-th operand of a result is; none for the zero Node, which has
// no name.
func (n Node) Input(i int) (Node, bool) {
	in := Node{n.tensor.src[i]}
	return in, in.tensor != nil
}

// Float32s returns the numbers of an F32 tensor without gaps.
func (n Node) Float32s() ([]float32, error) {
	raw, err := n.raw(typeF32)
	if err != nil {
		return nil, err
	}
	list := make([]float32, len(raw)/4)
	for i := range list {
		list[i] = math.Float32frombits(binary.NativeEndian.Uint32(raw[4*i:]))
	}
	return list, nil
}

// Int32s returns the numbers of an I32 tensor without gaps.
func (n Node) Int32s() ([]int32, error) {
	raw, err := n.raw(typeI32)
	if err != nil {
		return nil, err
	}
	list := make([]int32, len(raw)/4)
	for i := range list {
		list[i] = int32(binary.NativeEndian.Uint32(raw[4*i:]))
	}
	return list, nil
}

func (n Node) raw(typ int32) ([]byte, error) {
	size := int64(4)
	for _, d := range n.tensor.ne {
		size *= d
	}
	if n.tensor.typ != typ {
		return nil, fmt.Errorf("tensor %q: ggml type %d, want %d", n.Name(), n.tensor.typ, typ)
	}
	if got := ggml.bytes(n.tensor); got != uint64(size) || size == 0 {
		return nil, fmt.Errorf("tensor %q: %d bytes in memory, want %d", n.Name(), got, size)
	}
	raw := make([]byte, size)
	ggml.get(n.tensor, &raw[0], 0, uint64(size))
	return raw, nil
}

// tracing holds the trace that is under way; there is one at a time.
var tracing struct {
	sync.Mutex
	wanted   func(Node) bool
	computed func(Node)
}

// Trace computes as [Model.Logits] does and shows the computation as it goes: wanted is
// asked of every operation before it is done, and computed is called with those that it
// accepted, when the result and the operands are in memory.
func (m *Model) Trace(tokens []int, wanted func(Node) bool, computed func(Node)) ([][]float32, error) {
	if err := bindGGML(); err != nil {
		return nil, err
	}
	tracing.Lock()
	defer tracing.Unlock()
	tracing.wanted, tracing.computed = wanted, computed
	return m.logits(tokens, ggml.observe)
}

// bindGGML looks the functions up in the library that is loaded already.
func bindGGML() error {
	ggml.once.Do(func() {
		lib, err := purego.Dlopen(filepath.Join(engine.dir, "libggml-base"+libraryExt()), purego.RTLD_NOW|purego.RTLD_GLOBAL)
		if err != nil {
			ggml.err = err
			return
		}
		purego.RegisterLibFunc(&ggml.name, lib, "ggml_get_name")
		purego.RegisterLibFunc(&ggml.bytes, lib, "ggml_nbytes")
		purego.RegisterLibFunc(&ggml.get, lib, "ggml_backend_tensor_get")
		ggml.observe = purego.NewCallback(observe)
	})
	return ggml.err
}

// observe is ggml_backend_sched_eval_callback. To the question whether it wants to see a
// tensor the answer is 0 or 1; after the computation 1 lets it go on.
func observe(t *tensor, ask bool, _ unsafe.Pointer) uintptr {
	switch n := (Node{t}); {
	case !ask:
		tracing.computed(n)
	case !tracing.wanted(n):
		return 0
	}
	return 1
}
