package gguf

import (
	"bytes"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
)

// allocated returns the bytes that fn allocates altogether, those given back included.
func allocated(fn func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// repeat adds n parts to a builder.
func (b *builder) repeat(n int, part func(b *builder, i int)) *builder {
	for i := range n {
		part(b, i)
	}
	return b
}

// TestMemoryOfSmallFiles opens files of just under a MiB that are all header, each of
// the kind that takes most for its size. What is allocated altogether bounds the peak.
func TestMemoryOfSmallFiles(t *testing.T) {
	const size = 1 << 20
	nested := little().add(uint32(Array), uint64(0)).b
	tests := []struct {
		name string
		file *builder
	}{
		{"pairs", little().head(0, size/16).repeat(size/16, func(b *builder, i int) {
			b.add(uint64(3), []byte{byte(i), byte(i >> 8), byte(i >> 16)}, uint32(Uint8), uint8(0))
		})},
		{"repeated pairs", little().head(0, size/13-2).add(make([]byte, size-26))},
		{"pairs of empty strings", little().head(0, size/23).repeat(size/23, func(b *builder, i int) {
			b.add(uint64(3), []byte{byte(i), byte(i >> 8), byte(i >> 16)}, uint32(Text), uint64(0))
		})},
		{"tensors", little().head(size/27, 0).repeat(size/27, func(b *builder, i int) {
			b.add(uint64(3), []byte{byte(i), byte(i >> 8), byte(i >> 16)}, uint32(0), uint32(0), uint64(32*i))
		})},
		{"tensors with everything wrong", little().head(size/27, 0).repeat(size/27, func(b *builder, i int) {
			b.add(uint64(3), []byte{byte(i), byte(i >> 8), byte(i >> 16)}, uint32(0), uint32(999), 1<<40-uint64(i))
		})},
		{"repeated tensors", little().head(size/24-2, 0).add(make([]byte, size-48))},
		{"long names", little().head(16, 0).repeat(16, func(b *builder, i int) {
			b.info(strings.Repeat("\x01", 65000)+fmt.Sprint(i), Q8_0, 1, 7)
		})},
		{"empty strings", little().head(0, 1).pair("k", Array, uint32(Text), uint64(size/8-10), make([]byte, size-80))},
		{"nested arrays", little().head(0, 1).pair("k", Array, uint32(Array), uint64(size/12-10), bytes.Repeat(nested, size/12-10))},
		{"strings of the greatest size that is kept", little().head(0, 16).repeat(16, func(b *builder, i int) {
			b.pair(fmt.Sprint(i), Text, strings.Repeat("x", inlineValue-8))
		})},
		{"a set of 65535", little().head(0, 1).pair(KeySplitCount, Uint16, uint16(math.MaxUint16))},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if len(test.file.b) > size+1<<16 {
				t.Fatalf("test file has %d bytes", len(test.file.b))
			}
			total := allocated(func() {
				f, err := parse(test.file.b)
				if err == nil {
					m, _ := NewModel("m", f)
					err = m.Err()
				}
				if err != nil {
					_ = err.Error()
				}
			})
			t.Logf("%d KiB allocated", total>>10)
			if total > 48<<20 {
				t.Errorf("%d bytes allocated for a file of %d", total, len(test.file.b))
			}
		})
	}
}

// A file of a terabyte that declares tens of billions of everything, with zeros behind
// it, is given up soon and in little memory.
func TestMemoryOfSparseFiles(t *testing.T) {
	const size = 1 << 40
	tests := []struct {
		name string
		head *builder
	}{
		{"tensors", little().head(size/25, 0)},
		{"pairs", little().head(0, size/14)},
		{"long array", little().head(0, 1).pair("k", Array, uint32(Uint64), uint64(size/8-100))},
		{"strings", little().head(0, 1).pair("k", Array, uint32(Text), uint64(size/8-100))},
		{"arrays", little().head(0, 1).pair("k", Array, uint32(Array), uint64(size/12-100))},
		{"long string", little().head(0, 1).pair("k", Text, uint64(size-100))},
		{"long key", little().head(0, 1).add(uint64(size - 100))},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			total := allocated(func() {
				f, err := NewFile("m.gguf", sparse(test.head.b), size)
				if err != nil {
					return
				}
				NewModel("m", f)
				for _, v := range f.Metadata.All() {
					v.Text()
					v.Raw()
				}
			})
			if total > 8<<20 {
				t.Errorf("%d bytes allocated", total)
			}
		})
	}
}

// sparse is a file without end: some bytes, then zeros.
type sparse []byte

func (s sparse) ReadAt(p []byte, off int64) (int, error) {
	clear(p)
	if off < int64(len(s)) {
		copy(p, s[off:])
	}
	return len(p), nil
}
