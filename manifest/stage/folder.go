package stage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync/atomic"

	"ggufreap/manifest"
	"ggufreap/manifest/internal/pass"
	"ggufreap/manifest/lists"
	"ggufreap/manifest/stage/internal/disk"
)

// partSuffix marks a file that is not published.
const partSuffix = ".part"

// A Folder is a release folder in the making. Files are written under temporary names
// and synced, and the journal notes how much of each shard is; Publish gives them their names,
// then writes the list of sums, and removes the journal last of all. A folder with a
// list and no journal is a finished release.
type Folder struct {
	path    string
	release Release
	options Options
	names   map[string]bool // that the release may have

	disk    disk.Disk
	dir     disk.Folder
	created bool // the folder itself
	journal *journal
	owned   bool            // the journal is that of this release
	kept    []string        // files that were there before and stay
	parts   map[string]bool // shards of which an earlier run left a temporary file
	listed  bool            // there is a list of sums of an earlier release
	void    []string        // files that vouch for it

	least   int64        // bytes that are kept at a time, at the least
	sums    *pass.Sums   // taken together with those of the source, or nil
	staged  []stagedFile // written, in order
	resumed int64        // bytes that an earlier run made durable
	done    bool
	lost    error // what Lost returns

	read, written atomic.Int64 // bytes
}

// Traffic returns how many bytes this run has read, of the sources and of shards that an
// earlier run finished, and how many it has written.
func (f *Folder) Traffic() (read, written int64) { return f.read.Load(), f.written.Load() }

// A stagedFile is durable, under its temporary name or already under its own.
type stagedFile struct {
	lists.FileSum
	published bool   // has its own name
	link      string // the file that it is to be another name of, or ""
	redone    bool   // an earlier run wrote some of it, which is no longer what that run wrote
}

// Errors of Open for a folder that another run has begun.
var (
	// ErrUnfinished says that it is the same release, and Resume is wanted.
	ErrUnfinished = errors.New("holds an unfinished release")
	// ErrDifferent says that the unfinished release is another one.
	ErrDifferent = errors.New("holds an unfinished release that is not the same as this one")
	// ErrInUse says that the other run has not ended.
	ErrInUse = errors.New("is being written to by another run")
)

// Open prepares the folder at path, which it creates, for a release. Every check
// that needs no tensor data is made here, before the first byte: names, sources, what
// is in the folder, the other run that left it unfinished, free space.
func Open(path string, r Release, o Options) (*Folder, error) {
	return open(disk.OS{}, path, r, o)
}

func open(d disk.Disk, path string, r Release, o Options) (*Folder, error) {
	f := &Folder{path: path, release: r, options: o, disk: d, names: map[string]bool{}, least: leastUnkept}
	if err := f.prepare(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// prepare looks before it makes anything, and again once the folder is its own.
func (f *Folder) prepare() error {
	if err := f.claimNames(); err != nil {
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
	if err := f.openFolder(head, sources); err != nil {
		return err
	}
	was, err := f.lock()
	if err != nil {
		return err
	}
	if err := f.adopt(head, was); err != nil {
		return err
	}
	if err := f.checkEntries(); err != nil {
		return err
	}
	f.owned = true
	if err := f.checkRoom(); err != nil {
		return err
	}
	if err := f.begin(head); err != nil {
		return err
	}
	if err := f.removeParts(f.left); err != nil {
		return err
	}
	return f.tryName()
}

// openFolder opens the folder, or makes it.
func (f *Folder) openFolder(head *journalHead, sources []fs.FileInfo) error {
	var err error
	f.dir, err = f.disk.Open(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		f.dir, err = f.disk.Make(f.path)
		f.created = err == nil
		return err
	}
	if err != nil {
		return err
	}
	if err := f.checkRead(sources); err != nil {
		return err
	}
	unfinished, err := f.hasJournal()
	if err != nil || unfinished {
		return err // its journal says what may be there
	}
	if err := f.checkFinished(head, sources); err != nil {
		return err
	}
	return f.checkEntries()
}

// lock keeps other runs out of the folder, and returns the head of the journal that an
// earlier one left.
func (f *Folder) lock() (was *journalHead, err error) {
	f.journal, was, err = lockJournal(f.dir)
	if errors.Is(err, disk.ErrLocked) {
		return nil, f.refuse(ErrInUse)
	}
	if err != nil {
		return nil, fmt.Errorf("output folder %q: %w", f.path, err)
	}
	return was, nil
}

// adopt makes the release that an earlier run began this one's, if it is the same.
func (f *Folder) adopt(head, was *journalHead) error {
	if was == nil {
		return nil
	}
	if difference := head.difference(was); difference != "" {
		return fmt.Errorf("%w: %s", f.refuse(ErrDifferent), difference)
	}
	if !f.options.Resume {
		return f.refuse(ErrUnfinished)
	}
	f.resumed = f.journal.bytes()
	return nil
}

func (f *Folder) refuse(why error) error { return fmt.Errorf("output folder %q %w", f.path, why) }

// begin writes to the journal that the folder is this run's.
func (f *Folder) begin(head *journalHead) error {
	if err := f.journal.begin(head); err != nil {
		return f.wrap(manifest.JournalName, err)
	}
	return f.syncNames()
}

// Kept returns how many bytes of the shards are durable, this run's and an earlier one's
// together. A later run that resumes reads them once and writes the others.
func (f *Folder) Kept() int64 { return f.journal.bytes() }

// here returns an error when the path no longer leads to the folder.
func (f *Folder) here() error {
	if err := f.dir.Here(); err != nil {
		return fmt.Errorf("%w (%w)", f.refuse(ErrMoved), err)
	}
	return nil
}

// mine returns an error when the folder is not there any more, or another run's.
func (f *Folder) mine() error {
	if err := f.here(); err != nil {
		return err
	}
	if err := f.journal.check(); err != nil {
		return f.wrapJournal(err)
	}
	return nil
}

// Resumed returns how many bytes of the shards an earlier run had kept, and after
// WriteShards the names of shards that were found damaged and have been written again.
func (f *Folder) Resumed() (bytes int64, redone []string) {
	for _, file := range f.staged {
		if file.redone {
			redone = append(redone, file.Name)
		}
	}
	return f.resumed, redone
}

// Voided returns the names of files that vouched for the release that was replaced, and were
// removed with its list of sums.
func (f *Folder) Voided() []string { return f.void }

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// statAll looks at files, links followed.
func statAll(paths []string) ([]fs.FileInfo, error) {
	infos := make([]fs.FileInfo, len(paths))
	for i, path := range paths {
		var err error
		if infos[i], err = os.Stat(path); err != nil {
			return nil, err
		}
	}
	return infos, nil
}
