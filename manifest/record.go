package manifest

import (
	"context"
	"fmt"
	"io"
	"sync"

	"ggufreap/gguf"
	"ggufreap/manifest/internal/pass"
)

// A Recorder pins a model while a release is written from it, so that each byte of the
// source is read once for both. It stands between the source's files and whoever reads
// them, and takes the digests of what passes by in the order of each file. What a reader
// leaves out, the Recorder reads itself.
//
// A SHA-256 takes its bytes in order. So this is one pass only as long as readers ask in
// the order of each file, as one worker does that writes tensors in the source's order
// with experts in ascending order. Bytes that are asked for again, or late, are read
// again; their digests are those of the first time.
type Recorder struct {
	model  *gguf.Model
	pin    *Pin
	tracks []*track // one for each file
	bySrc  map[io.ReaderAt]*track
	count  *pass.Meter
	relay  *relay
	o      BuildOptions
}

// NewRecorder returns a Recorder of a sound model. Reading stops when ctx is done.
func NewRecorder(ctx context.Context, m *gguf.Model, o BuildOptions) (*Recorder, error) {
	if err := m.Err(); err != nil {
		return nil, err
	}
	pin, err := PinHeaders(m, o)
	if err != nil {
		return nil, err
	}
	r := &Recorder{model: m, pin: pin, bySrc: map[io.ReaderAt]*track{}, count: pass.NewMeter(m.FileBytes(), o.Progress), relay: newRelay(), o: o}
	rest := pin.Tensors
	for _, f := range m.Files {
		var own []Tensor
		own, rest = rest[:len(f.Tensors)], rest[len(f.Tensors):]
		t := newTrack(ctx, f, own, r.count, r.relay)
		r.tracks = append(r.tracks, t)
		for _, tensor := range f.Tensors {
			for _, e := range tensor.View().Extents {
				t.source = readerAt{e.Source}
				r.bySrc[e.Source] = t
			}
		}
	}
	return r, nil
}

// Views returns the same views, read through the Recorder.
func (r *Recorder) Views(views []gguf.View) []gguf.View {
	recorded := make([]gguf.View, len(views))
	for i, v := range views {
		recorded[i] = v
		recorded[i].Extents = make([]gguf.Extent, len(v.Extents))
		for n, e := range v.Extents {
			if t := r.bySrc[e.Source]; t != nil {
				e.Source = t
			}
			recorded[i].Extents[n] = e
		}
	}
	return recorded
}

// Finish reads what nobody asked for and returns the pin. It is called once, when all
// readers have ended.
func (r *Recorder) Finish(ctx context.Context) (*Pin, error) {
	if err := r.relay.drain(); err != nil {
		return nil, err
	}
	err := pass.ForEach(ctx, len(r.tracks), r.o.Workers, func(ctx context.Context, i int, w *pass.Worker) error {
		var err error
		r.pin.Files[i].SHA256, err = r.tracks[i].finish(ctx, w.Buf)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := r.model.Unchanged(); err != nil {
		return nil, err
	}
	return r.pin, r.pin.seal()
}

// A track is how far one file has passed by.
type track struct {
	ctx    context.Context
	file   *gguf.File
	source io.ReaderAt // of the file's tensors; it announces nothing itself
	ahead  *pass.Ahead // does: the whole file is read, in order

	mu       sync.Mutex
	cursor   int64 // bytes before it have passed
	relay    *relay
	ended    bool // all readers have: the rest is hashed as it is read
	whole    *pass.Hasher
	count    *pass.Meter
	listener *tensorListener
	spans    *pass.Cursor
	err      error // the first of hashing; it sticks
}

func newTrack(ctx context.Context, f *gguf.File, tensors []Tensor, count *pass.Meter, relay *relay) *track {
	t := &track{ctx: ctx, file: f, source: readerAt{f}, ahead: pass.NewAhead(f, 0, f.Size), relay: relay, whole: pass.NewHasher(), count: count, listener: newTensorListener(nil)}
	var spans []pass.Span
	for i, tensor := range f.Tensors {
		spans = append(spans, pass.Span{Offset: tensor.DataOffset(), Size: tensors[i].Size, Begin: func() io.Writer { return t.listener.begin(&tensors[i]) }})
	}
	t.spans = pass.NewCursor(spans)
	return t
}

// A readerAt is nothing but that.
type readerAt struct{ io.ReaderAt }

// ReadAt reads bytes of the file, as [io.ReaderAt], and takes note of those that have
// not passed yet. Those before them are read first.
func (t *track) ReadAt(p []byte, off int64) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ahead.Announce(t.cursor)
	if off > t.cursor {
		buf := t.relay.spare.Get().(*[pass.BufferSize]byte)
		err := t.advance(t.ctx, off, buf[:])
		t.relay.spare.Put(buf)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", t.file.Name, err)
		}
	}
	n, err := t.source.ReadAt(p, off)
	if end := off + int64(n); end > t.cursor {
		if err := t.pass(p[t.cursor-off:n], t.cursor); err != nil {
			return 0, err
		}
	}
	return n, err
}

// advance reads up to offset to.
func (t *track) advance(ctx context.Context, to int64, buf []byte) error {
	return pass.ReadRange(ctx, t.source, t.cursor, to, buf, t.pass)
}

// pass has the part of the file hashed that begins at the cursor.
func (t *track) pass(part []byte, offset int64) error {
	t.cursor = offset + int64(len(part))
	t.ahead.Announce(t.cursor)
	if !t.ended {
		return t.relay.pass(t, part, offset)
	}
	return t.hash(part, offset)
}

// hash takes the next part of the file.
func (t *track) hash(part []byte, offset int64) error {
	if t.err == nil {
		t.whole.Write(part)
		t.count.Write(part)
		t.err = t.spans.Write(part, offset)
	}
	return t.err
}

// finish reads the rest of the file and returns its sum.
func (t *track) finish(ctx context.Context, buf []byte) (Sum, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	err := t.advance(ctx, t.file.Size, buf)
	if err == nil {
		err = t.spans.End(t.file.Size)
	}
	if err == nil {
		err = t.listener.end()
	}
	if err != nil {
		return Sum{}, fmt.Errorf("%s: %w", t.file.Name, err)
	}
	return t.whole.Sum(), nil
}
