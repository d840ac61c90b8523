package gguf

import (
	"context"
	"fmt"
	"io"
	"slices"
)

// copyBuffer is used when [ShardLayout.Write] is given no buffer.
const copyBuffer = 1 << 20

// A Listener is asked for each tensor, by its index in the shard, who else should see
// its data as it is written; nil for nobody. What it returns gets exactly the bytes of
// that tensor, in order, without padding.
type Listener func(view int) io.Writer

// Write copies the shard from its sources to w in one pass, front to back: each byte is
// read once, through buf, which bounds the memory used. It stops when ctx is done.
func (s *ShardLayout) Write(ctx context.Context, w io.Writer, buf []byte, listen Listener) error {
	return s.WriteFrom(ctx, w, 0, buf, listen)
}

// WriteFrom does so for a file whose first from bytes are there: w gets those behind them,
// and no source is read for those before. The listener is asked for each tensor that lacks
// data, which it sees from there on, and for empty ones at or behind from.
func (s *ShardLayout) WriteFrom(ctx context.Context, w io.Writer, from int64, buf []byte, listen Listener) error {
	if len(buf) == 0 {
		buf = make([]byte, copyBuffer)
	}
	there := &tail{w, from}
	out, err := NewWriter(there, s)
	if err != nil {
		return err
	}
	rest := s.rest(from)
	done := len(s.Views) - len(rest)
	ahead := &prefetching{views: rest}
	for i, v := range s.Views {
		if err := out.Next(); err != nil {
			return err
		}
		if i < done {
			there.pass(out, v.Size())
			continue
		}
		there.pass(out, v.Size()-rest[i-done].Size())
		var sink io.Writer = out
		if listen != nil {
			if other := listen(i); other != nil {
				sink = io.MultiWriter(out, other)
			}
		}
		if err := rest[i-done].copy(ctx, sink, buf, ahead); err != nil {
			return fmt.Errorf("tensor %s: %w", quoted(v.Name), err)
		}
	}
	return out.Close()
}

// rest returns the views whose data does not end before byte from of the file, the first
// of them without what does.
func (s *ShardLayout) rest(from int64) []View {
	for i, v := range s.Views {
		start := s.DataOffset + s.Offsets[i]
		if start >= from {
			return s.Views[i:]
		}
		if start+v.Size() > from {
			rest := slices.Clone(s.Views[i:])
			rest[0].Extents = extentsFrom(v.Extents, from-start)
			return rest
		}
	}
	return nil
}

// extentsFrom returns what is left of extents behind their first n bytes.
func extentsFrom(extents []Extent, n int64) []Extent {
	for i, e := range extents {
		if n < e.Length {
			left := slices.Clone(extents[i:])
			left[0].Offset, left[0].Length = e.Offset+n, e.Length-n
			return left
		}
		n -= e.Length
	}
	return nil
}

// A tail drops the bytes of a file that are there already.
type tail struct {
	w     io.Writer
	there int64 // bytes to drop
}

func (t *tail) Write(p []byte) (int, error) {
	dropped := int(min(int64(len(p)), t.there))
	t.there -= int64(dropped)
	if dropped == len(p) {
		return dropped, nil
	}
	n, err := t.w.Write(p[dropped:])
	return dropped + n, err
}

// pass counts n bytes of the current tensor of out as dropped.
func (t *tail) pass(out *Writer, n int64) {
	out.left -= n
	t.there -= n
}

// copy reads the view's extents in order and writes them to w.
func (v View) copy(ctx context.Context, w io.Writer, buf []byte, ahead *prefetching) error {
	ahead.copied(0)
	for _, e := range v.Extents {
		for done := int64(0); done < e.Length; {
			if err := ctx.Err(); err != nil {
				return err
			}
			n, err := e.copyPart(w, buf, done)
			if err != nil {
				return err
			}
			done += n
			ahead.copied(n)
		}
	}
	return nil
}

// copyPart writes the next bytes of an extent behind its first done, as many as the buffer
// holds or the source lends.
func (e Extent) copyPart(w io.Writer, buf []byte, done int64) (int64, error) {
	part := buf[:min(int64(len(buf)), e.Length-done)]
	if l, ok := e.Source.(Lender); ok {
		n, err := l.Lend(e.Offset+done, int64(len(part)), func(p []byte) error {
			_, err := w.Write(p)
			return err
		})
		if n > 0 || err != nil {
			return n, err
		}
	}
	if err := readFull(e.Source, "source", part, e.Offset+done); err != nil {
		return 0, err
	}
	_, err := w.Write(part)
	return int64(len(part)), err
}
