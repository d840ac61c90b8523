package stage

import (
	"context"
	"fmt"
	"io"
	"time"

	"ggufreap/manifest/stage/internal/disk"
)

// How much a run that ends may leave to be written again. What is written of a shard is
// made durable every so many bytes, and noted in the journal.
const (
	// unkeptShare is the part of all bytes that all workers together may have written that
	// are not durable: one in so many.
	unkeptShare = 25
	// mostUnkept bounds the bytes of one worker, for large releases.
	mostUnkept = 256 << 20
	// leastUnkept spares small ones many syncs.
	leastUnkept = 256 << 10
	// keepTime bounds the time, for slow disks and sources.
	keepTime = 3 * time.Second
	// keepStep is how far apart the places are at which any of this is looked at.
	keepStep = 1 << 20
)

// unkept returns how many of all bytes one of so many workers may have written that are
// not durable: a multiple of least.
func unkept(all int64, workers int, least int64) int64 {
	share := all / unkeptShare / int64(max(workers, 1))
	return min(max(share, least), mostUnkept) / least * least
}

// A keeper writes the rest of a shard's file, and keeps what is written: it makes it
// durable from time to time and has the journal note it.
type keeper struct {
	folder *Folder
	job    shardJob
	file   *drainedFile
	*passage
	kept  int64     // bytes that are durable
	since time.Time // when they were
	err   error     // of keeping
}

// fill reserves the file and writes what it lacks.
func (k *keeper) fill(ctx context.Context) error {
	shard := k.job.shard
	if k.clone() {
		return k.readClone(ctx)
	}
	if err := k.file.Reserve(shard.Size); err != nil {
		return fmt.Errorf("space for %d bytes: %w", shard.Size, err)
	}
	if err := shard.WriteFrom(ctx, io.MultiWriter(k, k.job.count), k.kept, k.job.CopyBuffer(), k.copy); err != nil {
		return err
	}
	if size := k.hasher.Size(); size != shard.Size {
		return fmt.Errorf("wrote %d bytes, want %d", size, shard.Size)
	}
	if err := k.draft.End(); err != nil {
		return err
	}
	if k.kept < shard.Size {
		k.err = k.keep()
	}
	return k.err
}

// clone makes the whole file of blocks that another has, and reports whether it could.
func (k *keeper) clone() bool {
	path, same := k.folder.release.Same[k.job.i]
	return same && k.kept == 0 && k.file.Clone(path) == nil
}

// readClone lets the bytes of a cloned file pass by.
func (k *keeper) readClone(ctx context.Context) error {
	file, err := k.folder.dir.Open(k.job.file.Name + partSuffix)
	if err != nil {
		return err
	}
	defer file.Close()
	size, err := file.Size()
	if err == nil && size != k.job.shard.Size {
		err = fmt.Errorf("the file that it is to be has %d bytes, want %d", size, k.job.shard.Size)
	}
	if err == nil {
		err = k.job.scan(ctx, file, k.passage, size)
	}
	if err == nil {
		err = k.draft.End()
	}
	if err != nil {
		return err
	}
	k.err = k.keep()
	return k.err
}

// Write writes the next bytes. It looks at round places only, since a SHA-256 goes on
// faster from there.
func (k *keeper) Write(p []byte) (int, error) {
	step := min(k.job.unkept, keepStep)
	for done := 0; done < len(p); {
		part := p[done:min(int64(len(p)), int64(done)+step-k.hasher.Size()%step)]
		if n, err := k.file.Write(part); err != nil {
			return done + n, err
		}
		k.hasher.Write(part)
		done += len(part)
		if k.hasher.Size()%step == 0 && k.due(step) {
			if k.err = k.keep(); k.err != nil {
				return done, k.err
			}
		}
	}
	return len(p), nil
}

// due reports whether so many bytes more would be too many, or it was long ago that any
// were kept.
func (k *keeper) due(step int64) bool {
	return k.hasher.Size()-k.kept+step > k.job.unkept || time.Since(k.since) >= keepTime && !k.folder.journal.crowded()
}

// keep makes what is written durable. The source that it was read from must be known to
// have been itself until then.
func (k *keeper) keep() error {
	f, name, size := k.folder, k.job.file.Name, k.hasher.Size()
	if err := k.file.Sync(); err != nil {
		return f.wrap(name, err)
	}
	if err := f.checkSame(name, k.file); err != nil {
		return err
	}
	if err := f.journal.keep(k.job.i, beginning{size, k.hasher.Sum()}); err != nil {
		return f.wrapJournal(err)
	}
	k.kept, k.since = size, time.Now()
	return nil
}

// checkSame makes sure that a file is where it is written, and that the source has not
// changed.
func (f *Folder) checkSame(name string, file disk.OutputFile) error {
	if err := f.mine(); err != nil {
		return err
	}
	if err := file.Named(); err != nil {
		return f.wrap(name, fmt.Errorf("it is gone: %w", err))
	}
	if f.options.Unchanged == nil {
		return nil
	}
	if err := f.options.Unchanged(); err != nil {
		return fmt.Errorf("the source changed while it was read: %w", err)
	}
	return nil
}

// Bytes go to disk drainSize at a time, while drainAhead more are written. The sum is the
// most that an interrupted run, or a sync, has to wait for.
const (
	drainSize  = 8 << 20
	drainAhead = 4 * drainSize
)

// A drainedFile does not leave all of the writing to its syncs.
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
