package scorefile

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"ggufreap/reap"
)

// furtherMembers are arrays of blocks and experts beside saliency and counts, which are those
// of kimi-k3-mlx.
var furtherMembers = []struct {
	name string
	list func(*Layer) *[]float64
}{
	{"gate_sum", func(l *Layer) *[]float64 { return &l.GateSum }},
	{"norm_sum", func(l *Layer) *[]float64 { return &l.NormSum }},
	{"norm_max", func(l *Layer) *[]float64 { return &l.NormMax }},
	{"activation_energy", func(l *Layer) *[]float64 { return &l.Energy }},
}

// EncodeNPZ returns the measurements as an npz archive with the members of kimi-k3-mlx's
// saliency files, readable by numpy.load: saliency, which is the sum of g*|f|, and counts,
// both float64 of blocks times experts with rows of zeros for blocks that were not measured;
// n_tokens, moe_layers, num_experts, top_k and num_hidden_layers; per_source,
// per_source_counts, source_labels and source_tokens. Added are engine and, where they were
// measured, gate_sum, norm_sum, norm_max and activation_energy. blocks is the number of
// blocks of the model. Equal measurements give equal bytes.
func (m *Measurements) EncodeNPZ(e *reap.Experts, blocks int) ([]byte, error) {
	var b bytes.Buffer
	w := &npzWriter{zip: zip.NewWriter(&b), experts: e.Count, blocks: blocks}
	reapSum, count := func(l *Layer) *[]float64 { return &l.ReapSum }, func(l *Layer) *[]float64 { return &l.Count }
	w.floats("saliency", w.rows(m.Layers, reapSum), blocks, e.Count)
	w.floats("counts", w.rows(m.Layers, count), blocks, e.Count)
	w.integers("n_tokens", []int{m.Tokens})
	w.integers("moe_layers", m.Blocks(), len(m.Layers))
	w.integers("num_experts", []int{e.Count})
	w.integers("top_k", []int{e.Used})
	w.integers("num_hidden_layers", []int{blocks})
	var sums, counts []float64
	var labels []string
	var tokens []int
	for _, source := range m.Sources {
		sums = append(sums, w.rows(source.Layers, reapSum)...)
		counts = append(counts, w.rows(source.Layers, count)...)
		labels, tokens = append(labels, source.Label), append(tokens, source.Tokens)
	}
	w.floats("per_source", sums, len(labels), blocks, e.Count)
	w.floats("per_source_counts", counts, len(labels), blocks, e.Count)
	w.texts("source_labels", labels, len(labels))
	w.integers("source_tokens", tokens, len(labels))
	for _, member := range furtherMembers {
		if slices.ContainsFunc(m.Blocks(), func(block int) bool { return *member.list(m.Layers[block]) != nil }) {
			w.floats(member.name, w.rows(m.Layers, member.list), blocks, e.Count)
		}
	}
	if m.Engine != "" {
		w.texts("engine", []string{m.Engine})
	}
	if w.err == nil {
		w.err = w.zip.Close()
	}
	if w.err != nil {
		return nil, fmt.Errorf("npz: %w", w.err)
	}
	return b.Bytes(), nil
}

// An npzWriter writes arrays as members of an archive, uncompressed, without times.
type npzWriter struct {
	zip             *zip.Writer
	experts, blocks int
	err             error
}

// rows returns a list of each block, zeros where there is none.
func (w *npzWriter) rows(layers map[int]*Layer, list func(*Layer) *[]float64) []float64 {
	values := make([]float64, w.blocks*w.experts)
	for block, l := range layers {
		if block >= w.blocks {
			w.err = fmt.Errorf("sums of layer %d of a model with %d", block, w.blocks)
			return values
		}
		copy(values[block*w.experts:(block+1)*w.experts], *list(l))
	}
	return values
}

func (w *npzWriter) floats(name string, values []float64, shape ...int) {
	data := make([]byte, 0, 8*len(values))
	for _, x := range values {
		data = binary.LittleEndian.AppendUint64(data, math.Float64bits(x))
	}
	w.array(name, "<f8", data, shape)
}

func (w *npzWriter) integers(name string, values []int, shape ...int) {
	data := make([]byte, 0, 8*len(values))
	for _, n := range values {
		data = binary.LittleEndian.AppendUint64(data, uint64(n))
	}
	w.array(name, "<i8", data, shape)
}

// texts writes strings as numpy does: UCS-4, all as long as the longest, padded with NULs.
func (w *npzWriter) texts(name string, values []string, shape ...int) {
	longest := 1
	for _, s := range values {
		longest = max(longest, len([]rune(s)))
	}
	var data []byte
	for _, s := range values {
		runes := []rune(s)
		for i := range longest {
			var r rune
			if i < len(runes) {
				r = runes[i]
			}
			data = binary.LittleEndian.AppendUint32(data, uint32(r))
		}
	}
	w.array(name, fmt.Sprintf("<U%d", longest), data, shape)
}

// array writes a member in numpy's format, version 1.
func (w *npzWriter) array(name, kind string, data []byte, shape []int) {
	if w.err != nil {
		return
	}
	tuple := strings.Trim(strings.ReplaceAll(fmt.Sprint(shape), " ", ", "), "[]")
	if len(shape) == 1 {
		tuple += ","
	}
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", kind, tuple)
	const fixed, alignment = 10, 64 // bytes before the header; where data begins
	header += strings.Repeat(" ", (alignment-(fixed+len(header)+1)%alignment)%alignment) + "\n"
	out, err := w.zip.CreateHeader(&zip.FileHeader{Name: name + ".npy", Method: zip.Store})
	if err != nil {
		w.err = err
		return
	}
	head := binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(header)))
	for _, part := range [][]byte{head, []byte(header), data} {
		if _, err := out.Write(part); err != nil && w.err == nil {
			w.err = err
		}
	}
}
