package repair

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"ggufreap/manifest/internal/hardlink"
	"ggufreap/manifest/internal/pass"
)

// ownCopy gives a folder a file of its own in place of a link, or of a file that has other names
// too: those are not written to, be they of a cache that others share.
func (m *mending) ownCopy(f *file) error {
	shared, err := m.shared(f)
	if err != nil || !shared {
		return err
	}
	path := m.job.path(f.name)
	file, err := os.OpenFile(path+newSuffix, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := m.job.copyTo(file, f.name); err != nil {
		return errors.Join(err, file.Close(), os.Remove(path+newSuffix))
	}
	return takePlace(file, path)
}

// shared reports whether a file is not the folder's own, and notes it.
func (m *mending) shared(f *file) (bool, error) {
	info, err := os.Lstat(m.job.path(f.name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case info.Mode()&fs.ModeSymlink != 0:
		m.Notes = append(m.Notes, f.name+" was a link: a file of its own is in its place now, and what it led to is as it was")
	case !info.Mode().IsRegular():
		return false, errors.New("is not a regular file")
	case hardlink.Names(info) > 1:
		m.Notes = append(m.Notes, f.name+" had other names: it is a file of its own now, and what has those names is as it was")
	default:
		return false, nil
	}
	return true, nil
}

// copyTo copies a file of the folder, if it is there.
func (job *Job) copyTo(file *os.File, name string) error {
	r, err := job.openPadded(name)
	if err != nil || r.file == nil {
		return err
	}
	defer r.close()
	_, err = io.Copy(file, r.file)
	return err
}

// takePlace makes a file durable and gives it the name that it is for, and the rights of what had
// that name.
func takePlace(file *os.File, path string) error {
	if info, err := os.Stat(path); err == nil {
		_ = file.Chmod(info.Mode().Perm() | 0o600) // where rights are not kept, they are those of any new file
	}
	if err := file.Sync(); err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	if err := os.Rename(path+newSuffix, path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	_ = dir.Sync() // where folders cannot be synced, the system sees to it
	return dir.Close()
}

// mendWhole fetches all of a file of which only the sum is known, beside it, and puts it into its
// place when the sum is right. A source whose bytes do not have the sum is passed over.
func (m *mending) mendWhole(ctx context.Context, f *file, number, i, end int) error {
	path := m.job.path(f.name)
	if there, err := m.forget(ctx, f, i, end); there || err != nil {
		return err
	}
	if _, err := m.shared(f); err != nil {
		return err
	}
	var reasons []error
	again := m.anyDone(i, end)
	for k := 0; k < len(m.job.Sources); k++ {
		s := m.job.Sources[k]
		if s.files[number] == nil {
			continue
		}
		err := m.fetchWhole(ctx, f, s, number, i, end)
		if w := (*writeError)(nil); err == nil || ctx.Err() != nil || errors.As(err, &w) {
			return err
		}
		reasons = append(reasons, fmt.Errorf("%s: %w", s.Name, err))
		for j := i; j < end; j++ {
			delete(m.done, j)
		}
		if err := m.log.begin(m.Damage); err != nil {
			return err
		}
		if again { // what an earlier run fetched may be to blame
			again, k = false, k-1
			continue
		}
		m.Notes = append(m.Notes, fmt.Sprintf("%s was passed over where it could not help: %v", s.Name, err))
	}
	return errors.Join(append(reasons, os.Remove(path+newSuffix))...)
}

func (d *Damage) anyDone(i, end int) bool {
	for ; i < end; i++ {
		if d.done[i] {
			return true
		}
	}
	return false
}

// forget forgets what an earlier run fetched of a file, where that is not there any more, and
// reports whether that is since the file has taken its place.
func (m *mending) forget(ctx context.Context, f *file, i, end int) (there bool, err error) {
	info, err := os.Lstat(m.job.path(f.name) + newSuffix)
	if err == nil && info.Mode().IsRegular() || !m.anyDone(i, end) {
		return false, nil
	}
	if err := m.checkWhole(ctx, f, f.name); err == nil {
		return true, nil
	}
	for ; i < end; i++ {
		delete(m.done, i)
	}
	return false, nil
}

// checkWhole takes the sum of a file under a name.
func (m *mending) checkWhole(ctx context.Context, f *file, name string) error {
	return pass.ForEach(ctx, 1, 1, func(ctx context.Context, _ int, w *pass.Worker) error {
		got, err := m.job.sumOf(ctx, f, name, w, io.Discard)
		if err == nil && got != *f.sum {
			err = fmt.Errorf("sha256 of its file is %s, want %s: it is damaged too, or another one", got, *f.sum)
		}
		return err
	})
}

// fetchWhole fetches what is missing of a file and gives it its name.
func (m *mending) fetchWhole(ctx context.Context, f *file, s *Source, number, i, end int) error {
	path := m.job.path(f.name)
	file, err := os.OpenFile(path+newSuffix, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return wrapWrite(err)
	}
	defer file.Close()
	if err := file.Truncate(f.size); err != nil {
		return wrapWrite(err)
	}
	var fetched []Range
	err = m.eachRange(file, i, end, func(k int) error {
		m.announce(s, k)
		fetched = append(fetched, m.Ranges[k])
		_, err := m.fetch(ctx, file, s.files[number], m.Ranges[k], 1)
		return err
	})
	if err != nil {
		return err
	}
	if err := m.checkWhole(ctx, f, f.name+newSuffix); err != nil {
		return err
	}
	for _, r := range fetched {
		m.tookFrom(s.Name, r)
	}
	return wrapWrite(takePlace(file, path))
}
