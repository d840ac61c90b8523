package stage

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"

	"ggufreap/manifest"
	"ggufreap/manifest/stage/internal/disk"
)

// CheckRoom returns the error that Open would, a [SpaceError] most of all, where the folder
// at path, which need not be there, cannot take a release. It changes nothing.
func CheckRoom(path string, r Release) error {
	f := &Folder{path: path, release: r, disk: disk.OS{}, names: map[string]bool{}, parts: map[string]bool{}, journal: &journal{}}
	if err := f.claimNames(); err != nil {
		return err
	}
	var err error
	if f.dir, err = f.disk.Open(path); err == nil {
		err = f.findParts()
	}
	for errors.Is(err, fs.ErrNotExist) && path != filepath.Dir(path) {
		path = filepath.Dir(path)
		f.dir, err = f.disk.Open(path)
	}
	if f.dir == nil {
		return err
	}
	defer f.dir.Close()
	if err != nil {
		return err
	}
	return f.checkRoom()
}

// findParts looks for what an interrupted run left, without taking its lock.
func (f *Folder) findParts() error {
	file, err := f.dir.Open(manifest.JournalName)
	if err != nil {
		return nil // there is none
	}
	defer file.Close()
	data, err := io.ReadAll(io.NewSectionReader(file, 0, maxJournal))
	if err != nil {
		return err
	}
	var head *journalHead
	if head, f.journal.kept, f.journal.end, err = parseJournal(data); err != nil || head == nil {
		f.journal = &journal{}
		return nil // another's: the release's own room is asked for
	}
	entries, err := f.dir.List()
	for _, e := range entries {
		f.isPart(e)
	}
	return err
}
