package gguf

import (
	"fmt"
	"strings"
	"testing"
)

// The parts of each block, as ggml's structs list them: scales, then packed elements.
func TestBlockSizes(t *testing.T) {
	const half = 2 // an f16
	tests := []struct {
		id       uint32
		name     string
		elements int64
		bytes    int64
	}{
		{0, "F32", 1, 4}, {1, "F16", 1, 2}, {30, "BF16", 1, 2}, {28, "F64", 1, 8},
		{24, "I8", 1, 1}, {25, "I16", 1, 2}, {26, "I32", 1, 4}, {27, "I64", 1, 8},
		{2, "Q4_0", 32, half + 32/2}, {3, "Q4_1", 32, 2*half + 32/2},
		{6, "Q5_0", 32, half + 4 + 32/2}, {7, "Q5_1", 32, 2*half + 4 + 32/2},
		{8, "Q8_0", 32, half + 32}, {9, "Q8_1", 32, 2*half + 32},
		{10, "Q2_K", 256, 256/16 + 256/4 + 2*half}, {11, "Q3_K", 256, 256/8 + 256/4 + 12 + half},
		{12, "Q4_K", 256, 2*half + 12 + 256/2}, {13, "Q5_K", 256, 2*half + 12 + 256/8 + 256/2},
		{14, "Q6_K", 256, 256/2 + 256/4 + 256/16 + half}, {15, "Q8_K", 256, 4 + 256 + 256/16*2},
		{16, "IQ2_XXS", 256, half + 256/8*2}, {17, "IQ2_XS", 256, half + 256/8*2 + 256/32},
		{18, "IQ3_XXS", 256, half + 3*(256/8)}, {19, "IQ1_S", 256, half + 256/8 + 256/32*2},
		{20, "IQ4_NL", 32, half + 32/2}, {21, "IQ3_S", 256, half + 256/4 + 256/32 + 256/8 + 256/64},
		{22, "IQ2_S", 256, half + 256/4 + 256/32 + 256/32}, {23, "IQ4_XS", 256, half + 2 + 256/64 + 256/2},
		{29, "IQ1_M", 256, 256/8 + 256/16 + 256/32}, {34, "TQ1_0", 256, (256-4*256/64)/5 + 256/64 + half},
		{35, "TQ2_0", 256, 256/4 + half}, {39, "MXFP4", 32, 1 + 32/2}, {40, "NVFP4", 64, 64/16 + 64/2},
		{41, "Q1_0", 128, half + 128/8}, {42, "Q2_0", 64, half + 64/4},
	}
	if len(tests) != len(Types()) {
		t.Errorf("%d types are known, %d are checked", len(Types()), len(tests))
	}
	for _, test := range tests {
		typ := Type(test.id)
		info, known := typ.Info()
		if !known || info != (TypeInfo{test.name, test.elements, test.bytes}) {
			t.Errorf("type %d: got %+v, want %s of %d bytes per %d", test.id, info, test.name, test.bytes, test.elements)
		}
		if typ.String() != test.name {
			t.Errorf("type %d is called %q", test.id, typ)
		}
		for _, s := range []string{test.name, strings.ToLower(test.name)} {
			if got, err := ParseType(s); err != nil || got != typ {
				t.Errorf("ParseType(%q) = %v, %v", s, got, err)
			}
		}
	}
}

func TestTypesWithoutOneMeaning(t *testing.T) {
	for _, id := range []Type{4, 5, 31, 32, 33, 36, 37, 38, 43, 64, 153, 202, 1000, 1<<32 - 1} {
		if info, known := id.Info(); known {
			t.Errorf("type %d counts as %s", uint32(id), info.Name)
		}
		want := fmt.Sprintf("unknown(%d)", uint32(id))
		if id.String() != want {
			t.Errorf("type %d is called %q, want %q", uint32(id), id, want)
		}
		if got, err := ParseType(want); err != nil || got != id {
			t.Errorf("ParseType(%q) = %v, %v", want, got, err)
		}
	}
	for _, s := range []string{"", "Q4", "unknown", "unknown()", "unknown(-1)", "unknown(4294967296)", "unknown(1", "unknown(1))"} {
		if got, err := ParseType(s); err == nil {
			t.Errorf("ParseType(%q) = %v", s, got)
		}
	}
}

func TestTypeSize(t *testing.T) {
	tests := []struct {
		typ   Type
		shape []uint64
		want  int64
		fault string
	}{
		{F32, nil, 4, ""}, {F32, []uint64{0}, 0, ""}, {Q8_0, []uint64{32, 0}, 0, ""}, {Q8_0, []uint64{0, 5}, 0, ""},
		{IQ1_S, []uint64{7168, 3072, 896}, 7168 / 256 * 50 * 3072 * 896, ""},
		{I8, []uint64{5 << 30}, 5 << 30, ""},
		{Q4_K, []uint64{160, 4}, 0, "type Q4_K: row of 160 elements is not a whole number of blocks of 256"},
		{MXFP4, []uint64{48, 2}, 0, "row of 48 elements"}, {Q8_0, nil, 0, "row of 1 elements"},
		{Type(36), []uint64{6912, 16}, 0, "type unknown(36): block size is not known"},
		{F64, []uint64{1 << 62}, 0, "shape [4611686018427387904] of type F64 takes more bytes than any file has"},
		{F32, []uint64{1<<64 - 1, 2}, 0, "takes more bytes"},
	}
	for _, test := range tests {
		got, err := TypeSize(test.typ, test.shape)
		if test.fault != "" {
			wantError(t, err, test.fault)
		} else if err != nil || got != test.want {
			t.Errorf("%s %v: got %d, %v, want %d", test.typ, test.shape, got, err, test.want)
		}
	}
}

// Types that nobody here knows do not stop reading: their bytes reach to the next
// tensor, or to the end of the file.
func TestOpaqueTypes(t *testing.T) {
	b := little().head(9, 0)
	types := []Type{MXFP4, NVFP4, Q1_0, Q2_0, TQ1_0, IQ1_M, 153, 202, 1000}
	for i, typ := range types {
		b.info(fmt.Sprintf("t%d", i), typ, uint64(i)*64, 256)
	}
	f := mustParse(t, b.pad().data(8*64+70).b)
	for i, want := range map[int]int64{6: 64, 7: 64, 8: 70} {
		if got := f.Tensors[i]; !got.Opaque || got.Size != want {
			t.Errorf("%s: opaque %v, %d bytes, want %d", got.Type, got.Opaque, got.Size, want)
		}
	}
	if got := f.Tensors[5]; got.Opaque || got.Size != 56 {
		t.Errorf("IQ1_M: opaque %v, %d bytes", got.Opaque, got.Size)
	}
}
