package stage

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ggufreap/gguf"
	"ggufreap/gguf/words"
	"ggufreap/manifest"
	"ggufreap/manifest/stage/internal/disk"
)

// maxFileName is the longest base name that common file systems take.
const maxFileName = 255

// claimNames notes the names that the release will have.
func (f *Folder) claimNames() error {
	for _, name := range f.release.names() {
		switch err := manifest.CheckFileName(name); {
		case err != nil:
			return err
		case strings.ContainsAny(name, `/\`) || !filepath.IsLocal(name):
			return fmt.Errorf("file name %q is not a plain name in a folder", name)
		case len(name)+len(partSuffix) > maxFileName:
			return fmt.Errorf("file name %q has %d bytes, want at most %d", name, len(name), maxFileName-len(partSuffix))
		case name == manifest.JournalName || strings.HasSuffix(name, partSuffix):
			return fmt.Errorf("file name %q is one that marks unfinished releases", name)
		case f.names[name]:
			return fmt.Errorf("file name %q would be written twice", name)
		}
		f.names[name] = true
	}
	return nil
}

// checkRead refuses a folder in which some name leads to a source, whose files are given, or to
// an input.
func (f *Folder) checkRead(sources []fs.FileInfo) error {
	inputs, err := statAll(f.options.Inputs)
	if err != nil {
		return err
	}
	if err := f.checkSources("source", f.options.Sources, sources); err != nil {
		return err
	}
	return f.checkSources("input", f.options.Inputs, inputs)
}

// checkSources refuses a folder in which some name leads to a file that is read.
func (f *Folder) checkSources(what string, paths []string, sources []fs.FileInfo) error {
	if len(sources) == 0 {
		return nil
	}
	entries, err := f.dir.List()
	if err != nil {
		return err
	}
	for _, e := range entries {
		there, err := os.Stat(filepath.Join(f.path, e.Name()))
		if err != nil {
			continue // a link that leads nowhere leads to no source
		}
		for i, info := range sources {
			if os.SameFile(info, there) && !f.linkedAs(e.Name(), paths[i]) {
				return fmt.Errorf("output folder %q holds the %s %q under the name %q, want another folder", f.path, what, paths[i], e.Name())
			}
		}
	}
	return nil
}

// hasJournal reports whether a run began a release in the folder. One that ended before
// the first byte of its journal began none.
func (f *Folder) hasJournal() (bool, error) {
	entries, err := f.dir.List()
	if err != nil {
		return false, err
	}
	for _, e := range entries {
		if e.Name() == manifest.JournalName && e.Type().IsRegular() {
			info, err := e.Info()
			return err == nil && info.Size() > 0, err
		}
	}
	return false, nil
}

// checkEntries refuses what may not be in the folder, and notes what stays there.
func (f *Folder) checkEntries() error {
	entries, err := f.dir.List()
	if err != nil {
		return err
	}
	f.kept, f.void, f.listed, f.parts = nil, nil, false, map[string]bool{}
	for _, e := range entries {
		name := e.Name()
		switch {
		case !e.Type().IsRegular():
			return fmt.Errorf("output folder %q holds %q, which is not a regular file", f.path, name)
		case name == manifest.JournalName:
		case isRecord(name):
			return fmt.Errorf("output folder %q holds %q, of a release that is written in parts", f.path, name)
		case f.isPart(e):
		case f.resuming() && f.names[name]:
			f.listed = f.listed || name == manifest.SumsName
		case !f.options.Force:
			return fmt.Errorf("output folder %q is not empty: it holds %q", f.path, name)
		case f.names[name]:
			f.listed = f.listed || name == manifest.SumsName
		case gguf.IsModelFile(name):
			return fmt.Errorf("output folder %q holds the model file %q, which is no part of the release", f.path, name)
		case strings.HasSuffix(name, partSuffix):
			return fmt.Errorf("output folder %q holds the unfinished file %q of an earlier run", f.path, name)
		case slices.Contains(f.release.Vouchers, name):
			f.void = append(f.void, name)
		default:
			f.kept = append(f.kept, name)
		}
	}
	return nil
}

// isRecord reports whether a file tells of a part of a release.
func isRecord(name string) bool {
	_, ok := partsOf(name)
	return ok
}

// isPart reports whether a file is a temporary one of this release that an earlier run left.
// Without a journal that is an empty one only: somebody else may name files so too.
func (f *Folder) isPart(e fs.DirEntry) bool {
	name, part := strings.CutSuffix(e.Name(), partSuffix)
	if !part || !f.names[name] {
		return false
	}
	info, err := e.Info()
	if err != nil {
		return false
	}
	for i, shard := range f.release.Layout.Shards {
		if name == f.release.shardName(i) && f.resuming() && info.Size() <= shard.Size {
			f.parts[name] = true
		}
	}
	return f.resuming() || info.Size() == 0
}

// resuming reports whether the journal in the folder has been found to be this release's.
func (f *Folder) resuming() bool { return f.journal != nil && f.journal.end > 0 }

// A SpaceError says that the disk cannot take a release.
type SpaceError struct {
	Folder string
	Need   int64 // bytes of the shards that are still to be written
	Free   int64
}

func (e *SpaceError) Error() string {
	return fmt.Sprintf("output folder %q: %s are needed, %s are free", e.Folder, words.Count(e.Need, "byte"), words.Group(e.Free))
}

// checkRoom makes sure that the file system takes what is still to be written: its
// bytes and its largest file.
func (f *Folder) checkRoom() error {
	room, err := f.dir.Room()
	if err != nil {
		return fmt.Errorf("output folder %q: %w", f.path, err)
	}
	need, err := f.need(room.Block)
	if err != nil {
		return err
	}
	if room.Free >= 0 && need > room.Free {
		need -= f.shared(room.Block)
	}
	if room.Free >= 0 && need > room.Free {
		return &SpaceError{f.path, need, room.Free}
	}
	for i, shard := range f.release.Layout.Shards {
		if shard.Size > room.File {
			return fmt.Errorf("output folder %q: shard %q has %s, this process may write files of %s at most", f.path, f.release.shardName(i), words.Count(shard.Size, "byte"), words.Group(room.File))
		}
	}
	return nil
}

// need returns the bytes that the shards still take from the disk, in whole blocks: what
// an earlier run left of them has its place.
func (f *Folder) need(block int64) (int64, error) {
	entries, err := f.dir.List()
	if err != nil {
		return 0, err
	}
	there := map[string]int64{}
	for _, e := range entries {
		if name := strings.TrimSuffix(e.Name(), partSuffix); f.parts[name] {
			info, err := e.Info()
			if err != nil {
				return 0, err
			}
			there[name] = disk.Allocated(info)
		}
	}
	var n int64
	for i, shard := range f.release.Layout.Shards {
		if f.journal.beginning(i).size < shard.Size && f.linked(i) == "" {
			n += max(blocks(shard.Size, block)-there[f.release.shardName(i)], 0)
		}
	}
	return n, nil
}

// blocks returns the bytes of the blocks that so many bytes take.
func blocks(size, block int64) int64 { return (size + block - 1) / block * block }

// shared returns the bytes that shards do not take, since they have the blocks of other files.
func (f *Folder) shared(block int64) int64 {
	var n int64
	for i, path := range f.release.Same {
		if f.journal.beginning(i).size == 0 && f.linked(i) == "" && f.dir.Shares(path) {
			n += blocks(f.release.Layout.Shards[i].Size, block)
		}
	}
	return n
}

// unwritten returns the bytes of the shards that are not durable yet, without those that are
// not written: of files that get a second name, or share another's blocks.
func (f *Folder) unwritten() int64 {
	var n int64
	for i, shard := range f.release.Layout.Shards {
		kept := f.journal.beginning(i).size
		path, same := f.release.Same[i]
		if f.linked(i) == "" && !(same && kept == 0 && f.dir.Shares(path)) {
			n += shard.Size - kept
		}
	}
	return n
}

// tryName makes and removes an empty file of the longest name that is to be made, since
// file systems differ in which names they take.
func (f *Folder) tryName() error {
	longest := ""
	for _, name := range f.release.names() {
		if !f.parts[name] && len(name) > len(longest) {
			longest = name
		}
	}
	file, err := f.dir.Create(longest + partSuffix)
	if err == nil {
		err = file.Close()
	}
	if err == nil {
		err = f.dir.Remove(longest + partSuffix)
	}
	if err != nil {
		return f.wrap(longest, err)
	}
	return f.tryLink(longest + partSuffix)
}
