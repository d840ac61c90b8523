// Models writes models with large headers, each into a folder of its own below DIR. It
// is a program of its own so that the memory it takes is not counted for others.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"ggufreap/gguf"
)

func main() {
	flag.Usage = func() { fmt.Fprintln(os.Stderr, "usage: models DIR") }
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := writeAll(flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "models:", err)
		os.Exit(1)
	}
}

func writeAll(dir string) error {
	if err := write(filepath.Join(dir, "vocabulary"), vocabulary(), 10); err != nil {
		return err
	}
	if err := write(filepath.Join(dir, "tensors"), manyTensors(), 10); err != nil {
		return err
	}
	return write(filepath.Join(dir, "tensors-in-one"), manyTensors(), 1)
}

// vocabulary has the tokenizer of a very large model, and as many tensors.
func vocabulary() gguf.Contents {
	const n = 163_840
	tokens, merges := make([]string, n), make([]string, n)
	types, scores := make([]int32, n), make([]float32, n)
	for i := range n {
		tokens[i] = fmt.Sprintf("token%x", uint32(i)*2654435761)
		merges[i] = fmt.Sprintf("%x %x", i, uint32(i)*2246822519)
		types[i] = 1
	}
	md := gguf.NewMetadata()
	md.Set("general.architecture", gguf.TextValue("kimi-k3"))
	md.Set("tokenizer.ggml.model", gguf.TextValue("gpt2"))
	md.Set("tokenizer.ggml.tokens", gguf.TextsValue(tokens...))
	md.Set("tokenizer.ggml.token_type", gguf.Int32sValue(types...))
	md.Set("tokenizer.ggml.scores", gguf.Float32sValue(scores...))
	md.Set("tokenizer.ggml.merges", gguf.TextsValue(merges...))
	return gguf.Contents{Version: 3, Metadata: md, Views: tensors(2573)}
}

func manyTensors() gguf.Contents {
	md := gguf.NewMetadata()
	md.Set("general.architecture", gguf.TextValue("llama"))
	return gguf.Contents{Version: 3, Metadata: md, Views: tensors(100_000)}
}

// tensors returns n small tensors with the names of a model with very many layers.
func tensors(n int) []gguf.View {
	roles := []string{"attn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "ffn_norm", "ffn_gate", "ffn_up", "ffn_down", "post_ffw_norm"}
	views := make([]gguf.View, n)
	for i := range views {
		views[i] = gguf.View{Name: fmt.Sprintf("blk.%d.%s.weight", i/len(roles), roles[i%len(roles)]), Type: gguf.F32, Shape: []uint64{8, 4},
			Extents: []gguf.Extent{{Source: zeros{}, Length: 128}}}
	}
	return views
}

// zeros is a source of nothing but zeros.
type zeros struct{}

func (zeros) ReadAt(p []byte, _ int64) (int, error) {
	clear(p)
	return len(p), nil
}

// write makes the files "m.gguf", or the shards of "m", in a folder.
func write(dir string, c gguf.Contents, shards int) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	layout, err := gguf.NewLayout(c, gguf.Split{Shards: shards})
	if err != nil {
		return err
	}
	for i, shard := range layout.Shards {
		if err := writeShard(filepath.Join(dir, gguf.ShardName("m", i, shards)), shard); err != nil {
			return err
		}
	}
	return nil
}

func writeShard(path string, shard *gguf.ShardLayout) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	return shard.Write(context.Background(), f, nil, nil)
}
