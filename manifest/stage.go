package manifest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync/atomic"

	"ggufreap/gguf"
	"ggufreap/manifest/internal/disk"
)

// partSuffix marks a file that is not published.
const partSuffix = ".part"

// A Release is what a stage is to hold: the shards of a layout and some documents.
type Release struct {
	Stem   string // of the shards' names
	Layout *gguf.Layout
	Slabs  SlabCount // which tensors carry how many slabs; nil when none does
	// Documents are the names of the other files, the list of sums excepted.
	Documents []string
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
	return append(append(names, r.Documents...), SumsName)
}

// StageOptions change how a release is written.
type StageOptions struct {
	// Sources are paths that the release is made from. A folder that holds one of
	// them, by whatever name or link, is refused.
	Sources []string
	// Unchanged returns an error when a source is no longer what it was when it was
	// opened. It is asked before a shard counts as finished.
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
	Check func(t *Tensor) error
	// Workers is how many shards are written at once; 0 means one a processor.
	Workers int
	// Progress is told how many bytes of the shards are written or checked.
	Progress Progress
}

// A Stage is a release folder in the making. Files are written under temporary names
// and synced, and the journal notes each shard that is; Publish gives them their names,
// then writes the list of sums, and removes the journal last of all. A folder with a
// list and no journal is a finished release.
type Stage struct {
	path    string
	release Release
	options StageOptions
	names   map[string]bool // that the release may have

	disk    disk.Disk
	folder  disk.Folder
	created bool // the folder itself
	journal *journal
	owned   bool     // the journal is that of this release
	kept    []string // files that were there before and stay

	staged  []stagedFile // written, in order
	resumed int          // shards that an earlier run finished
	done    bool
	lost    error // what Lost returns

	read, written atomic.Int64 // bytes
}

// Traffic returns how many bytes this run has read, of the sources and of shards that an
// earlier run finished, and how many it has written.
func (s *Stage) Traffic() (read, written int64) { return s.read.Load(), s.written.Load() }

// A stagedFile is durable, under its temporary name or already under its own.
type stagedFile struct {
	FileSum
	published bool // has its own name
	redone    bool // an earlier run finished it, but it is no longer what that run wrote
}

// Errors of NewStage for a folder that another run has begun.
var (
	// ErrUnfinished says that it is the same release, and Resume is wanted.
	ErrUnfinished = errors.New("holds an unfinished release")
	// ErrDifferent says that the unfinished release is another one.
	ErrDifferent = errors.New("holds an unfinished release that is not the same as this one")
	// ErrInUse says that the other run has not ended.
	ErrInUse = errors.New("is being written to by another run")
)

// NewStage prepares the folder at path, which it creates, for a release. Every check
// that needs no tensor data is made here, before the first byte: names, sources, what
// is in the folder, the other run that left it unfinished, free space.
func NewStage(path string, r Release, o StageOptions) (*Stage, error) {
	return newStage(disk.OS{}, path, r, o)
}

func newStage(d disk.Disk, path string, r Release, o StageOptions) (*Stage, error) {
	s := &Stage{path: path, release: r, options: o, disk: d, names: map[string]bool{}}
	if err := s.prepare(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// prepare looks before it makes anything, and again once the folder is its own.
func (s *Stage) prepare() error {
	if err := s.claimNames(); err != nil {
		return err
	}
	if err := CheckNames(s.release.Layout); err != nil {
		return err
	}
	sources, err := statAll(s.options.Sources)
	if err != nil {
		return err
	}
	head, err := newHead(s.release, s.options.Sources, sources)
	if err != nil {
		return err
	}
	if err := s.openFolder(sources); err != nil {
		return err
	}
	was, err := s.lock()
	if err != nil {
		return err
	}
	if err := s.adopt(head, was); err != nil {
		return err
	}
	if err := s.checkEntries(); err != nil {
		return err
	}
	s.owned = true
	if err := s.checkRoom(); err != nil {
		return err
	}
	if was == nil {
		if err := s.beginJournal(head); err != nil {
			return err
		}
	}
	return s.tryName()
}

// openFolder opens the folder, or makes it.
func (s *Stage) openFolder(sources []fs.FileInfo) error {
	var err error
	s.folder, err = s.disk.Open(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		s.folder, err = s.disk.Make(s.path)
		s.created = err == nil
		return err
	}
	if err != nil {
		return err
	}
	if err := s.checkSources(sources); err != nil {
		return err
	}
	unfinished, err := s.hasJournal()
	if err != nil || unfinished {
		return err // its journal says what may be there
	}
	return s.checkEntries()
}

// lock keeps other runs out of the folder, and returns the head of the journal that an
// earlier one left.
func (s *Stage) lock() (was *journalHead, err error) {
	s.journal, was, err = lockJournal(s.folder)
	if errors.Is(err, disk.ErrLocked) {
		return nil, s.refuse(ErrInUse)
	}
	if err != nil {
		return nil, fmt.Errorf("output folder %q: %w", s.path, err)
	}
	return was, nil
}

// adopt makes the release that an earlier run began this one's, if it is the same.
func (s *Stage) adopt(head, was *journalHead) error {
	if was == nil {
		return nil
	}
	if difference := head.difference(was); difference != "" {
		return fmt.Errorf("%w: %s", s.refuse(ErrDifferent), difference)
	}
	if !s.options.Resume {
		return s.refuse(ErrUnfinished)
	}
	s.resumed = s.journal.count()
	return nil
}

func (s *Stage) refuse(why error) error { return fmt.Errorf("output folder %q %w", s.path, why) }

// beginJournal writes the first line of the journal, from which on the folder is this
// release's.
func (s *Stage) beginJournal(head *journalHead) error {
	if err := s.journal.begin(head); err != nil {
		return s.wrap(JournalName, err)
	}
	return s.syncNames()
}

// Finished returns how many shards of the release's are finished, this run's and an
// earlier one's together.
func (s *Stage) Finished() int { return s.journal.count() }

// Lost says why no later run can go on with the shards that a closed stage has left
// finished: the folder is no longer at its path, or the source not what it was. It is nil
// when one can.
func (s *Stage) Lost() error { return s.lost }

// Errors that Lost returns.
var (
	ErrMoved  = errors.New("is not where it was: it was moved or removed")
	ErrSource = errors.New("the source is not what it was")
)

func (s *Stage) findLost() error {
	if err := s.here(); err != nil {
		return err
	}
	if s.options.Unchanged != nil && s.options.Unchanged() != nil {
		return ErrSource
	}
	return nil
}

// here returns an error when the path no longer leads to the folder.
func (s *Stage) here() error {
	if err := s.folder.Here(); err != nil {
		return fmt.Errorf("%w (%w)", s.refuse(ErrMoved), err)
	}
	return nil
}

// Resumed returns how many shards an earlier run finished, and after WriteShards the
// names of those that were found damaged and have been written again.
func (s *Stage) Resumed() (shards int, redone []string) {
	for _, f := range s.staged {
		if f.redone {
			redone = append(redone, f.Name)
		}
	}
	return s.resumed, redone
}

// Close ends the stage. When it was not published, its finished shards and the journal
// stay, so that Resume can go on with them. With no shard finished nothing is
// worth keeping, and Close removes all that the stage made. To call it twice is harmless.
func (s *Stage) Close() error {
	if s.folder == nil {
		return nil
	}
	var errs []error
	keep := s.done
	switch {
	case s.done || s.journal == nil:
	case !s.owned && s.journal.end > 0:
		errs = append(errs, s.journal.file.Close()) // another's
	case !s.owned:
		errs = append(errs, s.journal.file.Discard())
	default:
		errs = append(errs, s.removeParts())
		keep = s.journal.count() > 0
		if keep {
			s.lost = s.findLost()
			errs = append(errs, s.journal.file.Close())
		} else {
			errs = append(errs, s.journal.file.Discard())
		}
	}
	errs = append(errs, s.folder.Close())
	s.folder = nil
	if s.created && !keep {
		if err := s.disk.Remove(s.path); s.owned {
			errs = append(errs, err) // else another run may have begun there
		}
	}
	return errors.Join(errs...)
}

// removeParts removes the temporary files but those of finished shards.
func (s *Stage) removeParts() error {
	entries, err := s.folder.List()
	if err != nil {
		return err
	}
	finished := s.finishedNames()
	var errs []error
	for _, e := range entries {
		name, part := strings.CutSuffix(e.Name(), partSuffix)
		if part && s.names[name] && !finished[name] {
			errs = append(errs, ignoreMissing(s.folder.Remove(e.Name())))
		}
	}
	return errors.Join(errs...)
}

// finishedNames lists the shards that are finished.
func (s *Stage) finishedNames() map[string]bool {
	names := map[string]bool{}
	for i := range s.release.Layout.Shards {
		if _, ok := s.journal.sum(i); ok {
			names[s.release.shardName(i)] = true
		}
	}
	return names
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
