package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"sync"

	"github.com/cenkalti/backoff/v5"
)

// An Identity is what is known of a file on a server. Nothing of it was computed here: it
// is what the server states.
type Identity struct {
	Name string // base name
	Size int64
	// Repo, Commit and Path say where the hub has the file; "" for other servers.
	Repo, Commit, Path string
	// SHA256 is that of the contents, in hex, where the hub lists it; "" otherwise.
	SHA256 string
	// ETag and Modified are the headers of a server that is not the hub, "" where it
	// sends none. Of a small file on the hub ETag is git's name of the contents.
	ETag, Modified string
}

// A File is a file on a server. Many goroutines may read it at once.
type File struct {
	client *Client
	name   string // as it is shown
	origin *url.URL
	hub    *Folder // nil for another server

	mu      sync.Mutex
	id      Identity // Size is -1 until it is known
	at      *location
	pieces  []*piece // announced and not read to their end, in the order of announcing
	changed error    // sticks
	front   []byte   // the first bytes, where they came with the size

	locating sync.Mutex // held while the place is being asked for
}

// A location is the address that gives a file's bytes: the file's own, or the one that a
// redirect led to, which is good for some time.
type location struct {
	url     *url.URL
	direct  bool   // no redirect led there
	renewed bool   // the one before it was refused
	served  bool   // it has given bytes; guarded by File.mu
	state   string // ETag or Last-Modified of its answers; guarded by File.mu
}

// A ReadError says where bytes could not be read.
type ReadError struct {
	Name   string // of the file, as it is shown
	Offset int64
	Err    error
}

func (e *ReadError) Error() string {
	return fmt.Sprintf("%s: reading at byte %d: %v", e.Name, e.Offset, e.Err)
}

func (e *ReadError) Unwrap() error { return e.Err }

// Place returns the name of the file and the offset.
func (e *ReadError) Place() (name string, offset int64) { return e.Name, e.Offset }

// Name returns the address of the file as it is shown.
func (f *File) Name() string { return f.name }

// Size returns the bytes of the whole file.
func (f *File) Size() int64 { return f.Identity().Size }

// Identity returns what the server states of the file.
func (f *File) Identity() Identity {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.id
}

// Unchanged returns the error of the first answer that was about other bytes than those
// that were found first. Each answer is compared as it comes, so that nothing is asked.
func (f *File) Unchanged() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changed
}

// ReadAt reads bytes of the file, as [io.ReaderAt]. Bytes that were announced come from
// the announced request, others from one of their own.
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, &ReadError{f.name, off, errors.New("negative offset")}
	}
	size, done := f.Size(), 0
	want := p[:max(0, min(int64(len(p)), size-off))]
	for done < len(want) {
		n, err := f.readPart(want[done:], off+int64(done))
		done += n
		if err != nil {
			return done, &ReadError{f.name, off + int64(done), err}
		}
	}
	if done < len(p) {
		return done, io.EOF
	}
	return done, nil
}

// readPart reads from the one place that has the byte at off: the front, a piece, or the
// server.
func (f *File) readPart(p []byte, off int64) (int, error) {
	if off < int64(len(f.front)) {
		return copy(p, f.front[off:]), nil
	}
	piece, next := f.piece(off)
	if piece != nil {
		return piece.read(p, off)
	}
	p = p[:min(int64(len(p)), next-off)]
	into := &slice{p, 0}
	err := f.fetchKept(f.client.ctx, off, off+int64(len(p)), into)
	return into.n, err
}

// Lend hands use bytes of an announced request that have come, without copying them; see
// [gguf.Lender]. It waits for a chunk of them.
func (f *File) Lend(off, n int64, use func(p []byte) error) (int64, error) {
	if off < int64(len(f.front)) {
		return 0, nil
	}
	piece, _ := f.piece(off)
	if piece == nil || n <= 0 {
		return 0, nil
	}
	return piece.lend(off, n, use)
}

// FetchAt reads bytes of the file from the server anew, whatever was announced and has come:
// for bytes that turned out to be wrong.
func (f *File) FetchAt(p []byte, off int64) (int, error) {
	into := &slice{p, 0}
	if err := f.fetch(f.client.ctx, off, off+int64(len(p)), into); err != nil {
		return into.n, &ReadError{f.name, off + int64(into.n), err}
	}
	return into.n, nil
}

// A slice is a sink of so many bytes.
type slice struct {
	p []byte
	n int
}

func (s *slice) room() []byte { return s.p[s.n:] }
func (s *slice) took(n int)   { s.n += n }

// fetch hands the bytes from off to end to w, in order, with as many requests as it takes.
func (f *File) fetch(ctx context.Context, off, end int64, w sink) error {
	for off < end {
		err := f.client.retry(ctx, func() error {
			n, err := f.ask(ctx, off, end, w)
			if size := f.Size(); size >= 0 {
				end = min(end, size)
			}
			off += n
			if err == nil && off < end {
				err = fmt.Errorf("the server sends %d bytes of a range of %d", n, end-off+n)
			}
			if _, final := errors.AsType[*backoff.PermanentError](err); err != nil && !final && (n >= progress || n > 0 && n >= end-off) {
				return nil // go on with what is missing
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
