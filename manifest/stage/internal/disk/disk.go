// Package disk is what staging a release needs of a file system: folders with locks,
// durable names, reserved space and room that can be asked for. An interface stands
// before it, so that tests can cut the power, fill the disk and break its parts.
package disk

import (
	"io"
	"io/fs"

	"ggufreap/manifest/internal/filelock"
)

// A Disk is where folders are. Tests put faults into it.
type Disk interface {
	// Open opens a folder; its error is fs.ErrNotExist when there is nothing.
	Open(path string) (Folder, error)
	// Make makes a folder, and those above it, and opens it.
	Make(path string) (Folder, error)
	// Remove removes an empty folder.
	Remove(path string) error
}

// A Folder is what staging a release needs of a folder. Names are base names.
type Folder interface {
	// List returns what is there, sorted by name.
	List() ([]fs.DirEntry, error)
	Open(name string) (InputFile, error)
	// Create makes a file that must not exist.
	Create(name string) (OutputFile, error)
	// Continue opens a file to write on from a byte on. It stays as long as it is.
	Continue(name string, from int64) (OutputFile, error)
	// Lock opens a file, which it makes if need be, and holds it against every other
	// process. Its error is ErrLocked when another has it.
	Lock(name string) (LockedFile, error)
	// Link gives a file of any folder of the same disk a name here, links to it followed. Its
	// error is fs.ErrExist when another file has the name.
	Link(path, name string) error
	// Rename gives a file another name, replacing what had it.
	Rename(from, to string) error
	Remove(name string) error
	// Sync makes names durable, as OutputFile.Sync does for bytes.
	Sync() error
	Room() (Room, error)
	// Shares reports whether a file here can be one with the bytes of that one, whose blocks
	// it shares, see OutputFile.Clone. Nothing is left of the trial.
	Shares(path string) bool
	// Here returns an error when its path no longer leads to it.
	Here() error
	Close() error
}

// An InputFile is a file being read.
type InputFile interface {
	io.ReaderAt
	io.Closer
	Size() (int64, error)
}

// An OutputFile is a file being written front to back.
type OutputFile interface {
	io.Writer
	// Clone makes the file one with the bytes of another, whose blocks it shares. Most file
	// systems cannot.
	Clone(path string) error
	// Reserve asks for the space of a file of size bytes, so that a full disk shows
	// before the copying. A file system that cannot is no error.
	Reserve(size int64) error
	// Drain starts to write size bytes from offset on to disk, and waits for size bytes
	// that end ahead bytes before them. A file system that cannot is no error.
	Drain(offset, size, ahead int64) error
	Sync() error
	// Named returns an error when its name no longer leads to it.
	Named() error
	Close() error
}

// A LockedFile is a file that no other process may lock. Close gives up the lock.
type LockedFile interface {
	InputFile
	io.WriterAt
	Truncate(size int64) error
	Sync() error
	// Named returns an error when its name no longer leads to it.
	Named() error
	// Discard removes the file and gives up the lock.
	Discard() error
}

// ErrLocked says that another process holds a file.
var ErrLocked = filelock.ErrLocked

// A Room is what a folder can still take.
type Room struct {
	Free  int64 // bytes that this user may write; -1 when not known
	Block int64 // bytes in which the file system gives out space; at least 1
	File  int64 // greatest size of a file that this process may write
}
