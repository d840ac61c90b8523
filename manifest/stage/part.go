package stage

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"ggufreap/gguf"
	"ggufreap/gguf/words"
	"ggufreap/manifest"
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

// Bytes returns how many bytes the part's shards have.
func (p *PartFolder) Bytes() int64 {
	var n int64
	for _, i := range p.shards {
		n += p.folder.release.Layout.Shards[i].Size
	}
	return n
}

// BytesFound returns how many of them an earlier task had written.
func (p *PartFolder) BytesFound() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	var n int64
	for i := range p.done {
		n += p.folder.release.Layout.Shards[i].Size
	}
	return n
}

// Traffic returns how many bytes this run has read and written.
func (p *PartFolder) Traffic() (read, written int64) { return p.folder.Traffic() }

// Close ends the writing. What has its name stays.
func (p *PartFolder) Close() error {
	if p.folder.dir == nil {
		return nil
	}
	err := p.folder.dir.Close()
	p.folder.dir = nil
	return err
}
