package gguf

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Errors of a [Writer] that is not used as its layout says.
var (
	ErrTooMuchData  = errors.New("gguf: more data than the tensor holds")
	ErrMissingData  = errors.New("gguf: tensor data is missing")
	ErrNoMoreTensor = errors.New("gguf: no tensor is left to write")
	ErrClosed       = errors.New("gguf: writer is closed")
)

// A Writer writes one file front to back: the header when it is made, then the data of
// each tensor in order, then the final padding. It refuses anything else, and its first
// error sticks. It never sees a path and does not close what it writes to.
type Writer struct {
	w      io.Writer
	shard  *ShardLayout
	next   int   // index of the tensor after the current one
	left   int64 // bytes of the current tensor still to come
	closed bool
	err    error
}

// NewWriter writes the header of a shard, padding included, and returns a Writer that
// expects the data of the first tensor after [Writer.Next].
func NewWriter(w io.Writer, shard *ShardLayout) (*Writer, error) {
	if err := writeHeader(w, shard); err != nil {
		return nil, err
	}
	return &Writer{w: w, shard: shard}, nil
}

// Next ends the current tensor, pads it to the alignment, and begins the following one. The error is
// [ErrMissingData] for a tensor that is not complete, [ErrNoMoreTensor] behind the last one.
func (w *Writer) Next() error {
	if err := w.finish(); err != nil {
		return err
	}
	if w.next == len(w.shard.Views) {
		w.err = ErrNoMoreTensor
		return w.err
	}
	w.left = w.shard.Views[w.next].Size()
	w.next++
	return nil
}

// Write adds data to the current tensor. More than it has left is [ErrTooMuchData], and nothing is
// written.
func (w *Writer) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	if w.closed {
		return 0, ErrClosed
	}
	if int64(len(p)) > w.left {
		w.err = fmt.Errorf("%s: %w: %d bytes given, %d left", w.current(), ErrTooMuchData, len(p), w.left)
		return 0, w.err
	}
	n, err := w.w.Write(p)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	w.left -= int64(n)
	w.err = err
	return n, err
}

// Close ends the file, and pads its last tensor too. The error is [ErrMissingData] when a tensor is
// not complete or missing; a second Close does nothing.
func (w *Writer) Close() error {
	if w.closed {
		return w.err
	}
	if err := w.finish(); err != nil {
		return err
	}
	w.closed = true
	if w.next < len(w.shard.Views) {
		w.err = fmt.Errorf("tensor %s: %w", quoted(w.shard.Views[w.next].Name), ErrMissingData)
	}
	return w.err
}

// finish pads the current tensor.
func (w *Writer) finish() error {
	switch {
	case w.err != nil:
		return w.err
	case w.closed:
		return ErrClosed
	case w.left > 0:
		w.err = fmt.Errorf("%s: %w: %d bytes", w.current(), ErrMissingData, w.left)
		return w.err
	case w.next == 0:
		return nil
	}
	size := w.shard.Views[w.next-1].Size()
	w.err = writeZeros(w.w, align(size, w.shard.Alignment)-size)
	return w.err
}

func (w *Writer) current() string {
	if w.next == 0 {
		return "before the first tensor"
	}
	return "tensor " + quoted(w.shard.Views[w.next-1].Name)
}

// WriteHeader writes everything before the data section, padding included.
func (s *ShardLayout) WriteHeader(w io.Writer) error { return writeHeader(w, s) }

// writeHeader writes everything before the data section.
func writeHeader(w io.Writer, s *ShardLayout) error {
	b := bufio.NewWriterSize(w, 64<<10)
	e := &encoder{w: b}
	e.bytes(magic)
	e.u32(s.Version)
	e.u64(uint64(len(s.Views)))
	e.u64(uint64(s.Metadata.Len()))
	for key, v := range s.Metadata.All() {
		e.text(key)
		e.u32(uint32(v.typ))
		e.value(key, v)
	}
	for i, v := range s.Views {
		e.info(v, s.Offsets[i])
	}
	if e.err == nil {
		e.err = writeZeros(b, s.DataOffset-e.n)
	}
	if e.err == nil {
		e.err = b.Flush()
	}
	return e.err
}

// An encoder writes header fields and counts their bytes; its first error sticks.
type encoder struct {
	w   *bufio.Writer
	n   int64
	err error
}

func (e *encoder) bytes(s string) {
	if e.err == nil {
		var n int
		n, e.err = e.w.WriteString(s)
		e.n += int64(n)
	}
}

func (e *encoder) u32(v uint32) {
	var b [4]byte
	binary.LittleEndian.PutUint32(b[:], v)
	e.bytes(string(b[:]))
}

func (e *encoder) u64(v uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], v)
	e.bytes(string(b[:]))
}

func (e *encoder) text(s string) {
	e.u64(uint64(len(s)))
	e.bytes(s)
}

func (e *encoder) value(key string, v Value) {
	if e.err != nil {
		return
	}
	n, err := io.Copy(e.w, v.Reader())
	e.n += n
	if err == nil && n != v.Size() {
		err = fmt.Errorf("value has %d bytes, want %d", n, v.Size())
	}
	if err != nil {
		e.err = fmt.Errorf("key %s: %w", quoted(key), err)
	}
}

func (e *encoder) info(v View, offset int64) {
	e.text(v.Name)
	e.u32(uint32(len(v.Shape)))
	for _, d := range v.Shape {
		e.u64(d)
	}
	e.u32(uint32(v.Type))
	e.u64(uint64(offset))
}

var zeros [4 << 10]byte

func writeZeros(w io.Writer, n int64) error {
	for n > 0 {
		part := zeros[:min(n, int64(len(zeros)))]
		k, err := w.Write(part)
		if err == nil && k < len(part) {
			err = io.ErrShortWrite
		}
		if err != nil {
			return err
		}
		n -= int64(k)
	}
	return nil
}

// SameAs reports whether a file holds the shard already, byte for byte but for the data of
// its tensors and what pads them: the same header, and every tensor at its place.
func (s *ShardLayout) SameAs(f *File) bool {
	if f.Size != s.Size || f.DataOffset != s.DataOffset || len(f.Tensors) != len(s.Views) {
		return false
	}
	for i, t := range f.Tensors {
		if t.Offset != s.Offsets[i] || t.Name != s.Views[i].Name {
			return false
		}
	}
	c := &comparing{r: f}
	return writeHeader(c, s) == nil
}

// A comparing is a writer of what some file holds already; anything else is an error.
type comparing struct {
	r  io.ReaderAt
	at int64
}

func (c *comparing) Write(p []byte) (int, error) {
	there := make([]byte, len(p))
	if err := readFull(c.r, "file", there, c.at); err != nil {
		return 0, err
	}
	c.at += int64(len(p))
	if !bytes.Equal(p, there) {
		return 0, errors.New("it differs")
	}
	return len(p), nil
}
