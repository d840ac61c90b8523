package manifest

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"ggufreap/gguf"
	"ggufreap/manifest/words"
)

// maxFileName is the longest base name that common file systems take.
const maxFileName = 255

// claimNames notes the names that the release will have.
func (s *Stage) claimNames() error {
	for _, name := range s.release.names() {
		switch err := checkSumsName(name); {
		case err != nil:
			return err
		case strings.ContainsAny(name, `/\`) || !filepath.IsLocal(name):
			return fmt.Errorf("file name %q is not a plain name in a folder", name)
		case len(name)+len(partSuffix) > maxFileName:
			return fmt.Errorf("file name %q has %d bytes, want at most %d", name, len(name), maxFileName-len(partSuffix))
		case name == JournalName || strings.HasSuffix(name, partSuffix):
			return fmt.Errorf("file name %q is one that marks unfinished releases", name)
		case s.names[name]:
			return fmt.Errorf("file name %q would be written twice", name)
		}
		s.names[name] = true
	}
	return nil
}

// checkSources refuses a folder in which some name leads to a source's file.
func (s *Stage) checkSources(sources []fs.FileInfo) error {
	if len(sources) == 0 {
		return nil
	}
	entries, err := s.folder.List()
	if err != nil {
		return err
	}
	for _, e := range entries {
		there, err := os.Stat(filepath.Join(s.path, e.Name()))
		if err != nil {
			continue // a link that leads nowhere leads to no source
		}
		for i, info := range sources {
			if os.SameFile(info, there) {
				return fmt.Errorf("output folder %q holds the source %q under the name %q, want another folder", s.path, s.options.Sources[i], e.Name())
			}
		}
	}
	return nil
}

// hasJournal reports whether a run began a release in the folder. One that ended before
// the first byte of its journal began none.
func (s *Stage) hasJournal() (bool, error) {
	entries, err := s.folder.List()
	if err != nil {
		return false, err
	}
	for _, e := range entries {
		if e.Name() == JournalName && e.Type().IsRegular() {
			info, err := e.Info()
			return err == nil && info.Size() > 0, err
		}
	}
	return false, nil
}

// checkEntries refuses what may not be in the folder, and notes what stays there.
func (s *Stage) checkEntries() error {
	entries, err := s.folder.List()
	if err != nil {
		return err
	}
	s.kept = nil
	for _, e := range entries {
		name := e.Name()
		switch {
		case !e.Type().IsRegular():
			return fmt.Errorf("output folder %q holds %q, which is not a regular file", s.path, name)
		case name == JournalName:
		case s.resuming() && s.names[strings.TrimSuffix(name, partSuffix)]:
		case !s.options.Force && s.options.Resume && name == SumsName:
			return fmt.Errorf("output folder %q holds a finished release, there is nothing to go on with", s.path)
		case !s.options.Force:
			return fmt.Errorf("output folder %q is not empty: it holds %q", s.path, name)
		case s.names[name]:
		case gguf.IsModelFile(name):
			return fmt.Errorf("output folder %q holds the model file %q, which is no part of the release", s.path, name)
		case strings.HasSuffix(name, partSuffix):
			return fmt.Errorf("output folder %q holds the unfinished file %q of an earlier run", s.path, name)
		default:
			s.kept = append(s.kept, name)
		}
	}
	return nil
}

// resuming reports whether the journal in the folder has been found to be this release's.
func (s *Stage) resuming() bool { return s.journal != nil && s.journal.end > 0 }

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
// bytes and its largest file. Space that unfinished files of an earlier run take is
// given back first.
func (s *Stage) checkRoom() error {
	if err := s.removeParts(); err != nil {
		return err
	}
	room, err := s.folder.Room()
	if err != nil {
		return fmt.Errorf("output folder %q: %w", s.path, err)
	}
	need := s.need(room.Block)
	if room.Free >= 0 && need > room.Free {
		return &SpaceError{s.path, need, room.Free}
	}
	for i, shard := range s.release.Layout.Shards {
		if shard.Size > room.File {
			return fmt.Errorf("output folder %q: shard %q has %s, this process may write files of %s at most", s.path, s.release.shardName(i), words.Count(shard.Size, "byte"), words.Group(room.File))
		}
	}
	return nil
}

// need returns the bytes of the shards that are not finished, in whole blocks.
func (s *Stage) need(block int64) int64 {
	var n int64
	for i, shard := range s.release.Layout.Shards {
		if _, finished := s.journal.sum(i); !finished {
			n += (shard.Size + block - 1) / block * block
		}
	}
	return n
}

// tryName makes and removes an empty file of the longest name, since file systems
// differ in which names they take.
func (s *Stage) tryName() error {
	finished := s.finishedNames()
	longest := ""
	for _, name := range s.release.names() {
		if !finished[name] && len(name) > len(longest) {
			longest = name
		}
	}
	f, err := s.folder.Create(longest + partSuffix)
	if err == nil {
		err = f.Close()
	}
	if err == nil {
		err = s.folder.Remove(longest + partSuffix)
	}
	if err != nil {
		return s.wrap(longest, err)
	}
	return nil
}
