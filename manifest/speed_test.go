package manifest

import (
	"context"
	"testing"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
)

// BenchmarkBuildPin reads 90 MB in four shards: experts with the row width of the real
// Kimi-K3.
func BenchmarkBuildPin(b *testing.B) {
	files, err := gguftest.Timed().Write(b.TempDir(), gguf.Split{Shards: 4})
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
		if _, err := BuildPin(context.Background(), m, BuildOptions{Slabs: gguftest.TimedSlabs}); err != nil {
			b.Fatal(err)
		}
	}
}
