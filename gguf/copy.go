package gguf

import (
	"context"
	"fmt"
	"io"
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
	if len(buf) == 0 {
		buf = make([]byte, copyBuffer)
	}
	out, err := NewWriter(w, s)
	if err != nil {
		return err
	}
	ahead := &prefetching{views: s.Views}
	for i, v := range s.Views {
		if err := out.Next(); err != nil {
			return err
		}
		var sink io.Writer = out
		if listen != nil {
			if other := listen(i); other != nil {
				sink = io.MultiWriter(out, other)
			}
		}
		if err := v.copy(ctx, sink, buf, ahead); err != nil {
			return fmt.Errorf("tensor %s: %w", quoted(v.Name), err)
		}
	}
	return out.Close()
}

// copy reads the view's extents in order and writes them to w.
func (v View) copy(ctx context.Context, w io.Writer, buf []byte, ahead *prefetching) error {
	for _, e := range v.Extents {
		for done := int64(0); done < e.Length; {
			if err := ctx.Err(); err != nil {
				return err
			}
			part := buf[:min(int64(len(buf)), e.Length-done)]
			ahead.copied(int64(len(part)))
			if err := readFull(e.Source, "source", part, e.Offset+done); err != nil {
				return err
			}
			if _, err := w.Write(part); err != nil {
				return err
			}
			done += int64(len(part))
		}
	}
	return nil
}
