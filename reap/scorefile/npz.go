package scorefile

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"ggufreap/reap"
)

// readZip reads an npz archive, and refuses the other kind of zip that scores come in.
func readZip(r io.ReaderAt, size int64, e *reap.Experts) (*Measurements, error) {
	n, err := openNPZ(r, size, e)
	if err != nil {
		return nil, err
	}
	m := n.read()
	if len(n.faults) == 0 {
		m.check(e, &n.faults)
	}
	return m, n.faults.Err()
}

// ShapeOfNPZ returns what an npz archive says of its model: the number of experts, how many are
// used for a token (1 where it does not say) and the layers. It is nil for any other file.
func ShapeOfNPZ(r io.ReaderAt, size int64) *reap.Experts {
	n, err := openNPZ(r, size, nil)
	if err != nil || n.members["moe_layers"] == nil {
		return nil
	}
	saliency, layers := n.array("saliency", maxArrayElements), n.array("moe_layers", maxBlocks)
	used := n.number("top_k")
	if n.faults != nil || len(saliency.shape) != 2 {
		return nil
	}
	blocks, err := layers.whole()
	if err != nil {
		return nil
	}
	e := &reap.Experts{Count: saliency.shape[1], Used: max(used, 1), Groups: 1, GroupsUsed: 1}
	for _, block := range blocks {
		e.Layers = append(e.Layers, &reap.Layer{Block: block})
	}
	return e
}

// openNPZ finds the members of an npz archive.
func openNPZ(r io.ReaderAt, size int64, e *reap.Experts) (*npz, error) {
	z, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("zip: %w", err)
	}
	n := &npz{experts: e, members: map[string]*zip.File{}, left: maxNumbers(size)}
	for _, f := range z.File {
		if strings.HasSuffix(f.Name, "data.pkl") {
			return nil, errPickle
		}
		name, isArray := strings.CutSuffix(f.Name, ".npy")
		if !isArray {
			continue
		}
		if n.members[name] != nil {
			return nil, fmt.Errorf("npz: member %q stands twice", f.Name)
		}
		n.members[name] = f
	}
	if n.members["saliency"] == nil || n.members["counts"] == nil {
		return nil, errors.New("npz: not a saliency file: members \"saliency\" and \"counts\" are needed")
	}
	return n, nil
}

// An npz is a saliency file of kimi-k3-mlx while it is being read. Rows of its arrays are
// blocks of the model, counted from 0, dense ones included.
type npz struct {
	experts *reap.Experts
	members map[string]*zip.File
	left    int // elements that may still be read
	faults  reap.Faults
}

// maxNumbers bounds the elements of all arrays of an archive together: 16 MiB in memory,
// or 16 bytes for each of the archive's. Zeros can be packed a thousandfold, but not what was
// measured: half of it are sums in float64.
func maxNumbers(size int64) int { return max(1<<21, 2*int(min(size, maxArrayElements))) }

// Bounds on what is read of any score file.
const (
	maxBlocks  = 1 << 12 // llama.cpp stops at 512
	maxSources = 64      // kinds of text
	maxInputs  = 1 << 12 // files that were measured on

	maxSettings = 64
)

func (n *npz) read() *Measurements {
	m := &Measurements{Format: "npz", Layers: map[int]*Layer{}}
	e := n.experts
	saliency := n.array("saliency", maxBlocks*e.Count)
	if n.faults != nil || !n.shaped("saliency", saliency, 2, e.Count) {
		return m
	}
	rows := saliency.shape[0]
	counts := n.array("counts", rows*e.Count)
	if n.faults != nil || !n.shaped("counts", counts, 2, rows, e.Count) {
		return m
	}
	n.same("num_experts", e.Count)
	n.same("top_k", e.Used)
	n.same("num_hidden_layers", rows)
	m.Tokens = n.number("n_tokens")
	blocks := n.blocks(rows)
	for _, block := range blocks {
		m.Layers[block] = &Layer{ReapSum: row(saliency, e, 0, block), Count: row(counts, e, 0, block)}
	}
	n.readFurther(m, blocks, rows)
	n.checkOthers(saliency, counts, blocks, rows)
	n.readSources(m, blocks, rows)
	return m
}

// row returns the scores of one block, of one source where the array has sources.
func row(a *array, e *reap.Experts, source, block int) []float64 {
	rows := a.shape[len(a.shape)-2]
	start := (source*rows + block) * e.Count
	return a.values[start : start+e.Count : start+e.Count]
}

// blocks returns the rows that are real: those that moe_layers lists, else those of the
// model's routed blocks.
func (n *npz) blocks(rows int) []int {
	blocks := n.experts.Blocks()
	if n.members["moe_layers"] != nil {
		a := n.array("moe_layers", rows)
		if a == nil {
			return nil
		}
		var err error
		if blocks, err = a.whole(); err != nil {
			n.fault("moe_layers", "%v", err)
		}
	}
	var real []int
	for _, block := range blocks {
		switch {
		case block >= rows:
			n.fault("moe_layers", "layer %d, but there are %d rows", block, rows)
		case slices.Contains(real, block):
			n.fault("moe_layers", "layer %d stands twice", block)
		default:
			real = append(real, block)
		}
	}
	return real
}

// readFurther reads what [Measurements.EncodeNPZ] adds to the community's members.
func (n *npz) readFurther(m *Measurements, blocks []int, rows int) {
	for _, member := range furtherMembers {
		if n.members[member.name] == nil {
			continue
		}
		a := n.array(member.name, rows*n.experts.Count)
		if n.faults != nil || !n.shaped(member.name, a, 2, rows, n.experts.Count) {
			return
		}
		for _, block := range blocks {
			*member.list(m.Layers[block]) = row(a, n.experts, 0, block)
		}
	}
	if n.members["engine"] != nil {
		if a := n.array("engine", 1); a != nil && len(a.texts) == 1 {
			m.Engine = a.texts[0]
		}
	}
}

// checkOthers wants the rows that are not real to be zero.
func (n *npz) checkOthers(saliency, counts *array, blocks []int, rows int) {
	for block := range rows {
		if slices.Contains(blocks, block) {
			continue
		}
		sum := slices.Max(row(saliency, n.experts, 0, block)) + slices.Max(row(counts, n.experts, 0, block))
		if sum != 0 {
			n.fault(fmt.Sprintf("layer %d", block), "has numbers, but is not one of the layers that were measured")
		}
	}
}

// readSources reads the sums by source label. With the one label "all" the arrays are
// there but hold zeros.
func (n *npz) readSources(m *Measurements, blocks []int, rows int) {
	if n.members["per_source"] == nil || n.faults != nil {
		return
	}
	labels := n.array("source_labels", maxSources)
	if labels == nil || len(labels.texts) < 2 {
		return
	}
	e, count := n.experts, len(labels.texts)
	if count > maxArrayElements/max(rows, 1)/e.Count {
		n.fault("source_labels", "%d labels, which take more than the %d numbers that are read", count, maxArrayElements)
		return
	}
	sums := n.array("per_source", count*rows*e.Count)
	counts := n.array("per_source_counts", count*rows*e.Count)
	if n.faults != nil || !n.shaped("per_source", sums, 3, count, rows, e.Count) || !n.shaped("per_source_counts", counts, 3, count, rows, e.Count) {
		return
	}
	for i, label := range labels.texts {
		s := Source{Label: label, Layers: map[int]*Layer{}}
		for _, block := range blocks {
			s.Layers[block] = &Layer{ReapSum: row(sums, e, i, block), Count: row(counts, e, i, block)}
		}
		m.Sources = append(m.Sources, s)
	}
	n.readSourceTokens(m)
}

func (n *npz) readSourceTokens(m *Measurements) {
	if n.members["source_tokens"] == nil {
		return
	}
	a := n.array("source_tokens", maxSources)
	if a == nil {
		return
	}
	tokens, err := a.whole()
	if err != nil || len(tokens) != len(m.Sources) {
		n.fault("source_tokens", "%d entries for %d labels (%v)", len(tokens), len(m.Sources), err)
		return
	}
	for i := range m.Sources {
		m.Sources[i].Tokens = tokens[i]
	}
}

// array reads a member; nil after a fault.
func (n *npz) array(name string, most int) *array {
	f := n.members[name]
	if f == nil {
		n.fault(name, "missing")
		return nil
	}
	r, err := f.Open()
	if err != nil {
		n.fault(name, "%v", err)
		return nil
	}
	defer r.Close()
	a, err := readArray(r, min(most, maxArrayElements, n.left))
	if err != nil {
		n.fault(name, "%v", err)
		return nil
	}
	n.left -= len(a.values)
	return a
}

// shaped wants an array of numbers to have so many dims, the last of them as given.
func (n *npz) shaped(name string, a *array, dims int, last ...int) bool {
	ok := len(a.shape) == dims && slices.Equal(a.shape[dims-len(last):], last) && a.texts == nil
	if !ok {
		n.fault(name, "shape %v, want %d dims that end in %v", a.shape, dims, last)
	}
	return ok
}

// number reads a member that is one whole number, 0 when there is none.
func (n *npz) number(name string) int {
	if n.members[name] == nil {
		return 0
	}
	a := n.array(name, 1)
	if a == nil {
		return 0
	}
	list, err := a.whole()
	if err != nil || len(list) != 1 {
		n.fault(name, "want one whole number")
		return 0
	}
	return list[0]
}

// same wants a member, where there is one, to be the given number.
func (n *npz) same(name string, want int) {
	if n.members[name] == nil {
		return
	}
	if got := n.number(name); got != want && n.faults == nil {
		n.fault(name, "%d, want %d", got, want)
	}
}

func (n *npz) fault(where, format string, args ...any) {
	n.faults.Add(where, format, args...)
}
