package manifest

import (
	"context"
	"path/filepath"
	"testing"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
)

// BenchmarkBuildPin reads 90 MB in four shards: experts with the row width of the real
// Kimi-K3.
func BenchmarkBuildPin(b *testing.B) {
	const experts = 32
	model := gguftest.K3(gguftest.K3Options{Layers: 5, Experts: experts, Used: 4, Hidden: 512, Latent: 3584, Width: 256, GateUp: gguf.IQ1_S})
	slabs := func(tensor string) int {
		if routed, _ := filepath.Match("blk.*.ffn_*_exps.weight", tensor); routed {
			return experts
		}
		return 0
	}
	files, err := model.Write(b.TempDir(), gguf.Split{Shards: 4})
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
		if _, err := BuildPin(context.Background(), m, BuildOptions{Slabs: slabs}); err != nil {
			b.Fatal(err)
		}
	}
}
