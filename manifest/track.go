package manifest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"ggufreap/gguf"
	"ggufreap/manifest/internal/pass"
)

// A track is how far one file has passed a [Recorder]. Its bytes are hashed by a
// [pairHasher] while readers go on.
type track struct {
	index   int
	ctx     context.Context
	file    *gguf.File
	source  io.ReaderAt // of the file's tensors; it announces nothing itself
	ahead   *pass.Ahead // does: the whole file is read, in order
	tensors []Tensor
	hashing *hashing

	mu     sync.Mutex
	cursor int64 // bytes before it have been read

	hasher  *pairHasher // and its side, from the first block on
	side    int
	room    chan struct{} // for one more block that waits to be hashed
	waiting sync.WaitGroup

	digests *trackDigests // once the first byte is hashed
	sum     Sum           // once the last is
	failure sync.Mutex
	err     error // the first of hashing; it sticks
}

// A readerAt is nothing but that.
type readerAt struct{ io.ReaderAt }

// A lane is a row of reads, mostly in the order of the files.
type lane struct {
	mu  sync.Mutex
	now *track // that it reads
}

// enter says that the lane reads t from now on. The rest of the file that it read before
// is read then: those who take digests are to have few files open.
func (l *lane) enter(t *track) error {
	l.mu.Lock()
	before := l.now
	l.now = t
	l.mu.Unlock()
	if before == nil || before.index >= t.index {
		return nil
	}
	before.mu.Lock()
	defer before.mu.Unlock()
	return before.advance(before.ctx, before.file.Size, nil, 0)
}

// A laneReader is a file as a lane reads it.
type laneReader struct {
	*track
	lane *lane
}

// Origin returns the file that is read, whatever the lane.
func (r laneReader) Origin() io.ReaderAt { return r.track.source }

// ReadAt reads bytes of the file, as [io.ReaderAt], and takes note of those that have
// not passed yet. Those before them are read first.
func (r laneReader) ReadAt(p []byte, off int64) (int, error) {
	if err := r.lane.enter(r.track); err != nil {
		return 0, err
	}
	t := r.track
	t.mu.Lock()
	late := min(max(t.cursor-off, 0), int64(len(p))) // bytes that have passed
	err := t.advance(t.ctx, off+int64(len(p)), p, off)
	t.mu.Unlock()
	if err != nil {
		return 0, err
	}
	if late > 0 {
		if n, err := t.source.ReadAt(p[:late], off); int64(n) < late {
			return n, err
		}
	}
	return len(p), nil
}

// advance reads up to offset to, has it hashed, and copies what of it belongs into p, whose
// place in the file is off.
func (t *track) advance(ctx context.Context, to int64, p []byte, off int64) error {
	for t.cursor < to {
		if err := ctx.Err(); err != nil {
			return err
		}
		t.ahead.Announce(t.cursor)
		t.room <- struct{}{}
		b := t.hashing.blocks.Get().(*block)
		b.offset = t.cursor
		b.data = b.data[:min(to-t.cursor, pass.BufferSize)]
		n, err := t.source.ReadAt(b.data, b.offset)
		if n < len(b.data) {
			<-t.room
			if err == nil || errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return fmt.Errorf("%s: reading at byte %d of %d: %w", t.file.Name, b.offset+int64(n), to, err)
		}
		t.cursor += int64(n)
		if from := max(b.offset-off, 0); p != nil && off < t.cursor {
			copy(p[from:], b.data[max(off-b.offset, 0):])
		}
		if err := t.pass(b); err != nil {
			return err
		}
	}
	return nil
}

// pass has a block hashed, and returns the first error of hashing so far.
func (t *track) pass(b *block) error {
	if t.hasher == nil {
		t.hasher, t.side = t.hashing.next()
	}
	b.track = t
	t.waiting.Add(1)
	t.hasher.add(t.side, b)
	return t.failed()
}

func (t *track) failed() error {
	t.failure.Lock()
	defer t.failure.Unlock()
	return t.err
}

// take takes the digests of a block but for the SHA-256, and is done with it. Digests have
// large buffers, so they are not kept from the file's last byte on.
func (t *track) take(b *block) {
	err := t.failed()
	if err == nil {
		t.hashing.count.Write(b.data)
		err = t.digests.spans.Write(b.data, b.offset)
	}
	if end := b.offset + int64(len(b.data)); err == nil && end == t.file.Size {
		t.sum, err = t.digests.end(end)
		t.digests = nil
	}
	t.failure.Lock()
	t.err = err
	t.failure.Unlock()
	t.hashing.blocks.Put(b)
	<-t.room
	t.waiting.Done()
}

// finish reads the rest of the file and returns its sum.
func (t *track) finish(ctx context.Context) (Sum, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.advance(ctx, t.file.Size, nil, 0)
	if t.hasher != nil {
		t.hasher.rush()
	}
	t.waiting.Wait()
	if err == nil && t.failed() != nil {
		err = fmt.Errorf("%s: %w", t.file.Name, t.failed())
	}
	return t.sum, err
}
