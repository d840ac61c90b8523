package disk

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"ggufreap/manifest/internal/filelock"
)

// OS is the disk of the operating system.
type OS struct{}

// Open looks before it opens: opening a named pipe would wait for somebody to write.
func (OS) Open(path string) (Folder, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%q is not a folder", path)
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	return osFolder{root}, nil
}

func (d OS) Make(path string) (Folder, error) {
	err := os.MkdirAll(path, 0o777)
	if errors.Is(err, fs.ErrExist) {
		if to, linkErr := os.Readlink(filepath.Clean(path)); linkErr == nil {
			err = fmt.Errorf("%q is a link to %q, which is not there", path, to)
		}
	}
	if err != nil {
		return nil, err
	}
	return d.Open(path)
}

func (OS) Remove(path string) error { return os.Remove(path) }

// osFolder is a folder of the operating system. An os.Root keeps every name inside.
type osFolder struct{ root *os.Root }

func (f osFolder) List() ([]fs.DirEntry, error) {
	dir, err := f.root.Open(".")
	if err != nil {
		return nil, f.plain(err)
	}
	defer dir.Close()
	entries, err := dir.ReadDir(-1)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return entries, err
}

func (f osFolder) Open(name string) (InputFile, error) {
	if err := f.checkRegular(name); err != nil {
		return nil, err
	}
	return f.open(name, os.O_RDONLY)
}

func (f osFolder) Create(name string) (OutputFile, error) {
	return f.open(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
}

func (f osFolder) Continue(name string, from int64) (OutputFile, error) {
	if err := f.checkRegular(name); err != nil {
		return nil, err
	}
	file, err := f.open(name, os.O_WRONLY)
	if err != nil {
		return nil, err
	}
	if _, err := file.Seek(from, io.SeekStart); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

func (f osFolder) Lock(name string) (LockedFile, error) {
	if err := f.checkRegular(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	file, err := f.open(name, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	if err := filelock.Lock(file.File); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if err := file.Named(); err != nil {
		// Its last holder removed it between our opening and locking it: the lock of a
		// file without a name holds nobody off.
		return nil, errors.Join(ErrLocked, file.Close())
	}
	return osLockedFile{file}, nil
}

func (f osFolder) open(name string, flag int) (osFile, error) {
	file, err := f.root.OpenFile(name, flag|largeFile, 0o666)
	return osFile{file, f.root, name}, f.plain(err)
}

// checkRegular refuses links, devices and pipes, before they are opened.
func (f osFolder) checkRegular(name string) error {
	info, err := f.root.Lstat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%q is not a regular file", name)
	}
	return f.plain(err)
}

// plain leaves out of an error the system call that an os.Root names, such as "statat".
func (f osFolder) plain(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		name := e.Path
		if name == "." {
			name = f.root.Name()
		}
		return fmt.Errorf("%q: %w", name, e.Err)
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return fmt.Errorf("%q: %w", e.New, e.Err)
	}
	return err
}

func (f osFolder) Link(path, name string) error {
	real, err := filepath.EvalSymlinks(path) // or the link itself would get the name
	if err != nil {
		return err
	}
	err = os.Link(real, filepath.Join(f.root.Name(), name))
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	mine, statErr := os.Stat(real)
	there, lstatErr := f.root.Lstat(name)
	if statErr == nil && lstatErr == nil && os.SameFile(mine, there) {
		return nil
	}
	return err
}

func (f osFolder) Rename(from, to string) error { return f.plain(f.root.Rename(from, to)) }
func (f osFolder) Remove(name string) error     { return f.plain(f.root.Remove(name)) }
func (f osFolder) Close() error                 { return f.root.Close() }
func (f osFolder) Sync() error                  { return syncFolder(f.root) }
func (f osFolder) Room() (Room, error)          { return roomOf(f.root.Name()) }

func (f osFolder) Shares(path string) bool {
	from, err := os.Open(path)
	if err != nil {
		return false
	}
	defer from.Close()
	return shares(f.root.Name(), from)
}

func (f osFolder) Here() error {
	there, err := os.Stat(f.root.Name())
	if err != nil {
		return err
	}
	mine, err := f.root.Stat(".")
	err = f.plain(err)
	if err == nil && !os.SameFile(there, mine) {
		err = fmt.Errorf("%q is another folder than it was", f.root.Name())
	}
	return err
}

type osFile struct {
	*os.File
	root *os.Root
	name string
}

func (f osFile) Clone(path string) error {
	from, err := os.Open(path)
	if err != nil {
		return err
	}
	defer from.Close()
	return clone(f.File, from)
}

func (f osFile) Reserve(size int64) error { return reserve(f.File, size) }
func (f osFile) Drain(offset, size, ahead int64) error {
	return drain(f.File, offset, size, ahead)
}

func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (f osFile) Named() error {
	there, err := f.root.Lstat(f.name)
	if err != nil {
		return osFolder{f.root}.plain(err)
	}
	mine, err := f.Stat()
	if err == nil && !os.SameFile(there, mine) {
		err = fmt.Errorf("%q is another file than it was", f.name)
	}
	return err
}

type osLockedFile struct{ osFile }
