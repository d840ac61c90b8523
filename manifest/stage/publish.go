package stage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"ggufreap/manifest"
	"ggufreap/manifest/internal/pass"
)

// Publish gives every staged file its name, then writes the list of sums, and removes
// the journal last. That a file is missing which Open was told of is an error. A
// release whose publishing failed can be resumed.
func (s *Folder) Publish(ctx context.Context) error {
	if err := s.checkComplete(); err != nil {
		return err
	}
	list, err := s.sumKept(ctx)
	if err != nil {
		return err
	}
	if err := s.here(); err != nil {
		return err
	}
	if err := s.dropOldList(); err != nil {
		return err
	}
	for i := range s.staged {
		f := &s.staged[i]
		if err := s.publish(f); err != nil {
			return err
		}
		list = append(list, f.FileSum)
	}
	if err := s.syncNames(); err != nil {
		return err
	}
	if err := s.writeList(list); err != nil {
		return err
	}
	if err := s.here(); err != nil {
		return err
	}
	if err := s.journal.file.Discard(); err != nil {
		return s.wrap(manifest.JournalName, err)
	}
	s.done = true
	return s.syncNames()
}

// checkComplete refuses to publish less than was announced.
func (s *Folder) checkComplete() error {
	for _, name := range slices.Sorted(maps.Keys(s.names)) {
		if name != manifest.SumsName && !slices.ContainsFunc(s.staged, func(f stagedFile) bool { return f.Name == name }) {
			return fmt.Errorf("file %q was announced for this release and not written", name)
		}
	}
	return nil
}

// writeList writes the list of sums, which makes the folder a release.
func (s *Folder) writeList(list []manifest.FileSum) error {
	sum, err := s.writeFile(manifest.SumsName, 0, pass.NewHasher(), func(w io.Writer) error { return manifest.WriteSums(w, list) })
	if err != nil {
		return err
	}
	if err := s.publish(&stagedFile{FileSum: manifest.FileSum{Name: manifest.SumsName, SHA256: sum}}); err != nil {
		return err
	}
	return s.syncNames()
}

func (s *Folder) syncNames() error {
	if err := s.dir.Sync(); err != nil {
		return fmt.Errorf("syncing folder %q: %w", s.path, err)
	}
	return nil
}

// sumKept takes the sums of files that were in the folder before and stay.
func (s *Folder) sumKept(ctx context.Context) ([]manifest.FileSum, error) {
	sums := make([]manifest.FileSum, len(s.kept))
	err := pass.ForEach(ctx, len(s.kept), s.options.Workers, func(ctx context.Context, i int, w *pass.Worker) error {
		sum, err := s.sum(ctx, s.kept[i], w)
		sums[i] = manifest.FileSum{Name: s.kept[i], SHA256: sum}
		return err
	})
	return sums, err
}

// sum takes the sum of a file of the folder.
func (s *Folder) sum(ctx context.Context, name string, w *pass.Worker) (manifest.Sum, error) {
	f, err := s.dir.Open(name)
	if err != nil {
		return manifest.Sum{}, fmt.Errorf("output folder %q: %w", s.path, err)
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return manifest.Sum{}, fmt.Errorf("output folder %q: %w", s.path, err)
	}
	hasher := w.Hasher()
	if err := pass.Scan(ctx, f, size, w.Buf, hasher, nil); err != nil {
		return manifest.Sum{}, fmt.Errorf("%q: %w", filepath.Join(s.path, name), err)
	}
	return hasher.Sum(), nil
}

// dropOldList removes the list of an earlier release before its files are replaced, so
// that no list ever stands beside files that it does not describe.
func (s *Folder) dropOldList() error {
	err := s.dir.Remove(manifest.SumsName)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return s.wrap(manifest.SumsName, err)
	}
	return s.syncNames()
}

// publish gives a file its name, unless an earlier run did.
func (s *Folder) publish(f *stagedFile) error {
	if f.published {
		return nil
	}
	if err := s.dir.Rename(f.Name+partSuffix, f.Name); err != nil {
		return s.wrap(f.Name, err)
	}
	f.published = true
	return nil
}
