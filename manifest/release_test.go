package manifest

import (
	"context"
	"crypto/sha256"
	"io"
	"os"
	"path/filepath"
	"testing"

	"ggufreap/gguf"
	"ggufreap/manifest/internal/pass"
)

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
	draft, err := NewDraft(o.stem, o.layout, o.slabs, nil)
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
