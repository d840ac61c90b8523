package manifest

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"ggufreap/gguf"
)

// testExperts is the number of slabs of the expert tensors in testContents.
const testExperts = 6

// testSlabs says which tensors of testContents carry slabs.
func testSlabs(name string) int {
	switch name {
	case "blk.1.ffn_up_exps.weight", "blk.1.ffn_gate_inp.weight", "blk.1.exp_probs_b.bias":
		return testExperts
	}
	return 0
}

// testContents returns a small model: tensors of several types, sizes that need
// padding, an empty one, and three with a slab for each expert.
func testContents(seed uint64) gguf.Contents {
	md := gguf.NewMetadata()
	md.Set("general.architecture", gguf.TextValue("test"))
	md.Set("test.expert_count", gguf.Uint32Value(testExperts))
	md.Set("tokenizer.ggml.model", gguf.TextValue("gpt2"))
	md.Set("tokenizer.ggml.tokens", gguf.TextsValue("a", "b", "\xff"))
	rng := rand.New(rand.NewPCG(seed, 0))
	c := gguf.Contents{Version: 3, Metadata: md}
	for _, t := range []struct {
		name  string
		typ   gguf.Type
		shape []uint64
	}{
		{"token_embd.weight", gguf.F16, []uint64{33, 7}},
		{"blk.0.attn_norm.weight", gguf.F32, []uint64{33}},
		{"blk.0.scale", gguf.F32, nil},
		{"blk.0.empty", gguf.F32, []uint64{0}},
		{"blk.1.ffn_gate_inp.weight", gguf.F32, []uint64{33, testExperts}},
		{"blk.1.exp_probs_b.bias", gguf.F32, []uint64{testExperts}},
		{"blk.1.ffn_up_exps.weight", gguf.Q8_0, []uint64{64, 50, testExperts}},
		{"output.weight", gguf.Q4_0, []uint64{32, 101}},
	} {
		size, err := gguf.TypeSize(t.typ, t.shape)
		if err != nil {
			panic(err)
		}
		data := make([]byte, size)
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		v := gguf.View{Name: t.name, Type: t.typ, Shape: t.shape}
		v.Append(gguf.Extent{Source: bytes.NewReader(data), Length: size})
		c.Views = append(c.Views, v)
	}
	return c
}

// writeModel writes contents as shards STEM... into dir and returns their paths.
func writeModel(t testing.TB, dir, stem string, c gguf.Contents, s gguf.Split) []string {
	t.Helper()
	layout, err := gguf.NewLayout(c, s)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for i, shard := range layout.Shards {
		path := filepath.Join(dir, gguf.ShardName(stem, i, len(layout.Shards)))
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := shard.Write(context.Background(), f, make([]byte, 4096), nil); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return paths
}

// openModel opens the artifact at path until the test ends.
func openModel(t testing.TB, path string) *gguf.Model {
	t.Helper()
	m, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	if err := m.Err(); err != nil {
		t.Fatal(err)
	}
	return m
}

// newModel writes contents into a fresh folder and opens it.
func newModel(t testing.TB, c gguf.Contents, s gguf.Split) *gguf.Model {
	t.Helper()
	return openModel(t, writeModel(t, t.TempDir(), "m", c, s)[0])
}

// viewNamed returns the view of that name to change it.
func viewNamed(c gguf.Contents, name string) *gguf.View {
	for i := range c.Views {
		if c.Views[i].Name == name {
			return &c.Views[i]
		}
	}
	panic(fmt.Sprintf("no view %q", name))
}
