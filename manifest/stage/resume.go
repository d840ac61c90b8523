package stage

import (
	"context"
	"fmt"
	"io"

	"ggufreap/manifest"
	"ggufreap/manifest/internal/pass"
)

// recheck reads a shard that an earlier run finished, and reports whether it is what
// that run wrote; its digests are then filled in. One that is not, or cannot be read, is
// to be written again.
func (f *Folder) recheck(ctx context.Context, job shardJob, want manifest.Sum) (bool, error) {
	for _, published := range []bool{false, true} {
		err := f.checkShard(ctx, job, want, published)
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		if err == nil {
			job.file.SHA256, job.file.published = want, published
			return true, nil
		}
	}
	f.journal.forget(job.i)
	job.file.redone = true
	if err := ignoreMissing(f.dir.Remove(job.file.Name + partSuffix)); err != nil {
		return false, f.wrap(job.file.Name, err)
	}
	return false, nil
}

// checkShard takes the digests of a shard from its file, which must have the wanted sum.
func (f *Folder) checkShard(ctx context.Context, job shardJob, want manifest.Sum, published bool) error {
	name := job.file.Name
	if !published {
		name += partSuffix
	}
	file, err := f.dir.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	size, err := file.Size()
	if err != nil {
		return err
	}
	if size != job.shard.Size {
		return fmt.Errorf("%q has %d bytes, want %d", name, size, job.shard.Size)
	}
	hasher, draft := job.Hasher(), job.draft.Shard(job.i, f.options.Check)
	var spans []pass.Span
	for i, v := range job.shard.Views {
		spans = append(spans, pass.Span{
			Offset: job.shard.DataOffset + job.shard.Offsets[i],
			Size:   v.Size(),
			Begin:  func() io.Writer { return draft.Tensor(i) },
		})
	}
	err = pass.Scan(ctx, file, size, job.Buf, io.MultiWriter(hasher, job.count), spans)
	if err == nil {
		err = draft.End()
	}
	f.read.Add(hasher.Size())
	if got := manifest.Sum(hasher.Sum()); err == nil && got != want {
		err = fmt.Errorf("%q has the sum %s, want %s", name, got, want)
	}
	if err != nil {
		job.count.Repeat(hasher.Size())
	}
	return err
}
