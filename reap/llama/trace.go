package llama

import (
	"encoding/binary"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
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
	nb  [4]uint64
	op  int32
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
	op      func(op int32) string
	ops     map[int32]string // what op answered
	bytes   func(t *tensor) uint64
	get     func(t *tensor, data *byte, offset, size uint64)
	proc    func(reg uintptr, name string) uintptr
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

// Op returns the operation that makes the tensor, as ggml calls it: "MUL_MAT_ID", "NONE" for
// a weight or an input.
func (n Node) Op() string {
	name, known := ggml.ops[n.tensor.op]
	if !known {
		name = ggml.op(n.tensor.op)
		ggml.ops[n.tensor.op] = name
	}
	return name
}

// Is reports whether both are the same tensor.
func (n Node) Is(other Node) bool { return n.tensor != nil && n.tensor == other.tensor }

// F32 reports whether the tensor holds float32 numbers in rows without gaps.
func (n Node) F32() bool { return n.tensor.typ == typeF32 && n.tensor.nb[0] == 4 }

// Rows copies rows of an F32 tensor, counted through its outer dimensions, from the one
// numbered first on, as many as fit into to. Rows of a tensor with gaps between them are
// copied one by one.
func (n Node) Rows(to []float32, first int) error {
	t := n.tensor
	width := int(t.ne[0])
	switch {
	case !n.F32():
		return fmt.Errorf("tensor %q: ggml type %d, want rows of %d (F32)", n.Name(), t.typ, typeF32)
	case len(to)%width != 0 || first+len(to)/width > int(t.ne[1]*t.ne[2]*t.ne[3]):
		return fmt.Errorf("tensor %q: rows beyond its shape %v", n.Name(), t.ne)
	case len(to) == 0:
		return nil
	}
	row := uint64(4 * width)
	if t.nb[1] == row && t.nb[2] == t.nb[1]*uint64(t.ne[1]) && t.nb[3] == t.nb[2]*uint64(t.ne[2]) {
		ggml.get(t, (*byte)(unsafe.Pointer(&to[0])), uint64(first)*row, uint64(4*len(to)))
		return nil
	}
	for ; len(to) > 0; first, to = first+1, to[width:] {
		ggml.get(t, (*byte)(unsafe.Pointer(&to[0])), n.offset(first), row)
	}
	return nil
}

// offset returns where a row begins.
func (n Node) offset(row int) uint64 {
	t := n.tensor
	i := int64(row)
	return uint64(i%t.ne[1])*t.nb[1] + uint64(i/t.ne[1]%t.ne[2])*t.nb[2] + uint64(i/t.ne[1]/t.ne[2])*t.nb[3]
}

// Int32Rows returns the numbers of an I32 tensor, which may have gaps between its rows.
func (n Node) Int32Rows() ([]int32, error) {
	t := n.tensor
	width, rows := int(t.ne[0]), int(t.ne[1]*t.ne[2]*t.ne[3])
	if t.typ != typeI32 || t.nb[0] != 4 {
		return nil, fmt.Errorf("tensor %q: ggml type %d, want rows of %d (I32)", n.Name(), t.typ, typeI32)
	}
	list := make([]int32, width*rows)
	for row := range rows {
		ggml.get(t, (*byte)(unsafe.Pointer(&list[row*width])), n.offset(row), uint64(4*width))
	}
	return list, nil
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

// An Observer looks on while a model computes.
type Observer struct {
	// Wanted is asked of every operation before it is done.
	Wanted func(Node) bool
	// Computed is called with those that were wanted, when the result and the operands are
	// in memory. A panic in either function is an error of the computation.
	Computed func(Node)
	// Calls, where it is not nil, counts the questions: it moves while the model computes.
	Calls *atomic.Uint64
}

// tracing holds the observer of the computation that is under way; there is one at a time.
var tracing struct {
	sync.Mutex
	observer Observer
	failed   any // what a function of the observer panicked with
}

// Trace computes as [Model.Logits] does and shows the computation to the two functions of an
// [Observer].
func (m *Model) Trace(tokens []int, wanted func(Node) bool, computed func(Node)) ([][]float32, error) {
	var logits [][]float32
	err := observed(Observer{Wanted: wanted, Computed: computed}, func() (err error) {
		logits, err = m.logits(tokens, ggml.observe)
		return err
	})
	return logits, err
}

// observed computes with an observer.
func observed(o Observer, compute func() error) error {
	if err := bindGGML(); err != nil {
		return err
	}
	tracing.Lock()
	defer tracing.Unlock()
	tracing.observer, tracing.failed = o, nil
	err := compute()
	if tracing.failed != nil {
		return fmt.Errorf("looking at the computation: %v", tracing.failed)
	}
	return err
}

// bindGGML looks the functions up in the library that is loaded already.
func bindGGML() error {
	ggml.once.Do(func() {
		lib, err := engine.shared("libggml-base")
		if err != nil {
			ggml.err = err
			return
		}
		ggml.ops = map[int32]string{}
		purego.RegisterLibFunc(&ggml.name, lib, "ggml_get_name")
		purego.RegisterLibFunc(&ggml.op, lib, "ggml_op_name")
		purego.RegisterLibFunc(&ggml.bytes, lib, "ggml_nbytes")
		purego.RegisterLibFunc(&ggml.get, lib, "ggml_backend_tensor_get")
		purego.RegisterLibFunc(&ggml.proc, lib, "ggml_backend_reg_get_proc_address")
		ggml.observe = purego.NewCallback(observe)
	})
	return ggml.err
}

// observe is ggml_backend_sched_eval_callback. To the question whether it wants to see a
// tensor the answer is 0 or 1; after the computation 1 lets it go on. A Go panic must not
// cross the library.
func observe(t *tensor, ask bool, _ unsafe.Pointer) (answer uintptr) {
	defer func() {
		if r := recover(); r != nil {
			tracing.failed, answer = r, 0
		}
	}()
	switch n := (Node{t}); {
	case tracing.failed != nil:
		return 0
	case !ask:
		tracing.observer.Computed(n)
	default:
		if tracing.observer.Calls != nil {
			tracing.observer.Calls.Add(1)
		}
		if !tracing.observer.Wanted(n) {
			return 0
		}
	}
	return 1
}
