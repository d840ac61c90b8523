package gguf

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// A shard is one file of a test's set.
type shard struct {
	name    string
	keys    []any // key, type, value, again and again
	tensors []string
}

// keys are split keys as llama.cpp writes them.
func keys(no, count uint16, tensors int32) []any {
	return []any{KeySplitNo, Uint16, no, KeySplitCount, Uint16, count, KeySplitTensors, Int32, tensors}
}

// parse builds the shard's bytes and parses them.
func (s shard) parse(t *testing.T) *File {
	t.Helper()
	b := little().head(uint64(len(s.tensors)), uint64(len(s.keys)/3)+1).pair(KeyArchitecture, Text, "test")
	for i := 0; i < len(s.keys); i += 3 {
		b.pair(s.keys[i].(string), s.keys[i+1].(ValueType), s.keys[i+2])
	}
	for i, name := range s.tensors {
		b.info(name, F32, uint64(32*i), 8)
	}
	if len(s.tensors) > 0 {
		b.pad().data(32 * len(s.tensors))
	}
	f, err := NewFile(s.name, bytes.NewReader(b.b), int64(len(b.b)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func join(t *testing.T, shards ...shard) *Model {
	t.Helper()
	var files []*File
	for _, s := range shards {
		files = append(files, s.parse(t))
	}
	m, err := NewModel("m", files...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestSets(t *testing.T) {
	one, two, three := []string{"a", "b", "c"}, []string{"d", "e"}, []string{"f"}
	name := func(i, n int) string { return fmt.Sprintf("m-%05d-of-%05d.gguf", i, n) }
	tests := []struct {
		name    string
		shards  []shard
		tensors int
		want    []string
	}{
		{"two", []shard{{name(1, 2), keys(0, 2, 5), one}, {name(2, 2), keys(1, 2, 5), two}}, 5, nil},
		{"two the other way round", []shard{{name(2, 2), keys(1, 2, 5), two}, {name(1, 2), keys(0, 2, 5), one}}, 5, nil},
		{"only metadata in the first", []shard{{name(1, 3), keys(0, 3, 5), nil}, {name(2, 3), keys(1, 3, 5), one}, {name(3, 3), keys(2, 3, 5), two}}, 5, nil},
		{"none in the middle", []shard{{name(1, 3), keys(0, 3, 5), one}, {name(2, 3), keys(1, 3, 5), nil}, {name(3, 3), keys(2, 3, 5), two}}, 5, nil},
		{"one of one", []shard{{name(1, 1), keys(0, 1, 3), one}}, 3, nil},
		{"no keys at all", []shard{{"m.gguf", nil, one}}, 3, nil},

		{"two models of two", []shard{{"a1", keys(0, 2, 5), one}, {"a2", keys(1, 2, 5), two}, {"b1", keys(0, 2, 1), three}, {"b2", keys(1, 2, 1), nil}}, 6,
			[]string{
				"error: m: 4 files, but a split of 2: they are not the shards of one model",
				`warning: a1: is shard 1 of 2 by its keys, but is not named like one`,
				`error: b1: key "split.no": is 0, as in a1`,
				`warning: a2: is shard 2 of 2 by its keys, but is not named like one`,
				`error: b2: key "split.no": is 1, as in a2`,
				`error: a1: key "split.tensors.count": is 5, but the model holds 6 tensors`,
				`error: b1: key "split.tensors.count": is 1, but the model holds 6 tensors`,
				`error: a2: key "split.tensors.count": is 5, but the model holds 6 tensors`,
				`error: b2: key "split.tensors.count": is 1, but the model holds 6 tensors`,
			}},
		{"one missing", []shard{{name(1, 3), keys(0, 3, 6), one}, {name(3, 3), keys(2, 3, 6), three}}, 4,
			[]string{"error: m: incomplete: 1 of 3 shards is missing: m-00002-of-00003.gguf"}},
		{"first missing", []shard{{name(2, 2), keys(1, 2, 5), two}}, 2,
			[]string{"error: m: incomplete: 1 of 2 shards is missing: m-00001-of-00002.gguf"}},
		{"many missing", []shard{{name(1, 900), keys(0, 900, 5), one}}, 3,
			[]string{"error: incomplete: 899 of 900 shards are missing: m-00002-of-00900.gguf, m-00003-of-00900.gguf, m-00004-of-00900.gguf, m-00005-of-00900.gguf, m-00006-of-00900.gguf, and 894 more"}},
		{"another count in one", []shard{{name(1, 3), keys(0, 3, 6), one}, {name(2, 3), keys(1, 3, 6), two}, {name(3, 3), keys(2, 4, 6), three}}, 6,
			[]string{`error: m-00003-of-00003.gguf: key "split.count": is 4, in other shards 3`}},
		{"a huge count in one", []shard{{name(1, 3), keys(0, 3, 6), one}, {name(2, 3), keys(1, 3, 6), two}, {name(3, 3), keys(2, 60000, 6), three}}, 6,
			[]string{`error: m-00003-of-00003.gguf: key "split.count": is 60000, in other shards 3`}},
		{"a huge count in one, one missing", []shard{{name(1, 3), keys(0, 60000, 6), one}, {name(2, 3), keys(1, 3, 6), two}}, 5,
			[]string{`error: m-00001-of-00003.gguf: key "split.count": is 60000, in other shards 3`, "error: m: incomplete: 1 of 3 shards is missing: m-00003-of-00003.gguf"}},
		{"two counts, and no names that decide", []shard{{"a.gguf", keys(0, 60000, 5), one}, {"b.gguf", keys(1, 2, 5), two}}, 5,
			[]string{`error: a.gguf: key "split.count": is 60000, in other shards 2`, "warning: a.gguf: is shard 1 of 2", "warning: b.gguf: is shard 2 of 2"}},
		{"a count of 0 in one", []shard{{name(1, 2), keys(0, 2, 5), one}, {name(2, 2), keys(1, 0, 5), two}}, 5,
			[]string{`error: m-00002-of-00002.gguf: key "split.count": is 0, but 2 files are there`}},
		{"names and keys disagree", []shard{{name(1, 2), keys(0, 3, 5), one}, {name(2, 2), keys(1, 3, 5), two}}, 5,
			[]string{"error: the name says shard 1 of 2, the keys say shard 1 of 3", "error: the name says shard 2 of 2, the keys say shard 2 of 3", "error: incomplete: 1 of 3"}},
		{"one number twice", []shard{{name(1, 3), keys(0, 3, 6), one}, {name(2, 3), keys(1, 3, 6), two}, {name(3, 3), keys(1, 3, 6), three}}, 6,
			[]string{`error: m-00003-of-00003.gguf: key "split.no": is 1, as in m-00002-of-00003.gguf`}},
		{"one number twice, and one missing", []shard{{name(1, 3), keys(0, 3, 4), one}, {name(2, 3), keys(0, 3, 4), three}}, 4,
			[]string{`error: m-00002-of-00003.gguf: key "split.no": is 0, as in m-00001-of-00003.gguf`, "error: m: incomplete: 1 of 3 shards is missing: m-00003-of-00003.gguf"}},
		{"swapped names", []shard{{name(2, 2), keys(0, 2, 5), one}, {name(1, 2), keys(1, 2, 5), two}}, 5,
			[]string{"error: m-00002-of-00002.gguf: the name says shard 2 of 2, the keys say shard 1 of 2", "error: m-00001-of-00002.gguf: the name says"}},
		{"counted from 1", []shard{{name(1, 2), keys(1, 2, 5), one}, {name(2, 2), keys(2, 2, 5), two}}, 5,
			[]string{"error: the name says shard 1 of 2, the keys say shard 2 of 2", `error: key "split.no": is 2, want 0 to 1: it counts from 0`}},
		{"totals of each shard", []shard{{name(1, 2), keys(0, 2, 3), one}, {name(2, 2), keys(1, 2, 2), two}}, 5,
			[]string{`error: m-00001-of-00002.gguf: key "split.tensors.count": is 3, but the model holds 5 tensors`, `error: m-00002-of-00002.gguf: key "split.tensors.count": is 2, but`}},
		{"another quant's shard", []shard{{name(1, 2), keys(0, 2, 5), one}, {name(2, 2), keys(1, 2, 5), []string{"c", "d", "e"}}}, 6,
			[]string{`error: m-00002-of-00002.gguf: tensor "c": stands in m-00001-of-00002.gguf too`, `error: key "split.tensors.count": is 5, but the model holds 6`, "error: is 5, but"}},
		{"incomplete, and too many already", []shard{{name(1, 2), keys(0, 2, 2), one}}, 3,
			[]string{"error: incomplete", "error: is 2, but 1 of 2 shards hold 3 tensors already"}},
		{"not part of the set", []shard{{name(1, 2), keys(0, 2, 5), one}, {name(2, 2), nil, two}}, 5,
			[]string{`error: m-00002-of-00002.gguf: key "split.count": is missing`}},
		{"not part of the renamed set", []shard{{"a.gguf", keys(0, 2, 5), one}, {"b.gguf", nil, two}}, 5,
			[]string{"warning: a.gguf: is shard 1 of 2", `error: b.gguf: key "split.count": is missing`, "error: m: incomplete: 1 of 2 shards is missing: m-00002-of-00002.gguf"}},
		{"no number", []shard{{name(1, 2), keys(0, 2, 5), one}, {name(2, 2), keys(0, 2, 5)[3:], two}}, 5,
			[]string{`error: m-00002-of-00002.gguf: key "split.no": is missing`}},
		{"no total", []shard{{name(1, 2), keys(0, 2, 5), one}, {name(2, 2), keys(1, 2, 5)[:6], two}}, 5,
			[]string{`error: m-00002-of-00002.gguf: key "split.tensors.count": is missing`}},
		{"two models", []shard{{"a.gguf", nil, one}, {"b.gguf", nil, two}}, 5,
			[]string{`error: a.gguf: key "split.count": is missing`, `error: b.gguf: key "split.count": is missing`}},
		{"single file with a shard's name", []shard{{name(1, 2), nil, one}}, 3, []string{"error: m-00001-of-00002.gguf: the name says shard 1 of 2, but the file has no split.count"}},
		{"one of one with a shard's name", []shard{{name(1, 2), keys(0, 1, 3), one}}, 3, []string{"error: the name says shard 1 of 2, split.count says it is one file"}},
		{"single file with a wrong total", []shard{{"m.gguf", keys(0, 1, 4), one}}, 3, []string{`error: key "split.tensors.count": is 4, but the model holds 3`}},
		{"whole file with keys of a split", []shard{{"m.gguf", keys(0, 3, 3), one}}, 3,
			[]string{`error: m.gguf: key "split.count": is 3, but the file is whole: it holds all 3 tensors that split.tensors.count counts`}},
		{"part of a split, renamed", []shard{{"m.gguf", keys(0, 3, 4), one}}, 3,
			[]string{"warning: m.gguf: is shard 1 of 3", "error: m: incomplete: 2 of 3 shards are missing"}},
		{"single file with a wrong number", []shard{{"m.gguf", keys(3, 1, 3), one}}, 3, []string{`error: key "split.no": is 3 in a model of one file, want 0`}},
		{"renamed", []shard{{"part-a.gguf", keys(0, 2, 5), one}, {"part-b.gguf", keys(1, 2, 5), two}}, 5,
			[]string{"warning: part-a.gguf: is shard 1 of 2 by its keys, but is not named like one", "warning: part-b.gguf"}},

		{"other integer types", []shard{
			{name(1, 2), []any{KeySplitNo, Uint32, uint32(0), KeySplitCount, Uint64, uint64(2), KeySplitTensors, Uint32, uint32(5)}, one},
			{name(2, 2), keys(1, 2, 5), two}}, 5,
			[]string{`warning: key "split.no": stored as u32, want u16: llama.cpp refuses it`, `warning: key "split.count": stored as u64, want u16`, `warning: key "split.tensors.count": stored as u32, want i32`}},
		{"count that is no integer", []shard{{"m.gguf", []any{KeySplitCount, Float32, float32(2)}, one}}, 3,
			[]string{`error: key "split.count": is 2 (f32), want a count stored as u16`}},
		{"negative number", []shard{{name(1, 2), []any{KeySplitNo, Int32, int32(-1), KeySplitCount, Uint16, uint16(2), KeySplitTensors, Int32, int32(3)}, one}}, 3,
			[]string{`error: key "split.no": is -1 (i32), want a count stored as u16`, "error: incomplete: 1 of 2 shards is missing: m-00002-of-00002.gguf"}},
		{"negative total", []shard{{name(1, 2), keys(0, 2, -1), one}, {name(2, 2), keys(1, 2, 5), two}}, 5,
			[]string{`error: m-00001-of-00002.gguf: key "split.tensors.count": is -1 (i32), want a count stored as i32`}},
		{"count 0 in all", []shard{{name(1, 2), keys(0, 0, 5), one}, {name(2, 2), keys(1, 0, 5), two}}, 5,
			[]string{`error: m-00001-of-00002.gguf: key "split.count": is 0, but 2 files are there`, `error: m-00002-of-00002.gguf: key "split.count": is 0, but 2 files are there`}},
		{"count 1 in all", []shard{{name(1, 2), keys(0, 1, 5), one}, {name(2, 2), keys(1, 1, 5), two}}, 5,
			[]string{`error: m-00001-of-00002.gguf: key "split.count": is 1, but 2 files are there`, `error: m-00002-of-00002.gguf: key "split.count": is 1, but 2 files are there`}},
		{"metadata in a later shard", []shard{
			{name(1, 2), append(keys(0, 2, 5), "general.name", Text, "a", "test.count", Uint32, uint32(8), "test.size", Uint32, uint32(1)), one},
			{name(2, 2), append(keys(1, 2, 5), "general.name", Text, "a", "test.count", Uint32, uint32(4), "test.size", Uint64, uint64(1), "test.other", Text, "b", KeyAlignment, Uint32, uint32(32)), two}}, 5,
			[]string{`error: m-00002-of-00002.gguf: key "test.count": is 4 (u32), in the first shard 8 (u32)`,
				`error: m-00002-of-00002.gguf: key "test.size": is 1 (u64), in the first shard 1 (u32)`,
				`warning: m-00002-of-00002.gguf: key "test.other": stands in a later shard only`}},
		{"metadata in a later shard, the first one missing", []shard{{name(2, 2), append(keys(1, 2, 5), "test.other", Text, "b"), two}}, 2,
			[]string{"error: incomplete: 1 of 2"}},
		{"huge count", []shard{{"m.gguf", []any{KeySplitNo, Uint16, uint16(0), KeySplitCount, Uint64, uint64(1 << 40), KeySplitTensors, Int32, int32(3)}, one}}, 3,
			[]string{`warning: key "split.count": stored as u64`, `error: key "split.count": is 1099511627776, at most 65535 are possible`, "warning: is shard 1 of 65535 by its keys", "error: incomplete: 65,534 of 65,535"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m := join(t, test.shards...)
			if len(m.Tensors()) != test.tensors {
				t.Errorf("%d tensors, want %d", len(m.Tensors()), test.tensors)
			}
			wantProblems(t, m.Problems, test.want...)
		})
	}
}

// A model reads its shards as one: tensors in shard order, each knowing its file.
func TestModelOfShards(t *testing.T) {
	m := join(t,
		shard{"x-00002-of-00002.gguf", keys(1, 2, 3), []string{"c"}},
		shard{"x-00001-of-00002.gguf", keys(0, 2, 3), []string{"a", "b"}})
	var got string
	for _, tensor := range m.Tensors() {
		got += fmt.Sprintf("%s:%d ", tensor.Name, tensor.Shard())
		if m.Tensor(tensor.Name) != tensor {
			t.Errorf("tensor %q is not found by its name", tensor.Name)
		}
	}
	if got != "a:0 b:0 c:1 " {
		t.Errorf("tensors %s", got)
	}
	if m.Tensor("d") != nil || m.Tensor("") != nil {
		t.Error("a tensor is found that is not there")
	}
	if m.Metadata() != m.Files[0].Metadata || m.Shards != 2 || m.TensorBytes() != 96 {
		t.Errorf("shards %d, tensor bytes %d", m.Shards, m.TensorBytes())
	}
	if _, err := NewModel("m"); err == nil {
		t.Error("a model of no files")
	}
}

// One file may be joined to several models in turn.
func TestShardOfTheModelJoinedLast(t *testing.T) {
	a := shard{"x-00001-of-00002.gguf", keys(0, 2, 2), []string{"a"}}.parse(t)
	b := shard{"x-00002-of-00002.gguf", keys(1, 2, 2), []string{"b"}}.parse(t)
	NewModel("x", a, b)
	if b.Tensors[0].Shard() != 1 {
		t.Error("tensor of the second shard")
	}
	NewModel("x", b)
	if b.Tensors[0].Shard() != 0 {
		t.Error("tensor of the only shard that is there")
	}
}

func TestMixedVersionsAndByteOrders(t *testing.T) {
	file := func(name string, b *builder, version uint32, no uint16) *File {
		b.headOf(version, 0, 4).pair(KeyArchitecture, Text, "x").pair(KeySplitNo, Uint16, no).pair(KeySplitCount, Uint16, uint16(2)).pair(KeySplitTensors, Int32, int32(0))
		f, err := NewFile(name, bytes.NewReader(b.b), int64(len(b.b)))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	first := file("m-00001-of-00002.gguf", little(), 3, 0)
	m, _ := NewModel("m", first, file("m-00002-of-00002.gguf", little(), 2, 1))
	wantProblems(t, m.Problems, "warning: m-00002-of-00002.gguf: GGUF version 2, but m-00001-of-00002.gguf has version 3")
	m, _ = NewModel("m", first, file("m-00002-of-00002.gguf", big(), 3, 1))
	wantProblems(t, m.Problems, "error: m-00002-of-00002.gguf: big endian, but m-00001-of-00002.gguf is little endian")
}

func TestBigEndianIsNotWritable(t *testing.T) {
	f := mustParse(t, tiny(big(), 3))
	m, _ := NewModel("m", f)
	if m.Err() != nil {
		t.Fatal(m.Err())
	}
	wantError(t, m.CheckWritable(), "m.gguf: big-endian files can be inspected and hashed, not written")
	_, err := NewLayout(m.Contents(), Split{})
	wantError(t, err, `key "general.architecture": big-endian values cannot be written`)
}

func TestArchitecture(t *testing.T) {
	tests := []struct {
		name string
		file *builder
		want []string
	}{
		{"missing", little().head(0, 0), []string{`warning: key "general.architecture": is missing`}},
		{"another type", little().head(0, 1).pair(KeyArchitecture, Uint32, uint32(1)), []string{`error: key "general.architecture": stored as u32, want str`}},
		{"behind its keys", little().head(0, 2).pair("x.expert_count", Uint16, uint16(8)).pair(KeyArchitecture, Text, "x"), nil},
		{"file type as text", little().head(0, 2).pair(KeyArchitecture, Text, "x").pair("general.file_type", Text, "F16"), nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m, _ := NewModel("m", mustParse(t, test.file.b))
			wantProblems(t, m.Problems, test.want...)
		})
	}
}

func TestShardNames(t *testing.T) {
	tests := []struct {
		path      string
		stem      string
		no, count int
	}{
		{"m-00001-of-00009.gguf", "m", 1, 9},
		{"dir/x-00001-of-00013/m-00002-of-00003.gguf", "m", 2, 3},
		{"a-00001-of-00002-00001-of-00003.gguf", "a-00001-of-00002", 1, 3},
		{"m-00001-of-00001.gguf", "m", 1, 1},
		{"m-65535-of-65535.gguf", "m", 65535, 65535},
		{"a\nb-00001-of-00002.gguf", "a\nb", 1, 2},
		{"-00001-of-00002.gguf", "", 1, 2},
		{"dir/x-00001-of-00013/m.gguf", "m", 0, 0},
		{"best-of-breed.gguf", "best-of-breed", 0, 0},
		{"m-1-of-2.gguf", "m-1-of-2", 0, 0},
		{"m-000001-of-000002.gguf", "m-000001-of-000002", 0, 0},
		{"m-00003-of-00002.gguf", "m-00003-of-00002", 0, 0},
		{"m-00000-of-00002.gguf", "m-00000-of-00002", 0, 0},
		{"m-00001-of-65536.gguf", "m-00001-of-65536", 0, 0},
		{"m-00001-of-00002.gguf.part", "m-00001-of-00002.gguf.part", 0, 0},
		{"m-00001-of-00002", "m-00001-of-00002", 0, 0},
		{"m", "m", 0, 0},
	}
	for _, test := range tests {
		n, ok := parseShardName(test.path)
		if ok != (test.count > 0) || ok && n != (shardName{test.stem, test.no, test.count}) {
			t.Errorf("%q: read as %+v, %v", test.path, n, ok)
		}
		if got := Stem(test.path); got != test.stem {
			t.Errorf("Stem(%q) = %q, want %q", test.path, got, test.stem)
		}
		if ok && test.count > 1 && ShardName(n.stem, n.no-1, n.count) != test.path[len(test.path)-len(ShardName(n.stem, n.no-1, n.count)):] {
			t.Errorf("%q is written %q", test.path, ShardName(n.stem, n.no-1, n.count))
		}
	}
	if got := ShardName("m", 0, 1); got != "m.gguf" {
		t.Errorf("the only file is called %q", got)
	}
}

// TestLayoutOfSizes cuts by the sizes of the files that another cut gave, to the same files, and by
// no others.
func TestLayoutOfSizes(t *testing.T) {
	var views []View
	for i := range 40 {
		size := int64(4 * (1 + i*i%37))
		views = append(views, View{Name: fmt.Sprintf("t%d", i), Type: F32, Shape: []uint64{uint64(size / 4)}, Extents: []Extent{{strings.NewReader(""), 0, size}}})
	}
	c := Contents{Version: 3, Metadata: NewMetadata(), Views: views}
	for _, s := range []Split{{}, {Shards: 1}, {Shards: 2}, {Shards: 7}, {Shards: 40}, {MaxTensors: 3}, {MaxBytes: 2000}, {Shards: 5, EmptyFirst: true}} {
		want, err := NewLayout(c, s)
		if err != nil {
			t.Fatal(err)
		}
		var sizes []int64
		for _, shard := range want.Shards {
			sizes = append(sizes, shard.Size)
		}
		got, err := NewLayoutOf(c, sizes)
		if err != nil || len(got.Shards) != len(want.Shards) {
			t.Fatalf("%+v: %v", s, err)
		}
		for i, shard := range got.Shards {
			var a, b bytes.Buffer
			if err := errors.Join(shard.WriteHeader(&a), want.Shards[i].WriteHeader(&b)); err != nil || !bytes.Equal(a.Bytes(), b.Bytes()) {
				t.Errorf("%+v: the header of file %d differs, %v", s, i, err)
			}
		}
		sizes[len(sizes)/2]++
		if _, err := NewLayoutOf(c, sizes); err == nil {
			t.Errorf("%+v: sizes that no cut gives are taken", s)
		}
		if _, err := NewLayoutOf(c, sizes[:len(sizes)/2]); err == nil {
			t.Errorf("%+v: files that leave tensors out are taken", s)
		}
	}
}
