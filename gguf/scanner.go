package gguf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// A FormatError says where a file stops being GGUF.
type FormatError struct {
	File   string // as the caller named it
	Offset int64  // byte position in the file
	Msg    string
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("%s: byte %d: %s", printable(e.File), e.Offset, e.Msg)
}

// scanBuffer is how much of a header is read at a time.
const scanBuffer = 128 << 10

// A scanner cuts header fields off a file, front to back. The first fault sticks:
// every later read returns zero values, so callers check err once per step.
type scanner struct {
	r     io.ReaderAt
	file  string
	size  int64
	order binary.ByteOrder
	buf   []byte // bytes of the file from base on
	base  int64
	pos   int // next byte in buf
	err   error
}

func newScanner(file string, r io.ReaderAt, size int64) *scanner {
	return &scanner{r: r, file: file, size: size, order: binary.LittleEndian, buf: make([]byte, 0, min(size, scanBuffer))}
}

// offset is the position of the next byte in the file.
func (s *scanner) offset() int64 { return s.base + int64(s.pos) }

// remaining counts the bytes of the file that have not been cut off yet.
func (s *scanner) remaining() int64 { return s.size - s.offset() }

func (s *scanner) fail(offset int64, format string, args ...any) {
	if s.err == nil {
		s.err = &FormatError{File: s.file, Offset: offset, Msg: fmt.Sprintf(format, args...)}
	}
}

// need makes n bytes available in the buffer; n is at most scanBuffer.
func (s *scanner) need(n int, what string) bool {
	if s.err != nil {
		return false
	}
	if len(s.buf)-s.pos >= n {
		return true
	}
	if s.remaining() < int64(n) {
		s.fail(s.offset(), "%s: file ends here, %d more bytes wanted", what, int64(n)-s.remaining())
		return false
	}
	return s.fill()
}

// fill reads on from the current position.
func (s *scanner) fill() bool {
	s.base, s.pos = s.offset(), 0
	s.buf = s.buf[:min(s.remaining(), int64(cap(s.buf)))]
	n, err := s.r.ReadAt(s.buf, s.base)
	if n == len(s.buf) {
		return true
	}
	if errors.Is(err, io.EOF) || err == nil {
		err = io.ErrUnexpectedEOF // the file shrank under us
	}
	s.buf = s.buf[:n]
	if s.err == nil {
		s.err = fmt.Errorf("%s: reading at byte %d: %w", printable(s.file), s.base+int64(n), err)
	}
	return false
}

func (s *scanner) u32(what string) uint32 {
	if !s.need(4, what) {
		return 0
	}
	v := s.order.Uint32(s.buf[s.pos:])
	s.pos += 4
	return v
}

func (s *scanner) u64(what string) uint64 {
	if !s.need(8, what) {
		return 0
	}
	v := s.order.Uint64(s.buf[s.pos:])
	s.pos += 8
	return v
}

// length reads a u64 count of things that take at least unit bytes each, and refuses
// one that the rest of the file cannot hold.
func (s *scanner) length(unit int64, what string) int64 {
	at := s.offset()
	n := s.u64(what)
	if s.err != nil {
		return 0
	}
	if n > uint64(s.remaining()/unit) {
		s.fail(at, "%s: %d declared, but only %d bytes remain", what, n, s.remaining())
		return 0
	}
	return int64(n)
}

// skip passes over n bytes without reading those beyond the buffer.
func (s *scanner) skip(n int64, what string) {
	if s.err != nil {
		return
	}
	if n > s.remaining() {
		s.fail(s.offset(), "%s: file ends here, %d more bytes wanted", what, n-s.remaining())
		return
	}
	if have := int64(len(s.buf) - s.pos); n > have {
		s.base, s.pos, s.buf = s.offset()+n, 0, s.buf[:0]
		return
	}
	s.pos += int(n)
}

// bytes returns a copy of the next n bytes. Callers have bounded n by the file.
func (s *scanner) bytes(n int64, what string) []byte {
	if s.err != nil {
		return nil
	}
	if n > s.remaining() {
		s.fail(s.offset(), "%s: file ends here, %d more bytes wanted", what, n-s.remaining())
		return nil
	}
	out := make([]byte, 0, n)
	for int64(len(out)) < n {
		if s.pos == len(s.buf) && !s.fill() {
			return nil
		}
		take := min(n-int64(len(out)), int64(len(s.buf)-s.pos))
		out = append(out, s.buf[s.pos:s.pos+int(take)]...)
		s.pos += int(take)
	}
	return out
}

// text reads a string of at most limit bytes.
func (s *scanner) text(limit int64, what string) string {
	at := s.offset()
	n := s.length(1, what)
	if n > limit {
		s.fail(at, "%s: %d bytes long, at most %d are supported", what, n, limit)
		return ""
	}
	return string(s.bytes(n, what))
}

// skipTexts passes over n strings. It runs once per token of a vocabulary, so it
// works inside the buffer where it can.
func (s *scanner) skipTexts(n int64, what string) {
	for range n {
		if len(s.buf)-s.pos < 8 && !s.need(8, what) {
			return
		}
		size := s.order.Uint64(s.buf[s.pos:])
		if size <= uint64(len(s.buf)-s.pos-8) {
			s.pos += 8 + int(size)
			continue
		}
		s.skip(s.length(1, what), what)
		if s.err != nil {
			return
		}
	}
}
