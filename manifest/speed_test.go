package manifest

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
)

// benchModel is 90 MB in four shards: experts with the row width of the real Kimi-K3.
func benchModel() gguftest.Spec {
	return gguftest.K3(gguftest.K3Options{Layers: 5, Experts: 32, Used: 4, Hidden: 512, Latent: 3584, Width: 256, GateUp: gguf.IQ1_S})
}

func benchSlabs(tensor string) int {
	if routed, _ := filepath.Match("blk.*.ffn_*_exps.weight", tensor); routed {
		return 32
	}
	return 0
}

func BenchmarkBuildPin(b *testing.B) {
	files, err := benchModel().Write(b.TempDir(), gguf.Split{Shards: 4})
	if err != nil {
		b.Fatal(err)
	}
	m, err := gguf.Open(files[0])
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	b.SetBytes(m.FileBytes())
	for b.Loop() {
		if _, err := BuildPin(context.Background(), m, BuildOptions{Slabs: benchSlabs}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkWriteShards writes the model again in seven shards, synced.
func BenchmarkWriteShards(b *testing.B) {
	files, err := benchModel().Write(b.TempDir(), gguf.Split{Shards: 4})
	if err != nil {
		b.Fatal(err)
	}
	m, err := gguf.Open(files[0])
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	c := gguf.Contents{Version: 3, Metadata: m.Metadata()}
	for _, t := range m.Tensors() {
		c.Views = append(c.Views, t.View())
	}
	layout, err := gguf.NewLayout(c, gguf.Split{Shards: 7})
	if err != nil {
		b.Fatal(err)
	}
	dir := filepath.Join(b.TempDir(), "release")
	b.SetBytes(layout.Bytes())
	for b.Loop() {
		s, err := NewStage(dir, Release{Stem: "out", Layout: layout, Slabs: benchSlabs}, StageOptions{})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := s.WriteShards(context.Background()); err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		if err := os.RemoveAll(dir); err != nil {
			b.Fatal(err)
		}
	}
}
