package manifest

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"ggufreap/gguf"
	"ggufreap/manifest/internal/pass"
)

// BuildOptions say what a pin should hold beside what can be measured.
type BuildOptions struct {
	// Slabs says which tensors carry how many slabs; nil for none.
	Slabs SlabCount
	// IDs says which tensors are tables of expert ids; nil for none.
	IDs IDTables
	// DataSize returns the bytes of data of a tensor whose type is not known, of which
	// the file tells the span only; nil takes the span for data.
	DataSize func(t *gguf.Tensor) int64
	// Declared is copied into the pin.
	Declared Declared
	// Padding is told once for each file what lies in no key and no tensor; nil for nobody.
	Padding func(f *gguf.File, p Padding)
	// Workers is how many files are read at once; 0 means one a processor.
	Workers int
	// Progress is told how many bytes of the files are read.
	Progress Progress
}

// Progress is told how many bytes of how many are done. Calls come one at a time and
// never go back, but from several goroutines.
type Progress func(done, total int64)

// After returns the progress of what follows work on n bytes.
func (p Progress) After(n int64) Progress {
	if p == nil {
		return nil
	}
	return func(done, total int64) { p(n+done, n+total) }
}

// BuildPin reads every file of a sound model once, front to back, and returns its pin.
// Memory is one buffer a worker, whatever the model's size. The pin does not depend on
// the number of workers. A file that changes meanwhile is an error, and so is a name for
// which no digest is defined, a [NameError].
func BuildPin(ctx context.Context, m *gguf.Model, o BuildOptions) (*Pin, error) {
	all := make([]int, len(m.Files))
	for i := range all {
		all[i] = i
	}
	pin, err := PinPart(ctx, m, o, all)
	if err == nil {
		err = pin.seal()
	}
	if err != nil {
		return nil, err
	}
	return pin, nil
}

// PinPart reads some files of a sound model, by number from 0, as BuildPin does all. The pin
// lacks the digests of other files and their tensors, and those that rest on all of them.
func PinPart(ctx context.Context, m *gguf.Model, o BuildOptions, files []int) (*Pin, error) {
	if err := m.Err(); err != nil {
		return nil, err
	}
	pin, err := PinHeaders(m, o)
	if err != nil {
		return nil, err
	}
	var total int64
	for _, i := range files {
		total += m.Files[i].Size
	}
	spans := make([][]*Tensor, len(m.Files))
	for i, t := range m.Tensors() {
		spans[t.Shard()] = append(spans[t.Shard()], &pin.Tensors[i])
	}
	count := pass.NewMeter(total, o.Progress)
	paddings := make([]Padding, len(files))
	err = pass.ForEach(ctx, len(files), o.Workers, func(ctx context.Context, n int, w *pass.Worker) error {
		var err error
		i := files[n]
		pin.Files[i].SHA256, err = hashShard(ctx, m.Files[i], spans[i], &paddings[n], count, w)
		return err
	})
	if err != nil {
		return nil, err
	}
	for n, i := range files {
		if o.Padding != nil {
			o.Padding(m.Files[i], paddings[n])
		}
	}
	if err := m.Unchanged(); err != nil {
		return nil, err
	}
	return pin, nil
}

// PinHeaders returns a pin of what headers tell, which lacks the digests of data and
// files.
func PinHeaders(m *gguf.Model, o BuildOptions) (*Pin, error) {
	if err := checkNames(NameWarnings(m)); err != nil {
		return nil, err
	}
	pin := &Pin{Schema: PinSchema, Tensors: []Tensor{}, Declared: o.Declared, Artifact: Artifact{
		Name:         m.Name,
		Architecture: m.Metadata().Architecture(),
		Version:      m.Files[0].Version,
		ByteOrder:    m.Files[0].ByteOrder(),
		Shards:       len(m.Files),
		FileBytes:    m.FileBytes(),
	}}
	for _, f := range m.Files {
		pin.Files = append(pin.Files, File{Name: filepath.Base(f.Name), Size: f.Size})
	}
	parts := describer{slabs: o.Slabs, ids: o.IDs}
	for _, t := range m.Tensors() {
		described, err := parts.describe(t.Name, t.Type, t.Shape, o.dataSize(t))
		if err != nil {
			return nil, err
		}
		pin.Tensors = append(pin.Tensors, described)
		pin.Artifact.TensorBytes += described.Size
	}
	return pin, pin.describe(m.Metadata())
}

// dataSize returns the bytes of data of a tensor.
func (o *BuildOptions) dataSize(t *gguf.Tensor) int64 {
	if t.Opaque && o.DataSize != nil {
		return min(max(o.DataSize(t), 0), t.Size)
	}
	return t.Size
}

// Follow makes the options measure m as the pins were made: a tensor has slabs where one
// of them has some, as many as the tensor's own expert dim says, and the size of data that
// only whoever wrote it knew.
func (o *BuildOptions) Follow(m *gguf.Model, pins ...*Pin) {
	axis := map[string]int{} // of the expert dim
	sizes := map[string]int64{}
	for _, p := range pins {
		for _, t := range p.Tensors {
			if t.Slabs != nil {
				axis[t.Name] = t.Slabs.Axis
			}
			if _, ok := sizes[t.Name]; !ok {
				sizes[t.Name] = t.Size
			}
		}
	}
	o.DataSize = func(t *gguf.Tensor) int64 {
		if size, ok := sizes[t.Name]; ok && size <= t.Size && t.Size-size < t.File().Alignment {
			return size
		}
		return t.Size
	}
	o.Slabs = func(name string) int {
		t := m.Tensor(name)
		at, slabbed := axis[name]
		if !slabbed || len(t.Shape) == 0 || at > len(t.Shape) {
			return 0
		}
		count, size := uint64(1), uint64(o.dataSize(t))
		if at < len(t.Shape) {
			count = t.Shape[at]
		}
		if count == 0 || size == 0 || size%count != 0 || expertAxis(t.Shape, int(count)) != at {
			return 0
		}
		return int(count)
	}
}

// hashShard returns the digest of a file and fills in those of its tensors, which are
// given in the order of the file's table.
func hashShard(ctx context.Context, f *gguf.File, tensors []*Tensor, padding *Padding, count io.Writer, w *pass.Worker) (Sum, error) {
	listener := newTensorListener(nil)
	spans := make([]pass.Span, len(tensors))
	for i, t := range f.Tensors {
		spans[i] = pass.Span{Offset: t.DataOffset(), Size: tensors[i].Size, Begin: func() io.Writer { return listener.begin(tensors[i]) }}
	}
	spans = append(spans, pass.Span{Size: f.HeaderSize, Begin: func() io.Writer { return nil }})
	whole := w.Hasher()
	err := pass.Scan(ctx, f, f.Size, w.Buf, io.MultiWriter(whole, count), spans, padding.see)
	if err == nil {
		err = listener.end()
	}
	if err != nil {
		return Sum{}, fmt.Errorf("%s: %w", f.Name, err)
	}
	return whole.Sum(), nil
}
