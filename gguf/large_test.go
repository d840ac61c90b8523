package gguf

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"testing"
)

// A runs file is made of runs of one byte each: terabytes that take no memory. It can
// be written front to back and read anywhere.
type runs struct {
	ends []int64 // where each run ends
	fill []byte  // what it is made of
}

func (r *runs) size() int64 {
	if len(r.ends) == 0 {
		return 0
	}
	return r.ends[len(r.ends)-1]
}

func (r *runs) Write(p []byte) (int, error) {
	for i := 0; i < len(p); {
		n := 1
		for i+n < len(p) && p[i+n] == p[i] {
			n++
		}
		r.add(p[i], int64(n))
		i += n
	}
	return len(p), nil
}

func (r *runs) add(b byte, n int64) {
	if last := len(r.fill) - 1; last >= 0 && r.fill[last] == b {
		r.ends[last] += n
		return
	}
	r.ends = append(r.ends, r.size()+n)
	r.fill = append(r.fill, b)
}

func (r *runs) ReadAt(p []byte, off int64) (int, error) {
	n := 0
	for i, end := range r.ends {
		for n < len(p) && off+int64(n) < end {
			k := min(int64(len(p)-n), end-off-int64(n))
			part := p[n : n+int(k)]
			for j := range part {
				part[j] = r.fill[i]
			}
			n += int(k)
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// large is a file with a tensor of 5 GiB, and others before and behind it.
func large() (*runs, []byte) {
	const size = 5 << 30
	b := little().head(3, 0).info("small", I8, 0, 32).info("big", I8, 32, size).info("last", I8, 32+size, 4).pad()
	r := &runs{}
	r.Write(b.b)
	r.Write(bytes.Repeat([]byte{1}, 32))
	r.add(2, size)
	r.Write([]byte{3, 4, 5, 6})
	return r, b.b
}

func TestOffsetsBeyond4GiB(t *testing.T) {
	r, header := large()
	f, err := NewFile("m.gguf", r, r.size())
	if err != nil {
		t.Fatal(err)
	}
	wantProblems(t, f.Problems)
	big, last := f.Tensors[1], f.Tensors[2]
	if big.Size != 5<<30 || last.DataOffset() != int64(len(header))+32+5<<30 {
		t.Errorf("big has %d bytes, last begins at %d", big.Size, last.DataOffset())
	}
	got, err := io.ReadAll(last.Reader())
	if err != nil || !bytes.Equal(got, []byte{3, 4, 5, 6}) {
		t.Errorf("last reads as %v, %v", got, err)
	}
	tail := make([]byte, 3)
	if _, err := big.Reader().ReadAt(tail, 5<<30-3); err != nil || !bytes.Equal(tail, []byte{2, 2, 2}) {
		t.Errorf("big ends in %v, %v", tail, err)
	}
	// One byte fewer is missed, 5 GiB away.
	if f, err = NewFile("m.gguf", r, r.size()-1); err != nil {
		t.Fatal(err)
	}
	wantProblems(t, f.Problems, `error: tensor "last": data ends at byte 3 of 4`)
}

// Layouts of terabytes are exact, and headers with such offsets are read back.
func TestLayoutOfTerabytes(t *testing.T) {
	const size = 3 << 40
	views := []View{
		{Name: "a", Type: Q8_0, Shape: []uint64{1 << 20, 1 << 21}, Extents: []Extent{{nothing, 0, 34 << 36}}},
		{Name: "b", Type: I8, Shape: []uint64{size, 1}, Extents: []Extent{{nothing, 0, size}}},
		{Name: "c", Type: F32, Shape: []uint64{1}, Extents: []Extent{{nothing, 0, 4}}},
	}
	l, err := NewLayout(Contents{Version: 3, Metadata: NewMetadata(), Views: views}, Split{})
	if err != nil {
		t.Fatal(err)
	}
	shard := l.Shards[0]
	if fmt.Sprint(shard.Offsets) != fmt.Sprint([]int64{0, 34 << 36, 34<<36 + size}) {
		t.Errorf("offsets %d", shard.Offsets)
	}
	r := &runs{}
	if _, err := NewWriter(r, shard); err != nil {
		t.Fatal(err)
	}
	r.add(9, shard.Size-r.size())
	f, err := NewFile("m.gguf", r, r.size())
	if err != nil {
		t.Fatal(err)
	}
	wantProblems(t, f.Problems)
	if f.Tensors[2].Offset != 34<<36+size {
		t.Errorf("last tensor at %d", f.Tensors[2].Offset)
	}
}

// A slab far inside a large tensor is copied byte for byte.
func TestCopyFromBeyond4GiB(t *testing.T) {
	r, _ := large()
	f, err := NewFile("m.gguf", r, r.size())
	if err != nil {
		t.Fatal(err)
	}
	big, last := f.Tensors[1], f.Tensors[2]
	v := View{Name: "cut", Type: I8, Shape: []uint64{8}}
	v.Append(Extent{r, big.DataOffset() + 5<<30 - 4, 4})
	v.Append(Extent{r, last.DataOffset(), 4})
	if len(v.Extents) != 1 {
		t.Errorf("neighbours were not merged: %v", v.Extents)
	}
	l, err := NewLayout(Contents{Version: 3, Metadata: NewMetadata(), Views: []View{v}}, Split{})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := l.Shards[0].Write(context.Background(), &b, make([]byte, 3), nil); err != nil {
		t.Fatal(err)
	}
	if got := b.Bytes()[l.Shards[0].DataOffset:][:8]; !bytes.Equal(got, []byte{2, 2, 2, 2, 3, 4, 5, 6}) {
		t.Errorf("copied %v", got)
	}
}

// Vocabularies of several million tokens open; arrays without end are refused before they
// take long.
func TestHowManyTokensThereCanBe(t *testing.T) {
	array := func(elem ValueType, count uint64, unit int) *runs {
		r := &runs{}
		r.Write(little().head(0, 1).pair("tokens", Array, uint32(elem), count).b)
		r.add(0, int64(count)*int64(unit))
		return r
	}
	tests := []struct {
		name  string
		file  *runs
		fault string
	}{
		{"six million tokens", array(Text, 6e6, 8), ""},
		{"a hole of strings", array(Text, 1<<24+1, 8), "with this array of 16777217, more than 16777216 strings and arrays stand in arrays"},
		{"a hole of arrays", array(Array, 1<<24+1, 12), "with this array of 16777217, more than 16777216 strings and arrays stand in arrays"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f, err := NewFile("m.gguf", test.file, test.file.size())
			if test.fault != "" {
				wantError(t, err, test.fault)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if v, _ := f.Metadata.Get("tokens"); v.Len() != 6e6 {
				t.Errorf("%d tokens", v.Len())
			}
		})
	}
}
