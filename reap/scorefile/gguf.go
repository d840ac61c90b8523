package scorefile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"

	"ggufreap/gguf"
	"ggufreap/gguf/jsondoc"
	"ggufreap/gguf/pattern"
	"ggufreap/reap"
)

// readGGUF reads the scores that are stored as GGUF tensors.
func readGGUF(r io.ReaderAt, size int64, e *reap.Experts) (*Measurements, error) {
	f, err := gguf.NewFile("scores", r, size)
	if err != nil {
		return nil, err
	}
	model, err := gguf.NewModel("scores", f)
	if err == nil {
		err = model.Err()
	}
	if err != nil {
		return nil, err
	}
	t := &tensors{experts: e}
	var m *Measurements
	if model.Metadata().Text("general.type") == "imatrix" {
		m = t.readImatrix(model)
	} else {
		m = t.readSums(model)
	}
	if len(m.Layers) == 0 && t.faults == nil {
		return nil, errors.New("a GGUF file without scores of routed experts: neither an imatrix that has seen any nor saliency sums")
	}
	if t.faults == nil {
		m.check(e, &t.faults)
	}
	return m, t.faults.Err()
}

// tensors are the scores in a GGUF file while they are being read.
type tensors struct {
	experts *reap.Experts
	faults  reap.Faults
}

// The names of the tensors that hold scores.
var (
	imatrixName = pattern.Lazy(`^blk\.([0-9]+)\.ffn_(down|up|gate|gate_up)_exps\.weight\.(counts|in_sum2)$`)
	sumName     = pattern.Lazy(`^reap\.(s_sum|count)\.blk\.([0-9]+)$`)
)

// readImatrix reads an importance matrix of llama-imatrix. For each matrix W it has
// W.counts, the tokens by expert, and W.in_sum2, the squares of what enters W, summed over
// tokens, by input and expert. Projections of one block see the same tokens.
func (t *tensors) readImatrix(model *gguf.Model) *Measurements {
	m := &Measurements{Format: "imatrix GGUF", Layers: map[int]*Layer{}}
	for _, tensor := range model.Tensors() {
		name := imatrixName().FindStringSubmatch(tensor.Name)
		if name == nil {
			continue
		}
		down := name[2] == "down"
		l := t.layer(m, name[1])
		switch {
		case l == nil:
		case name[3] == "counts" && (down || l.Count == nil):
			l.Count = t.perExpert(tensor)
		case name[3] == "in_sum2" && down:
			l.Energy = t.perExpert(tensor)
		}
	}
	return m
}

// readSums reads reap.s_sum.blk.N and reap.count.blk.N, one number for each expert.
func (t *tensors) readSums(model *gguf.Model) *Measurements {
	m := &Measurements{Format: "saliency GGUF", Layers: map[int]*Layer{}}
	for _, tensor := range model.Tensors() {
		name := sumName().FindStringSubmatch(tensor.Name)
		if name == nil {
			continue
		}
		l := t.layer(m, name[2])
		switch {
		case l == nil:
		case name[1] == "count":
			l.Count = t.perExpert(tensor)
		default:
			l.ReapSum = t.perExpert(tensor)
		}
	}
	return m
}

// layer returns the layer of a block number, nil for one that is not in plain decimal and
// where there are too many.
func (t *tensors) layer(m *Measurements, digits string) *Layer {
	block, ok := jsondoc.Decimal(digits)
	if !ok {
		return nil
	}
	l := m.Layers[block]
	switch {
	case l != nil:
	case len(m.Layers) == maxBlocks:
		t.faults.Add("", "scores of more than %d layers", maxBlocks)
	default:
		l = &Layer{}
		m.Layers[block] = l
	}
	return l
}

// perExpert sums the elements of a tensor for each expert, in order. Its last dim is the
// experts'.
func (t *tensors) perExpert(tensor *gguf.Tensor) []float64 {
	where := fmt.Sprintf("tensor %q", tensor.Name)
	dims := len(tensor.Shape)
	if tensor.Type != gguf.F32 || dims == 0 || tensor.Shape[dims-1] != uint64(t.experts.Count) {
		t.faults.Add(where, "type %s and shape %v, want F32 with %d, the number of experts, as the last dim", tensor.Type, tensor.Shape, t.experts.Count)
		return nil
	}
	if tensor.Elements() == 0 { // and so none in the file to take memory for
		t.faults.Add(where, "shape %v has no elements", tensor.Shape)
		return nil
	}
	in := bufio.NewReaderSize(tensor.Reader(), 1<<16)
	order := tensor.File().Order
	sums := make([]float64, t.experts.Count)
	width := tensor.Elements() / uint64(t.experts.Count)
	var element [4]byte
	for expert := range sums {
		for range width {
			if _, err := io.ReadFull(in, element[:]); err != nil {
				t.faults.Add(where, "%v", err)
				return nil
			}
			sums[expert] += float64(math.Float32frombits(order.Uint32(element[:])))
		}
	}
	return sums
}
