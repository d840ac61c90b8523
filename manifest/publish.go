package manifest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// Publish gives every staged file its name, and at last writes the list of sums. That a
// file is missing which NewStage was told of is an error. When Publish fails, Discard
// removes what it did.
func (s *Stage) Publish(ctx context.Context) error {
	if err := s.checkComplete(); err != nil {
		return err
	}
	list, err := s.sumKept(ctx)
	if err != nil {
		return err
	}
	if err := s.dropOldList(); err != nil {
		return err
	}
	for _, f := range s.staged {
		if err := s.publish(f.Name); err != nil {
			return err
		}
	}
	if err := s.syncNames(); err != nil {
		return err
	}
	if err := s.writeList(append(list, s.staged...)); err != nil {
		return err
	}
	s.done = true
	return nil
}

// checkComplete refuses to publish less than was announced.
func (s *Stage) checkComplete() error {
	for _, name := range slices.Sorted(maps.Keys(s.names)) {
		if name != SumsName && !slices.ContainsFunc(s.staged, func(f FileSum) bool { return f.Name == name }) {
			return fmt.Errorf("file %q was announced for this release and not written", name)
		}
	}
	return nil
}

// writeList writes the list of sums, which makes the folder a release.
func (s *Stage) writeList(list []FileSum) error {
	s.begin(SumsName)
	if _, err := s.writeFile(SumsName, 0, func(w io.Writer) error { return WriteSums(w, list) }); err != nil {
		return err
	}
	if err := s.publish(SumsName); err != nil {
		return err
	}
	return s.syncNames()
}

func (s *Stage) syncNames() error {
	if err := s.folder.Sync(); err != nil {
		return fmt.Errorf("syncing folder %q: %w", s.path, err)
	}
	return nil
}

// sumKept takes the sums of files that were in the folder before and stay.
func (s *Stage) sumKept(ctx context.Context) ([]FileSum, error) {
	sums := make([]FileSum, len(s.kept))
	err := forEach(ctx, len(s.kept), s.workers, func(ctx context.Context, i int, buf []byte) error {
		sum, _, err := sumFile(ctx, filepath.Join(s.path, s.kept[i]), buf, nil)
		sums[i] = FileSum{s.kept[i], sum}
		return err
	})
	return sums, err
}

// dropOldList removes the list of an earlier release before its files are replaced, so
// that no list ever stands beside files that it does not describe.
func (s *Stage) dropOldList() error {
	err := s.folder.Remove(SumsName)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return s.wrap(SumsName, err)
	}
	return s.syncNames()
}

func (s *Stage) publish(name string) error {
	if err := s.folder.Rename(name+partSuffix, name); err != nil {
		return s.wrap(name, err)
	}
	s.published = append(s.published, name)
	return nil
}
