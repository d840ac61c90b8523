package gguf

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"testing"
)

// vocabularyFile has a tokenizer of 163,840 tokens and as many merges.
func vocabularyFile() []byte {
	const n = 163_840
	b := little().head(0, 4).pair(KeyArchitecture, Text, "test")
	b.pair("tokenizer.ggml.tokens", Array, uint32(Text), uint64(n))
	b.repeat(n, func(b *builder, i int) { b.add(fmt.Sprint("token", i)) })
	b.pair("tokenizer.ggml.token_type", Array, uint32(Int32), uint64(n), make([]byte, 4*n))
	b.pair("tokenizer.ggml.merges", Array, uint32(Text), uint64(n))
	return b.repeat(n, func(b *builder, i int) { b.add(fmt.Sprint(i, " ", 7*i)) }).b
}

// tensorsFile has 100,000 tensors without data.
func tensorsFile() []byte {
	const n = 100_000
	b := little().head(n, 1).pair(KeyArchitecture, Text, "test")
	b.repeat(n, func(b *builder, i int) { b.info(fmt.Sprintf("blk.%d.ffn_up.weight", i), F32, 0, 4096, 0) })
	return b.pad().b
}

func BenchmarkOpen(b *testing.B) {
	for _, bench := range []struct {
		name string
		file []byte
	}{{"vocabulary", vocabularyFile()}, {"tensors", tensorsFile()}} {
		b.Run(bench.name, func(b *testing.B) {
			file := bench.file
			b.SetBytes(int64(len(file)))
			b.ReportAllocs()
			for b.Loop() {
				f, err := parse(file)
				if err == nil {
					_, err = NewModel("m", f)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkTokens(b *testing.B) {
	file := vocabularyFile()
	f, err := parse(file)
	if err != nil {
		b.Fatal(err)
	}
	tokens, _ := f.Metadata.Get("tokenizer.ggml.tokens")
	b.SetBytes(tokens.Size())
	b.ReportAllocs()
	for b.Loop() {
		if err := tokens.Each(func(int64, Value) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLayout(b *testing.B) {
	sizes := make([]int64, 2573)
	for i := range sizes {
		sizes[i] = int64(i%5) << 28
	}
	c := Contents{Version: 3, Metadata: NewMetadata(), Views: sized(sizes...)}
	for b.Loop() {
		if _, err := NewLayout(c, Split{Shards: 14}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkWrite copies slabs of 64 KiB, every other one of a source in memory.
func BenchmarkWrite(b *testing.B) {
	const slab = 64 << 10
	source := bytes.NewReader(make([]byte, 64<<20))
	v := View{Name: "experts", Type: I8}
	for at := int64(0); at < source.Size(); at += 2 * slab {
		v.Append(Extent{source, at, slab})
	}
	v.Shape = []uint64{uint64(v.Size())}
	layout, err := NewLayout(Contents{Version: 3, Metadata: NewMetadata(), Views: []View{v}}, Split{})
	if err != nil {
		b.Fatal(err)
	}
	buf := make([]byte, 1<<20)
	b.SetBytes(layout.Bytes())
	b.ReportAllocs()
	for b.Loop() {
		if err := layout.Shards[0].Write(context.Background(), io.Discard, buf, nil); err != nil {
			b.Fatal(err)
		}
	}
}
