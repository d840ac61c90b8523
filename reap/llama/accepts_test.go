package llama_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/reap/llama"
	"ggufreap/reap/llama/llamatest"
)

func TestAcceptsHeadersWithoutData(t *testing.T) {
	engine := llamatest.Engine(t)
	spec := gguftest.K3(gguftest.K3Options{Experts: 32, Used: 4})
	paths, err := spec.WriteSparse(t.TempDir(), gguf.Split{Shards: 3})
	if err != nil {
		t.Fatal(err)
	}
	if err := engine.Accepts(paths[0]); err != nil {
		t.Error(err)
	}
	if err := os.Remove(paths[2]); err != nil {
		t.Fatal(err)
	}
	var refusal *llama.Refusal
	if err := engine.Accepts(paths[0]); !errors.As(err, &refusal) || refusal.Path != paths[0] {
		t.Errorf("a missing shard: %v", err)
	}
	if err := engine.Accepts("nowhere.gguf"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// The reason is llama.cpp's own, whether it refuses or ends the process.
func TestAcceptsGivesTheReason(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*gguftest.Spec)
		want   string
	}{
		"sound": {func(*gguftest.Spec) {}, ""},
		"absent tensor": {func(s *gguftest.Spec) {
			s.Tensors = slices.DeleteFunc(s.Tensors, func(t gguftest.Tensor) bool { return t.Name == "output_norm.weight" })
		}, "'output_norm.weight' not found"},
		"other count": {func(s *gguftest.Spec) {
			s.Metadata.Set(s.Metadata.ArchKey("expert_count"), gguf.Uint32Value(31))
		}, "has wrong shape"},
		"absent key": {func(s *gguftest.Spec) {
			absent := s.Metadata.ArchKey("block_count")
			s.Metadata = s.Metadata.Without(func(key string) bool { return key == absent })
		}, "key not found"},
		"more used than there are": {func(s *gguftest.Spec) {
			s.Metadata.Set(s.Metadata.ArchKey("expert_used_count"), gguf.Uint32Value(33))
		}, "GGML_ASSERT"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := gguftest.K3(gguftest.K3Options{Experts: 32, Used: 4}).Clone()
			c.change(&spec)
			paths, err := spec.WriteSparse(filepath.Join(t.TempDir(), "m"), gguf.Split{})
			if err != nil {
				t.Fatal(err)
			}
			if got := llamatest.Accepts(t, paths[0]); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
				t.Errorf("reason %q, want %q", got, c.want)
			}
		})
	}
}
