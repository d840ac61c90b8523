package gguf

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ggufreap/gguf/words"
)

// nothing is a source for views whose bytes are never read.
var nothing io.ReaderAt = strings.NewReader("")

// sized returns views with so many bytes of data each.
func sized(sizes ...int64) []View {
	views := make([]View, len(sizes))
	for i, n := range sizes {
		views[i] = View{Name: fmt.Sprintf("t%d", i), Type: I8, Shape: []uint64{uint64(n)}, Extents: []Extent{{nothing, 0, n}}}
	}
	return views
}

// randomContents returns contents with up to most tensors of very different sizes, a
// metadata of any size, and some alignment.
func randomContents(rnd *rand.Rand, most int) Contents {
	md := NewMetadata()
	md.Set(KeyArchitecture, TextValue(strings.Repeat("x", rnd.IntN(300))))
	if rnd.IntN(3) == 0 {
		md.Set(KeyAlignment, Uint32Value(1<<rnd.IntN(9)))
	}
	sizes := make([]int64, rnd.IntN(most+1))
	for i := range sizes {
		sizes[i] = rnd.Int64N(1 << rnd.IntN(12))
	}
	return Contents{Version: 3, Metadata: md, Views: sized(sizes...)}
}

// wantSound checks what holds for every layout: each view once and in order, offsets
// that are running padded sums, and sizes that add up.
func wantSound(t *testing.T, c Contents, l *Layout) {
	t.Helper()
	var names []string
	for i, s := range l.Shards {
		var data int64
		for j, v := range s.Views {
			names = append(names, v.Name)
			if s.Offsets[j] != data || data%s.Alignment != 0 {
				t.Fatalf("shard %d: %q lies at %d, want %d", i, v.Name, s.Offsets[j], data)
			}
			data += v.Size()
			for data%s.Alignment != 0 {
				data++
			}
		}
		if len(s.Views) > 0 && s.DataOffset%s.Alignment != 0 || s.Size != s.DataOffset+data {
			t.Fatalf("shard %d: data from %d, %d bytes of it, size %d", i, s.DataOffset, data, s.Size)
		}
	}
	for i, v := range c.Views {
		if i >= len(names) || names[i] != v.Name {
			t.Fatalf("views are written as %q", names)
		}
	}
	if len(names) != len(c.Views) {
		t.Fatalf("%d views are written, want %d", len(names), len(c.Views))
	}
}

func counts(l *Layout) []int {
	var n []int
	for _, s := range l.Shards {
		n = append(n, len(s.Views))
	}
	return n
}

func largest(l *Layout) int64 {
	var n int64
	for _, s := range l.Shards {
		n = max(n, s.Size)
	}
	return n
}

// everyCut yields all ways to cut n things into parts that are not empty.
func everyCut(n, parts int) func(func([]int) bool) {
	return func(yield func([]int) bool) {
		ends := make([]int, parts)
		var place func(i, from int) bool
		place = func(i, from int) bool {
			if i == parts-1 {
				ends[i] = n
				return yield(ends)
			}
			for end := from + 1; end <= n-(parts-1-i); end++ {
				if ends[i] = end; !place(i+1, end) {
					return false
				}
			}
			return true
		}
		place(0, 0)
	}
}

// layOut places views cut in a given way, by the functions that size single shards.
func layOut(c Contents, ends []int, emptyFirst bool) *Layout {
	if emptyFirst {
		ends = append([]int{0}, ends...)
	}
	alignment, _ := writeAlignment(c.Metadata)
	l, start := &Layout{}, 0
	for i, end := range ends {
		l.Shards = append(l.Shards, newShardLayout(c.Version, splitMetadata(c.Metadata, i, len(ends), len(c.Views)), c.Views[start:end], alignment))
		start = end
	}
	return l
}

// An exact number of shards is exact, keeps the order, leaves none empty, and makes the
// largest file as small as any cut can.
func TestExactShardsAgainstEveryCut(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for round := range 400 {
		c := randomContents(rnd, 9)
		for n := 1; n <= len(c.Views); n++ {
			emptyFirst := rnd.IntN(4) == 0
			s := Split{Shards: n, EmptyFirst: emptyFirst}
			if emptyFirst {
				s.Shards++
			}
			l, err := NewLayout(c, s)
			if err != nil {
				t.Fatalf("round %d, %+v: %v", round, s, err)
			}
			wantSound(t, c, l)
			if len(l.Shards) != s.Shards {
				t.Fatalf("round %d: %d shards, want %d", round, len(l.Shards), s.Shards)
			}
			for i, k := range counts(l) {
				if k == 0 && !(emptyFirst && i == 0) {
					t.Fatalf("round %d, %+v: shard %d is empty", round, s, i)
				}
			}
			if s.Shards == 1 {
				continue
			}
			least := int64(maxOffset)
			for ends := range everyCut(len(c.Views), n) {
				least = min(least, largest(layOut(c, ends, emptyFirst)))
			}
			if got := largest(l); got != least {
				t.Fatalf("round %d, %+v, tensors %v: largest file has %d bytes, %d are possible", round, s, counts(l), got, least)
			}
		}
	}
}

// A greatest size is kept by whole files, header and padding included; a tensor that
// would still have fitted is never left to the next file.
func TestGreatestSizes(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for round := range 2000 {
		c := randomContents(rnd, 12)
		s := Split{MaxBytes: 1 + rnd.Int64N(6000), EmptyFirst: rnd.IntN(3) == 0}
		if rnd.IntN(2) == 0 {
			s.MaxTensors = 1 + rnd.IntN(4)
		}
		l, err := NewLayout(c, s)
		if err != nil {
			if !strings.Contains(err.Error(), "more than the limit of "+words.Group(s.MaxBytes)) {
				t.Fatal(err)
			}
			continue
		}
		wantSound(t, c, l)
		start := 0
		for i, shard := range l.Shards {
			if shard.Size > s.MaxBytes || s.MaxTensors > 0 && len(shard.Views) > s.MaxTensors {
				t.Fatalf("round %d, %+v: shard %d has %d bytes and %d tensors", round, s, i, shard.Size, len(shard.Views))
			}
			start += len(shard.Views)
			if i == len(l.Shards)-1 || i == 0 && s.EmptyFirst {
				continue
			}
			if s.MaxTensors > 0 && len(shard.Views) == s.MaxTensors {
				continue
			}
			more := newShardLayout(3, shard.Metadata, c.Views[start-len(shard.Views):start+1], shard.Alignment)
			if more.Size <= s.MaxBytes {
				t.Fatalf("round %d, %+v: shard %d could have held %q too", round, s, i, c.Views[start].Name)
			}
		}
		if s.EmptyFirst && len(l.Shards[0].Views) > 0 {
			t.Fatalf("round %d: first shard is not empty", round)
		}
	}
}

// At the limit exactly a file is whole, one byte below it is not.
func TestLimitToTheByte(t *testing.T) {
	c := Contents{Version: 3, Metadata: NewMetadata(), Views: sized(1000, 1000, 1000)}
	c.Metadata.Set(KeyArchitecture, TextValue("x"))
	whole, err := NewLayout(c, Split{})
	if err != nil {
		t.Fatal(err)
	}
	size := whole.Shards[0].Size
	// 24 + (8+20+4+9) bytes of header, three infos of 34, and data padded to 1024 each.
	if want := int64(192 + 3*1024); size != want {
		t.Errorf("file has %d bytes, want %d", size, want)
	}
	for _, test := range []struct {
		limit int64
		want  []int
	}{{size, []int{3}}, {size - 1, []int{2, 1}}} {
		l, err := NewLayout(c, Split{MaxBytes: test.limit})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(counts(l), test.want) {
			t.Errorf("limit %d: tensors %v, want %v", test.limit, counts(l), test.want)
		}
	}
	two, _ := NewLayout(c, Split{MaxBytes: size - 1})
	first := two.Shards[0].Size
	if l, err := NewLayout(c, Split{MaxBytes: first}); err != nil || !slices.Equal(counts(l), []int{2, 1}) {
		t.Errorf("limit of the first shard: %v", err)
	}
	if l, err := NewLayout(c, Split{MaxBytes: first - 1}); err != nil || !slices.Equal(counts(l), []int{1, 2}) && !slices.Equal(counts(l), []int{1, 1, 1}) {
		t.Errorf("a byte below: %v", err)
	}
}

func TestShares(t *testing.T) {
	header := NewMetadata()
	header.Set("x", TextValue(strings.Repeat("x", 100_000)))
	tests := []struct {
		name  string
		md    *Metadata
		split Split
		sizes []int64
		want  []int
	}{
		{"even", NewMetadata(), Split{Shards: 3}, []int64{9000, 9000, 9000, 9000, 9000, 9000}, []int{2, 2, 2}},
		{"one giant", NewMetadata(), Split{Shards: 3}, []int64{1, 1, 1, 99999, 1, 1, 1}, []int{3, 1, 3}},
		{"large metadata", header, Split{Shards: 4}, []int64{900, 900, 900, 900, 900, 900, 900}, []int{1, 2, 2, 2}},
		{"each its own", NewMetadata(), Split{Shards: 4}, []int64{0, 0, 50, 0}, []int{1, 1, 1, 1}},
		{"by number", NewMetadata(), Split{MaxTensors: 2}, []int64{1, 1, 1, 1, 1}, []int{2, 2, 1}},
		{"empty first", NewMetadata(), Split{EmptyFirst: true}, []int64{1, 1}, []int{0, 2}},
		{"empty first and a number", NewMetadata(), Split{EmptyFirst: true, Shards: 3}, []int64{1, 1, 1, 1}, []int{0, 2, 2}},
		{"empty first by number", NewMetadata(), Split{EmptyFirst: true, MaxTensors: 3}, []int64{1, 1, 1, 1}, []int{0, 3, 1}},
		{"nothing", NewMetadata(), Split{}, nil, []int{0}},
		{"nothing in one", NewMetadata(), Split{Shards: 1}, nil, []int{0}},
		{"nothing under a limit", NewMetadata(), Split{MaxBytes: 100}, nil, []int{0}},
		{"nothing, first empty", NewMetadata(), Split{EmptyFirst: true}, nil, []int{0}},
		{"nothing in one, first empty", NewMetadata(), Split{EmptyFirst: true, Shards: 1}, nil, []int{0}},
		{"nothing under limits, first empty", NewMetadata(), Split{EmptyFirst: true, MaxBytes: 100, MaxTensors: 1}, nil, []int{0}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := Contents{Version: 3, Metadata: test.md, Views: sized(test.sizes...)}
			l, err := NewLayout(c, test.split)
			if err != nil {
				t.Fatal(err)
			}
			wantSound(t, c, l)
			if !slices.Equal(counts(l), test.want) {
				t.Errorf("tensors %v, want %v", counts(l), test.want)
			}
		})
	}
}

func TestLayoutRefuses(t *testing.T) {
	contents := func(change func(*Contents)) Contents {
		c := Contents{Version: 3, Metadata: NewMetadata(), Views: sized(10, 20, 30)}
		c.Metadata.Set(KeyArchitecture, TextValue("x"))
		change(&c)
		return c
	}
	set := func(key string, v Value) func(*Contents) { return func(c *Contents) { c.Metadata.Set(key, v) } }
	view := func(v View) func(*Contents) { return func(c *Contents) { c.Views = append(c.Views, v) } }
	none := func(*Contents) {}
	tests := []struct {
		name   string
		change func(*Contents)
		split  Split
		want   string
	}{
		{"more shards than tensors", none, Split{Shards: 4}, "4 shards asked for, but there are 3 tensors and a tensor is never cut"},
		{"more shards than tensors, first empty", none, Split{Shards: 5, EmptyFirst: true}, "5 shards asked for, but there are 3 tensors"},
		{"more shards than one tensor", func(c *Contents) { c.Views = c.Views[:1] }, Split{Shards: 2}, "2 shards asked for, but there is 1 tensor and"},
		{"more shards than no tensors, first empty", func(c *Contents) { c.Views = nil }, Split{Shards: 2, EmptyFirst: true}, "2 shards asked for, but there are 0 tensors"},
		{"empty first alone", none, Split{Shards: 1, EmptyFirst: true}, "an empty first shard needs at least 2 shards"},
		{"too many shards", func(c *Contents) { c.Views = sized(make([]int64, 70000)...) }, Split{Shards: 65536}, "65536 shards asked for, a split can have 65535"},
		{"too many by number", func(c *Contents) { c.Views = sized(make([]int64, 70000)...) }, Split{MaxTensors: 1}, "these limits give 70000 shards, a split can have 65535"},
		{"count and size", none, Split{Shards: 2, MaxBytes: 1000}, "contradict each other"},
		{"negative count", none, Split{Shards: -1}, "negative"},
		{"tensor above the limit", none, Split{MaxBytes: 200}, `tensor "t0": a file that holds it alone has 224 bytes, more than the limit of 200`},
		{"metadata near the limit", set("k", TextValue(strings.Repeat("x", 4832))), Split{MaxBytes: 5000}, "5,000 of them are metadata, which an empty first shard could hold"},
		{"metadata a byte above the limit", set("k", TextValue(strings.Repeat("x", 4833))), Split{MaxBytes: 5000}, "the metadata alone takes 5,001 bytes, more than the limit of 5,000"},
		{"metadata that only one file could have", func(c *Contents) {
			c.Metadata.Set("k", TextValue(strings.Repeat("x", 4850)))
			c.Views = c.Views[:1]
		}, Split{MaxBytes: 5000}, `tensor "t0": a file that holds it alone has 5,024 bytes, more than the limit of 5,000`},
		{"metadata above the limit", set("k", TextValue(strings.Repeat("x", 5000))), Split{MaxBytes: 5000, EmptyFirst: true}, "the metadata alone takes 5,168 bytes, more than the limit of 5,000"},
		{"metadata above the limit, no tensors", func(c *Contents) { c.Views = nil }, Split{MaxBytes: 10}, "the metadata alone takes"},
		{"version 1", func(c *Contents) { c.Version = 1 }, Split{}, "GGUF version 1 cannot be written"},
		{"alignment 0", set(KeyAlignment, Uint32Value(0)), Split{}, "general.alignment 0 cannot be written"},
		{"alignment 48", set(KeyAlignment, Uint32Value(48)), Split{}, "general.alignment 48 cannot be written"},
		{"alignment 2 MiB", set(KeyAlignment, Uint32Value(2<<20)), Split{}, "general.alignment 2097152 cannot be written, want a power of two up to 1048576"},
		{"alignment as i32", set(KeyAlignment, Int32Value(32)), Split{}, "general.alignment stored as i32 cannot be written, want u32"},
		{"alignment as text", set(KeyAlignment, TextValue("32")), Split{}, "general.alignment stored as str"},
		{"key twice", func(c *Contents) { c.Metadata.add(KeyArchitecture, TextValue("y")) }, Split{}, `key "general.architecture" stands twice`},
		{"key too long", set(strings.Repeat("k", 70000), Uint8Value(1)), Split{}, "is too long, at most 65535 bytes"},
		{"absent value", set("k", Value{}), Split{}, `key "k" has no value`},
		{"name twice", view(View{Name: "t1", Type: F32, Shape: []uint64{0}}), Split{}, `tensor "t1" stands twice`},
		{"name too long", view(View{Name: strings.Repeat("n", 70000), Type: F32, Shape: []uint64{0}}), Split{}, "name has 70000 bytes"},
		{"5 dims", view(View{Name: "v", Type: F32, Shape: make([]uint64, 5)}), Split{}, `tensor "v": 5 dims, at most 4`},
		{"bytes that do not match", view(View{Name: "v", Type: Q8_0, Shape: []uint64{32}, Extents: []Extent{{nothing, 0, 32}}}), Split{}, `tensor "v": 32 bytes of data, type Q8_0 and shape [32] want 34`},
		{"no bytes", view(View{Name: "v", Type: F32, Shape: nil}), Split{}, `tensor "v": 0 bytes of data, type F32 and shape [] want 4`},
		{"dims that wrap", view(View{Name: "v", Type: F32, Shape: []uint64{1 << 40, 1 << 40}}), Split{}, "takes more bytes than any file has"},
		{"negative extent", view(View{Name: "v", Type: I8, Shape: []uint64{2}, Extents: []Extent{{nothing, 0, 3}, {nothing, 0, -1}}}), Split{}, `tensor "v": extent 1 cannot be -1 bytes at byte 0`},
		{"negative place", view(View{Name: "v", Type: I8, Shape: []uint64{2}, Extents: []Extent{{nothing, -1, 2}}}), Split{}, "extent 0 cannot be 2 bytes at byte -1"},
		{"no source", view(View{Name: "v", Type: I8, Shape: []uint64{2}, Extents: []Extent{{nil, 0, 2}}}), Split{}, "extent 0 cannot be"},
		{"more than any file", func(c *Contents) { c.Views = sized(1<<59, 1<<59, 1<<59) }, Split{}, `tensor "t2": with it the data is larger than any file`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := NewLayout(contents(test.change), test.split)
			wantError(t, err, test.want)
		})
	}
}

// Cutting does not take time that is quadratic in anything.
func TestLayoutOfManyTensors(t *testing.T) {
	sizes := make([]int64, 100_000)
	for i := range sizes {
		sizes[i] = int64(i % 7)
	}
	sizes[50_000] = 10 << 30
	c := Contents{Version: 3, Metadata: NewMetadata(), Views: sized(sizes...)}
	for _, n := range []int{14, 50_000, 65_535} {
		l, err := NewLayout(c, Split{Shards: n})
		if err != nil || len(l.Shards) != n {
			t.Fatal(n, err)
		}
		wantSound(t, c, l)
	}
}

func TestSplitKeysOfShards(t *testing.T) {
	md := NewMetadata()
	md.Set(KeyArchitecture, TextValue("x"))
	md.Set(KeyAlignment, Uint32Value(64))
	md.Set(KeySplitCount, Uint64Value(9)) // of the source, in another type
	md.Set("x.last", Uint8Value(1))
	spellAll := func(md *Metadata) string {
		var parts []string
		for key, v := range md.All() {
			parts = append(parts, key+"="+spell(v))
		}
		return strings.Join(parts, ", ")
	}
	c := Contents{Version: 3, Metadata: md, Views: sized(1, 2, 3)}
	l, err := NewLayout(c, Split{Shards: 2})
	if err != nil {
		t.Fatal(err)
	}
	one, err := NewLayout(c, Split{})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		md   *Metadata
		want string
	}{
		{l.Shards[0].Metadata, `general.architecture="x", general.alignment=u32 64, split.count=u16 2, x.last=u8 1, split.no=u16 0, split.tensors.count=i32 3`},
		{l.Shards[1].Metadata, `general.alignment=u32 64, split.no=u16 1, split.count=u16 2, split.tensors.count=i32 3`},
		{one.Shards[0].Metadata, `general.architecture="x", general.alignment=u32 64, x.last=u8 1`},
	} {
		if got := spellAll(test.md); got != test.want {
			t.Errorf("got  %s\nwant %s", got, test.want)
		}
	}
	if md.Len() != 4 {
		t.Error("the caller's metadata was changed")
	}
}

// A model of one file that says so keeps its keys, with the number of tensors right.
func TestSplitKeysOfOneFile(t *testing.T) {
	md := NewMetadata()
	md.Set(KeySplitNo, Uint16Value(0))
	md.Set(KeySplitCount, Uint16Value(1))
	md.Set(KeySplitTensors, Int32Value(3))
	for n, want := range map[int]int64{3: 3, 2: 2} {
		l, err := NewLayout(Contents{Version: 3, Metadata: md, Views: sized(make([]int64, n)...)}, Split{})
		if err != nil {
			t.Fatal(err)
		}
		got := l.Shards[0].Metadata
		v, _ := got.Get(KeySplitTensors)
		if total, _ := v.Int(); got.Len() != 3 || total != want {
			t.Errorf("%d tensors: %d keys, total %d", n, got.Len(), total)
		}
	}
}
