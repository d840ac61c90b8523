package manifest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// partSuffix marks a file that is not finished.
const partSuffix = ".part"

// maxFileName is the longest base name that common file systems take.
const maxFileName = 255

// StageOptions change how a release is written.
type StageOptions struct {
	// Sources are paths that the release is made from. A folder that holds one of
	// them, by whatever name or link, is refused.
	Sources []string
	// Force accepts a folder that is not empty. Files of the release's names are
	// replaced when it is published. Model files that are no part of it, folders and
	// special files are still refused.
	Force bool
	// Workers is how many shards are written at once; 0 means one a processor.
	Workers int
	// Progress is told how many bytes of the shards are written.
	Progress Progress
}

// A Stage is a release folder in the making. Files are written under temporary names
// and synced; Publish gives them their names, and the list of sums comes last, so a
// folder with a list is a finished release. Discard undoes whatever was not published.
type Stage struct {
	path      string
	folder    Folder
	created   bool // the folder itself
	workers   int
	progress  Progress
	names     map[string]bool // that the release may have
	kept      []string        // files that were there before and stay
	staged    []FileSum       // written, still under temporary names
	open      []string        // temporary names in use
	published []string        // final names given
	done      bool
}

// NewStage prepares the folder at path, which it creates, for the files of a release.
// Every check that needs no data is made here: names are the base names that will be
// written, the list of sums excepted.
func NewStage(path string, names []string, o StageOptions) (*Stage, error) {
	s := &Stage{path: path, workers: o.Workers, progress: o.Progress, names: map[string]bool{}}
	for _, name := range append(slices.Clone(names), SumsName) {
		if err := s.claim(name); err != nil {
			return nil, err
		}
	}
	entries, err := os.ReadDir(path)
	s.created = errors.Is(err, os.ErrNotExist)
	if err != nil && !s.created {
		return nil, err
	}
	if err := checkSources(path, entries, o.Sources); err != nil {
		return nil, err
	}
	if err := s.checkEntries(entries, o.Force); err != nil {
		return nil, err
	}
	if s.created {
		if err := os.MkdirAll(path, 0o777); err != nil {
			return nil, err
		}
	}
	s.folder, err = openFolder(path)
	return s, err
}

// claim notes a name that the release will have.
func (s *Stage) claim(name string) error {
	switch err := checkSumsName(name); {
	case err != nil:
		return err
	case strings.ContainsAny(name, `/\`):
		return fmt.Errorf("file name %q names a folder too, want a base name", name)
	case len(name)+len(partSuffix) > maxFileName:
		return fmt.Errorf("file name %q has %d bytes, want at most %d", name, len(name), maxFileName-len(partSuffix))
	case s.names[name]:
		return fmt.Errorf("file name %q would be written twice", name)
	}
	s.names[name] = true
	return nil
}

// checkSources refuses a folder in which some name leads to a source's file.
func checkSources(path string, entries []os.DirEntry, sources []string) error {
	infos := make([]os.FileInfo, len(sources))
	for i, source := range sources {
		var err error
		if infos[i], err = os.Stat(source); err != nil {
			return err
		}
	}
	for _, e := range entries {
		there, err := os.Stat(filepath.Join(path, e.Name()))
		if err != nil {
			continue // a link that leads nowhere leads to no source
		}
		for i, info := range infos {
			if os.SameFile(info, there) {
				return fmt.Errorf("output folder %q holds the source %q under the name %q, want another folder", path, sources[i], e.Name())
			}
		}
	}
	return nil
}

// checkEntries refuses what may not be in the folder, and notes what stays there.
func (s *Stage) checkEntries(entries []os.DirEntry, force bool) error {
	if len(entries) > 0 && !force {
		return fmt.Errorf("output folder %q is not empty: it holds %q", s.path, entries[0].Name())
	}
	for _, e := range entries {
		name := e.Name()
		switch {
		case !e.Type().IsRegular():
			return fmt.Errorf("output folder %q holds %q, which is not a regular file", s.path, name)
		case s.names[name]:
		case isModelFile(name):
			return fmt.Errorf("output folder %q holds the model file %q, which is no part of the release", s.path, name)
		case strings.HasSuffix(name, partSuffix):
			return fmt.Errorf("output folder %q holds the unfinished file %q of an earlier run", s.path, name)
		default:
			s.kept = append(s.kept, name)
		}
	}
	return nil
}

// isModelFile reports whether a file of this name belongs to some artifact.
func isModelFile(name string) bool { return strings.EqualFold(filepath.Ext(name), ".gguf") }

// Discard closes the stage. Unless it was published, it removes every file that the
// stage wrote, and the folder if the stage made it. To call it twice is harmless.
func (s *Stage) Discard() error {
	if s.folder == nil {
		return nil
	}
	var errs []error
	if !s.done {
		for _, name := range slices.Concat(s.open, s.published) {
			if err := s.folder.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
				errs = append(errs, err)
			}
		}
	}
	errs = append(errs, s.folder.Close())
	s.folder = nil
	if s.created && !s.done {
		errs = append(errs, os.Remove(s.path))
	}
	return errors.Join(errs...)
}
