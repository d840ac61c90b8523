package manifest

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/manifest/internal/pass"
)

var errInjected = errors.New("injected fault")

// A draftOf says how writeDraft writes a layout.
type draftOf struct {
	stem    string
	layout  *gguf.Layout
	slabs   SlabCount
	check   func(t *Tensor) error
	workers int
}

// write writes the shards into dir and returns the pin that their Draft gives.
func (o draftOf) write(t *testing.T, dir string) (*Pin, error) {
	t.Helper()
	draft, err := NewDraft(o.stem, o.layout, o.slabs)
	if err != nil {
		return nil, err
	}
	sums := make([]Sum, len(o.layout.Shards))
	err = pass.ForEach(t.Context(), len(sums), o.workers, func(ctx context.Context, i int, w *pass.Worker) error {
		f, err := os.Create(filepath.Join(dir, gguf.ShardName(o.stem, i, len(sums))))
		if err != nil {
			return err
		}
		defer f.Close()
		sum, shard := sha256.New(), draft.Shard(i, o.check)
		if err := o.layout.Shards[i].Write(ctx, io.MultiWriter(f, sum), w.CopyBuffer(), shard.Tensor); err != nil {
			return err
		}
		sums[i] = Sum(sum.Sum(nil))
		return shard.End()
	})
	if err != nil {
		return nil, err
	}
	return draft.Finish(sums)
}

// mustDraft writes contents as so many shards into a fresh folder.
func mustDraft(t *testing.T, stem string, c gguf.Contents, slabs SlabCount, shards int) (dir string, pin *Pin) {
	t.Helper()
	dir = t.TempDir()
	layout, err := gguf.NewLayout(c, gguf.Split{Shards: shards})
	if err != nil {
		t.Fatal(err)
	}
	pin, err = draftOf{stem: stem, layout: layout, slabs: slabs}.write(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir, pin
}

// listSums writes the list of sums of what a folder holds, which makes it a release.
func listSums(t *testing.T, dir string) {
	t.Helper()
	var sums []FileSum
	for _, name := range folderNames(t, dir) {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, FileSum{name, sha256.Sum256(data)})
	}
	f, err := os.Create(filepath.Join(dir, SumsName))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(WriteSums(f, sums), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// writeFile writes a document into a folder.
func writeFile(t *testing.T, dir, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
		t.Fatal(err)
	}
}

// mustRelease makes a release of three shards and a plan in a fresh folder.
func mustRelease(t *testing.T) (dir string, pin *Pin) {
	t.Helper()
	dir, pin = mustDraft(t, "out", testContents(1), gguftest.MixedSlabs, 3)
	writeFile(t, dir, "plan.json", []byte("{}\n"))
	listSums(t, dir)
	return dir, pin
}

func folderNames(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func touch(path string) error { return os.WriteFile(path, []byte("kept"), 0o666) }
