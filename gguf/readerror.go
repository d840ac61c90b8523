package gguf

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// A readError says where bytes could not be read.
type readError struct {
	source string // file, or whatever the bytes are of
	offset int64  // in the source
	err    error
}

func (e *readError) Error() string {
	return fmt.Sprintf("%s: reading at byte %d: %v", printable(e.source), e.offset, e.err)
}

func (e *readError) Unwrap() error { return e.err }

// Place returns the source and the offset.
func (e *readError) Place() (string, int64) { return e.source, e.offset }

// A located error says itself where it happened.
type located interface {
	error
	Place() (source string, offset int64)
}

// readFull fills p or errs; a source that ends early is an error, never zero bytes.
// Sources that are files say themselves where they failed, for others the name given
// here is used.
func readFull(r io.ReaderAt, name string, p []byte, off int64) error {
	n, err := r.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	var located located
	switch {
	case errors.As(err, &located):
		return err
	case err == nil || err == io.EOF:
		err = io.ErrUnexpectedEOF
	}
	return &readError{name, off + int64(n), err}
}

// bareError strips an error of the operation and path that package os adds.
func bareError(err error) error {
	var e *fs.PathError
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}
