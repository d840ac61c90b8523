package manifest

import (
	"cmp"
	"os"
)

// A ScratchFile is a file that is gone when it is closed, or the program ends.
type ScratchFile struct {
	*os.File
	name string // "" where it has none any more
	err  error  // the first of writing
}

// NewScratchFile makes one in a folder, without a name there. Where an open file keeps its
// name, it is among the system's temporary files.
func NewScratchFile(folder string) (*ScratchFile, error) {
	const pattern = ".ggufreap-*"
	file, err := os.CreateTemp(folder, pattern)
	if err != nil {
		return nil, err
	}
	if os.Remove(file.Name()) == nil {
		return &ScratchFile{File: file}, nil
	}
	if err := cmp.Or(file.Close(), os.Remove(file.Name())); err != nil {
		return nil, err
	}
	if file, err = os.CreateTemp("", pattern); err != nil {
		return nil, err
	}
	return &ScratchFile{File: file, name: file.Name()}, nil
}

// WriteAt writes, and remembers that it could not.
func (f *ScratchFile) WriteAt(p []byte, off int64) (int, error) {
	n, err := f.File.WriteAt(p, off)
	if f.err == nil {
		f.err = err
	}
	return n, err
}

// Close removes the file.
func (f *ScratchFile) Close() error {
	err := f.File.Close()
	if f.name != "" {
		err = cmp.Or(err, os.Remove(f.name))
	}
	return err
}
