package stage

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"ggufreap/gguf"
	"ggufreap/gguf/words"
	"ggufreap/manifest"
	"ggufreap/manifest/internal/pass"
	"ggufreap/manifest/lists"
	"ggufreap/manifest/stage/internal/disk"
)

// WriteShards writes all shards, in parallel, and returns the pin of what was written:
// the digests come from the pass that writes. Where a name has no digest, the pin lacks
// what [manifest.NewDraft] says. Shards that an earlier run finished are read once
// instead, and written again when they are not what that run wrote.
func (f *Folder) WriteShards(ctx context.Context) (*manifest.Pin, error) {
	layout := f.release.Layout
	draft, err := manifest.NewDraft(f.release.Stem, layout, f.release.Slabs)
	if err != nil {
		return nil, err
	}
	staged := make([]stagedFile, len(layout.Shards))
	sums := make([]manifest.Sum, len(staged))
	count := pass.NewMeter(layout.Bytes(), f.options.Progress)
	err = pass.ForEach(ctx, len(staged), f.options.Workers, func(ctx context.Context, i int, w *pass.Worker) error {
		staged[i].Name = f.release.shardName(i)
		err := f.makeShard(ctx, shardJob{i, &staged[i], layout.Shards[i], draft, count, w})
		sums[i] = staged[i].SHA256
		return err
	})
	if err != nil {
		return nil, err
	}
	f.staged = staged
	return draft.Finish(sums)
}

// A shardJob is what it takes to make one shard, and where its digests go.
type shardJob struct {
	i     int
	file  *stagedFile
	shard *gguf.ShardLayout
	draft *manifest.Draft
	count *pass.Meter
	*pass.Worker
}

// makeShard writes a shard unless an earlier run did.
func (f *Folder) makeShard(ctx context.Context, job shardJob) error {
	if want, finished := f.journal.sum(job.i); finished {
		found, err := f.recheck(ctx, job, want)
		if found || err != nil {
			return err
		}
	}
	return f.writeShard(ctx, job)
}

// writeShard writes one shard under its temporary name and fills in the digests. The
// journal notes it once its bytes are durable and its sources are known to have been
// themselves until the last of them was read.
func (f *Folder) writeShard(ctx context.Context, job shardJob) error {
	draft := job.draft.Shard(job.i, f.options.Check)
	var err error
	job.file.SHA256, err = f.writeFile(job.file.Name, job.shard.Size, job.Hasher(), func(w io.Writer) error {
		err := job.shard.Write(ctx, io.MultiWriter(w, job.count), job.CopyBuffer(), draft.Tensor)
		if err != nil {
			return err
		}
		return draft.End()
	})
	if err != nil {
		return err
	}
	f.read.Add(job.shard.TensorBytes())
	if err := f.checkSame(job); err != nil {
		return err
	}
	if err := f.journal.finish(job.i, job.file.SHA256); err != nil {
		return f.wrap(manifest.JournalName, err)
	}
	return nil
}

// checkSame makes sure that a written shard is where it was written, and that the source
// it was read from has not changed.
func (f *Folder) checkSame(job shardJob) error {
	if err := f.here(); err != nil {
		return err
	}
	if err := f.exists(job.file.Name + partSuffix); err != nil {
		return f.wrap(job.file.Name, fmt.Errorf("it is gone: %w", err))
	}
	if f.options.Unchanged == nil {
		return nil
	}
	if err := f.options.Unchanged(); err != nil {
		return fmt.Errorf("the source changed while it was read: %w", err)
	}
	return nil
}

func (f *Folder) exists(name string) error {
	file, err := f.dir.Open(name)
	if err != nil {
		return err
	}
	return file.Close()
}

// WriteFile writes a document of the release. Its bytes come from write.
func (f *Folder) WriteFile(name string, write func(w io.Writer) error) error {
	if err := f.checkClaimed(name); err != nil {
		return err
	}
	sum, err := f.writeFile(name, 0, pass.NewHasher(), write)
	if err != nil {
		return err
	}
	f.staged = append(f.staged, stagedFile{FileSum: lists.FileSum{Name: name, SHA256: sum}})
	return nil
}

// checkClaimed refuses a document that was not announced, or is staged already.
func (f *Folder) checkClaimed(name string) error {
	if !slices.Contains(f.release.Documents, name) {
		return fmt.Errorf("file name %q was not announced for this release", name)
	}
	if slices.ContainsFunc(f.staged, func(file stagedFile) bool { return file.Name == name }) {
		return fmt.Errorf("file name %q is written twice", name)
	}
	return nil
}

// writeFile makes the temporary file of name, of size bytes where that is known, and
// returns once its bytes are durable.
func (f *Folder) writeFile(name string, size int64, hasher *pass.Hasher, write func(w io.Writer) error) (manifest.Sum, error) {
	file, err := f.dir.Create(name + partSuffix)
	if err != nil {
		return manifest.Sum{}, f.wrap(name, err)
	}
	err = fill(file, size, hasher, write)
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return manifest.Sum{}, f.wrap(name, err)
	}
	f.written.Add(hasher.Size())
	return hasher.Sum(), nil
}

// fill reserves, writes and syncs one file.
func fill(f disk.OutputFile, size int64, hasher *pass.Hasher, write func(w io.Writer) error) error {
	if err := f.Reserve(size); err != nil {
		return fmt.Errorf("space for %d bytes: %w", size, err)
	}
	if err := write(io.MultiWriter(&drainedFile{f, 0}, hasher)); err != nil {
		return err
	}
	if size > 0 && hasher.Size() != size {
		return fmt.Errorf("wrote %d bytes, want %d", hasher.Size(), size)
	}
	return f.Sync()
}

// Bytes go to disk drainSize at a time, while drainAhead more are written. The sum is the
// most that an interrupted run, or the sync at the end of a file, has to wait for.
const (
	drainSize  = 8 << 20
	drainAhead = 4 * drainSize
)

// A drainedFile does not leave all of the writing to its final sync.
type drainedFile struct {
	disk.OutputFile
	size int64
}

func (f *drainedFile) Write(p []byte) (int, error) {
	n, err := f.OutputFile.Write(p)
	before := f.size / drainSize
	f.size += int64(n)
	for i := before; err == nil && i < f.size/drainSize; i++ {
		err = f.Drain(i*drainSize, drainSize, drainAhead)
	}
	return n, err
}

// wrap says which file of the release an error is about, and of a full disk what it
// lacks.
func (f *Folder) wrap(name string, err error) error {
	err = fmt.Errorf("writing %q: %w", filepath.Join(f.path, name), err)
	if !disk.IsFull(err) {
		return err
	}
	need := f.need(1)
	if room, roomErr := f.dir.Room(); roomErr == nil && room.Free >= 0 {
		return fmt.Errorf("%w: %s of shards are still to be written, %s are free", err, words.Count(need, "byte"), words.Group(room.Free))
	}
	return fmt.Errorf("%w: %s of shards are still to be written", err, words.Count(need, "byte"))
}
