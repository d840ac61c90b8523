package gguf

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
)

// sample returns contents with every value type and a few tensors.
func sample() Contents {
	md := NewMetadata()
	md.Set("general.architecture", TextValue("test"))
	md.Set("t.u8", Uint8Value(1))
	md.Set("t.i8", Int8Value(-1))
	md.Set("t.u16", Uint16Value(2))
	md.Set("t.i16", Int16Value(-2))
	md.Set("t.u32", Uint32Value(3))
	md.Set("t.i32", Int32Value(-3))
	md.Set("t.u64", Uint64Value(1<<64-1))
	md.Set("t.i64", Int64Value(-1<<63))
	md.Set("t.f32", Float32Value(0.1))
	md.Set("t.f64", Float64Value(0.1))
	md.Set("t.bool", Value{typ: Bool, order: BoolValue(true).order, raw: []byte{2}})
	md.Set("t.empty", TextValue(""))
	md.Set("t.bytes", TextValue("\x80\xff\xfe\x00"))
	md.Set("t.texts", TextsValue("a", "", "\xff", "▁"))
	md.Set("t.none", TextsValue())
	md.Set("t.nested", ArrayValue(Array, Int32sValue(1, 2), TextsValue("x")))
	md.Set("t.long", Float32sValue(make([]float32, 4000)...))
	views := []View{}
	for i, n := range []int{5, 0, 1, 100, 33, 7, 64} {
		data := bytes.Repeat([]byte{byte(i + 1)}, 4*n)
		views = append(views, View{Name: fmt.Sprintf("t%d", i), Type: F32, Shape: []uint64{uint64(n)},
			Extents: []Extent{{bytes.NewReader(data), 0, int64(len(data))}}})
	}
	return Contents{Version: 3, Metadata: md, Views: views}
}

// writeShards returns the bytes of each shard.
func writeShards(t *testing.T, layout *Layout) [][]byte {
	t.Helper()
	var files [][]byte
	for _, shard := range layout.Shards {
		var b bytes.Buffer
		if err := shard.Write(context.Background(), &b, make([]byte, 1000), nil); err != nil {
			t.Fatal(err)
		}
		if int64(b.Len()) != shard.Size {
			t.Fatalf("shard has %d bytes, its layout says %d", b.Len(), shard.Size)
		}
		files = append(files, b.Bytes())
	}
	return files
}

// reopen parses the files of a model that must be sound.
func reopen(t *testing.T, files [][]byte) *Model {
	t.Helper()
	var parsed []*File
	for i, b := range files {
		f, err := NewFile(ShardName("m", i, len(files)), bytes.NewReader(b), int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, f)
	}
	m, err := NewModel("m", parsed...)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Err(); err != nil {
		t.Fatal(err)
	}
	return m
}

// sameValue compares values by type and bytes.
func sameValue(a, b Value) bool {
	if a.Type() != b.Type() || a.Size() != b.Size() {
		return false
	}
	x, err1 := io.ReadAll(a.Reader())
	y, err2 := io.ReadAll(b.Reader())
	return err1 == nil && err2 == nil && bytes.Equal(x, y)
}

// modelPairs returns the pairs that are not about the split.
func modelPairs(m *Model) *Metadata {
	return m.Metadata().Without(func(key string) bool {
		return key == KeySplitNo || key == KeySplitCount || key == KeySplitTensors
	})
}

// wantSameModel compares models by everything but how they are cut: pairs in order,
// and tensors in order with their bytes. The bytes of an opaque tensor may have gained
// padding.
func wantSameModel(t *testing.T, want, got *Model) {
	t.Helper()
	a, b := modelPairs(want), modelPairs(got)
	if !slices.Equal(a.Keys(), b.Keys()) {
		t.Fatalf("keys are %q, want %q", b.Keys(), a.Keys())
	}
	for key, v := range a.All() {
		if w, _ := b.Get(key); !sameValue(v, w) {
			t.Fatalf("key %q was changed", key)
		}
	}
	if len(got.Tensors()) != len(want.Tensors()) {
		t.Fatalf("%d tensors, want %d", len(got.Tensors()), len(want.Tensors()))
	}
	for i, w := range want.Tensors() {
		g := got.Tensors()[i]
		if g.Name != w.Name || g.Type != w.Type || !slices.Equal(g.Shape, w.Shape) {
			t.Fatalf("tensor %d is %q %s %v, want %q %s %v", i, g.Name, g.Type, g.Shape, w.Name, w.Type, w.Shape)
		}
		x, err1 := io.ReadAll(w.Reader())
		y, err2 := io.ReadAll(g.Reader())
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		if w.Opaque && len(y) > len(x) {
			y = y[:len(x)]
		}
		if !bytes.Equal(x, y) {
			t.Fatalf("tensor %q has other bytes", w.Name)
		}
	}
}

func layOutAs(t *testing.T, c Contents, s Split) *Layout {
	t.Helper()
	layout, err := NewLayout(c, s)
	if err != nil {
		t.Fatal(err)
	}
	return layout
}

// A model that is split in any way and merged again is the file that it was.
func TestSplitAndMergeGiveTheFileBack(t *testing.T) {
	single := writeShards(t, layOutAs(t, sample(), Split{}))
	source := reopen(t, single)
	wantProblems(t, source.Problems)
	for _, s := range []Split{{}, {Shards: 1}, {Shards: 3}, {Shards: 7}, {MaxTensors: 2}, {MaxTensors: 2, EmptyFirst: true}, {Shards: 4, EmptyFirst: true}} {
		t.Run(fmt.Sprintf("%+v", s), func(t *testing.T) {
			split := reopen(t, writeShards(t, layOutAs(t, source.Contents(), s)))
			wantProblems(t, split.Problems)
			wantSameModel(t, source, split)
			merged := writeShards(t, layOutAs(t, split.Contents(), Split{}))
			if !bytes.Equal(merged[0], single[0]) {
				t.Error("merged file differs from the one that was split")
			}
		})
	}
}

// A file that is built from the format's definition, with every value type and odd
// tensors, is rewritten to the same bytes.
func TestIdentityRewrite(t *testing.T) {
	b := little().headOf(2, 5, 3).pair("zz", Text, "arch behind").pair("empty", Array, uint32(Text), uint64(0)).pair("odd", Bool, uint8(7))
	b.info("b", Q8_0, 0, 32, 3).info("zero", F32, 128, 0).info("scalar", F64, 128).info("unknown", 1000, 160, 5).info("a", IQ1_S, 192, 256)
	file := b.pad().data(102).add(make([]byte, 26)).data(8).add(make([]byte, 24)).data(32).data(50).add(make([]byte, 14)).b
	m := reopen(t, [][]byte{file})
	if out := writeShards(t, layOutAs(t, m.Contents(), Split{})); !bytes.Equal(out[0], file) {
		t.Errorf("got  %q\nwant %q", out[0], file)
	}
}

// One file that is written as one keeps the split keys that other programs leave in it.
// Split and merged, it has none: shards do not tell whether the file that they were had
// some, nor whether its last tensor was padded.
func TestWhatMergingLoses(t *testing.T) {
	file := func(pairs uint64, keys func(*builder), end int) []byte {
		b := little().headOf(2, 2, 2+pairs).pair(KeyArchitecture, Text, "x")
		keys(b)
		return b.pair("x.y", Uint8, uint8(1)).info("a", F32, 0, 9).info("b", F32, 64, 9).pad().data(36).add(make([]byte, 28)).data(36).add(make([]byte, end)).b
	}
	merged := func(t *testing.T, source []byte) []byte {
		shards := writeShards(t, layOutAs(t, reopen(t, [][]byte{source}).Contents(), Split{Shards: 2}))
		return writeShards(t, layOutAs(t, reopen(t, shards).Contents(), Split{Shards: 1}))[0]
	}
	none := func(*builder) {}
	plain := file(0, none, 28)
	for name, keys := range map[string]func(b *builder){
		"count 0": func(b *builder) {
			b.pair(KeySplitNo, Uint16, uint16(0)).pair(KeySplitTensors, Int32, int32(2)).pair(KeySplitCount, Uint16, uint16(0))
		},
		"count 1": func(b *builder) {
			b.pair(KeySplitTensors, Int32, int32(2)).pair(KeySplitCount, Uint16, uint16(1)).pair(KeySplitNo, Uint16, uint16(0))
		},
		"other types": func(b *builder) {
			b.pair(KeySplitTensors, Uint64, uint64(2)).pair(KeySplitCount, Uint32, uint32(1)).pair(KeySplitNo, Uint8, uint8(0))
		},
	} {
		t.Run(name, func(t *testing.T) {
			source := file(3, keys, 28)
			m := reopen(t, [][]byte{source})
			if out := writeShards(t, layOutAs(t, m.Contents(), Split{Shards: 1})); !bytes.Equal(out[0], source) {
				t.Errorf("written as one file %q\nwant %q", out[0], source)
			}
			if got := merged(t, source); !bytes.Equal(got, plain) {
				t.Errorf("split and merged %q\nwant %q", got, plain)
			}
		})
	}
	t.Run("last tensor not padded", func(t *testing.T) {
		if got := merged(t, file(0, none, 0)); !bytes.Equal(got, plain) {
			t.Errorf("split and merged %q\nwant %q", got, plain)
		}
	})
}

// Vocabulary files have no tensors, and end with their header.
func TestIdentityRewriteWithoutTensors(t *testing.T) {
	file := little().head(0, 1).pair(KeyArchitecture, Text, "bert").b
	m := reopen(t, [][]byte{file})
	if out := writeShards(t, layOutAs(t, m.Contents(), Split{})); !bytes.Equal(out[0], file) {
		t.Errorf("got  %q\nwant %q", out[0], file)
	}
}
