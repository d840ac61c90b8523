package release

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"slices"

	"ggufreap/cmd/ggufreap/internal/hub"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
	"ggufreap/manifest"
	"ggufreap/manifest/stage"
)

// statedSums are the sums that somebody states of a source's files, all of whose bytes pass
// into a release.
type statedSums struct {
	sums     []manifest.Sum     // in the order of the files; zero where nobody states one
	recorder *manifest.Recorder // takes them as the bytes pass, or nil
}

// watchSums has the sums of the source's files taken on the way. A run that goes on with what
// an earlier one wrote takes them from that afterwards: it must not travel again.
func (r *Release) watchSums(ctx context.Context, folder *stage.Folder) error {
	far := hub.Of(r.Source)
	if !r.Whole || far == nil {
		return nil
	}
	sums, err := far.SHA256(r.Source)
	if err != nil {
		return err
	}
	r.stated = &statedSums{sums: sums}
	if resumed, _ := folder.Resumed(); resumed > 0 {
		return nil
	}
	recorder, err := manifest.NewRecorder(ctx, r.Source, manifest.BuildOptions{})
	if err != nil {
		return nil // a name has no digest; the sums are taken afterwards
	}
	r.stated.recorder = recorder
	folder.HashWith(recorder.Sums())
	for _, shard := range r.Layout.Shards {
		shard.Views = recorder.Views(shard.Views)
	}
	return nil
}

// checkSums holds the sums of the source's files against what is stated of them.
func (r *Release) checkSums(ctx context.Context, folder *stage.Folder) error {
	s := r.stated
	if s == nil {
		return nil
	}
	got := make([]manifest.Sum, len(s.sums))
	if s.recorder != nil {
		pin, err := s.recorder.Finish(ctx)
		if err != nil {
			return err
		}
		for i, f := range pin.Files {
			got[i] = f.SHA256
		}
	}
	for i, want := range s.sums {
		if want == (manifest.Sum{}) {
			continue
		}
		if s.recorder == nil {
			var err error
			if got[i], err = r.sumSource(ctx, folder, r.Source.Files[i]); err != nil {
				return err
			}
		}
		if got[i] != want {
			return &manifest.DerivationError{What: fmt.Sprintf("%s: the sha256 of what came is %s, the hub states %s", text.Safe(r.Source.Files[i].Name), got[i], want)}
		}
		r.Verified++
	}
	return nil
}

// sumSource takes the sum of a source's file whose tensors are in the release: of their
// bytes there, and of what lies between them, which is fetched.
func (r *Release) sumSource(ctx context.Context, folder *stage.Folder, f *gguf.File) (manifest.Sum, error) {
	hash := sha256.New()
	at := int64(0)
	for _, part := range r.partsOf(f) {
		if err := copyRange(ctx, hash, f, at, part.from); err != nil {
			return manifest.Sum{}, err
		}
		shard, err := folder.OpenShard(part.shard)
		if err != nil {
			return manifest.Sum{}, err
		}
		err = copyRange(ctx, hash, shard, part.offset, part.offset+part.to-part.from)
		shard.Close()
		if err != nil {
			return manifest.Sum{}, err
		}
		at = part.to
	}
	err := copyRange(ctx, hash, f, at, f.Size)
	return manifest.Sum(hash.Sum(nil)), err
}

// A movedPart is a range of a source's file, and where a release has it.
type movedPart struct {
	from, to int64
	shard    int
	offset   int64
}

// partsOf returns where the tensors of a source's file are now, in the order of the file.
func (r *Release) partsOf(f *gguf.File) []movedPart {
	place := map[string]movedPart{}
	for i, shard := range r.Layout.Shards {
		for j, v := range shard.Views {
			place[v.Name] = movedPart{shard: i, offset: shard.DataOffset + shard.Offsets[j]}
		}
	}
	var parts []movedPart
	for _, t := range slices.SortedFunc(slices.Values(f.Tensors), func(a, b *gguf.Tensor) int { return cmp.Compare(a.Offset, b.Offset) }) {
		part := place[t.Name]
		part.from, part.to = t.DataOffset(), t.DataOffset()+t.Size
		parts = append(parts, part)
	}
	return parts
}

func copyRange(ctx context.Context, w io.Writer, r io.ReaderAt, from, to int64) error {
	buf := make([]byte, 1<<20)
	for from < to {
		if err := ctx.Err(); err != nil {
			return err
		}
		part := buf[:min(int64(len(buf)), to-from)]
		if n, err := r.ReadAt(part, from); n < len(part) {
			return err
		}
		w.Write(part) // a hash takes everything
		from += int64(len(part))
	}
	return nil
}
