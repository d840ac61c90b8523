package modeltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
)

// Contents returns what [gguftest.Mixed] consists of.
func Contents(seed uint64) gguf.Contents {
	c, err := gguftest.Mixed(seed).Contents()
	if err != nil {
		panic(err)
	}
	return c
}

// Write writes contents as shards STEM... into dir and returns their paths.
func Write(t testing.TB, dir, stem string, c gguf.Contents, s gguf.Split) []string {
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

// Open opens the artifact at path until the test ends.
func Open(t testing.TB, path string) *gguf.Model {
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

// New writes contents into a fresh folder and opens it.
func New(t testing.TB, c gguf.Contents, s gguf.Split) *gguf.Model {
	t.Helper()
	return Open(t, Write(t, t.TempDir(), "m", c, s)[0])
}

// View returns the view of that name to change it.
func View(c gguf.Contents, name string) *gguf.View {
	for i := range c.Views {
		if c.Views[i].Name == name {
			return &c.Views[i]
		}
	}
	panic(fmt.Sprintf("no view %q", name))
}

// Flip returns an extent like v's in which one byte differs.
func Flip(t *testing.T, v *gguf.View, at int64) {
	t.Helper()
	data := make([]byte, v.Size())
	if _, err := v.Extents[0].Source.ReadAt(data, v.Extents[0].Offset); err != nil {
		t.Fatal(err)
	}
	data[at] ^= 1
	v.Extents = []gguf.Extent{{Source: bytes.NewReader(data), Length: int64(len(data))}}
}

// ChangedData gives the view that tensor's data with one bit changed.
func ChangedData(v *gguf.View, at int) {
	data := ViewData(*v)
	data[at] ^= 1
	v.Extents = nil
	v.Append(gguf.Extent{Source: bytes.NewReader(data), Length: int64(len(data))})
}

func ViewData(v gguf.View) []byte {
	var data []byte
	for _, e := range v.Extents {
		part := make([]byte, e.Length)
		e.Source.ReadAt(part, e.Offset)
		data = append(data, part...)
	}
	return data
}

// ErrInjected is a fault that a test makes.
var ErrInjected = errors.New("injected fault")

// brokenAt is a file whose bytes from some offset on cannot be read.
type brokenAt struct {
	io.ReaderAt
	offset int64
	err    error
}

func (b brokenAt) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > b.offset {
		n, _ := b.ReaderAt.ReadAt(p[:max(b.offset-off, 0)], off)
		return n, b.err
	}
	return b.ReaderAt.ReadAt(p, off)
}

// Broken returns a model of one file, "disk/m.gguf", whose tensor data cannot be read from some
// byte on.
func Broken(t *testing.T, c gguf.Contents, from int64, cause error) *gguf.Model {
	t.Helper()
	data, err := os.ReadFile(Write(t, t.TempDir(), "m", c, gguf.Split{})[0])
	if err != nil {
		t.Fatal(err)
	}
	file := &brokenAt{ReaderAt: bytes.NewReader(data), offset: int64(len(data)), err: cause}
	f, err := gguf.NewFile("disk/m.gguf", file, int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	file.offset = f.DataOffset + from
	m, err := gguf.NewModel("m", f)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
