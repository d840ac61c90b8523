package stage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync/atomic"

	"ggufreap/gguf"
	"ggufreap/manifest"
	"ggufreap/manifest/lists"
	"ggufreap/manifest/stage/internal/disk"
)

// partSuffix marks a file that is not published.
const partSuffix = ".part"

// A Release is what a folder is to hold: the shards of a layout and some documents.
type Release struct {
	Stem   string // of the shards' names
	Layout *gguf.Layout
	Slabs  manifest.SlabCount // which tensors carry how many slabs; nil when none does
	IDs    manifest.IDTables  // which tensors are tables of expert ids; nil when none is
	// Documents are the names of the other files, the list of sums excepted.
	Documents []string
	// Same are paths of files that some shards, by number from 0, are to be byte for byte:
	// they share their blocks where the file system can, and are copied where not.
	Same map[int]string
	// Link makes those shards other names of these files: hard links.
	Link bool
	// Known are the sums of documents whose bytes are known beforehand. By them a finished
	// release is told from another one.
	Known map[string]manifest.Sum
	// Vouchers are names of files that vouch for a list of sums. Those that are there do not
	// fit the list that takes its place, and are removed before it is.
	Vouchers []string
	// Origin names what the release is made from. An interrupted release goes on only
	// when it is made from the same.
	Origin []Fact
}

func (r *Release) shardName(i int) string { return gguf.ShardName(r.Stem, i, len(r.Layout.Shards)) }

// names lists every file, the list of sums last.
func (r *Release) names() []string {
	var names []string
	for i := range r.Layout.Shards {
		names = append(names, r.shardName(i))
	}
	return append(append(names, r.Documents...), manifest.SumsName)
}

// A Source is a file on another machine.
type Source struct {
	Name     string // base name
	Size     int64
	Identity string // what tells it from any other file of that name and size
}

// Options change how a release is written.
type Options struct {
	// Sources are paths that the release is made from. A folder that holds one of
	// them, by whatever name or link, is refused.
	Sources []string
	// Inputs are paths of other files that it is made from, for which the same holds.
	Inputs []string
	// Far are the files that the release is made from where they are no files of this
	// machine. An interrupted release goes on only with files of the same identity.
	Far []Source
	// Unchanged returns an error when a source is no longer what it was when it was
	// opened. It is asked before bytes count as kept.
	Unchanged func() error
	// Resume goes on with a release that an earlier run left unfinished in the folder.
	// Where there is none it begins one.
	Resume bool
	// Force accepts a folder that is not empty. Files of the release's names are
	// replaced when it is published. Model files that are no part of it, folders and
	// special files are still refused.
	Force bool
	// Check looks at the digests of each tensor once it has passed; its error ends the
	// run. It is called from several goroutines; nil checks nothing.
	Check func(t *manifest.Tensor) error
	// Workers is how many shards are written at once; 0 means two a processor.
	Workers int
	// Lanes are numbers of neighbouring shards that one worker writes, one after the
	// other; without any, each free worker takes the next shard.
	Lanes []int
	// Progress is told how many bytes of the shards are written or checked.
	Progress manifest.Progress
}

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

// Lost says why no later run can go on with what a closed folder has kept: the folder is
// no longer at its path or is another run's, or the source is not what it was. It is nil
// when one can.
func (f *Folder) Lost() error { return f.lost }

// Errors that Lost returns, beside [ErrInUse].
var (
	ErrMoved  = errors.New("is not where it was: it was moved or removed")
	ErrSource = errors.New("the source is not what it was")
)

func (f *Folder) findLost() error {
	if err := f.here(); err != nil {
		return err
	}
	switch {
	case f.journal.taken():
		return ErrInUse
	case f.options.Unchanged != nil && f.options.Unchanged() != nil:
		return ErrSource
	}
	return nil
}

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

// Close ends the writing. When it was not published, what is durable of its shards and the
// journal stay, so that Resume can go on with them. With nothing durable, nothing is
// worth keeping, and Close removes all that was made. To call it twice is harmless.
func (f *Folder) Close() error {
	if f.dir == nil {
		return nil
	}
	var err error
	keep := f.done
	switch {
	case f.done || f.journal == nil:
	case !f.owned:
		err = f.journal.giveBack()
	case f.journal.check() != nil && f.journal.taken():
		keep, err = true, f.yield()
	default:
		keep, err = f.leave()
	}
	errs := []error{err, f.dir.Close()}
	f.dir = nil
	if f.created && !keep {
		if err := f.disk.Remove(f.path); f.owned {
			errs = append(errs, err) // else another run may have begun there
		}
	}
	return errors.Join(errs...)
}

// yield leaves the folder to the other run that has claimed it. When that has ended, and
// the journal is gone, what this one began is in nobody's way.
func (f *Folder) yield() error {
	f.lost = f.findLost()
	err := f.journal.file.Close()
	if begun, listErr := f.hasJournal(); listErr != nil || begun {
		return errors.Join(err, listErr)
	}
	return errors.Join(err, f.removeParts(func(int) bool { return false }))
}

// leave removes what is not worth keeping, and reports whether anything is. A file that
// cannot be removed is kept with the journal, which says whose it is.
func (f *Folder) leave() (keep bool, err error) {
	err = f.removeParts(f.begun)
	if err == nil && f.journal.bytes() == 0 {
		return false, f.journal.file.Discard()
	}
	f.lost = f.findLost()
	return true, errors.Join(err, f.journal.file.Close())
}

// left are the shards of which an earlier run left a file: this one writes into it.
func (f *Folder) left(shard int) bool { return f.parts[f.release.shardName(shard)] }

// begun are the shards of which something is durable.
func (f *Folder) begun(shard int) bool { return f.journal.beginning(shard).size > 0 }

// removeParts removes the temporary files of the release but those of some shards.
func (f *Folder) removeParts(stay func(shard int) bool) error {
	entries, err := f.dir.List()
	if err != nil {
		return err
	}
	staying := map[string]bool{}
	for i := range f.release.Layout.Shards {
		staying[f.release.shardName(i)] = stay(i)
	}
	var errs []error
	for _, e := range entries {
		if name, part := strings.CutSuffix(e.Name(), partSuffix); part && f.names[name] && !staying[name] {
			errs = append(errs, ignoreMissing(f.dir.Remove(e.Name())))
		}
	}
	return errors.Join(errs...)
}

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
