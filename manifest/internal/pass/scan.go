package pass

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
)

// A Span is a range of a file that some writer wants to see.
type Span struct {
	Offset, Size int64
	Begin        func() io.Writer // called when the range begins
}

// Scan reads size bytes of r front to back, once, through buf. The whole goes to every
// byte's listener, each span, which must not overlap another, to its own, and what is in no
// span to between, unless that is nil.
func Scan(ctx context.Context, r io.ReaderAt, size int64, buf []byte, whole io.Writer, spans []Span, between func(part []byte, offset int64)) error {
	cursor := NewCursor(spans)
	cursor.between = between
	err := ReadRange(ctx, r, 0, size, buf, func(part []byte, offset int64) error {
		if _, err := whole.Write(part); err != nil {
			return err
		}
		return cursor.Write(part, offset)
	})
	if err != nil {
		return err
	}
	return cursor.End(size)
}

// ReadRange reads the bytes of r from offset from to offset to, once, and hands each
// part to see with its offset.
func ReadRange(ctx context.Context, r io.ReaderAt, from, to int64, buf []byte, see func(part []byte, offset int64) error) error {
	ahead := NewAhead(r, from, to)
	for offset := from; offset < to; {
		if err := ctx.Err(); err != nil {
			return err
		}
		ahead.Announce(offset)
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

// A Cursor hands the bytes of a file to the spans, in order.
type Cursor struct {
	now     io.Writer // of rest[0], once it has begun
	rest    []Span
	seen    int64                           // bytes before it were handed on
	between func(part []byte, offset int64) // takes what is in no span, in order; nil for nobody
}

// NewCursor returns a Cursor before the first byte. Spans come in any order.
func NewCursor(spans []Span) *Cursor {
	return &Cursor{rest: slices.SortedFunc(slices.Values(spans), func(a, b Span) int { return cmp.Compare(a.Offset, b.Offset) })}
}

// Write hands on part, which stands at offset of the file.
func (c *Cursor) Write(part []byte, offset int64) error {
	end := offset + int64(len(part))
	for len(c.rest) > 0 && c.rest[0].Offset < end {
		s := c.rest[0]
		c.pass(part, offset, s.Offset)
		if c.now == nil {
			c.now = s.Begin()
		}
		from, to := max(s.Offset, offset), min(s.Offset+s.Size, end)
		if from < to && c.now != nil {
			if _, err := c.now.Write(part[from-offset : to-offset]); err != nil {
				return err
			}
		}
		c.seen = max(c.seen, to)
		if s.Offset+s.Size > end {
			return nil
		}
		c.now, c.rest = nil, c.rest[1:]
	}
	c.pass(part, offset, end)
	return nil
}

// pass hands on what of a part is in no span and lies before to.
func (c *Cursor) pass(part []byte, offset, to int64) {
	from := max(c.seen, offset)
	if from < to && c.between != nil {
		c.between(part[from-offset:to-offset], from)
	}
	c.seen = max(c.seen, to)
}

// End begins the empty spans at the end of a file of size bytes; any other span that is
// left lies outside.
func (c *Cursor) End(size int64) error {
	for _, s := range c.rest {
		if s.Size > 0 {
			return fmt.Errorf("reading at byte %d of %d: %w", s.Offset, size, io.ErrUnexpectedEOF)
		}
		s.Begin()
	}
	return nil
}
