package manifest

import (
	"context"
	"fmt"
	"io"

	"ggufreap/manifest/internal/pass"
)

// recheck reads a shard that an earlier run finished, and reports whether it is what
// that run wrote; its digests are then filled in. One that is not, or cannot be read, is
// to be written again.
func (s *Stage) recheck(ctx context.Context, job shardJob, want Sum) (bool, error) {
	for _, published := range []bool{false, true} {
		err := s.checkShard(ctx, job, want, published)
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		if err == nil {
			job.file.SHA256, job.file.published = want, published
			return true, nil
		}
	}
	s.journal.forget(job.i)
	job.file.redone = true
	if err := ignoreMissing(s.folder.Remove(job.file.Name + partSuffix)); err != nil {
		return false, s.wrap(job.file.Name, err)
	}
	return false, nil
}

// checkShard takes the digests of a shard from its file, which must have the wanted sum.
func (s *Stage) checkShard(ctx context.Context, job shardJob, want Sum, published bool) error {
	name := job.file.Name
	if !published {
		name += partSuffix
	}
	f, err := s.folder.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return err
	}
	if size != job.shard.Size {
		return fmt.Errorf("%q has %d bytes, want %d", name, size, job.shard.Size)
	}
	hasher, listener := job.Hasher(), newTensorListener(s.options.Check)
	var spans []pass.Span
	for i, v := range job.shard.Views {
		spans = append(spans, pass.Span{Offset: job.shard.DataOffset + job.shard.Offsets[i], Size: v.Size(), Begin: func() io.Writer {
			return listener.begin(&job.tensors[i])
		}})
	}
	err = pass.Scan(ctx, f, size, job.Buf, io.MultiWriter(hasher, job.count), spans)
	if err == nil {
		err = listener.end()
	}
	s.read.Add(hasher.Size())
	if got := Sum(hasher.Sum()); err == nil && got != want {
		err = fmt.Errorf("%q has the sum %s, want %s", name, got, want)
	}
	if err != nil {
		job.count.Repeat(hasher.Size())
	}
	return err
}
