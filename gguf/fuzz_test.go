package gguf

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fuzzWriteLimit bounds what a fuzz input may make us write: an alignment of a MiB
// blows up a table of tiny tensors.
const fuzzWriteLimit = 4 << 20

// FuzzFile parses any bytes as one file. Nothing may panic; what is parsed is told
// safely, reads back, and is rewritten to a file that says the same. When the input is
// as the writer would have it, it is rewritten to the same bytes.
func FuzzFile(f *testing.F) {
	for _, seed := range fileSeeds(f) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := parse(data)
		if err != nil {
			wantPlain(t, err.Error())
			if e := new(FormatError); !errors.As(err, &e) {
				t.Fatalf("error is %T: %v", err, err)
			}
			return
		}
		wantReadable(t, file)
		m, err := NewModel("m", file)
		if err != nil {
			t.Fatal(err)
		}
		layout := wantWritable(t, m)
		if layout == nil || layout.Bytes() > fuzzWriteLimit {
			return
		}
		out := writeShards(t, layout)[0]
		if isCanonical(file, layout.Shards[0], data) && !bytes.Equal(out, data) {
			t.Fatalf("rewritten otherwise:\n got %q\nwant %q", out, data)
		}
		again := reopen(t, [][]byte{out})
		wantSameModel(t, m, again)
		second, err := NewLayout(again.Contents(), Split{})
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(writeShards(t, second)[0], out) {
			t.Fatal("written again otherwise")
		}
	})
}

// FuzzModel opens any files as a set: by the first one's name, by the folder, and by
// the list. What is sound can be split and merged again.
func FuzzModel(f *testing.F) {
	for _, seed := range modelSeeds(f) {
		f.Add(seed)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		paths := unpack(t, dir, data)
		if len(paths) == 0 {
			return
		}
		for _, open := range []func() (*Model, error){
			func() (*Model, error) { return Open(paths[0]) },
			func() (*Model, error) { return Open(dir) },
			func() (*Model, error) { return OpenFiles(paths) },
		} {
			m, err := open()
			if err != nil {
				wantPlain(t, err.Error())
				continue
			}
			wantSplits(t, m)
			if err := m.Close(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// wantSplits writes a model as one file and as two, if it may be written, and reads
// both back.
func wantSplits(t *testing.T, m *Model) {
	t.Helper()
	if layout := wantWritable(t, m); layout == nil || layout.Bytes() > fuzzWriteLimit {
		return
	}
	for _, split := range []Split{{}, {EmptyFirst: true}, {MaxTensors: 1}} {
		layout, err := NewLayout(m.Contents(), split)
		if err != nil {
			t.Fatal(err)
		}
		wantSameModel(t, m, reopen(t, writeShards(t, layout)))
	}
}

// wantPlain checks that a message is one a terminal may show.
func wantPlain(t *testing.T, text string) {
	t.Helper()
	for line := range strings.SplitSeq(text, "\n") {
		if printable(line) != line {
			t.Fatalf("message is not plain: %q", text)
		}
	}
}

// wantReadable reads everything that a header promises.
func wantReadable(t *testing.T, f *File) {
	t.Helper()
	for _, p := range f.Problems {
		wantPlain(t, p.String())
	}
	for key, v := range f.Metadata.All() {
		if n, err := io.Copy(io.Discard, v.Reader()); n != v.Size() || err != nil {
			t.Fatalf("key %q: %d bytes of %d, %v", key, n, v.Size(), err)
		}
		if v.Type() != Array {
			spell(v)
			continue
		}
		n := int64(0)
		if err := v.Each(func(int64, Value) error { n++; return nil }); err != nil || n != v.Len() {
			t.Fatalf("key %q: %d elements of %d, %v", key, n, v.Len(), err)
		}
	}
	if f.Err() != nil {
		return
	}
	for _, tensor := range f.Tensors {
		if n, err := io.Copy(io.Discard, tensor.Reader()); n != tensor.Size || err != nil {
			t.Fatalf("tensor %q: %d bytes of %d, %v", tensor.Name, n, tensor.Size, err)
		}
	}
}

// wantWritable returns the layout of a sound model as one file; nil for one that is not
// to be written.
func wantWritable(t *testing.T, m *Model) *Layout {
	t.Helper()
	for _, p := range m.Problems {
		wantPlain(t, p.String())
	}
	if m.CheckWritable() != nil || m.Files[0].Alignment > maxWriteAlignment {
		return nil
	}
	layout, err := NewLayout(m.Contents(), Split{})
	if err != nil {
		t.Fatal(err)
	}
	return layout
}

// isCanonical reports whether a file lies as the writer lays it: offsets as planned,
// zeros between, nothing behind.
func isCanonical(f *File, plan *ShardLayout, data []byte) bool {
	if plan.Size != int64(len(data)) || plan.DataOffset != f.DataOffset || plan.Metadata.Len() != f.Metadata.Len() {
		return false
	}
	end := fixedHeader + f.Metadata.encodedSize()
	for i, tensor := range f.Tensors {
		if tensor.Offset != plan.Offsets[i] {
			return false
		}
		end += infoSize(plan.Views[i])
	}
	isZero := func(from, to int64) bool { return len(bytes.Trim(data[from:to], "\x00")) == 0 }
	if !isZero(end, f.DataOffset) {
		return false
	}
	for _, tensor := range f.Tensors {
		end := tensor.DataOffset() + tensor.Size
		if !isZero(end, align(end, f.Alignment)) {
			return false
		}
	}
	for key, v := range plan.Metadata.All() {
		if was, _ := f.Metadata.Get(key); !sameValue(was, v) {
			return false
		}
	}
	return true
}

// fileSeeds are single files of every kind that the tests know.
func fileSeeds(f *testing.F) [][]byte {
	odd := little().head(1, 2).pair(KeyArchitecture, Text, "x").pair(KeyAlignment, Uint32, uint32(64)).info("w", Q8_0, 0, 32, 2)
	for len(odd.b)%64 != 0 {
		odd.add(uint8(0))
	}
	layout, err := NewLayout(sample(), Split{})
	if err != nil {
		f.Fatal(err)
	}
	var whole bytes.Buffer
	if err := layout.Shards[0].Write(context.Background(), &whole, nil, nil); err != nil {
		f.Fatal(err)
	}
	return [][]byte{
		tiny(little(), 1), tiny(little(), 2), tiny(little(), 3), tiny(big(), 3), everyType(little()), everyType(big()), whole.Bytes(),
		odd.data(68 + 60).b,
		little().head(0, 0).b,
		little().head(0, 2).pair("k", Uint8, uint8(0)).pair("k", Uint8, uint8(1)).b,
		little().head(0, 1).pair(KeyAlignment, Uint32, uint32(1<<31)).b,
		little().head(0, 1).pair("k", Array, uint32(Array), uint64(1), uint32(Array), uint64(1), uint32(Text), uint64(1), "x").b,
		fileOf(96, line{"c", F32, 64, dims(8)}, line{"a", F32, 0, dims(8)}, line{"b", 1000, 32, dims(8)}),
		fileOf(64, line{"a", F32, 0, dims(8)}, line{"z", F32, 32, dims(0)}, line{"s", I32, 32, nil}),
		fileOf(51, line{"a", MXFP4, 0, dims(48, 2)}),
		[]byte("version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 12\n"), []byte("<!DOCTYPE html>"), make([]byte, 100),
	}
}

// fuzzNames are the names that files of a packed set can have.
var fuzzNames = []string{
	"m-00001-of-00002.gguf", "m-00002-of-00002.gguf", "m-00001-of-00003.gguf", "m-00002-of-00003.gguf", "m-00003-of-00003.gguf",
	"m-00001-of-00001.gguf", "a.gguf", "b.gguf", "c.gguf", "n-00001-of-00002.gguf", "m-00002-of-00050.gguf",
}

// pack puts files into one fuzz input: for each a name's number, a u16 length, and so
// many bytes.
func pack(files map[string][]byte) []byte {
	b := little()
	for i, name := range fuzzNames {
		if content, ok := files[name]; ok {
			b.add(uint8(i), uint16(len(content)), content)
		}
	}
	return b.b
}

// unpack writes the files of a fuzz input into a folder that holds nothing else, and
// returns their paths.
func unpack(t *testing.T, dir string, data []byte) []string {
	t.Helper()
	for _, name := range fuzzNames {
		os.Remove(filepath.Join(dir, name))
	}
	var paths []string
	for len(data) >= 3 {
		name := fuzzNames[int(data[0])%len(fuzzNames)]
		size := min(int(data[1])|int(data[2])<<8, len(data)-3)
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data[3:3+size], 0o666); err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
		data = data[3+size:]
	}
	return paths
}

// modelSeeds are packed sets, sound ones and others.
func modelSeeds(f *testing.F) [][]byte {
	two, three := set("m", 2), set("m", 3)
	layout, err := NewLayout(sample(), Split{Shards: 3})
	if err != nil {
		f.Fatal(err)
	}
	written := map[string][]byte{}
	for i, shard := range layout.Shards {
		var b bytes.Buffer
		if err := shard.Write(context.Background(), &b, nil, nil); err != nil {
			f.Fatal(err)
		}
		written[ShardName("m", i, 3)] = b.Bytes()
	}
	seeds := []map[string][]byte{
		two, three, written, {"a.gguf": tiny(little(), 3)}, {"a.gguf": tiny(big(), 2), "b.gguf": []byte("<html>")},
		merge(two, set("n", 2)), renamed(three, "a.gguf", "b.gguf", "c.gguf"), renamed(two, "m-00002-of-00002.gguf", "m-00001-of-00002.gguf"),
		merge(three, map[string][]byte{"m-00002-of-00003.gguf": two["m-00002-of-00002.gguf"]}), set("m", 1),
		{"m-00002-of-00050.gguf": two["m-00002-of-00002.gguf"]},
	}
	var packed [][]byte
	for _, files := range seeds {
		packed = append(packed, pack(files))
	}
	return packed
}
