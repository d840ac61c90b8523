package gguf

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// A Type is a ggml tensor type id as stored in a file. An id that this package does
// not know is carried as it is.
type Type uint32

// The ggml type ids in use. Ids 4, 5, 31 to 33 and 36 to 38 belonged to types that
// were removed; some forks gave them other meanings, so they count as unknown.
const (
	F32     Type = 0
	F16     Type = 1
	Q4_0    Type = 2
	Q4_1    Type = 3
	Q5_0    Type = 6
	Q5_1    Type = 7
	Q8_0    Type = 8
	Q8_1    Type = 9
	Q2_K    Type = 10
	Q3_K    Type = 11
	Q4_K    Type = 12
	Q5_K    Type = 13
	Q6_K    Type = 14
	Q8_K    Type = 15
	IQ2_XXS Type = 16
	IQ2_XS  Type = 17
	IQ3_XXS Type = 18
	IQ1_S   Type = 19
	IQ4_NL  Type = 20
	IQ3_S   Type = 21
	IQ2_S   Type = 22
	IQ4_XS  Type = 23
	I8      Type = 24
	I16     Type = 25
	I32     Type = 26
	I64     Type = 27
	F64     Type = 28
	IQ1_M   Type = 29
	BF16    Type = 30
	TQ1_0   Type = 34
	TQ2_0   Type = 35
	MXFP4   Type = 39
	NVFP4   Type = 40
	Q1_0    Type = 41
	Q2_0    Type = 42
)

// TypeInfo is the storage of a ggml type: every Elements consecutive elements of a
// row take Bytes bytes, and each row takes Row bytes besides.
type TypeInfo struct {
	Name     string
	Elements int64
	Bytes    int64
	Row      int64 // 0 in all types of ggml itself
}

// Block sizes as in ggml's ggml-common.h, where each block struct is asserted to
// have exactly this size.
var typeTable = [...]TypeInfo{
	F32:     {"F32", 1, 4, 0},
	F16:     {"F16", 1, 2, 0},
	Q4_0:    {"Q4_0", 32, 18, 0},
	Q4_1:    {"Q4_1", 32, 20, 0},
	Q5_0:    {"Q5_0", 32, 22, 0},
	Q5_1:    {"Q5_1", 32, 24, 0},
	Q8_0:    {"Q8_0", 32, 34, 0},
	Q8_1:    {"Q8_1", 32, 36, 0},
	Q2_K:    {"Q2_K", 256, 84, 0},
	Q3_K:    {"Q3_K", 256, 110, 0},
	Q4_K:    {"Q4_K", 256, 144, 0},
	Q5_K:    {"Q5_K", 256, 176, 0},
	Q6_K:    {"Q6_K", 256, 210, 0},
	Q8_K:    {"Q8_K", 256, 292, 0},
	IQ2_XXS: {"IQ2_XXS", 256, 66, 0},
	IQ2_XS:  {"IQ2_XS", 256, 74, 0},
	IQ3_XXS: {"IQ3_XXS", 256, 98, 0},
	IQ1_S:   {"IQ1_S", 256, 50, 0},
	IQ4_NL:  {"IQ4_NL", 32, 18, 0},
	IQ3_S:   {"IQ3_S", 256, 110, 0},
	IQ2_S:   {"IQ2_S", 256, 82, 0},
	IQ4_XS:  {"IQ4_XS", 256, 136, 0},
	I8:      {"I8", 1, 1, 0},
	I16:     {"I16", 1, 2, 0},
	I32:     {"I32", 1, 4, 0},
	I64:     {"I64", 1, 8, 0},
	F64:     {"F64", 1, 8, 0},
	IQ1_M:   {"IQ1_M", 256, 56, 0},
	BF16:    {"BF16", 1, 2, 0},
	TQ1_0:   {"TQ1_0", 256, 54, 0},
	TQ2_0:   {"TQ2_0", 256, 66, 0},
	MXFP4:   {"MXFP4", 32, 17, 0},
	NVFP4:   {"NVFP4", 64, 36, 0},
	Q1_0:    {"Q1_0", 128, 18, 0},
	Q2_0:    {"Q2_0", 64, 18, 0},
}

// ambiguousTypes says what is known of ids that have no single meaning.
var ambiguousTypes = map[Type]string{
	4:  "Q4_2, removed from ggml",
	5:  "Q4_3, removed from ggml",
	31: "Q4_0_4_4, removed from ggml",
	32: "Q4_0_4_8, removed from ggml",
	33: "Q4_0_8_8, removed from ggml",
	36: "IQ4_NL_4_4, removed from ggml; a ternary type in some forks",
	37: "IQ4_NL_4_8, removed from ggml; other types in some forks",
	38: "IQ4_NL_8_8, removed from ggml; other types in some forks",
}

// forkTypes are those of unslothai/llama.cpp whose ids nothing else uses: 43 to 45 of its
// branch iq1-narrow-kimi-base, 64 to 66 of iq1-narrow (ggml.h and ggml-common.h).
var forkTypes = map[Type]TypeInfo{
	43: {"IQ1_XS", 256, 46, 0},
	44: {"IQ1_XXS", 256, 42, 0},
	45: {"IQ1_XXXS", 256, 38, 0},
	64: {"IQ1_XS", 256, 46, 0},
	65: {"IQ1_XXS", 256, 42, 0},
	66: {"IQ1_XXXS", 256, 38, 0},
}

// Info returns the storage of t and whether the type is known.
func (t Type) Info() (TypeInfo, bool) {
	if int64(t) < int64(len(typeTable)) && typeTable[t].Elements > 0 {
		return typeTable[t], true
	}
	info, ok := ikTypes[t]
	return info, ok
}

// String spells a known type as ggml does, in upper case, and any other id as
// "unknown(ID)".
func (t Type) String() string {
	if info, ok := t.Info(); ok {
		return info.Name
	}
	return fmt.Sprintf("unknown(%d)", uint32(t))
}

// ForkInfo returns the storage that an id has in the one fork that uses it. Such a type
// is not known: files are not told apart by fork.
func (t Type) ForkInfo() (TypeInfo, bool) {
	info, ok := forkTypes[t]
	return info, ok
}

// Hint says what is known of an id that has no single meaning, or "".
func (t Type) Hint() string {
	if info, ok := t.ForkInfo(); ok {
		return fmt.Sprintf("%s in one fork, %d bytes per %d", info.Name, info.Bytes, info.Elements)
	}
	return ambiguousTypes[t]
}

// ParseType reads what [Type.String] prints; the letter case of a name does not matter.
func ParseType(s string) (Type, error) {
	if t, ok := typesByName()[strings.ToLower(s)]; ok {
		return t, nil
	}
	if id, ok := strings.CutPrefix(s, "unknown("); ok {
		if n, err := strconv.ParseUint(strings.TrimSuffix(id, ")"), 10, 32); err == nil && strings.HasSuffix(id, ")") {
			return Type(n), nil
		}
	}
	return 0, fmt.Errorf("%q is not a ggml type", s)
}

// typesByName has the types that are known by their names, no two of which are the same, in
// lower case.
var typesByName = sync.OnceValue(func() map[string]Type {
	names := map[string]Type{}
	for _, t := range Types() {
		names[strings.ToLower(t.String())] = t
	}
	for t, info := range ikTypes {
		names[strings.ToLower(info.Name)] = t
	}
	return names
})

// Types lists the types of ggml in order of their ids.
func Types() []Type {
	var list []Type
	for id := range typeTable {
		if t := Type(id); typeTable[t].Elements > 0 {
			list = append(list, t)
		}
	}
	return list
}
