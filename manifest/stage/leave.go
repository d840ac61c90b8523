package stage

import (
	"errors"
	"strings"
)

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
