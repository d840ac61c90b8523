package stage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"

	"ggufreap/gguf"
	"ggufreap/gguf/words"
	"ggufreap/manifest"
	"ggufreap/manifest/internal/pass"
	"ggufreap/manifest/lists"
	"ggufreap/manifest/parts"
	"ggufreap/manifest/stage/internal/disk"
)

// A PartFolder writes one part of a release into a folder that other tasks write to. Each
// shard gets its name when it is complete and synced, and the part's record comes last. Tasks
// of one part, at once or one after the other, write the same bytes under names of their own,
// so that it does not matter which of them gives a file its name last.
type PartFolder struct {
	folder Folder
	placer
	share  Share
	shards []int // of this part
	record *parts.Record
	draft  *manifest.Draft

	mu    sync.Mutex
	done  map[int]shardDone // by shard
	noted int64             // bytes of shards that stand in the note
	found int               // shards that an earlier task had written
	ended bool              // the record is there
	redo  string            // why an earlier record does not count
}

// A shardDone is what is known of a shard that has its name.
type shardDone struct {
	sum     manifest.Sum
	tensors []manifest.Tensor
}

// ErrInPieces says that a release is written by one run where it is to be written in parts, or
// the other way round.
var ErrInPieces = errors.New("holds an unfinished release that one run writes, not in parts")

// OpenPart prepares the folder at path, which it creates, for one part of a release. As Open
// it makes every check that needs no tensor data. A release that is finished already is
// refused with [ErrFinished].
func OpenPart(path string, r Release, o Options, s Share) (*PartFolder, error) {
	return openPart(disk.OS{}, path, r, o, s)
}

func openPart(d disk.Disk, path string, r Release, o Options, s Share) (*PartFolder, error) {
	p := &PartFolder{share: s, done: map[int]shardDone{}}
	p.folder = Folder{path: path, release: r, options: o, disk: d, names: map[string]bool{}}
	if err := p.prepare(); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func (p *PartFolder) prepare() error {
	f := &p.folder
	if err := cmpErrors(p.share.check, f.claimNames, p.checkLengths); err != nil {
		return err
	}
	sources, err := statAll(f.options.Sources)
	if err != nil {
		return err
	}
	head, err := newHead(f.release, f.options, sources)
	if err != nil {
		return err
	}
	if p.draft, err = manifest.NewDraft(f.release.Stem, f.release.Layout, f.release.Slabs, f.release.IDs); err != nil {
		return err
	}
	p.record = newRecord(f.release, p.share, head, p.draft)
	p.shards = f.release.ShardsOf(p.share.Part, p.share.Parts)
	if err := p.open(head, sources); err != nil {
		return err
	}
	if err := p.findDone(); err != nil {
		return err
	}
	return p.checkRoom()
}

// cmpErrors returns the first error.
func cmpErrors(checks ...func() error) error {
	for _, check := range checks {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// checkLengths refuses names that leave no room for what tells tasks apart.
func (p *PartFolder) checkLengths() error {
	for name := range p.folder.names {
		if most := maxFileName - maxRunName; len(name) > most {
			return fmt.Errorf("file name %q has %d bytes, want at most %d where a release is written in parts", name, len(name), most)
		}
	}
	return nil
}

// open opens the folder, or makes it, and looks at what is there.
func (p *PartFolder) open(head *journalHead, sources []fs.FileInfo) error {
	f := &p.folder
	var err error
	if f.dir, err = f.disk.Make(f.path); err != nil {
		return err
	}
	if err := f.checkRead(sources); err != nil {
		return err
	}
	entries, err := f.dir.List()
	if err != nil {
		return err
	}
	if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == manifest.JournalName }) {
		return f.refuse(ErrInPieces)
	}
	if err := f.checkFinished(head, sources); err != nil {
		return err
	}
	if err := p.checkEntries(entries); err != nil {
		return err
	}
	p.placer, err = newPlacer(f.dir, p.share.runName())
	return err
}

// checkEntries refuses what may not be in the folder.
func (p *PartFolder) checkEntries(entries []fs.DirEntry) error {
	f := &p.folder
	if err := p.keeper().checkOthers(entries); err != nil {
		return err
	}
	for _, e := range entries {
		name := e.Name()
		_, _, record := parts.ParseName(name)
		_, _, note := parseNote(name)
		switch {
		case strings.HasPrefix(name, ".nfs"): // a file that was removed and is open somewhere
		case !e.Type().IsRegular():
			return fmt.Errorf("output folder %q holds %q, which is not a regular file", f.path, name)
		case record, note, f.names[name] && name != manifest.SumsName, isRunPart(name, f.names):
		case gguf.IsModelFile(name):
			return fmt.Errorf("output folder %q holds the model file %q, which is no part of the release", f.path, name)
		default:
			return fmt.Errorf("output folder %q holds %q, which is no part of the release", f.path, name)
		}
	}
	return nil
}

func (p *PartFolder) keeper() recordKeeper {
	return recordKeeper{p.folder.dir, p.folder.path, p.record}
}

// isRunPart reports whether a file is a temporary one that some task of this release writes,
// or left.
func isRunPart(name string, names map[string]bool) bool {
	before, part := strings.CutSuffix(name, partSuffix)
	at := strings.LastIndexByte(before, '.')
	if !part || at < 0 {
		return false
	}
	_, _, record := parts.ParseName(before[:at])
	_, _, note := parseNote(before[:at])
	return record || note || names[before[:at]]
}

// findDone takes over what an earlier task of this part has done, as far as it is there.
func (p *PartFolder) findDone() error {
	was, name, redo, err := p.keeper().find(p.share.recordName(), p.share.noteName())
	if p.redo = redo; was == nil || err != nil {
		return err
	}
	p.adopt(was)
	p.found = len(p.done)
	if name == p.share.recordName() && len(p.done) == len(p.shards) && p.hasDocuments(was) {
		p.record, p.ended = was, true
	}
	return nil
}

// adopt takes over the shards of a record whose files have the sizes that it says.
func (p *PartFolder) adopt(was *parts.Record) {
	rest := was.Tensors
	for _, file := range was.Files {
		i := file.Number - 1
		tensors := rest[:file.Tensors]
		rest = rest[file.Tensors:]
		if !slices.Contains(p.shards, i) || !p.fits(i, file, tensors) {
			continue
		}
		if err := p.hasSize(file.Name, file.Size); err != nil {
			p.redo = err.Error()
			continue
		}
		p.done[i] = shardDone{file.SHA256, tensors}
	}
}

// fits reports whether what a record says of a shard is what headers tell.
func (p *PartFolder) fits(i int, file parts.File, tensors []manifest.Tensor) bool {
	want := p.draft.Tensors(i)
	if file.Name != p.folder.release.shardName(i) || file.Size != p.folder.release.Layout.Shards[i].Size || len(tensors) != len(want) {
		return false
	}
	for n := range want {
		if tensors[n].Name != want[n].Name || tensors[n].SlabCount() != want[n].SlabCount() {
			return false
		}
	}
	return true
}

// hasSize returns an error when a file of the folder is not a regular one of that size.
func (p *PartFolder) hasSize(name string, size int64) error {
	return checkSize(p.folder.dir, name, size)
}

// hasDocuments reports whether the documents that a record lists are there.
func (p *PartFolder) hasDocuments(was *parts.Record) bool {
	for _, d := range was.Documents {
		if p.hasSize(d.Name, d.Size) != nil {
			return false
		}
	}
	return true
}

// checkRoom makes sure that the file system takes what is still to be written of the part.
func (p *PartFolder) checkRoom() error {
	f := &p.folder
	room, err := f.dir.Room()
	if err != nil {
		return fmt.Errorf("output folder %q: %w", f.path, err)
	}
	var need int64
	for _, i := range p.shards {
		size := f.release.Layout.Shards[i].Size
		if _, done := p.done[i]; !done {
			need += (size + room.Block - 1) / room.Block * room.Block
		}
		if size > room.File {
			return fmt.Errorf("output folder %q: shard %q has %s, this process may write files of %s at most", f.path, f.release.shardName(i), words.Count(size, "byte"), words.Group(room.File))
		}
	}
	if room.Free >= 0 && need > room.Free {
		return &SpaceError{f.path, need, room.Free}
	}
	return nil
}

// Recheck reads every shard and document that an earlier task has written. What is not what
// its record says is written again.
func (p *PartFolder) Recheck(ctx context.Context) error {
	found := slices.Sorted(maps.Keys(p.done))
	wrong := make([]error, len(found))
	err := pass.ForEach(ctx, len(found), p.folder.options.Workers, func(ctx context.Context, n int, w *pass.Worker) error {
		name := p.folder.release.shardName(found[n])
		sum, err := p.folder.sum(ctx, name, w)
		if want := p.done[found[n]].sum; err == nil && sum != want {
			err = fmt.Errorf("%q: sha256 is %s, its record says %s", name, sum, want)
		}
		wrong[n] = err
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	for n, err := range wrong {
		if err != nil {
			delete(p.done, found[n])
			p.again(err)
		}
	}
	for _, d := range p.record.Documents {
		if err := p.checkFile(lists.FileSum{Name: d.Name, SHA256: d.SHA256}, d.Size); err != nil {
			p.again(err)
		}
	}
	return nil
}

// again says why the record that was found does not count.
func (p *PartFolder) again(why error) {
	p.found, p.redo = len(p.done), why.Error()
	if p.ended {
		p.record.Documents, p.ended = nil, false
	}
}

// Shards returns which shards the part has, by number from 0.
func (p *PartFolder) Shards() []int { return p.shards }

// Bytes returns how many bytes the part's shards have.
func (p *PartFolder) Bytes() int64 {
	var n int64
	for _, i := range p.shards {
		n += p.folder.release.Layout.Shards[i].Size
	}
	return n
}

// Found says what an earlier task of this part had done: how many shards, whether that was
// all, and why something of it does not count.
func (p *PartFolder) Found() (shards int, all bool, redo string) { return p.found, p.ended, p.redo }

// Traffic returns how many bytes this run has read and written.
func (p *PartFolder) Traffic() (read, written int64) { return p.folder.Traffic() }

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

// Close ends the writing. What has its name stays.
func (p *PartFolder) Close() error {
	if p.folder.dir == nil {
		return nil
	}
	err := p.folder.dir.Close()
	p.folder.dir = nil
	return err
}
