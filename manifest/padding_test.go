package manifest

import (
	"context"
	"os"
	"reflect"
	"slices"
	"testing"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/manifest/internal/modeltest"
)

// TestReadPadding fills bytes of padding, and wants of those what a pass over all data sees.
func TestReadPadding(t *testing.T) {
	for _, s := range []gguftest.Spec{gguftest.Mixed(1), gguftest.K3(gguftest.K3Options{Experts: 4, Used: 2, Layers: 2})} {
		paths, err := s.Write(t.TempDir(), gguf.Split{Shards: 3})
		if err != nil {
			t.Fatal(err)
		}
		fillPadding(t, paths[1])
		m := modeltest.Open(t, paths[0])
		var want []Padding
		mustPin(t, m, BuildOptions{Padding: func(_ *gguf.File, p Padding) { want = append(want, p) }})
		if len(want[1].Filled) < 2 {
			t.Fatalf("%s: padding was filled in %d places", s.Name, len(want[1].Filled))
		}
		for i, f := range m.Files {
			got, err := ReadPadding(context.Background(), f)
			if err != nil || !reflect.DeepEqual(got, want[i]) {
				t.Errorf("%s: %+v (%v), a pass over all sees %+v", f.Name, got, err, want[i])
			}
		}
	}
}

// fillPadding changes the byte before the data, that behind each tensor that has padding, and
// appends some.
func fillPadding(t *testing.T, path string) {
	t.Helper()
	m := modeltest.Open(t, path)
	f := m.Files[slices.Index(m.Paths(), path)]
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if f.HeaderSize < f.DataOffset {
		data[f.DataOffset-1] = 1
	}
	for _, t := range f.Tensors {
		if t.Span > t.Size {
			data[t.DataOffset()+t.Size] = 1
		}
	}
	if err := os.WriteFile(path, append(data, 0, 0, 1), 0o666); err != nil {
		t.Fatal(err)
	}
}
