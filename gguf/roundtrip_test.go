package gguf

import (
	"bytes"
	"context"
	"fmt"
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

// write lays contents out and returns each file's bytes.
func write(t *testing.T, c Contents, s Split) [][]byte {
	t.Helper()
	layout, err := NewLayout(c, s)
	if err != nil {
		t.Fatal(err)
	}
	var files [][]byte
	for _, shard := range layout.Shards {
		var b bytes.Buffer
		if err := shard.Write(context.Background(), &b, make([]byte, 48), nil); err != nil {
			t.Fatal(err)
		}
		if int64(b.Len()) != shard.Size {
			t.Fatalf("shard has %d bytes, its layout says %d", b.Len(), shard.Size)
		}
		files = append(files, b.Bytes())
	}
	return files
}

// read parses files into a model that must have no problem.
func read(t *testing.T, files [][]byte) *Model {
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
	for _, p := range m.Problems {
		t.Error(p)
	}
	return m
}

func TestSplitAndMergeGiveTheFileBack(t *testing.T) {
	single := write(t, sample(), Split{})
	for _, s := range []Split{{}, {Shards: 1}, {Shards: 3}, {Shards: 7}, {MaxTensors: 2}, {MaxTensors: 2, EmptyFirst: true}, {Shards: 4, EmptyFirst: true}} {
		t.Run(fmt.Sprintf("%+v", s), func(t *testing.T) {
			shards := write(t, read(t, single).Contents(), s)
			if s.Shards > 0 && len(shards) != s.Shards {
				t.Errorf("%d shards, want %d", len(shards), s.Shards)
			}
			again := write(t, read(t, shards).Contents(), Split{})
			if !bytes.Equal(again[0], single[0]) {
				t.Error("merged file differs from the one that was split")
			}
		})
	}
}
