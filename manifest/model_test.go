package manifest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
)

// testContents returns what [gguftest.Mixed] consists of.
func testContents(seed uint64) gguf.Contents {
	c, err := gguftest.Mixed(seed).Contents()
	if err != nil {
		panic(err)
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
