package stage

import (
	"context"
	"errors"
	"fmt"
	"io"

	"ggufreap/manifest"
	"ggufreap/manifest/internal/pass"
	"ggufreap/manifest/lists"
	"ggufreap/manifest/parts"
	"ggufreap/manifest/stage/internal/disk"
)

// A shardDone is what is known of a shard that has its name.
type shardDone struct {
	sum     manifest.Sum
	tensors []manifest.Tensor
}

// Write writes what the part lacks, and its record, which it returns. The first part writes
// the documents too, whose data are given by name. When all parts were joined meanwhile, that
// is [ErrFinished].
func (p *PartFolder) Write(ctx context.Context, documents map[string][]byte) (*parts.Record, error) {
	if p.ended {
		return p.record, nil
	}
	if err := p.writeDocuments(documents); err != nil {
		return nil, err
	}
	err := p.writeShards(ctx)
	if _, gone := errors.AsType[goneError](err); gone && p.joined() {
		return nil, p.folder.refuse(ErrFinished)
	}
	if err != nil {
		return nil, err
	}
	return p.finish()
}

// joined reports whether all parts were joined since the folder was opened: another task of
// this part has then done the same.
func (p *PartFolder) joined() bool {
	list, err := p.folder.dir.Open(manifest.SumsName)
	return err == nil && list.Close() == nil
}

func (p *PartFolder) writeDocuments(documents map[string][]byte) error {
	if p.share.Part != 1 {
		return nil
	}
	for _, name := range p.folder.release.Documents {
		data, given := documents[name]
		if !given {
			continue // it is made of the whole release
		}
		sum, err := p.place(name, func(w io.Writer) error {
			_, err := w.Write(data)
			return err
		})
		if err != nil {
			return p.folder.wrap(name, err)
		}
		p.record.Documents = append(p.record.Documents, parts.Document{Name: name, Size: int64(len(data)), SHA256: sum})
	}
	return nil
}

// writeShards writes the shards that are not done.
func (p *PartFolder) writeShards(ctx context.Context) error {
	var left []int
	var bytes int64
	for _, i := range p.shards {
		if _, done := p.done[i]; !done {
			left = append(left, i)
			bytes += p.folder.release.Layout.Shards[i].Size
		}
	}
	count := pass.NewMeter(bytes, p.folder.options.Progress)
	return pass.ForEach(ctx, len(left), p.folder.options.Workers, func(ctx context.Context, n int, w *pass.Worker) error {
		i := left[n]
		file := &stagedFile{FileSum: lists.FileSum{Name: p.folder.release.shardName(i)}}
		job := shardJob{i: i, file: file, shard: p.folder.release.Layout.Shards[i], draft: p.draft, count: count, Worker: w}
		if err := p.writeShard(ctx, job); err != nil {
			return p.folder.wrap(file.Name, err)
		}
		return p.note(i, file.SHA256)
	})
}

// writeShard writes a shard under a temporary name, and gives it its own.
func (p *PartFolder) writeShard(ctx context.Context, job shardJob) error {
	file, temporary, err := p.create(job.file.Name)
	if err != nil {
		return err
	}
	out := &drainedFile{file, 0}
	passage := p.folder.newPassage(job)
	err = file.Reserve(job.shard.Size)
	if err == nil {
		err = job.shard.WriteFrom(ctx, io.MultiWriter(out, passage.hasher, job.count), 0, job.CopyBuffer(), passage.begin)
	}
	if err == nil {
		err = passage.draft.End()
	}
	if err == nil {
		err = p.settle(file)
	}
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	job.file.SHA256 = passage.hasher.Sum()
	if err == nil {
		err = p.name(temporary, job.file.FileSum, job.shard.Size)
	}
	if err != nil {
		if !p.direct { // else another task may have made its own of that name
			p.dir.Remove(temporary)
		}
		return err
	}
	p.folder.read.Add(job.shard.TensorBytes())
	p.folder.written.Add(out.size)
	return nil
}

// settle makes a file durable, and makes sure that it is where it was made and that the source
// has been itself until then.
func (p *PartFolder) settle(file disk.OutputFile) error {
	if err := file.Sync(); err != nil {
		return err
	}
	if err := p.folder.here(); err != nil {
		return err
	}
	if err := file.Named(); err != nil {
		return goneError{err}
	}
	if p.folder.options.Unchanged == nil {
		return nil
	}
	if err := p.folder.options.Unchanged(); err != nil {
		return fmt.Errorf("the source changed while it was read: %w", err)
	}
	return nil
}

// note takes note of a shard that has its name, and writes that down from time to time.
func (p *PartFolder) note(i int, sum manifest.Sum) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done[i] = shardDone{sum, p.draft.Tensors(i)}
	p.noted += p.folder.release.Layout.Shards[i].Size
	if len(p.done) == len(p.shards) || p.noted*unkeptShare < p.Bytes() {
		return nil
	}
	p.noted = 0
	p.fill()
	if _, err := p.place(p.share.noteName(), p.record.Encode); err != nil {
		return p.folder.wrap(p.share.noteName(), err)
	}
	return nil
}

// fill puts into the record what is done.
func (p *PartFolder) fill() {
	p.record.Files, p.record.Tensors = nil, nil
	for _, i := range p.shards {
		done, ok := p.done[i]
		if !ok {
			continue
		}
		size := p.folder.release.Layout.Shards[i].Size
		p.record.Add(i+1, manifest.File{Name: p.folder.release.shardName(i), Size: size, SHA256: done.sum}, done.tensors)
	}
}

// finish writes the record.
func (p *PartFolder) finish() (*parts.Record, error) {
	p.fill()
	if p.joined() {
		return nil, p.folder.refuse(ErrFinished)
	}
	if _, err := p.place(p.share.recordName(), p.record.Encode); err != nil {
		return nil, p.folder.wrap(p.share.recordName(), err)
	}
	p.ended = true
	if err := ignoreMissing(p.folder.dir.Remove(p.share.noteName())); err != nil {
		return nil, p.folder.wrap(p.share.noteName(), err)
	}
	return p.record, p.folder.syncNames()
}
