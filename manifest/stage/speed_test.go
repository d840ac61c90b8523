package stage

import (
	"os"
	"path/filepath"
	"testing"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
)

// BenchmarkWriteShards writes a model of 90 MB again, in seven shards, synced: experts with
// the row width of the real Kimi-K3.
func BenchmarkWriteShards(b *testing.B) {
	files, err := gguftest.Timed().Write(b.TempDir(), gguf.Split{Shards: 4})
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
		f, err := Open(dir, Release{Stem: "out", Layout: layout, Slabs: gguftest.TimedSlabs}, Options{})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := f.WriteShards(b.Context()); err != nil {
			b.Fatal(err)
		}
		if err := f.Close(); err != nil {
			b.Fatal(err)
		}
		if err := os.RemoveAll(dir); err != nil {
			b.Fatal(err)
		}
	}
}
