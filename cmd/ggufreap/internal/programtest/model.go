package programtest

import (
	"errors"
	"io"
	"os"
	"testing"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
)

// SmallK3 is a kimi-k3 model with 32 experts, of which 4 are used, in two layers.
func SmallK3() gguftest.Spec {
	return gguftest.K3(gguftest.K3Options{Name: "small", Experts: 32, Used: 4, Layers: 3})
}

// SmallMoE is a model with 8 routed experts in two of three layers.
func SmallMoE() gguftest.Spec {
	return gguftest.K3(gguftest.K3Options{Name: "small", Layers: 3, Experts: 8, Used: 2, Hidden: 32, Latent: 32, Width: 32})
}

// Bare is a model with a few tensors of a made-up architecture.
func Bare(tensors ...gguftest.Tensor) gguftest.Spec {
	md := gguf.NewMetadata()
	md.Set("general.architecture", gguf.TextValue("made-up"))
	return gguftest.Spec{Name: "bare", Seed: 1, Metadata: md, Tensors: tensors}
}

// Vector is a tensor of one dim.
func Vector(name string, n uint64) gguftest.Tensor {
	return gguftest.Tensor{Name: name, Type: gguf.F32, Shape: []uint64{n}, Fill: gguftest.Fill{Spread: 1}}
}

// ChangeBytes flips a bit of a tensor.
func ChangeBytes(s *gguftest.Spec, tensor string, at int) {
	data, err := s.Bytes(tensor)
	if err != nil {
		panic(err)
	}
	data[at] ^= 1
	s.Tensor(tensor).Data = data
}

// Write writes a model into the working folder and returns its files in shard order.
func Write(t testing.TB, s gguftest.Spec, split gguf.Split) []string {
	t.Helper()
	paths, err := s.Write(".", split)
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// WriteModel writes a model into a fresh folder and returns its files in shard order.
func WriteModel(t testing.TB, spec gguftest.Spec, shards int) []string {
	t.Helper()
	files, err := spec.Write(t.TempDir(), gguf.Split{Shards: shards})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// WriteContents writes what a model consists of as one file.
func WriteContents(t testing.TB, path string, c gguf.Contents) {
	t.Helper()
	layout, err := gguf.NewLayout(c, gguf.Split{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(layout.Shards[0].Write(t.Context(), f, make([]byte, 1<<16), nil), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// OpenModel opens a model that has no problem.
func OpenModel(t testing.TB, path string) *gguf.Model {
	t.Helper()
	m, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	for _, p := range m.Problems {
		t.Error(p)
	}
	return m
}

// TensorData returns the bytes of a tensor.
func TensorData(t testing.TB, m *gguf.Model, name string) []byte {
	t.Helper()
	tensor := m.Tensor(name)
	if tensor == nil {
		t.Fatalf("%s has no tensor %q", m.Name, name)
	}
	data, err := io.ReadAll(tensor.Reader())
	if err != nil {
		t.Fatal(err)
	}
	return data
}
