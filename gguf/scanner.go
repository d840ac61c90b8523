package gguf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"sync"

	"ggufreap/gguf/words"
)

// A FormatError says where a file stops being GGUF.
type FormatError struct {
	File   string // as the caller named it
	Offset int64  // byte position in the file; -1 when the file as a whole is meant
	Msg    string
	// Pointer is set when the file stands for one that Git LFS keeps elsewhere.
	Pointer bool
}

func (e *FormatError) Error() string {
	if e.Offset < 0 {
		return fmt.Sprintf("%s: %s", printable(e.File), e.Msg)
	}
	return fmt.Sprintf("%s: byte %d: %s", printable(e.File), e.Offset, e.Msg)
}

// A header is read in steps: a small first one, since most shards have a small header,
// then larger ones.
const (
	firstScan  = 16 << 10
	scanBuffer = 128 << 10
)

// A scanner cuts header fields off a file, front to back. The first fault sticks:
// every later read returns zero values, so callers check err once per step.
type scanner struct {
	r    io.ReaderAt
	file string
	size int64
	big  bool   // byte order
	buf  []byte // bytes of the file from base on
	base int64
	pos  int // next byte in buf
	err  error

	far   bool // a read costs more than the bytes it brings
	ahead outlook

	steps int64    // strings and arrays in arrays so far
	names []byte   // those of a chunk of tensors, used again for each
	dims  []uint64 // likewise
}

func newScanner(file string, r io.ReaderAt, size int64) *scanner {
	_, far := r.(Fetcher)
	return &scanner{r: r, file: file, size: size, far: far, ahead: newOutlook(file, size)}
}

// scanBuffers are those of scanners that have done their work: models have many shards.
var scanBuffers = sync.Pool{New: func() any { return new([scanBuffer]byte) }}

// offset is the position of the next byte in the file.
func (s *scanner) offset() int64 { return s.base + int64(s.pos) }

// remaining counts the bytes of the file that have not been cut off yet.
func (s *scanner) remaining() int64 { return s.size - s.offset() }

func (s *scanner) fail(offset int64, format string, args ...any) {
	if s.err == nil {
		s.stop(&FormatError{File: s.file, Offset: offset, Msg: fmt.Sprintf(format, args...)})
	}
}

// stop makes an error stick. With nothing buffered, every read comes to [scanner.need].
func (s *scanner) stop(err error) {
	s.err = err
	s.base, s.pos, s.buf = s.offset(), 0, s.buf[:0]
}

// refuse fails for the file as a whole.
func (s *scanner) refuse(format string, args ...any) { s.fail(-1, format, args...) }

// short fails for a file that ends before n more bytes.
func (s *scanner) short(n int64, what string) {
	more := n - s.remaining()
	s.fail(s.offset(), "%s: the file is truncated: it ends at byte %d, %s more %s needed", what, s.size, words.Group(more), words.Verb(more, "is", "are"))
}

// overrule fails for something before what the scanner may have failed for itself.
func (s *scanner) overrule(offset int64, format string, args ...any) {
	s.err = nil
	s.fail(offset, format, args...)
}

// within says what was being read when the scanner failed, if it did. The words are
// made only then: there can be a hundred thousand tensors.
func (s *scanner) within(format string, args ...any) {
	var e *FormatError
	if errors.As(s.err, &e) {
		e.Msg = fmt.Sprintf(format, args...) + ": " + e.Msg
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
		s.short(int64(n), what)
		return false
	}
	return s.fill(n)
}

// fill reads on from the current position, at least n bytes or up to the end.
func (s *scanner) fill(n int) bool {
	want := int64(scanBuffer)
	switch {
	case s.far:
		want = max(s.ahead.rest(s.offset()), int64(n))
	case s.offset() == 0:
		want = max(firstScan, int64(n))
	}
	s.base, s.pos = s.offset(), 0
	want = min(s.remaining(), want)
	if int64(cap(s.buf)) < want {
		s.buf = make([]byte, want)
	}
	s.buf = s.buf[:want]
	return s.read(s.buf, s.base)
}

// read reads bytes of the file from off on.
func (s *scanner) read(p []byte, off int64) bool {
	err := readFull(s.r, s.file, p, off)
	if err != nil && s.err == nil {
		s.stop(err)
	}
	return err == nil
}

// next cuts off n bytes, at most scanBuffer, that are valid until the next call; nil
// after a fault.
func (s *scanner) next(n int, what string) []byte {
	if len(s.buf)-s.pos < n && !s.need(n, what) {
		return nil
	}
	s.pos += n
	return s.buf[s.pos-n : s.pos]
}

// order is the byte order of the file.
func (s *scanner) order() binary.ByteOrder {
	if s.big {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

func (s *scanner) decode32(b []byte) uint32 {
	n := binary.LittleEndian.Uint32(b)
	if s.big {
		n = bits.ReverseBytes32(n)
	}
	return n
}

func (s *scanner) decode64(b []byte) uint64 {
	n := binary.LittleEndian.Uint64(b)
	if s.big {
		n = bits.ReverseBytes64(n)
	}
	return n
}

func (s *scanner) u32(what string) uint32 {
	if b := s.next(4, what); b != nil {
		return s.decode32(b)
	}
	return 0
}

func (s *scanner) u64(what string) uint64 {
	if b := s.next(8, what); b != nil {
		return s.decode64(b)
	}
	return 0
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
		s.fail(at, "%s: %d declared, but only %d bytes remain: the file is truncated or damaged", what, n, s.remaining())
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
		s.short(n, what)
		return
	}
	if s.far && n <= inlineValue && n > int64(len(s.buf)-s.pos) {
		n -= int64(len(s.buf) - s.pos) // it is wanted after all, see [scanner.value]
		s.pos = len(s.buf)
		s.need(int(n), what)
	}
	if have := int64(len(s.buf) - s.pos); n > have {
		s.base, s.pos, s.buf = s.offset()+n, 0, s.buf[:0]
		return
	}
	s.pos += int(n)
}

// zeros reads n bytes as long as they are zero, and reports whether all are.
func (s *scanner) zeros(n int64, what string) bool {
	for n > 0 {
		b := s.next(int(min(n, scanBuffer)), what)
		if b == nil || len(bytes.Trim(b, "\x00")) > 0 {
			return false
		}
		n -= int64(len(b))
	}
	return true
}

// text reads a string of at most limit bytes.
func (s *scanner) text(limit int64, what string) string {
	return string(s.appendText(nil, limit, what))
}

// appendText reads a string of at most limit bytes, which is below scanBuffer, and
// appends it to dst.
func (s *scanner) appendText(dst []byte, limit int64, what string) []byte {
	at := s.offset()
	n := s.length(1, what)
	if n > limit {
		s.fail(at, "%s: %d bytes long, at most %d are supported", what, n, limit)
		return dst
	}
	return append(dst, s.next(int(n), what)...)
}

// skipTexts passes over n strings. It runs once per token of a vocabulary, so it
// works inside the buffer where it can.
func (s *scanner) skipTexts(n int64, what string) {
	start := s.offset()
	for i := range n {
		if len(s.buf)-s.pos >= 8 {
			size := s.decode64(s.buf[s.pos:])
			if size <= uint64(len(s.buf)-s.pos-8) {
				s.pos += 8 + int(size)
				continue
			}
		}
		s.ahead.within(n, i, s.offset()-start)
		s.skip(s.length(1, what), what)
		if s.err != nil {
			s.within("string %d of %d", i+1, n)
			return
		}
	}
	s.ahead.end(s.offset()-start, n)
}
