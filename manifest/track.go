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

// A track is how far one file has passed a [Recorder].
type track struct {
	index   int
	ctx     context.Context
	file    *gguf.File
	source  io.ReaderAt // of the file's tensors; it announces nothing itself
	ahead   *pass.Ahead // does: the whole file is read, in order
	tensors []Tensor
	count   *pass.Meter // of all tracks
	lane    *lane       // that reads it, or one of them
	shared  bool        // by several goroutines

	recorder *Recorder

	mu      sync.Mutex
	cursor  int64         // bytes before it have been read
	digests *trackDigests // from the first byte to the last
	sum     Sum           // once the last has been read
}

// A trackDigests takes the digests of one file.
type trackDigests struct {
	whole    *pass.Hasher
	listener *tensorListener
	spans    *pass.Cursor
}

// A readerAt is nothing but that.
type readerAt struct{ io.ReaderAt }

// A lane is a row of reads, mostly in the order of the files.
type lane struct {
	alone bool // one goroutine reads
	mu    sync.Mutex
	now   *track // that it reads
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

// advance reads up to offset to, takes the digests, and copies what of it belongs into p,
// whose place in the file is off.
func (t *track) advance(ctx context.Context, to int64, p []byte, off int64) error {
	for t.cursor < to {
		if err := ctx.Err(); err != nil {
			return err
		}
		t.ahead.Announce(t.cursor)
		d, at := t.begin(), t.cursor
		part := d.whole.Next()
		part = part[:min(to-at, int64(len(part)))]
		n, err := t.source.ReadAt(part, at)
		if n < len(part) {
			if err == nil || errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return fmt.Errorf("%s: reading at byte %d of %d: %w", t.file.Name, at+int64(n), to, err)
		}
		if t.cursor += int64(n); p != nil && off < t.cursor {
			copy(p[max(at-off, 0):], part[max(off-at, 0):])
		}
		if err := t.take(part, at); err != nil {
			return fmt.Errorf("%s: %w", t.file.Name, err)
		}
	}
	return nil
}

// begin returns the digests of the track's file.
func (t *track) begin() *trackDigests {
	if t.digests != nil {
		return t.digests
	}
	listener := newTensorListener(nil)
	var spans []pass.Span
	for i, tensor := range t.file.Tensors {
		spans = append(spans, pass.Span{Offset: tensor.DataOffset(), Size: t.tensors[i].Size, Begin: func() io.Writer { return listener.begin(&t.tensors[i]) }})
	}
	t.digests = &trackDigests{t.recorder.sums.Hasher(), listener, pass.NewCursor(spans)}
	return t.digests
}

// take takes the digests of a part of the file, which stands where its hasher wanted it.
// Digests have large buffers, so they are not kept from the file's last byte on.
func (t *track) take(part []byte, offset int64) error {
	d := t.digests
	t.count.Write(part)
	if err := d.spans.Write(part, offset); err != nil {
		return err
	}
	d.whole.Filled(len(part))
	if d.whole.Size() < t.file.Size {
		return nil
	}
	t.digests, t.sum = nil, d.whole.Sum()
	if err := d.spans.End(t.file.Size); err != nil {
		return err
	}
	if err := d.listener.end(); err != nil {
		return err
	}
	if tell := t.recorder.Passed; tell != nil {
		f := t.recorder.pin.Files[t.index]
		f.SHA256 = t.sum
		tell(t.index, f, t.tensors)
	}
	return nil
}

// passed returns the offset of the first byte that has not passed.
func (t *track) passed() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cursor
}

// tensorAt returns which tensor has the byte at an offset of the file, or -1. It looks at
// number first before others.
func (t *track) tensorAt(offset int64, first int) int {
	holds := func(i int) bool {
		start := t.file.Tensors[i].DataOffset()
		return start <= offset && offset < start+t.tensors[i].Size
	}
	if holds(first) {
		return first
	}
	for i := range t.tensors {
		if holds(i) {
			return i
		}
	}
	return -1
}

// slabSum returns the digest of a slab, and false when that has not passed.
func (t *track) slabSum(p slabPlace) (sum Sum, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	tensor := &t.tensors[p.tensor]
	sums := tensor.Slabs.BLAKE3
	if t.digests != nil && t.digests.listener.now == tensor {
		sums = t.digests.listener.hasher.sums.SlabSums
	}
	if len(sums) < (p.slab+1)*len(sum) {
		return sum, false
	}
	return Sum(sums[p.slab*len(sum):]), true
}

// finish reads the rest of the file and returns its sum.
func (t *track) finish(ctx context.Context) (Sum, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.advance(ctx, t.file.Size, nil, 0)
	return t.sum, err
}
