package gguf

import (
	"fmt"
	"math"
)

// A Split says how a model is cut into shards. The zero Split is one file.
type Split struct {
	Shards     int   // exactly so many files, balanced by bytes
	MaxBytes   int64 // greatest size of a file, header and padding included
	MaxTensors int   // greatest number of tensors in a file
	// EmptyFirst puts the metadata in a first shard that holds no tensor.
	EmptyFirst bool
}

// A Layout is where every byte of a model goes. It is a pure function of headers: no
// data is read to make it.
type Layout struct {
	Shards []*ShardLayout
}

// A ShardLayout is where every byte of one file goes.
type ShardLayout struct {
	Version    uint32
	Metadata   *Metadata
	Views      []View
	Offsets    []int64 // of each view's data, from DataOffset
	Alignment  int64
	DataOffset int64
	Size       int64 // of the whole file
}

// Bytes returns the size of all files.
func (l *Layout) Bytes() int64 {
	var n int64
	for _, s := range l.Shards {
		n = AddSize(n, s.Size)
	}
	return n
}

// TensorBytes returns the size of all tensor data without padding.
func (l *Layout) TensorBytes() int64 {
	var n int64
	for _, s := range l.Shards {
		n = AddSize(n, s.TensorBytes())
	}
	return n
}

// TensorBytes returns the size of the shard's tensor data without padding.
func (s *ShardLayout) TensorBytes() int64 {
	var n int64
	for _, v := range s.Views {
		n = AddSize(n, v.Size())
	}
	return n
}

// NewLayout cuts the contents into shards, tensor order kept. A tensor is never cut.
// The data of each tensor is padded to the alignment, that of the last one too. It errs when a shard
// count cannot be had, when one tensor alone exceeds MaxBytes, and for contents that
// could not be read back.
func NewLayout(c Contents, s Split) (*Layout, error) {
	return newLayout(c, s, (*cutter).ends)
}

// NewLayoutOf cuts the contents into files of exactly these sizes, as NewLayout would have: it
// errs where no cut gives them.
func NewLayoutOf(c Contents, sizes []int64) (*Layout, error) {
	return newLayout(c, Split{}, func(cut *cutter) ([]int, error) { return cut.sized(sizes) })
}

func newLayout(c Contents, s Split, cut func(*cutter) ([]int, error)) (*Layout, error) {
	alignment, err := c.check()
	if err != nil {
		return nil, err
	}
	cutter, err := newCutter(c, s, alignment)
	if err != nil {
		return nil, err
	}
	ends, err := cut(cutter)
	if err != nil {
		return nil, err
	}
	layout := &Layout{}
	start := 0
	for i, end := range ends {
		md := splitMetadata(c.Metadata, i, len(ends), len(c.Views))
		layout.Shards = append(layout.Shards, newShardLayout(c.Version, md, c.Views[start:end], alignment))
		start = end
	}
	return layout, nil
}

// newShardLayout places views one after the other behind their header.
func newShardLayout(version uint32, md *Metadata, views []View, alignment int64) *ShardLayout {
	s := &ShardLayout{Version: version, Metadata: md, Views: views, Alignment: alignment, Offsets: make([]int64, len(views))}
	header := fixedHeader + md.encodedSize()
	var data int64
	for i, v := range views {
		header += infoSize(v)
		s.Offsets[i] = data
		data = AddSize(data, align(v.Size(), alignment))
	}
	s.DataOffset = dataOffset(header, len(views), alignment)
	s.Size = AddSize(s.DataOffset, data)
	return s
}

// dataOffset returns where the data of so many tensors begins. Where there are none,
// nothing is padded: vocabulary files and metadata-only shards end with their header.
func dataOffset(header int64, tensors int, alignment int64) int64 {
	if tensors == 0 {
		return header
	}
	return align(header, alignment)
}

// infoSize returns the bytes of a view's entry in the tensor table.
func infoSize(v View) int64 { return 8 + int64(len(v.Name)) + 4 + 8*int64(len(v.Shape)) + 4 + 8 }

// splitMetadata returns the pairs of shard i of n. The first shard carries the model's,
// the others only what a reader needs to know of the split and of their alignment.
// A model in one file keeps split keys that its source file had, if that was one file.
func splitMetadata(source *Metadata, i, n, tensors int) *Metadata {
	if n == 1 {
		return singleMetadata(source, tensors)
	}
	md := NewMetadata()
	if i == 0 {
		md = source.Clone()
	} else if v, ok := source.Get(KeyAlignment); ok {
		md.Set(KeyAlignment, v)
	}
	md.Set(KeySplitNo, Uint16Value(uint16(i)))
	md.Set(KeySplitCount, Uint16Value(uint16(n)))
	md.Set(KeySplitTensors, Int32Value(int32(tensors)))
	return md
}

func singleMetadata(source *Metadata, tensors int) *Metadata {
	if count, _ := source.Uint(KeySplitCount); count > 1 {
		return source.Without(func(key string) bool {
			return key == KeySplitNo || key == KeySplitCount || key == KeySplitTensors
		})
	}
	total, ok := source.Uint(KeySplitTensors)
	if !ok || total == uint64(tensors) {
		return source
	}
	md := source.Clone()
	md.Set(KeySplitTensors, Int32Value(int32(tensors)))
	return md
}

// check refuses contents that could not be read back, and returns their alignment.
func (c Contents) check() (alignment int64, err error) {
	if c.Version != 2 && c.Version != 3 {
		return 0, fmt.Errorf("GGUF version %d cannot be written, 2 and 3 can", c.Version)
	}
	if err := c.Metadata.check(); err != nil {
		return 0, err
	}
	if len(c.Views) > math.MaxInt32 {
		return 0, fmt.Errorf("%d tensors are more than %s can count", len(c.Views), KeySplitTensors)
	}
	names := make(map[string]bool, len(c.Views))
	for _, v := range c.Views {
		if err := v.check(); err != nil {
			return 0, fmt.Errorf("tensor %s: %w", quoted(v.Name), err)
		}
		if names[v.Name] {
			return 0, fmt.Errorf("tensor %s stands twice", quoted(v.Name))
		}
		names[v.Name] = true
	}
	return writeAlignment(c.Metadata)
}

func writeAlignment(md *Metadata) (int64, error) {
	v, ok := md.Get(KeyAlignment)
	if !ok {
		return defaultAlignment, nil
	}
	if v.Type() != Uint32 {
		return 0, fmt.Errorf("%s stored as %s cannot be written, want u32", KeyAlignment, v.TypeName())
	}
	n, _ := v.Int()
	if n < 1 || n&(n-1) != 0 || n > maxWriteAlignment {
		return 0, fmt.Errorf("%s %d cannot be written, want a power of two up to %d", KeyAlignment, n, maxWriteAlignment)
	}
	return n, nil
}

// LayoutWith lays the model out as it is, in the same shards, with other metadata. Later
// shards keep theirs, but for the alignment.
func (m *Model) LayoutWith(md *Metadata) (*Layout, error) {
	c := m.Contents()
	c.Metadata = md
	alignment, err := c.check()
	if err != nil {
		return nil, err
	}
	layout := &Layout{}
	for i, f := range m.Files {
		var views []View
		for _, t := range f.Tensors {
			views = append(views, t.View())
		}
		own := f.Metadata
		if i == 0 {
			own = splitMetadata(md, 0, len(m.Files), len(c.Views))
		} else if f.Alignment != alignment {
			own = own.Clone()
			own.Set(KeyAlignment, Uint32Value(uint32(alignment)))
		}
		layout.Shards = append(layout.Shards, newShardLayout(c.Version, own, views, alignment))
	}
	return layout, nil
}
