package repair

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/zeebo/blake3"

	"ggufreap/manifest"
)

const (
	// copyStep is how much of a range is read at a time.
	copyStep = 1 << 20
	// maxHeld bounds the memory for a range that is looked at before it is written; a larger
	// one waits in a file without a name.
	maxHeld = 32 << 20
	// maxTries is how often a source is asked for a range that is not what it should be.
	maxTries = 2
)

// mendRange replaces one range, by the bytes of the first source that has the right ones.
func (m *mending) mendRange(ctx context.Context, file *os.File, f *file, number, i int) error {
	r := m.Ranges[i]
	if r.Kind == End { // the file has its length
		return nil
	}
	if f.made && r.Offset+r.Length <= f.data {
		m.tookFrom(MadeAnew, r)
		return m.put(ctx, file, f.frame, r)
	}
	var reasons []error
	for _, s := range m.job.Sources {
		if s.files[number] == nil {
			continue
		}
		err := m.take(ctx, file, s, number, i)
		if ctx.Err() != nil {
			return err
		}
		if w := (*writeError)(nil); err == nil || errors.As(err, &w) {
			if err == nil {
				m.tookFrom(s.Name, r)
			}
			return err
		}
		reasons = append(reasons, fmt.Errorf("%s: %w", s.Name, err))
		if !m.failed[s] {
			m.failed[s] = true
			m.Notes = append(m.Notes, fmt.Sprintf("%s was passed over where it could not help: %v", s.Name, err))
		}
	}
	return errors.Join(reasons...)
}

// take takes a range from a source, and writes it once it is what it should be.
func (m *mending) take(ctx context.Context, file *os.File, s *Source, number, i int) error {
	r := m.Ranges[i]
	held, err := m.hold(r)
	if err != nil {
		return err
	}
	defer held.Close()
	for try := 1; ; try++ {
		m.announce(s, i)
		sum, err := m.fetch(ctx, held, s.files[number], r, try)
		if err != nil {
			return err
		}
		if r.BLAKE3 == nil || sum == *r.BLAKE3 {
			return m.put(ctx, file, held, Range{Length: r.Length, Offset: r.Offset})
		}
		if try == maxTries {
			return fmt.Errorf("%s: blake3 of the good copy's %d bytes at %d is %s, want %s: it is damaged too, or another one", r.what(), r.Length, r.Offset, sum, *r.BLAKE3)
		}
	}
}

// what names what a range is of.
func (r Range) what() string {
	switch {
	case r.Expert != nil:
		return fmt.Sprintf("tensor %q, expert %d", r.Tensor, *r.Expert)
	case r.Tensor != "":
		return fmt.Sprintf("tensor %q", r.Tensor)
	}
	return "header or padding"
}

// A heldRange keeps a range until it is known to be right. Offsets are those of the file.
type heldRange struct {
	offset int64
	memory []byte
	file   *manifest.ScratchFile // in place of memory
}

func (m *mending) hold(r Range) (*heldRange, error) {
	h := &heldRange{offset: r.Offset}
	if r.Length <= maxHeld {
		h.memory = make([]byte, r.Length)
		return h, nil
	}
	var err error
	h.file, err = manifest.NewScratchFile(m.job.Dir)
	return h, wrapWrite(err)
}

func (h *heldRange) ReadAt(p []byte, off int64) (int, error) {
	if h.file != nil {
		return h.file.ReadAt(p, off-h.offset)
	}
	return copy(p, h.memory[off-h.offset:]), nil
}

func (h *heldRange) WriteAt(p []byte, off int64) (int, error) {
	if h.file != nil {
		return h.file.WriteAt(p, off-h.offset)
	}
	return copy(h.memory[off-h.offset:], p), nil
}

func (h *heldRange) Close() error {
	if h.file != nil {
		return h.file.Close()
	}
	return nil
}

// A writeError is of the files that are repaired: no other source helps.
type writeError struct{ error }

func (e *writeError) Unwrap() error { return e.error }

func wrapWrite(err error) error {
	if err == nil {
		return nil
	}
	return &writeError{err}
}

// fetch reads a range from a source and returns its digest.
func (m *mending) fetch(ctx context.Context, to io.WriterAt, from io.ReaderAt, r Range, try int) (manifest.Sum, error) {
	hash := blake3.New()
	err := eachPart(ctx, from, r, func(part []byte, at int64) error {
		hash.Write(part)
		if try == 1 {
			m.count.Write(part)
		}
		_, err := to.WriteAt(part, at)
		return wrapWrite(err)
	})
	return manifest.Sum(hash.Sum(nil)), err
}

// put writes a range that is right.
func (m *mending) put(ctx context.Context, file *os.File, from io.ReaderAt, r Range) error {
	return wrapWrite(eachPart(ctx, from, r, func(part []byte, at int64) error {
		_, err := file.WriteAt(part, at)
		return err
	}))
}

// eachPart reads a range in parts.
func eachPart(ctx context.Context, from io.ReaderAt, r Range, use func(part []byte, at int64) error) error {
	buf := make([]byte, min(copyStep, max(r.Length, 1)))
	for at, end := r.Offset, r.Offset+r.Length; at < end; {
		if err := ctx.Err(); err != nil {
			return err
		}
		part := buf[:min(int64(len(buf)), end-at)]
		if n, err := from.ReadAt(part, at); n < len(part) {
			if err == nil {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
		if err := use(part, at); err != nil {
			return err
		}
		at += int64(len(part))
	}
	return nil
}

// announce tells a source that is far away which ranges come next: range i is copied now.
func (m *mending) announce(s *Source, i int) {
	for ; s.copied < i; s.copied++ {
		if s.copied < s.next {
			s.lead -= m.Ranges[s.copied].replaced()
		}
	}
	for s.next = max(s.next, i); s.next < len(m.Ranges); s.next++ {
		r := m.Ranges[s.next]
		_, number := m.job.file(r.File)
		if s.files[number] == nil {
			return
		}
		window, _, _ := s.files[number].FetchAhead()
		if window == 0 || s.next > i && s.lead+r.replaced() > window {
			return
		}
		if r.Kind == Bytes && !m.done[s.next] {
			s.files[number].Prefetch(r.Offset, r.Length)
		}
		s.lead += r.replaced()
	}
}
