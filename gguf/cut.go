package gguf

import (
	"errors"
	"fmt"
	"sort"

	"ggufreap/gguf/words"
)

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

func newCutter(c Contents, s Split, alignment int64) (*cutter, error) {
	head := func(i, n int) int64 {
		return fixedHeader + splitMetadata(c.Metadata, i, n, len(c.Views)).encodedSize()
	}
	if len(c.Views) == 0 {
		s.EmptyFirst = false // the only file is such a shard already
	}
	cut := &cutter{split: s, views: c.Views, alignment: alignment,
		single: head(0, 1), first: head(0, 2), other: head(1, 2),
		infos: make([]int64, len(c.Views)+1), data: make([]int64, len(c.Views)+1)}
	for i, v := range c.Views {
		cut.infos[i+1] = cut.infos[i] + infoSize(v)
		cut.data[i+1] = cut.data[i] + align(v.Size(), alignment)
		if cut.data[i+1] > maxOffset {
			return nil, fmt.Errorf("tensor %s: with it the data is larger than any file", quoted(v.Name))
		}
	}
	return cut, nil
}

// size returns the bytes of a shard that holds the views from start to end.
func (c *cutter) size(start, end int) int64 {
	head := c.other
	if start == 0 && !c.split.EmptyFirst {
		head = c.first
	}
	return c.sizeBehind(head, start, end)
}

func (c *cutter) sizeBehind(head int64, start, end int) int64 {
	return dataOffset(head+c.infos[end]-c.infos[start], end-start, c.alignment) + c.data[end] - c.data[start]
}

// reach returns the greatest end, up to most, of a shard from start of at most limit
// bytes; start itself when not one view fits.
func (c *cutter) reach(start, most int, limit int64) int {
	return start + sort.Search(most-start, func(i int) bool { return c.size(start, start+i+1) > limit })
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

// sized cuts into files of exactly these sizes.
func (c *cutter) sized(sizes []int64) ([]int, error) {
	ends := make([]int, len(sizes))
	start := 0
	for i, size := range sizes {
		head := c.other
		switch {
		case len(sizes) == 1:
			head = c.single
		case i == 0:
			head = c.first
		}
		rest := len(c.views) - start
		n := sort.Search(rest, func(n int) bool { return c.sizeBehind(head, start, start+n) >= size })
		if got := c.sizeBehind(head, start, start+n); got != size {
			return nil, fmt.Errorf("no cut between tensors gives file %d its %d bytes", i+1, size)
		}
		start += n
		ends[i] = start
	}
	if start < len(c.views) {
		return nil, fmt.Errorf("files of these sizes leave out tensor %s", quoted(c.views[start].Name))
	}
	return ends, nil
}

// atMost fills each shard until the next tensor would exceed a limit.
func (c *cutter) atMost() ([]int, error) {
	limit := c.split.MaxBytes
	if limit == 0 {
		limit = maxOffset
	}
	if c.fitsOne(limit) {
		return []int{len(c.views)}, nil
	}
	if head := c.leastHead(); head > limit {
		return nil, fmt.Errorf("the metadata alone takes %s, more than the limit of %s", words.Count(head, "byte"), words.Group(limit))
	}
	var ends []int
	if c.split.EmptyFirst {
		ends = append(ends, 0)
	}
	for start := 0; start < len(c.views); {
		end := c.reach(start, c.most(start), limit)
		if end == start {
			return nil, c.tooLarge(start, limit)
		}
		ends = append(ends, end)
		start = end
	}
	if len(ends) > maxSplitShards {
		return nil, fmt.Errorf("these limits give %d shards, a split can have %d", len(ends), maxSplitShards)
	}
	return ends, nil
}

// fitsOne reports whether one file keeps the limits.
func (c *cutter) fitsOne(limit int64) bool {
	n, most := len(c.views), c.split.MaxTensors
	return !c.split.EmptyFirst && (most == 0 || n <= most) && c.sizeBehind(c.single, 0, n) <= limit
}

// leastHead returns the bytes of the metadata in the file that has it: of a model that
// one tensor keeps in one file, or of a first shard.
func (c *cutter) leastHead() int64 {
	if c.indivisible() {
		return c.single
	}
	return c.first
}

// indivisible reports whether the views make one file whatever its size.
func (c *cutter) indivisible() bool { return len(c.views) < 2 && !c.split.EmptyFirst }

// most returns the greatest end that a shard from start can have by number. The first
// leaves something to others, or one file would have done.
func (c *cutter) most(start int) int {
	most := len(c.views)
	if c.split.MaxTensors > 0 {
		most = min(most, start+c.split.MaxTensors)
	}
	if start == 0 && !c.split.EmptyFirst {
		most = min(most, len(c.views)-1)
	}
	return most
}

// tooLarge says why the view at start fits no file.
func (c *cutter) tooLarge(start int, limit int64) error {
	size, note := c.size(start, start+1), ""
	if c.indivisible() {
		size = c.sizeBehind(c.single, 0, 1)
	}
	if start == 0 && !c.split.EmptyFirst && max(c.first, c.sizeBehind(c.other, 0, 1)) <= limit {
		note = fmt.Sprintf("; %s of them are metadata, which an empty first shard could hold", words.Group(c.first))
	}
	return fmt.Errorf("tensor %s: a file that holds it alone has %s, more than the limit of %s%s",
		quoted(c.views[start].Name), words.Count(size, "byte"), words.Group(limit), note)
}

// exactly cuts into n shards of which none is empty, but for the first when that is
// asked for.
func (c *cutter) exactly(n int) ([]int, error) {
	full := n
	if c.split.EmptyFirst {
		full--
	}
	switch {
	case n > maxSplitShards:
		return nil, fmt.Errorf("%d shards asked for, a split can have %d", n, maxSplitShards)
	case full < 1:
		return nil, errors.New("an empty first shard needs at least 2 shards")
	case full > len(c.views) && n > 1:
		return nil, fmt.Errorf("%s asked for, but there %s %s and a tensor is never cut", words.Count(n, "shard"), words.Verb(len(c.views), "is", "are"), words.Count(len(c.views), "tensor"))
	case c.split.EmptyFirst:
		return append([]int{0}, c.balanced(full)...), nil
	}
	return c.balanced(full), nil
}

// balanced cuts into n shards. The largest file is as small as it can be, and among
// such cuts each shard takes as near as it can an even share of what is left for it
// and the later ones.
func (c *cutter) balanced(n int) []int {
	if n == 1 {
		return []int{len(c.views)}
	}
	limit := c.leastLimit(n)
	needed := c.shardsNeeded(limit)
	ends := make([]int, n)
	start := 0
	for k := range n {
		start = c.fairEnd(start, n-k-1, limit, needed)
		ends[k] = start
	}
	return ends
}

// leastLimit returns the smallest file size with which n shards suffice.
func (c *cutter) leastLimit(n int) int64 {
	var low, high int64 = 0, c.size(0, len(c.views))
	for low < high {
		mid := low + (high-low)/2
		if c.suffices(n, mid) {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return low
}

// suffices reports whether n files of at most limit bytes can hold all views. Filling
// each as far as it goes needs the fewest.
func (c *cutter) suffices(n int, limit int64) bool {
	start := 0
	for range n {
		end := c.reach(start, len(c.views), limit)
		if end == len(c.views) {
			return true
		}
		if end == start {
			return false
		}
		start = end
	}
	return false
}

// shardsNeeded returns, for each index, how many files of at most limit bytes hold the
// views from there on. Every view fits a file of that size.
func (c *cutter) shardsNeeded(limit int64) []int {
	count := len(c.views)
	needed := make([]int, count+1)
	for start := count - 1; start >= 0; start-- {
		needed[start] = 1 + needed[c.reach(start, count, limit)]
	}
	return needed
}

// fairEnd returns where a shard that begins at start should end, with what follows
// still fitting the later shards, each of which gets at least one view. The further
// the end, the larger this shard and the fewer the later ones that are needed.
func (c *cutter) fairEnd(start, later int, limit int64, needed []int) int {
	most := c.reach(start, len(c.views)-later, limit)
	least := start + 1 + sort.Search(most-start-1, func(i int) bool { return needed[start+1+i] <= later })
	share := c.size(start, len(c.views)) / int64(later+1)
	end := least + sort.Search(most-least, func(i int) bool { return c.size(start, least+i) >= share })
	if end > least && share-c.size(start, end-1) <= c.size(start, end)-share {
		end--
	}
	return end
}
