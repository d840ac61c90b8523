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
		if !known || info != (TypeInfo{test.name, test.elements, test.bytes, 0}) {
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

// The parts of each block of ik_llama.cpp, as its structs list them, and what a row has
// besides.
func TestBlockSizesOfIK(t *testing.T) {
	const half, k = 2, 256
	tests := []struct {
		id   uint32
		info TypeInfo
	}{
		{133, TypeInfo{"Q6_0", 32, half + 32/2 + 32/4, 0}}, {134, TypeInfo{"IQ1_BN", 64, 12 + 1, 2}}, {135, TypeInfo{"IQ2_BN", 64, 64 / 4, 4}},
		{137, TypeInfo{"IQ2_K", k, half + 2 + k/32 + k/4, 0}}, {138, TypeInfo{"IQ3_K", k, half + 2*2 + k/32 + k/4 + k/8, 0}},
		{139, TypeInfo{"IQ4_K", k, half + 2 + k/2 + 3*k/64, 0}}, {140, TypeInfo{"IQ5_K", k, half + 2 + k/2 + k/8 + 3*k/64, 0}},
		{141, TypeInfo{"IQ6_K", k, half + 2 + k/2 + k/4 + k/16, 0}}, {144, TypeInfo{"IQ4_KS", k, k/32 + k/2, 4}},
		{145, TypeInfo{"IQ2_KS", k, 2 + k/64 + k/4, 2}}, {146, TypeInfo{"IQ4_KSS", k, k / 8 * 4, 4}}, {151, TypeInfo{"Q8_KV", 32, 32, 4 + 4}}, {152, TypeInfo{"IQ5_KS", k, k/32 + k/2 + k/8, 4}},
		{153, TypeInfo{"IQ2_KT", k, k/4 + k/64, 4}}, {154, TypeInfo{"IQ3_KT", k, k/4 + k/8 + k/64, 4}}, {155, TypeInfo{"IQ4_KT", k, k / 2, 4}},
		{156, TypeInfo{"IQ3_KS", k, 2 + k/64 + k/4 + k/8, 2}}, {157, TypeInfo{"IQ2_KL", k, 2 + k/64 + k/4 + k/16, 2}},
		{158, TypeInfo{"IQ1_KT", k, k/8 + k/16 + k/32, 4}},
		{219, TypeInfo{"IQ1_S_R4", 32, 24 / 4, 2}}, {229, TypeInfo{"IQ1_M_R4", 32, 28 / 4, 2}},
		{397, TypeInfo{"Q8_K_R16", k, half + k, 0}}, {398, TypeInfo{"Q8_KV_R8", 32, 32, 4}}, {399, TypeInfo{"Q8_K_R8", k, half + k, 0}},
	}
	listed := map[Type]bool{}
	for _, test := range tests {
		listed[Type(test.id)] = true
		if got := ikTypes[Type(test.id)]; got != test.info {
			t.Errorf("type %d: got %+v, want %+v", test.id, got, test.info)
		}
	}
	// The others hold the rows of another type side by side: their ids and sizes are its.
	for id, info := range ikTypes {
		plain, known := Type(id - 200).Info()
		switch stem := info.Name[:max(0, strings.LastIndex(info.Name, "_"))]; {
		case listed[id]:
		case id == 233:
			plain, known = Type(133).Info()
		case id == 202 || id == 353:
			known = info.Name == "Q4_0_R8" || info.Name == "MXFP4_R8"
			plain = typeTable[map[Type]Type{202: Q4_0, 353: MXFP4}[id]]
		default:
			known = known && plain.Name == stem
		}
		if !listed[id] && (!known || info.Elements != plain.Elements || info.Bytes != plain.Bytes || info.Row != plain.Row) {
			t.Errorf("type %d: %+v beside %+v", id, info, plain)
		}
		if got, err := ParseType(strings.ToLower(info.Name)); err != nil || got != id {
			t.Errorf("ParseType(%q) = %v, %v", info.Name, got, err)
		}
	}
}

func TestTypesWithoutOneMeaning(t *testing.T) {
	for _, id := range []Type{4, 5, 31, 32, 33, 36, 37, 38, 43, 64, 136, 147, 159, 203, 1000, 1<<32 - 1} {
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
		{Type(156), []uint64{512, 3, 5}, (2*102 + 2) * 3 * 5, ""}, {Type(156), []uint64{0, 3}, 0, ""}, {Type(156), []uint64{256, 0}, 0, ""},
		{Type(144), []uint64{256, 1 << 53, 8}, 0, "takes more bytes"},
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
	types := []Type{MXFP4, NVFP4, Q1_0, Q2_0, TQ1_0, IQ1_M, 159, 203, 1000}
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

// TestRowsOfIKAreMeasured has rows of IQ3_KS that lack the two bytes which each has besides
// its blocks: the second tensor begins before the first one ends.
func TestRowsOfIKAreMeasured(t *testing.T) {
	for size, want := range map[uint64]string{(102 + 2) * 32: "", 102 * 32: "overlaps"} {
		b := little().head(2, 0).info("a", 156, 0, 256, 32).info("b", F32, size, 8)
		f := mustParse(t, b.pad().data(int(size)+32).b)
		err := joinErrors(f.Problems)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%d bytes: %v, want %q", size, err, want)
		}
		if f.Tensors[0].Type.String() != "IQ3_KS" || f.Tensors[0].Opaque {
			t.Errorf("a tensor of type %s", f.Tensors[0].Type)
		}
	}
}

// TestSizeOfRowsIsBounded has types whose rows have so much besides their blocks that all rows
// together have more than a number of 64 bits holds.
func TestSizeOfRowsIsBounded(t *testing.T) {
	for _, row := range []int64{1 << 40, 1 << 41} {
		info := TypeInfo{Name: "x", Elements: 1, Bytes: 1, Row: row}
		for _, rows := range []uint64{1 << 10, 1 << 22, 1 << 23, 1 << 24} {
			size, fault := dataSize(info, true, []uint64{1, rows})
			if whole := float64(row)*float64(rows) + float64(rows); (fault == shapeFine) != (whole <= maxOffset) || fault == shapeFine && float64(size) != whole {
				t.Errorf("%d rows of %d: %d bytes, fault %v", rows, row, size, fault)
			}
		}
	}
}
