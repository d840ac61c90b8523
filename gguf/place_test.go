package gguf

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
)

// A line is a tensor of a test's table.
type line struct {
	name   string
	typ    Type
	offset uint64
	dims   []uint64
}

// dims makes a shape short to write.
func dims(d ...uint64) []uint64 { return d }

// fileOf builds a file from a tensor table and so many bytes of data.
func fileOf(data int, lines ...line) []byte {
	b := little().head(uint64(len(lines)), 0)
	for _, l := range lines {
		b.info(l.name, l.typ, l.offset, l.dims...)
	}
	if len(lines) > 0 {
		b.pad()
	}
	return b.data(data).b
}

func TestWhereDataLies(t *testing.T) {
	f8 := dims(8) // 32 bytes of F32
	tests := []struct {
		name  string
		file  []byte
		sizes string // of the tensors, opaque ones marked
		want  []string
	}{
		{"no tensors", fileOf(0), "[]", nil},
		{"no tensors, padded", little().head(0, 0).pad().b, "[]", nil},
		{"no tensors, partly padded", little().head(0, 0).add(make([]byte, 3)).b, "[]", nil},
		{"no tensors, other bytes where padding would be", fileOf(8), "[]", []string{"warning: m.gguf: 8 bytes after the header belong to no tensor"}},
		{"no tensors, other bytes in the padding", little().head(0, 0).add([]byte{0, 0, 0, 1, 0}).b, "[]", []string{"warning: m.gguf: 5 bytes after the header belong to no tensor"}},
		{"no tensors, other bytes from there on", fileOf(1000), "[]", []string{"warning: m.gguf: 1,000 bytes after the header belong to no tensor"}},
		{"no tensors, other bytes behind padding", little().head(0, 0).pad().data(1000).b, "[]", []string{"warning: m.gguf: 1,000 bytes after the header belong to no tensor"}},
		{"in order", fileOf(96, line{"a", F32, 0, f8}, line{"b", F32, 32, f8}, line{"c", F32, 64, f8}), "[32 32 32]", nil},
		{"last one not padded", fileOf(36, line{"a", F32, 0, f8}, line{"b", F32, 32, dims(1)}), "[32 4]", nil},
		{"last one padded", fileOf(64, line{"a", F32, 0, f8}, line{"b", F32, 32, dims(1)}), "[32 4]", nil},
		{"last one partly padded", fileOf(39, line{"a", F32, 0, f8}, line{"b", F32, 32, dims(1)}), "[32 4]", nil},
		{"trailing bytes", fileOf(64+4096, line{"a", F32, 0, f8}, line{"b", F32, 32, dims(1)}), "[32 4]",
			[]string{"warning: m.gguf: 4,096 bytes after the last tensor belong to no tensor"}},
		{"a second file behind", append(fileOf(32, line{"a", F32, 0, f8}), tiny(little(), 3)...), "[32]",
			[]string{"warning: m.gguf: 184 bytes after the last tensor"}},
		{"table in another order", fileOf(96, line{"c", F32, 64, f8}, line{"a", F32, 0, f8}, line{"b", F32, 32, f8}), "[32 32 32]",
			[]string{`warning: tensor "c": data does not lie in the order of the table from here on`}},
		{"one gap", fileOf(128, line{"a", F32, 0, f8}, line{"b", F32, 96, f8}), "[32 32]",
			[]string{`warning: tensor "b": 64 bytes before it belong to no tensor`}},
		{"gap before all", fileOf(64, line{"a", F32, 32, f8}), "[32]", []string{`warning: tensor "a": 32 bytes before it`}},
		{"two gaps", fileOf(192, line{"a", F32, 32, f8}, line{"b", F32, 160, f8}), "[32 32]",
			[]string{`warning: tensor "a": here is the first of 2 gaps, 128 bytes in all`}},
		{"overlap", fileOf(96, line{"a", F32, 0, dims(16)}, line{"b", F32, 32, dims(16)}), "[64 64]",
			[]string{`error: tensor "b": overlaps tensor "a" by 32 bytes`}},
		{"one place for two", fileOf(32, line{"a", F32, 0, f8}, line{"b", F32, 0, f8}), "[32 32]",
			[]string{`error: tensor "b": overlaps tensor "a" by 32 bytes`}},
		{"one inside another", fileOf(128, line{"a", F32, 0, dims(32)}, line{"b", F32, 32, f8}, line{"c", F32, 96, f8}), "[128 32 32]",
			[]string{`error: tensor "b": overlaps tensor "a" by 32`, `error: tensor "c": overlaps tensor "a" by 32`}},
		{"not aligned", fileOf(64, line{"a", F32, 0, dims(1)}, line{"b", F32, 4, dims(1)}), "[4 4]",
			[]string{`error: tensor "b": offset 4 is not a multiple of the alignment 32`, "warning: 32 bytes after the last tensor"}},

		{"no elements", fileOf(64, line{"a", F32, 0, f8}, line{"z", F32, 32, dims(0)}, line{"b", F32, 32, f8}), "[32 0 32]", nil},
		{"no rows", fileOf(32, line{"z", Q8_0, 0, dims(32, 0)}, line{"b", F32, 0, f8}), "[0 32]", nil},
		{"no elements behind the end", fileOf(32, line{"a", F32, 0, f8}, line{"z", F32, 32, dims(0)}), "[32 0]", nil},
		{"only tensors without elements", fileOf(0, line{"z", F32, 0, dims(0, 4)}), "[0]", nil},
		{"scalar", fileOf(4, line{"s", F32, 0, nil}), "[4]", nil},

		{"more than there is", fileOf(64, line{"a", F16, 0, dims(1024, 1024)}), "[2097152]",
			[]string{`error: m.gguf: tensor "a": data ends at byte 64 of 2097152: the file is truncated: it has 160 bytes, 2,097,088 more are needed (tensors affected: 1)`}},
		{"far outside", fileOf(64, line{"a", F32, 1 << 40, f8}), "[32]",
			[]string{"warning: 1,099,511,627,776 bytes before it", `error: tensor "a": data ends at byte 0 of 32`}},
		{"end that wraps", fileOf(64, line{"a", F32, 0, f8}, line{"b", I8, 32, dims(1<<63 - 1)}), "[32 1152921504606846976]",
			[]string{`error: tensor "b": shape [9223372036854775807] of type I8 takes more bytes than any file has`, "warning: 32 bytes after"}},
		{"size that wraps", fileOf(64, line{"a", F64, 0, dims(1<<61 + 1)}), "[1152921504606846976]",
			[]string{`error: tensor "a": shape [2305843009213693953] of type F64`, "warning: 64 bytes after"}},
		{"greatest offset", fileOf(64, line{"a", I8, 1 << 60, dims(1 << 60)}), "[1152921504606846976]",
			[]string{"warning: bytes before it", `error: tensor "a": data ends at byte 0 of 1152921504606846976`}},

		{"unknown type", fileOf(192, line{"a", 1000, 0, dims(999)}, line{"b", F32, 128, f8}, line{"c", 1000, 160, dims(3)}), "[128* 32 32*]",
			[]string{"warning: m.gguf: type unknown(1000) of 2 tensors has no known block size; a tensor's size is taken to be the span to the next one"}},
		{"unknown type at the end, not padded", fileOf(41, line{"a", F32, 0, f8}, line{"b", 1000, 32, dims(3)}), "[32 9*]", []string{"warning: type unknown(1000) of 1 tensor has"}},
		{"ambiguous type", fileOf(27712+32, line{"a", 36, 0, dims(6912, 16)}, line{"b", F32, 27712, f8}), "[27712* 32]",
			[]string{"warning: type unknown(36) (IQ4_NL_4_4, removed from ggml; a ternary type in some forks) of 1 tensor has"}},
		{"fork's type", fileOf(46, line{"a", 64, 0, dims(256)}), "[46*]", []string{"warning: type unknown(64) (IQ1_XS in one fork, 46 bytes per 256)"}},
		{"unknown type without elements", fileOf(32, line{"z", 1000, 0, dims(0)}, line{"a", F32, 0, f8}), "[0 32]", []string{"warning: type unknown(1000)"}},
		{"unknown type before one without elements", fileOf(64, line{"a", 1000, 0, dims(9)}, line{"z", F32, 0, dims(0)}, line{"z2", F32, 32, dims(0)}), "[64* 0 0]",
			[]string{"warning: type unknown(1000)"}},
		{"two unknown types in one place", fileOf(32, line{"a", 1000, 0, dims(9)}, line{"b", 1000, 0, dims(9)}), "[0* 32*]",
			[]string{"warning: type unknown(1000)", `error: tensor "a": no bytes lie between its offset 0 and the next tensor`}},
		{"unknown type behind the end", fileOf(32, line{"a", F32, 0, f8}, line{"b", 1000, 64, dims(9)}), "[32 0*]",
			[]string{"warning: type unknown(1000)", `error: tensor "b": no bytes lie`, `warning: tensor "b": 32 bytes before it`}},
		{"row of part of a block", fileOf(4*96, line{"a", Q4_K, 0, dims(160, 4)}, line{"b", F32, 352, f8}), "[352* 32]",
			[]string{`error: tensor "a": row of 160 elements is not a whole number of Q4_K blocks of 256`}},
		{"row of part of a block at the end", fileOf(51, line{"a", MXFP4, 0, dims(48, 2)}), "[51*]",
			[]string{`error: tensor "a": row of 48 elements is not a whole number of MXFP4 blocks of 32`}},
		{"scalar of a block type", fileOf(34, line{"a", Q8_0, 0, nil}), "[34*]", []string{"error: row of 1 elements"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := mustParse(t, test.file)
			sizes := []string{}
			for _, tensor := range f.Tensors {
				mark := ""
				if tensor.Opaque {
					mark = "*"
				}
				sizes = append(sizes, fmt.Sprint(tensor.Size, mark))
			}
			if got := "[" + strings.Join(sizes, " ") + "]"; got != test.sizes {
				t.Errorf("sizes %s, want %s", got, test.sizes)
			}
			wantProblems(t, f.Problems, test.want...)
		})
	}
}

// However much the tensors of a file declare, the sum of their sizes is no less.
func TestSumsOfSizesDoNotWrap(t *testing.T) {
	var lines []line
	for i := range 12 {
		lines = append(lines, line{fmt.Sprint(i), I8, 0, dims(1 << 60)})
	}
	for _, lines := range [][]line{lines, {{"a", I8, 0, dims(1 << 62)}}, append(lines, line{"a", I8, 0, dims(1<<63 - 1)})} {
		m, err := NewModel("m", mustParse(t, fileOf(32, lines...)))
		if err != nil {
			t.Fatal(err)
		}
		want := int64(math.MaxInt64)
		if len(lines) < 8 {
			want = int64(len(lines)) << 60
		}
		if got := m.TensorBytes(); got != want {
			t.Errorf("%d tensors have %d bytes, want %d", len(lines), got, want)
		}
	}
	for _, size := range []int64{0, 1, 1 << 62, math.MaxInt64} {
		if got := AddSize(size, math.MaxInt64-size); got != math.MaxInt64 {
			t.Errorf("%d and what is left of 64 bits: %d", size, got)
		}
		if got := AddSize(math.MaxInt64, size); got != math.MaxInt64 {
			t.Errorf("%d more than the greatest size: %d", size, got)
		}
	}
}

func TestLongNames(t *testing.T) {
	var lines []line
	names := []string{strings.Repeat("a", 63), strings.Repeat("b", 64), strings.Repeat("c", 65), strings.Repeat("d", 200),
		strings.Repeat("e", 63) + "x", strings.Repeat("e", 63) + "y"}
	for i, name := range names {
		lines = append(lines, line{name, F32, uint64(32 * i), dims(8)})
	}
	f := mustParse(t, fileOf(32*len(names), lines...))
	for i, tensor := range f.Tensors {
		if tensor.Name != names[i] {
			t.Errorf("name %d was changed to %q", i, tensor.Name)
		}
	}
	wantProblems(t, f.Problems, "warning: name has 64 bytes, llama.cpp refuses more than 63", "warning: 65 bytes", "warning: 200 bytes",
		"warning: 64 bytes", "warning: 64 bytes")
}

func TestTaughtTypes(t *testing.T) {
	file := fileOf(96+64, line{"a", 64, 0, dims(512)}, line{"b", F32, 96, dims(16)})
	f := mustParse(t, file, WithType(64, TypeInfo{"IQ1_XS", 256, 46, 0}))
	if a := f.Tensors[0]; a.Opaque || a.Size != 92 || a.Type.String() != "unknown(64)" {
		t.Errorf("opaque %v, %d bytes, called %s", a.Opaque, a.Size, a.Type)
	}
	wantProblems(t, f.Problems)
	for _, info := range []TypeInfo{{"x", 0, 46, 0}, {"x", 256, 0, 0}, {"x", -256, 46, 0}, {"x", 256, 46, -1}} {
		_, err := parse(file, WithType(64, info))
		wantError(t, err, "both must be positive")
	}
	f = mustParse(t, file, WithType(64, TypeInfo{"x", 300, 46, 0}))
	wantProblems(t, f.Problems, `error: tensor "a": row of 512 elements is not a whole number of unknown(64) blocks of 300`)
}

// Readers give a tensor's bytes, and an error rather than fewer of them.
func TestTensorReaders(t *testing.T) {
	b := little().head(2, 0).info("a", I8, 0, 5).info("b", I8, 32, 3).pad()
	b.add([]byte("hello"), make([]byte, 27), []byte("you"))
	f := mustParse(t, b.b)
	for i, want := range []string{"hello", "you"} {
		tensor := f.Tensors[i]
		got, err := io.ReadAll(tensor.Reader())
		if err != nil || string(got) != want {
			t.Errorf("reader gives %q, %v", got, err)
		}
		if at := tensor.DataOffset(); string(b.b[at:at+tensor.Size]) != want || tensor.File() != f {
			t.Errorf("data offset %d", at)
		}
	}
	if whole := f.Tensors[0].View(); whole.Size() != 5 || !bytes.Equal(whole.Extents[0].bytes(t), []byte("hello")) {
		t.Error("view is not the tensor")
	}
}

func (e Extent) bytes(t *testing.T) []byte {
	t.Helper()
	b := make([]byte, e.Length)
	if err := readFull(e.Source, "extent", b, e.Offset); err != nil {
		t.Fatal(err)
	}
	return b
}
