package gguf

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"
)

// maxOpenFiles bounds the descriptors that one model holds, so that a model of a
// thousand shards opens under small limits.
const maxOpenFiles = 16

// A sourceFile is a regular file opened for reading when bytes are wanted. Its size,
// time and identity are those of the first look; a file that was replaced or written
// to since then is an error, not other bytes.
type sourceFile struct {
	path string
	info fs.FileInfo
	pool *filePool

	// guarded by pool.mu
	file *os.File
	uses int
	used uint64 // pool tick of the last use
}

// A filePool keeps the files of one model open, at most maxOpenFiles of them.
type filePool struct {
	mu     sync.Mutex
	idle   sync.Cond // some file may have become idle
	open   map[*sourceFile]struct{}
	tick   uint64
	closed bool
}

func newFilePool() *filePool {
	p := &filePool{open: map[*sourceFile]struct{}{}}
	p.idle.L = &p.mu
	return p
}

// source looks at a file without opening it. Links are followed; what is not a
// regular file is refused, since reading a device or a pipe may never end.
func (p *filePool) source(path string) (*sourceFile, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", printable(path), bareError(err))
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: is %s, want a regular file", printable(path), kindOf(info.Mode()))
	}
	return &sourceFile{path: path, info: info, pool: p}, nil
}

func kindOf(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a folder"
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "a special file"
}

// ReadAt fills p as [io.ReaderAt] does; many goroutines may call it at once. Errors
// name the file and the place in it. Asking for bytes behind the end is an error other
// than io.EOF, so that nobody takes a truncated tensor for a short one.
func (s *sourceFile) ReadAt(p []byte, off int64) (int, error) {
	f, err := s.acquire()
	if err != nil {
		return 0, &readError{s.path, off, err}
	}
	defer s.release()
	n, err := f.ReadAt(p, off)
	if err == nil {
		return n, nil
	}
	end := off + int64(n)
	switch {
	case err != io.EOF:
		err = bareError(err)
	case end < s.info.Size():
		err = fmt.Errorf("the file ends here, it had %d bytes: it was cut while in use", s.info.Size())
	default:
		err = fmt.Errorf("the file ends at byte %d: %w", s.info.Size(), io.ErrUnexpectedEOF)
	}
	return n, &readError{s.path, end, err}
}

func (s *sourceFile) acquire() (*os.File, error) {
	p := s.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	for s.file == nil && len(p.open) >= maxOpenFiles && !p.closed {
		if !p.evict() {
			p.idle.Wait()
		}
	}
	if p.closed {
		return nil, fs.ErrClosed
	}
	if s.file == nil {
		f, err := s.openSame()
		if err != nil {
			return nil, err
		}
		s.file = f
		p.open[s] = struct{}{}
	}
	p.tick++
	s.used = p.tick
	s.uses++
	return s.file, nil
}

func (s *sourceFile) release() {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	s.uses--
	if s.uses == 0 {
		s.pool.idle.Broadcast()
	}
}

// evict closes the file that was idle longest; it reports false when all are in use.
func (p *filePool) evict() bool {
	var oldest *sourceFile
	for s := range p.open {
		if s.uses == 0 && (oldest == nil || s.used < oldest.used) {
			oldest = s
		}
	}
	if oldest == nil {
		return false
	}
	oldest.file.Close()
	oldest.file = nil
	delete(p.open, oldest)
	return true
}

// openSame opens the file and refuses one that is not what was looked at.
func (s *sourceFile) openSame() (*os.File, error) {
	f, err := os.Open(s.path)
	if err != nil {
		return nil, bareError(err)
	}
	info, err := f.Stat()
	if err == nil {
		err = s.same(info)
	}
	if err != nil {
		f.Close()
		return nil, bareError(err)
	}
	return f, nil
}

// same compares a later look at the file with the first one.
func (s *sourceFile) same(info fs.FileInfo) error {
	switch {
	case !os.SameFile(s.info, info):
		return errors.New("it was replaced by another file while in use")
	case info.Size() != s.info.Size():
		return fmt.Errorf("it changed while in use: it has %d bytes, had %d", info.Size(), s.info.Size())
	case !info.ModTime().Equal(s.info.ModTime()):
		return fmt.Errorf("it was written to while in use: last at %s, before at %s", stamp(info), stamp(s.info))
	}
	return nil
}

func stamp(info fs.FileInfo) string { return info.ModTime().UTC().Format(time.RFC3339Nano) }

// Unchanged looks at the file again.
func (s *sourceFile) Unchanged() error {
	info, err := os.Stat(s.path)
	if err != nil {
		return err
	}
	if err := s.same(info); err != nil {
		return fmt.Errorf("%s: %w", printable(s.path), err)
	}
	return nil
}

// close closes every file; reads that follow are errors.
func (p *filePool) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.idle.Broadcast()
	var first error
	for s := range p.open {
		if err := s.file.Close(); err != nil && first == nil {
			first = err
		}
		s.file = nil
	}
	clear(p.open)
	return first
}
