package gguf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// tiny is a small sound file: two pairs, one tensor.
func tiny(b *builder, version uint32) []byte {
	b.headOf(version, 1, 2)
	b.pair("general.architecture", Text, "test")
	b.pair("test.expert_count", Uint32, uint32(8))
	b.info("w", F32, 0, 2, 3)
	return b.pad().data(24).b
}

func TestVersionsAndByteOrders(t *testing.T) {
	tests := []struct {
		name  string
		file  []byte
		order binary.ByteOrder
		fault string // of a file that is refused
	}{
		{name: "v2", file: tiny(little(), 2), order: binary.LittleEndian},
		{name: "v3", file: tiny(little(), 3), order: binary.LittleEndian},
		{name: "v2 big endian", file: tiny(big(), 2), order: binary.BigEndian},
		{name: "v3 big endian", file: tiny(big(), 3), order: binary.BigEndian},
		{name: "v0", file: tiny(little(), 0), fault: "byte 4: GGUF version 0 is not known"},
		{name: "v4", file: tiny(little(), 4), fault: "byte 4: GGUF version 4 is not known; versions 2 and 3 are"},
		{name: "v4 big endian", file: tiny(big(), 4), fault: "GGUF version 4, big endian, is not known"},
		{name: "v1", file: tiny(little(), 1), fault: "byte 4: GGUF version 1 is not supported: its counts are 32-bit"},
		{name: "v1 big endian", file: tiny(big(), 1), fault: "GGUF version 1, big endian, is not supported"},
		{name: "v1 of 16 bytes", file: little().add([]byte("GGUF"), uint32(1), uint32(0), uint32(0)).b, fault: "GGUF version 1 is not supported"},
		{name: "random version", file: tiny(little(), 0x1234_5678), fault: "GGUF version 305419896 is not known"},
		{name: "magic backwards", file: []byte("FUGG\x03\x00\x00\x00"), fault: `the magic is written backwards: it begins with "FUGG", want "GGUF"`},
		{name: "magic in lower case", file: []byte("gguf\x03\x00\x00\x00"), fault: `begins with "gguf", want "GGUF"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f, err := parse(test.file)
			if test.fault != "" {
				wantError(t, err, test.fault)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			wantProblems(t, f.Problems)
			n, _ := f.Metadata.ArchUint("expert_count")
			w := f.Tensors[0]
			if f.Order != test.order || n != 8 || fmt.Sprint(w.Shape) != "[2 3]" || w.Size != 24 {
				t.Errorf("read %v, expert count %d, shape %v, %d bytes", f.Order, n, w.Shape, w.Size)
			}
		})
	}
}

// TestDownloadsThatAreNotModels has the files that people hold in place of a model,
// each of which is to be named in one line.
func TestDownloadsThatAreNotModels(t *testing.T) {
	pointer := "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 49953423360\n"
	tests := []struct{ name, file, fault string }{
		{"nothing", "", "m.gguf: the file is empty"},
		{"LFS pointer", pointer, "a Git LFS pointer, not the model: it stands for a file of 49,953,423,360 bytes with oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393"},
		{"LFS pointer, Windows lines", strings.ReplaceAll(pointer, "\n", "\r\n"), "of 49,953,423,360 bytes with oid sha256:4d7a21"},
		{"LFS pointer of nonsense", "version https://git-lfs.github.com/spec/v1\noid sha256:zz\nsize -5\n", "a Git LFS pointer, not the model: it stands for a file of unknown size"},
		{"LFS pointer, cut", pointer[:60], "a Git LFS pointer, not the model: it stands for a file of unknown size"},
		{"page", "<!DOCTYPE html><html><body>404</body></html>", "an HTML page"},
		{"page after a mark", "\ufeff\r\n<html lang=en>", "an HTML page"},
		{"message", `<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>`, "an XML document"},
		{"zeros", strings.Repeat("\x00", 5000), "begins with zero bytes"},
		{"one zero", "\x00", "begins with zero bytes"},
		{"zip", "PK\x03\x04xxxxxxxxxxxxxxxxxxxxxx", "a zip archive"},
		{"safetensors", "\x10\x02\x00\x00\x00\x00\x00\x00{\"a\":{}}", "a safetensors file"},
		{"old format", "tjgg\x03\x00\x00\x00", "a GGJT model"},
		{"no such file", "Entry not found", `a message, not a model: a web server answered the download with "Entry not found"`},
		{"no such repository", "Repository not found", `answered the download with "Repository not found"`},
		{"another server", "404: Not Found\n", `answered the download with "404: Not Found"`},
		{"a gate", "Access to model org/K3 is restricted. You must have access to it.\n", `answered the download with "Access to model org/K3 is restricted. You must have access to it."`},
		{"no token", "Invalid username or password.", `answered the download with "Invalid username or password."`},
		{"too often", "\ufeff\nToo Many Requests", `answered the download with "Too Many Requests"`},
		{"an error as JSON", `{"error":"Sorry, we can't find the page you are looking for."}`, `answered the download with "{\"error\":\"Sorry, we can't find`},
		{"an error as JSON in lines", "{\n  \"error\": \"Unauthorized\"}", `a message, not a model`},
		{"a long answer", `{"error":"` + strings.Repeat("é", 500) + `"}`, `éé..."`},
		{"plain words", "Entry notes", `a text, not a model: it begins with "Entry notes"`},
		{"JSON of another kind", `{"error_rate":1}`, `a text, not a model: it begins with "{\"error_rate\":1}"`},
		{"a proxy", "upstream connect error or disconnect/reset before headers", `a text, not a model: it begins with "upstream connect error`},
		{"a text whose last character is cut", strings.Repeat("a", 511) + "\u00e9", "a text, not a model"},
		{"JSON in lines", "{\n  \"path\": \"a\"\n}", `it begins with "{ \"path\": \"a\" }"`},
		{"a pointer of old", "version https://hawser.github.com/spec/v1\noid sha256:" + strings.Repeat("0", 64) + "\nsize 12\n", "a Git LFS pointer, not the model: it stands for a file of 12 bytes"},
		{"no text", "\x80\x02}q\x00abcdefgh", `not a GGUF file: it begins with "\x80\x02}q"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := parse([]byte(test.file))
			wantError(t, err, test.fault)
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
		})
	}
}

// TestCountsThatNoFileHolds has declared counts and lengths that must be refused before
// anything is allocated for them.
func TestCountsThatNoFileHolds(t *testing.T) {
	tests := []struct {
		name  string
		file  *builder
		fault string
	}{
		{"key of 2^40", little().head(0, 1).add(uint64(1<<40), uint32(0), uint64(0)),
			"byte 24: metadata pair 1 of 1 \"\": key: 1099511627776 declared, but only 12 bytes remain"},
		{"key of 70000", little().head(0, 1).add(strings.Repeat("k", 70000), uint32(0), uint8(0)),
			"key: 70000 bytes long, at most 65535 are supported"},
		{"string of 2^63", little().head(0, 1).pair("k", Text, uint64(1<<63)),
			"byte 37: metadata pair 1 of 1 \"k\": string: 9223372036854775808 declared, but only 0 bytes remain"},
		{"array of 2^64-1", little().head(0, 1).pair("k", Array, uint32(Uint32), uint64(1<<64-1)),
			"byte 41: metadata pair 1 of 1 \"k\": array: 18446744073709551615 declared"},
		{"array whose bytes wrap", little().head(0, 1).pair("k", Array, uint32(Uint64), uint64(1<<61), uint64(0)),
			"array: 2305843009213693952 declared, but only 8 bytes remain"},
		{"string in array of 2^62", little().head(0, 1).pair("k", Array, uint32(Text), uint64(2), "a", uint64(1<<62)),
			"\"k\": string 2 of 2: string: 4611686018427387904 declared"},
		{"2^63 tensors", little().head(1<<63, 0), "byte 8: number of tensors: 9223372036854775808 declared, but only 8 bytes remain"},
		{"2^64-1 pairs", little().head(0, 1<<64-1), "byte 16: number of metadata pairs: 18446744073709551615 declared"},
		{"tensors that pairs took the place of", little().head(3, 1).pair("k", Text, strings.Repeat("x", 80)),
			"3 tensors declared, but only 0 bytes remain"},
		{"name of 2^32", little().head(1, 0).add(uint64(1<<32), make([]byte, 64)), "tensor 1 of 1 \"\": name: 4294967296 declared"},
		{"5 dims", little().head(1, 0).info("w", F32, 0, 1, 1, 1, 1, 1), "tensor 1 of 1 \"w\": 5 dims, at most 4 are possible"},
		{"2^32-1 dims", little().head(1, 0).add("w", uint32(1<<32-1), make([]byte, 64)), "4294967295 dims"},
		{"dims that wrap", little().head(1, 0).info("w", F32, 0, 1<<64-1, 2, 1, 1), "tensor 1 of 1 \"w\": shape [18446744073709551615 2 1 1] has more elements"},
		{"dims that wrap to zero", little().head(1, 0).info("w", F32, 0, 1<<32, 1<<32), "has more elements"},
		{"offset of 2^63", little().head(1, 0).info("w", F32, 1<<63, 1), "offset 9223372036854775808 is beyond any file"},
		{"unknown value type", little().head(0, 1).pair("k", ValueType(13), uint32(0)), "metadata pair 1 of 1 \"k\": value type 13 is not known"},
		{"greatest value type", little().head(0, 1).pair("k", ValueType(1<<32-1), uint32(0)), "value type 4294967295 is not known"},
		{"unknown element type", little().head(0, 1).pair("k", Array, uint32(255), uint64(0)), "array element type 255 is not known"},
		{"arrays without end", little().head(0, 1).pair("k", Array, bytes.Repeat(little().add(uint32(Array), uint64(1)).b, 5000)), "arrays are nested deeper than 8"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := parse(test.file.b)
			wantError(t, err, test.fault)
			if e := new(FormatError); !errors.As(err, &e) {
				t.Errorf("error is %T, want a FormatError", err)
			}
		})
	}
}

// TestCutAtEveryByte cuts a file with every value type at each byte of its header: each
// piece is refused and called truncated.
func TestCutAtEveryByte(t *testing.T) {
	b := little().head(2, 14)
	b.pair("u8", Uint8, uint8(1)).pair("i8", Int8, int8(-1)).pair("u16", Uint16, uint16(2)).pair("i16", Int16, int16(-2))
	b.pair("u32", Uint32, uint32(3)).pair("i32", Int32, int32(-3)).pair("f32", Float32, float32(0.5)).pair("bool", Bool, true)
	b.pair("str", Text, "x").pair("u64", Uint64, uint64(4)).pair("i64", Int64, int64(-4)).pair("f64", Float64, 0.5)
	b.pair("strs", Array, uint32(Text), uint64(2), "a", "bc").pair("u16s", Array, uint32(Uint16), uint64(3), uint16(1), uint16(2), uint16(3))
	b.info("one", F32, 0, 4).info("two", Q8_0, 32, 32, 1)
	header := len(b.b)
	whole := b.pad().data(32 + 34).b
	if f := mustParse(t, whole); f.Err() != nil {
		t.Fatal(f.Err())
	}
	for n := range header {
		_, err := parse(whole[:n])
		if n == 0 {
			wantError(t, err, "is empty")
			continue
		}
		wantError(t, err, "truncated")
		if !strings.HasPrefix(err.Error(), "m.gguf: ") {
			t.Errorf("cut at %d: error %q does not begin with the file", n, err)
		}
	}
	for n := header; n < len(whole); n++ {
		f := mustParse(t, whole[:n])
		wantError(t, f.Err(), fmt.Sprintf("the file is truncated: it has %d bytes, %d more ", n, len(whole)-n))
	}
}

func TestTruncationSaysHowMuchIsMissing(t *testing.T) {
	whole := tiny(little(), 3)
	tests := []struct {
		n    int
		want string
	}{
		{3, "m.gguf: the file is truncated: it has 3 bytes, a GGUF header begins with 24"},
		{23, "m.gguf: the file is truncated: it has 23 bytes, a GGUF header begins with 24"},
		{30, "but only"},
		{55, `metadata pair 1 of 2 "general.architecture": value type: the file is truncated: it ends at byte 55, 1 more is needed`},
		{len(whole) - 1, `m.gguf: tensor "w": data ends at byte 23 of 24: the file is truncated: it has 183 bytes, 1 more is needed`},
	}
	for _, test := range tests {
		f, err := parse(whole[:test.n])
		if err == nil {
			err = f.Err()
		}
		wantError(t, err, test.want)
	}
}

func TestAlignmentValues(t *testing.T) {
	file := func(typ ValueType, value any) []byte {
		return little().head(0, 1).pair(KeyAlignment, typ, value).b
	}
	tests := []struct {
		name  string
		file  []byte
		want  int64
		fault string // refused
		found string // or noted
	}{
		{name: "1", file: file(Uint32, uint32(1)), want: 1},
		{name: "8", file: file(Uint32, uint32(8)), want: 8},
		{name: "64", file: file(Uint32, uint32(64)), want: 64},
		{name: "0", file: file(Uint32, uint32(0)), fault: "general.alignment is 0, want a power of two"},
		{name: "3", file: file(Uint32, uint32(3)), fault: "general.alignment is 3, want"},
		{name: "33", file: file(Uint32, uint32(33)), fault: "general.alignment is 33, want"},
		{name: "48", file: file(Uint32, uint32(48)), fault: "m.gguf: byte 49: general.alignment is 48, want"},
		{name: "2 GiB", file: file(Uint32, uint32(1<<31)), want: 1 << 31, found: "warning: 2147483648 is suspiciously large; at most 1048576"},
		{name: "i32", file: file(Int32, int32(64)), want: 64, found: "error: stored as i32, want u32"},
		{name: "negative", file: file(Int32, int32(-32)), fault: "general.alignment is -32, want"},
		{name: "u64", file: file(Uint64, uint64(32)), want: 32, found: "error: stored as u64, want u32"},
		{name: "u64 of 2^40", file: file(Uint64, uint64(1<<40)), fault: "general.alignment is 1099511627776, want a power of two up to 2147483648"},
		{name: "string", file: file(Text, "32"), want: 32, found: "error: stored as str, want u32"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f, err := parse(test.file)
			if test.fault != "" {
				wantError(t, err, test.fault)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if f.Alignment != test.want {
				t.Errorf("alignment %d, want %d", f.Alignment, test.want)
			}
			if test.found != "" {
				wantProblems(t, f.Problems, test.found)
			} else {
				wantProblems(t, f.Problems)
			}
		})
	}
}

// An alignment of 2 GiB pushes the data of a tiny file beyond its end.
func TestHugeAlignmentLeavesNoData(t *testing.T) {
	b := little().head(1, 1).pair(KeyAlignment, Uint32, uint32(1<<31)).info("w", F32, 0, 1).pad().data(4).b
	f := mustParse(t, b)
	if f.DataOffset != 1<<31 {
		t.Errorf("data begins at %d", f.DataOffset)
	}
	wantProblems(t, f.Problems, "warning: suspiciously large", `error: tensor "w": data ends at byte 0 of 4: the file is truncated`)
}

func TestRepeatedKeysAndNames(t *testing.T) {
	b := little().head(3, 3)
	b.pair("general.architecture", Text, "x").pair("x.expert_count", Uint32, uint32(8)).pair("x.expert_count", Uint32, uint32(4))
	b.info("output.weight", F32, 0, 8).info("w", F32, 32, 8).info("output.weight", F32, 64, 8)
	f := mustParse(t, b.pad().data(96).b)
	wantProblems(t, f.Problems,
		`error: m.gguf: key "x.expert_count": key stands twice, as pair 2 and as pair 3`,
		`error: m.gguf: tensor "output.weight": name stands twice, as tensor 1 and as tensor 3`)
	if len(f.Tensors) != 3 || f.Metadata.Len() != 3 {
		t.Errorf("%d tensors and %d pairs, want all 3 of each kept", len(f.Tensors), f.Metadata.Len())
	}
	if n, _ := f.Metadata.ArchUint("expert_count"); n != 8 {
		t.Errorf("expert count %d, want the first, 8", n)
	}
}

// A hole that was never written reads as endless pairs, or tensors, without a name.
func TestHolesInTheHeaderEnd(t *testing.T) {
	hole := make([]byte, 100_000)
	_, err := parse(little().head(0, 5000).add(hole).b)
	wantError(t, err, "more than 1000 keys are repeated: this part of the file is damaged")
	_, err = parse(little().head(4000, 0).info("w", F32, 0, 1).add(hole).b)
	wantError(t, err, "more than 1000 tensor names are repeated up to here: this part of the file is damaged")
}

// What stands behind a hole has no say in the error, however far it was read.
func TestHolesEndAtTheSamePlace(t *testing.T) {
	first := little().head(4000, 0).info("w", F32, 0, 1)
	const tensors = 2 * tensorChunk // those that are listed by the time that 1000 are repeated
	end := len(first.b) + (tensors-1)*24
	file := first.add(make([]byte, (tensors+10)*24), bytes.Repeat([]byte{0xff}, 100_000)).b
	for range 100 {
		_, err := parse(file)
		wantError(t, err, fmt.Sprintf("m.gguf: byte %d: more than 1000 tensor names are repeated up to here", end))
	}
}

// Of a hundred thousand problems of a kind a few are listed, and the rest is counted.
func TestProblemsAreCounted(t *testing.T) {
	b := little().head(500, 0)
	for i := range uint64(500) {
		b.info(fmt.Sprintf("%064d", i), F32, 32*i, 1)
	}
	f := mustParse(t, b.pad().data(32*500).b)
	if len(f.Problems) != maxAlike+1 {
		t.Fatalf("%d problems listed", len(f.Problems))
	}
	wantProblems(t, f.Problems[maxAlike:], "warning: m.gguf: 480 more problems of this kind: name has 64 bytes, llama.cpp refuses more than 63")
}

// Names hold whatever a stranger put there. Messages show it harmless and short.
func TestHostileNamesInMessages(t *testing.T) {
	evil := "blk.0.\x1b]52;c;aGk=\aattn_q\r\n\u202eweight"
	b := little().head(4, 2).pair(evil, Uint8, uint8(0)).pair(evil, Uint8, uint8(0))
	b.info(evil, F32, 0, 1).info(evil, F32, 32, 1)
	long := strings.Repeat("\x01", 60000)
	b.info(long, F32, 64, 1).info(long, F32, 96, 1)
	file := b.pad().data(128).b
	f, err := NewFile(evil, bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Problems) != 5 {
		t.Errorf("%d problems, want 5", len(f.Problems))
	}
	for _, p := range f.Problems {
		text := p.String()
		if strings.ContainsAny(text, "\x1b\a\r\n\u202e\x01") {
			t.Errorf("message can steer a terminal: %q", text)
		}
		if len(text) > 1200 {
			t.Errorf("message of %d bytes", len(text))
		}
	}
	if f.Tensors[0].Name != evil || f.Tensors[2].Name != long {
		t.Error("names were changed")
	}
}
