package manifest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
)

// A span is a range of a file that some writer wants to see.
type span struct {
	offset, size int64
	begin        func() io.Writer // called when the range begins
}

// scan reads size bytes of r front to back, once, through buf. The whole goes to every
// byte's listener, and each span, which must not overlap another, to its own.
func scan(ctx context.Context, r io.ReaderAt, size int64, buf []byte, whole io.Writer, spans []span) error {
	cursor := newSpanCursor(spans)
	err := readRange(ctx, r, 0, size, buf, func(part []byte, offset int64) error {
		if _, err := whole.Write(part); err != nil {
			return err
		}
		return cursor.write(part, offset)
	})
	if err != nil {
		return err
	}
	return cursor.end(size)
}

// readRange reads the bytes of r from offset from to offset to, once, and hands each
// part to see with its offset.
func readRange(ctx context.Context, r io.ReaderAt, from, to int64, buf []byte, see func(part []byte, offset int64) error) error {
	for offset := from; offset < to; {
		if err := ctx.Err(); err != nil {
			return err
		}
		part := buf[:min(int64(len(buf)), to-offset)]
		n, err := r.ReadAt(part, offset)
		if n < len(part) {
			if err == nil || errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return fmt.Errorf("reading at byte %d of %d: %w", offset+int64(n), to, err)
		}
		if err := see(part, offset); err != nil {
			return err
		}
		offset += int64(len(part))
	}
	return nil
}

// spanCursor hands the bytes of a file to the spans, in order.
type spanCursor struct {
	now  io.Writer // of rest[0], once it has begun
	rest []span
}

func newSpanCursor(spans []span) *spanCursor {
	return &spanCursor{rest: slices.SortedFunc(slices.Values(spans), func(a, b span) int { return cmp.Compare(a.offset, b.offset) })}
}

// write hands on part, which stands at offset of the file.
func (c *spanCursor) write(part []byte, offset int64) error {
	end := offset + int64(len(part))
	for len(c.rest) > 0 && c.rest[0].offset < end {
		s := c.rest[0]
		if c.now == nil {
			c.now = s.begin()
		}
		from, to := max(s.offset, offset), min(s.offset+s.size, end)
		if from < to && c.now != nil {
			if _, err := c.now.Write(part[from-offset : to-offset]); err != nil {
				return err
			}
		}
		if s.offset+s.size > end {
			return nil
		}
		c.now, c.rest = nil, c.rest[1:]
	}
	return nil
}

// end begins the empty spans at the end of a file of size bytes; any other span that is
// left lies outside.
func (c *spanCursor) end(size int64) error {
	for _, s := range c.rest {
		if s.size > 0 {
			return fmt.Errorf("reading at byte %d of %d: %w", s.offset, size, io.ErrUnexpectedEOF)
		}
		s.begin()
	}
	return nil
}

// sumFile returns the SHA-256 and the size of a regular file, links followed.
func sumFile(ctx context.Context, path string, w *worker, count io.Writer) (Sum, int64, error) {
	f, info, err := OpenRegular(path)
	if err != nil {
		return Sum{}, 0, err
	}
	defer f.Close()
	hasher := w.newSum()
	var listener io.Writer = hasher
	if count != nil {
		listener = io.MultiWriter(hasher, count)
	}
	if err := scan(ctx, f, info.Size(), w.buf, listener, nil); err != nil {
		return Sum{}, hasher.size, fmt.Errorf("%s: %w", path, err)
	}
	return hasher.Sum(), info.Size(), nil
}
