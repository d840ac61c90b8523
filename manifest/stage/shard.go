package stage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"ggufreap/gguf"
	"ggufreap/manifest"
	"ggufreap/manifest/internal/pass"
	"ggufreap/manifest/stage/internal/disk"
)

// A shardJob is what it takes to make one shard.
type shardJob struct {
	i      int
	file   *stagedFile
	shard  *gguf.ShardLayout
	draft  *manifest.Draft
	count  *pass.Meter
	unkept int64
	*pass.Worker
}

// A passage is how far the bytes of a shard have passed those who take digests.
type passage struct {
	hasher *pass.Hasher
	draft  *manifest.ShardDraft
	tensor int       // that passes by; -1 before the first
	sink   io.Writer // of its data
}

func (f *Folder) newPassage(job shardJob) *passage {
	return &passage{hasher: job.Hasher(), draft: job.draft.Shard(job.i, f.options.Check), tensor: -1}
}

// begin returns who takes the data of tensor i, as an earlier run wrote it.
func (p *passage) begin(i int) io.Writer {
	p.tensor, p.sink = i, p.draft.Tensor(i)
	return p.sink
}

// copy returns who takes the data of tensor i as it is read from the source, to be written.
// It goes on with the tensor that is within.
func (p *passage) copy(i int) io.Writer {
	if i != p.tensor {
		p.tensor, p.sink = i, p.draft.Copy(i)
	}
	return p.sink
}

// OpenShard opens a shard that [Folder.WriteShards] has written, published or not.
func (f *Folder) OpenShard(i int) (ReadAtCloser, error) {
	name := f.release.shardName(i)
	file, err := f.dir.Open(name + partSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		file, err = f.dir.Open(name)
	}
	return file, err
}

// A ReadAtCloser is an open file.
type ReadAtCloser interface {
	io.ReaderAt
	io.Closer
}

// makeShard reads what an earlier run wrote of a shard, and writes the rest.
func (f *Folder) makeShard(ctx context.Context, job shardJob) error {
	if path := f.linked(job.i); path != "" {
		return f.readLinked(ctx, job, path)
	}
	p, err := f.readKept(ctx, job)
	if err != nil {
		return err
	}
	if p.hasher.Size() == job.shard.Size {
		err = p.draft.End()
	} else {
		err = f.writeRest(ctx, job, p)
	}
	job.file.SHA256 = p.hasher.Sum()
	return err
}

// readKept reads the beginning of a shard that an earlier run made durable, and returns
// the passage behind it. Where it is not what that run wrote, or cannot be read, the shard
// begins anew.
func (f *Folder) readKept(ctx context.Context, job shardJob) (*passage, error) {
	want := f.journal.beginning(job.i)
	if want.size == 0 {
		return f.newPassage(job), nil
	}
	for _, published := range []bool{false, true} {
		p := f.newPassage(job)
		err := f.checkKept(ctx, job, p, want, published)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err == nil {
			job.file.published = published
			return p, nil
		}
	}
	f.journal.forget(job.i)
	job.file.redone = true
	return f.newPassage(job), nil
}

// checkKept lets the beginning of a shard's file pass by, which must have the wanted sum.
func (f *Folder) checkKept(ctx context.Context, job shardJob, p *passage, want beginning, published bool) error {
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
	if size < want.size || published && size != job.shard.Size {
		return fmt.Errorf("%q has %d bytes, want %d", name, size, want.size)
	}
	err = job.scan(ctx, file, p, want.size)
	passed := p.hasher.Size()
	f.read.Add(passed)
	if got := manifest.Sum(p.hasher.Sum()); err == nil && got != want.sum {
		err = fmt.Errorf("%q begins with bytes of the sum %s, want %s", name, got, want.sum)
	}
	if err != nil {
		job.count.Repeat(passed)
	}
	return err
}

// scan lets the first size bytes of a shard's file pass by.
func (job shardJob) scan(ctx context.Context, file io.ReaderAt, p *passage, size int64) error {
	var spans []pass.Span
	for i, v := range job.shard.Views {
		spans = append(spans, pass.Span{
			Offset: job.shard.DataOffset + job.shard.Offsets[i],
			Size:   v.Size(),
			Begin:  func() io.Writer { return p.begin(i) },
		})
	}
	cursor := pass.NewCursor(spans)
	err := pass.ReadRange(ctx, file, 0, size, job.Buf, func(part []byte, offset int64) error {
		p.hasher.Write(part)
		job.count.Write(part)
		return cursor.Write(part, offset)
	})
	if err == nil && size == job.shard.Size {
		err = cursor.End(size) // empty tensors there
	}
	return err
}

// writeRest writes a shard from where its passage is, under its temporary name.
func (f *Folder) writeRest(ctx context.Context, job shardJob, p *passage) error {
	from := p.hasher.Size()
	file, err := f.openShard(job.file.Name, from)
	if err != nil {
		return f.wrap(job.file.Name, err)
	}
	k := &keeper{folder: f, job: job, file: &drainedFile{file, from}, passage: p, kept: from, since: time.Now()}
	err = k.fill(ctx)
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	switch {
	case k.err != nil:
		return k.err // that says which file it is about
	case err != nil:
		return f.wrap(job.file.Name, err)
	}
	f.read.Add(job.shard.TensorBytes() - dataBefore(job.shard, from))
	f.written.Add(p.hasher.Size() - from)
	return nil
}

// dataBefore returns how many bytes of tensors stand before a byte of a shard's file.
func dataBefore(s *gguf.ShardLayout, at int64) int64 {
	var n int64
	for i, v := range s.Views {
		n += min(max(at-s.DataOffset-s.Offsets[i], 0), v.Size())
	}
	return n
}

// openShard opens the temporary file of a shard to write on from a byte on. One that an
// earlier run left is not made anew: where a lock held nobody off, and another run of this
// release writes there too, both write the same bytes into the same file.
func (f *Folder) openShard(name string, from int64) (disk.OutputFile, error) {
	file, err := f.dir.Create(name + partSuffix)
	switch {
	case errors.Is(err, fs.ErrExist) && f.parts[name]:
		return f.dir.Continue(name+partSuffix, from)
	case errors.Is(err, fs.ErrExist):
		return nil, fmt.Errorf("%w (%w)", f.refuse(ErrInUse), err)
	case err != nil:
		return nil, err
	}
	return file, f.syncNames() // or the loss of power could lose all that is kept of it
}
