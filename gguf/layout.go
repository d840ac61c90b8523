package gguf

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"sort"
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
		n += s.Size
	}
	return n
}

// TensorBytes returns the size of all tensor data without padding.
func (l *Layout) TensorBytes() int64 {
	var n int64
	for _, s := range l.Shards {
		n += s.TensorBytes()
	}
	return n
}

// TensorBytes returns the size of the shard's tensor data without padding.
func (s *ShardLayout) TensorBytes() int64 {
	var n int64
	for _, v := range s.Views {
		n += v.Size()
	}
	return n
}

// NewLayout cuts the contents into shards, tensor order kept. A tensor is never cut.
// Every file's data is padded to the alignment, its end included. It errs when a shard
// count cannot be had, when one tensor alone exceeds MaxBytes, and for contents that
// could not be read back.
func NewLayout(c Contents, s Split) (*Layout, error) {
	cut, err := newCutter(c, s)
	if err != nil {
		return nil, err
	}
	ends, err := cut.ends()
	if err != nil {
		return nil, err
	}
	layout := &Layout{}
	start := 0
	for i, end := range ends {
		md := splitMetadata(c.Metadata, i, len(ends), len(c.Views))
		layout.Shards = append(layout.Shards, newShardLayout(c.Version, md, c.Views[start:end], cut.alignment))
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
		data += align(v.Size(), alignment)
	}
	s.DataOffset = align(header, alignment)
	s.Size = s.DataOffset + data
	return s
}

// infoSize returns the bytes of a view's entry in the tensor table.
func infoSize(v View) int64 { return 8 + int64(len(v.Name)) + 4 + 8*int64(len(v.Shape)) + 4 + 8 }

// splitMetadata returns the pairs of shard i of n. The first shard carries the model's,
// the others only what a reader needs to know of the split and of their alignment.
// A model in one file keeps split keys that its source file had, if that was one file.
func splitMetadata(source *Metadata, i, n, tensors int) *Metadata {
	if n == 1 {
		if count, _ := source.Uint(KeySplitCount); count <= 1 {
			return source
		}
		return source.Without(func(key string) bool {
			return key == KeySplitNo || key == KeySplitCount || key == KeySplitTensors
		})
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

// A cutter knows the size of every run of views as a file, in constant time.
type cutter struct {
	split     Split
	views     []View
	alignment int64
	single    int64   // fixed header and metadata of a model in one file
	first     int64   // of a first shard
	other     int64   // of a later shard
	infos     []int64 // infos[i] is the table bytes of views before i
	data      []int64 // data[i] is the padded data bytes of views before i
}

func newCutter(c Contents, s Split) (*cutter, error) {
	if c.Version != 2 && c.Version != 3 {
		return nil, fmt.Errorf("GGUF version %d cannot be written, 2 and 3 can", c.Version)
	}
	alignment, err := writeAlignment(c.Metadata)
	if err != nil {
		return nil, err
	}
	if err := checkPairs(c.Metadata); err != nil {
		return nil, err
	}
	cut := &cutter{split: s, views: c.Views, alignment: alignment,
		single: fixedHeader + splitMetadata(c.Metadata, 0, 1, len(c.Views)).encodedSize(),
		first:  fixedHeader + splitMetadata(c.Metadata, 0, 2, len(c.Views)).encodedSize(),
		other:  fixedHeader + splitMetadata(c.Metadata, 1, 2, len(c.Views)).encodedSize(),
		infos:  make([]int64, len(c.Views)+1),
		data:   make([]int64, len(c.Views)+1),
	}
	names := make(map[string]bool, len(c.Views))
	for i, v := range c.Views {
		if err := v.check(); err != nil {
			return nil, err
		}
		if names[v.Name] {
			return nil, fmt.Errorf("tensor %q stands twice", v.Name)
		}
		names[v.Name] = true
		cut.infos[i+1] = cut.infos[i] + infoSize(v)
		cut.data[i+1] = cut.data[i] + align(v.Size(), alignment)
		if cut.data[i+1] < cut.data[i] || cut.data[i+1] > maxOffset {
			return nil, fmt.Errorf("tensor %q: the data is larger than any file", v.Name)
		}
	}
	return cut, nil
}

func writeAlignment(md *Metadata) (int64, error) {
	v, ok := md.Get(KeyAlignment)
	if !ok {
		return defaultAlignment, nil
	}
	n, ok := v.Int()
	if !ok || v.Type() != Uint32 || n < 1 || n&(n-1) != 0 || n > maxWriteAlignment {
		return 0, fmt.Errorf("%s: %s %d cannot be written, want a u32 power of two up to %d", KeyAlignment, v.TypeName(), n, maxWriteAlignment)
	}
	return n, nil
}

func checkPairs(md *Metadata) error {
	if len(md.index) != md.Len() {
		return errors.New("a metadata key stands twice")
	}
	for key, v := range md.All() {
		if v.order != binary.ByteOrder(binary.LittleEndian) {
			return fmt.Errorf("key %q: big-endian values cannot be written", key)
		}
	}
	return nil
}

// size returns the size of the file that holds views from start to before end.
func (c *cutter) size(start, end int) int64 {
	head := c.other
	if start == 0 && !c.split.EmptyFirst {
		head = c.first
	}
	return c.sizeBehind(head, start, end)
}

func (c *cutter) sizeBehind(head int64, start, end int) int64 {
	return align(head+c.infos[end]-c.infos[start], c.alignment) + c.data[end] - c.data[start]
}

// fitsOne reports whether one file keeps the limits.
func (c *cutter) fitsOne() bool {
	s, n := c.split, len(c.views)
	return (s.MaxTensors == 0 || n <= s.MaxTensors) && (s.MaxBytes == 0 || c.sizeBehind(c.single, 0, n) <= s.MaxBytes)
}

// ends returns, for each shard, the index after its last view.
func (c *cutter) ends() ([]int, error) {
	s := c.split
	switch {
	case s.Shards < 0 || s.MaxBytes < 0 || s.MaxTensors < 0:
		return nil, errors.New("a split cannot have negative limits")
	case s.Shards > 0 && (s.MaxBytes > 0 || s.MaxTensors > 0):
		return nil, errors.New("a shard count and a greatest size contradict each other, give one of them")
	case s.Shards > 0:
		return c.exactly(s.Shards)
	case s.MaxBytes > 0 || s.MaxTensors > 0:
		return c.atMost()
	case s.EmptyFirst:
		return []int{0, len(c.views)}, nil
	}
	return []int{len(c.views)}, nil
}

// atMost fills each shard until the next tensor would exceed a limit.
func (c *cutter) atMost() ([]int, error) {
	if !c.split.EmptyFirst && c.fitsOne() {
		return []int{len(c.views)}, nil
	}
	var ends []int
	start := 0
	if c.split.EmptyFirst {
		ends = append(ends, 0)
		if size := align(c.first, c.alignment); c.split.MaxBytes > 0 && size > c.split.MaxBytes {
			return nil, fmt.Errorf("the metadata alone takes %d bytes, more than the limit of %d", size, c.split.MaxBytes)
		}
	}
	for start < len(c.views) {
		end := c.fill(start)
		if end == start {
			v := c.views[start]
			return nil, fmt.Errorf("tensor %q: a file that holds it alone has %d bytes, more than the limit of %d", v.Name, c.size(start, start+1), c.split.MaxBytes)
		}
		ends = append(ends, end)
		start = end
	}
	if len(ends) > maxSplitShards {
		return nil, fmt.Errorf("these limits give %d shards, a split can have %d", len(ends), maxSplitShards)
	}
	return ends, nil
}

// fill returns the greatest end for which the views from start fit the limits.
func (c *cutter) fill(start int) int {
	most := len(c.views) - start
	if c.split.MaxTensors > 0 {
		most = min(most, c.split.MaxTensors)
	}
	if c.split.MaxBytes == 0 {
		return start + most
	}
	return start + sort.Search(most, func(n int) bool { return c.size(start, start+n+1) > c.split.MaxBytes })
}

// exactly cuts into n shards of which none is empty. The largest file is as small as
// it can be, and among such cuts each shard ends as near as it can to its even share.
func (c *cutter) exactly(n int) ([]int, error) {
	if n > maxSplitShards {
		return nil, fmt.Errorf("%d shards asked for, a split can have %d", n, maxSplitShards)
	}
	if c.split.EmptyFirst {
		if n < 2 {
			return nil, errors.New("an empty first shard needs at least 2 shards")
		}
		ends, err := c.balanced(n - 1)
		return append([]int{0}, ends...), err
	}
	return c.balanced(n)
}

func (c *cutter) balanced(n int) ([]int, error) {
	if n == 1 {
		return []int{len(c.views)}, nil
	}
	if n > len(c.views) {
		return nil, fmt.Errorf("%d shards asked for, but there are %d tensors and a tensor is never cut", n, len(c.views))
	}
	limit := c.leastLimit(n)
	need := c.shardsNeeded(limit)
	total := c.size(0, len(c.views))
	ends := make([]int, n)
	start := 0
	for k := range n {
		start = c.nearest(start, n-k-1, limit, total*int64(k+1)/int64(n), need)
		ends[k] = start
	}
	return ends, nil
}

// leastLimit returns the smallest file size with which n shards suffice.
func (c *cutter) leastLimit(n int) int64 {
	var low, high int64 = 0, c.size(0, len(c.views))
	for low < high {
		mid := low + (high-low)/2
		if need := c.shardsNeeded(mid); need != nil && need[0] <= n {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return low
}

// shardsNeeded returns, for each index, how many files of at most limit bytes hold the
// views from there on; nil when some view does not fit a file.
func (c *cutter) shardsNeeded(limit int64) []int {
	count := len(c.views)
	need := make([]int, count+1)
	end := count
	for start := count - 1; start >= 0; start-- {
		for end > start && c.size(start, end) > limit {
			end--
		}
		if end == start {
			return nil
		}
		need[start] = 1 + need[end]
	}
	return need
}

// nearest returns where a shard that begins at start should end: as near as possible
// to target bytes from the beginning, with what follows still fitting the later shards.
func (c *cutter) nearest(start, later int, limit, target int64, need []int) int {
	best := -1
	for end := start + 1; end <= len(c.views)-later && c.size(start, end) <= limit; end++ {
		if need[end] > later || (later == 0 && end < len(c.views)) {
			continue
		}
		if best < 0 || cmp.Less(distance(c.size(0, end), target), distance(c.size(0, best), target)) {
			best = end
		}
	}
	return best
}

func distance(a, b int64) int64 {
	if a < b {
		return b - a
	}
	return a - b
}
