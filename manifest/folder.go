package manifest

import (
	"io"
	"os"
)

// Folder is what staging a release needs of a folder. Names are base names. Tests put
// faults into it.
type Folder interface {
	// Create makes a file that must not exist.
	Create(name string) (OutputFile, error)
	// Rename gives a file another name, replacing what had it.
	Rename(from, to string) error
	Remove(name string) error
	// Sync makes names durable, as OutputFile.Sync does for bytes.
	Sync() error
	Close() error
}

// OutputFile is a file being written front to back.
type OutputFile interface {
	io.Writer
	// Reserve asks for the space of a file of size bytes, so that a full disk shows
	// before the copying. A file system that cannot is no error.
	Reserve(size int64) error
	Sync() error
	Close() error
}

// osFolder is a folder of the operating system. An os.Root keeps every name inside.
type osFolder struct{ root *os.Root }

func openFolder(path string) (Folder, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	return osFolder{root}, nil
}

func (f osFolder) Create(name string) (OutputFile, error) {
	file, err := f.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	return osFile{file}, nil
}

func (f osFolder) Rename(from, to string) error { return f.root.Rename(from, to) }
func (f osFolder) Remove(name string) error     { return f.root.Remove(name) }
func (f osFolder) Close() error                 { return f.root.Close() }
func (f osFolder) Sync() error                  { return syncFolder(f.root) }

type osFile struct{ *os.File }

func (f osFile) Reserve(size int64) error { return reserve(f.File, size) }
