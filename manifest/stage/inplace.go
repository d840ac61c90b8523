package stage

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"ggufreap/manifest"
	"ggufreap/manifest/internal/hardlink"
	"ggufreap/manifest/stage/internal/disk"
)

// ErrShared says that a file is not a folder's own: a link leads to it, or it has other names.
var ErrShared = errors.New("has other names, which would be changed too")

// ReplaceHeader replaces the beginning of a file, was, by one of the same length. The old
// beginning is durable beside the file until the new one is: a run that ends meanwhile is
// taken back by [TakeBack]. A file that has other names is refused with [ErrShared].
func ReplaceHeader(path string, was, is []byte) error {
	return replaceHeader(disk.OS{}, path, was, is)
}

// TakeBack gives a file the header back that an interrupted replacement has left beside it, and
// reports whether there was one.
func TakeBack(path string) (bool, error) { return takeBack(disk.OS{}, path) }

func replaceHeader(d disk.Disk, path string, was, is []byte) (err error) {
	if len(was) != len(is) {
		return fmt.Errorf("%q: the new header has %d bytes, want %d", path, len(is), len(was))
	}
	dir, file, err := lockModel(d, path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close(), dir.Close()) }()
	if err := beginsWith(file, path, was); err != nil {
		return err
	}
	name := filepath.Base(path) + manifest.OldHeaderSuffix
	if err := keepOld(dir, name, was); err != nil {
		return fmt.Errorf("%q: keeping the old header: %w", path, err)
	}
	if err := put(file, is); err != nil {
		return fmt.Errorf("%q: writing the new header: %w", path, errors.Join(err, restore(dir, file, name, was)))
	}
	return errors.Join(dir.Remove(name), dir.Sync())
}

// lockModel opens a model file to be written to, and holds it against other runs.
func lockModel(d disk.Disk, path string) (disk.Folder, disk.LockedFile, error) {
	dir, err := d.Open(filepath.Dir(path))
	if err != nil {
		return nil, nil, err
	}
	if err = checkOwn(dir, filepath.Base(path)); err == nil {
		var file disk.LockedFile
		if file, err = dir.Lock(filepath.Base(path)); err == nil {
			return dir, file, nil
		}
	}
	return nil, nil, errors.Join(fmt.Errorf("%q: %w", path, err), dir.Close())
}

// checkOwn refuses a file that is not there under this name alone.
func checkOwn(dir disk.Folder, name string) error {
	entries, err := dir.List()
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() != name {
			continue
		}
		info, err := e.Info()
		if err == nil && (e.Type()&fs.ModeSymlink != 0 || hardlink.Names(info) > 1) {
			err = ErrShared
		}
		return err
	}
	return fs.ErrNotExist
}

func beginsWith(file io.ReaderAt, path string, want []byte) error {
	there := make([]byte, len(want))
	if n, err := file.ReadAt(there, 0); n < len(there) {
		return fmt.Errorf("%q: reading the header: %w", path, err)
	}
	if !bytes.Equal(there, want) {
		return fmt.Errorf("%q: its header is no longer what was read", path)
	}
	return nil
}

// keepOld writes the old header beside the file, after its SHA-256: what an interrupted
// replacement is taken back with. It has its name only when it is durable.
func keepOld(dir disk.Folder, name string, was []byte) error {
	if err := ignoreMissing(dir.Remove(name + partSuffix)); err != nil {
		return err
	}
	file, err := dir.Create(name + partSuffix)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(was)
	if _, err = file.Write(append(sum[:], was...)); err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = dir.Rename(name+partSuffix, name)
	}
	if err != nil {
		return errors.Join(err, ignoreMissing(dir.Remove(name+partSuffix)))
	}
	return dir.Sync()
}

// put makes a header durable at the beginning of a file.
func put(file disk.LockedFile, header []byte) error {
	if _, err := file.WriteAt(header, 0); err != nil {
		return err
	}
	return file.Sync()
}

// restore puts the old header back, and removes it beside the file.
func restore(dir disk.Folder, file disk.LockedFile, name string, was []byte) error {
	if err := put(file, was); err != nil {
		return err
	}
	return errors.Join(ignoreMissing(dir.Remove(name)), dir.Sync())
}

func takeBack(d disk.Disk, path string) (there bool, err error) {
	dir, err := d.Open(filepath.Dir(path))
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	name := filepath.Base(path) + manifest.OldHeaderSuffix
	was, err := readOld(dir, name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	file, err := dir.Lock(filepath.Base(path))
	if err != nil {
		return false, fmt.Errorf("%q: %w", path, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	size, err := file.Size()
	if err == nil && size < int64(len(was)) {
		err = fmt.Errorf("%q has %d bytes, and is not the file that %q is of", path, size, name)
	}
	if err != nil {
		return false, err
	}
	return true, restore(dir, file, name, was)
}

// readOld reads the old header that stands beside a file.
func readOld(dir disk.Folder, name string) ([]byte, error) {
	kept, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	defer kept.Close()
	size, err := kept.Size()
	if err != nil {
		return nil, err
	}
	data := make([]byte, min(size, maxOldHeader))
	if n, err := kept.ReadAt(data, 0); n < len(data) {
		return nil, err
	}
	if len(data) < sha256.Size || sha256.Sum256(data[sha256.Size:]) != [sha256.Size]byte(data) {
		return nil, fmt.Errorf("%q is not what a replacement of a header left", name)
	}
	return data[sha256.Size:], nil
}

// maxOldHeader bounds the file that is read whole.
const maxOldHeader = 1 << 30
