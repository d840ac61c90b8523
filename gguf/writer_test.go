package gguf

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

// oneShard lays out two tensors, of 5 and of 0 bytes, and one of 3.
func oneShard(t *testing.T) *ShardLayout {
	t.Helper()
	md := NewMetadata()
	md.Set(KeyArchitecture, TextValue("x"))
	l, err := NewLayout(Contents{Version: 3, Metadata: md, Views: sized(5, 0, 3)}, Split{})
	if err != nil {
		t.Fatal(err)
	}
	return l.Shards[0]
}

// The file that the writer makes, against one that is built from the format's
// definition.
func TestWriterWritesTheFormat(t *testing.T) {
	var b bytes.Buffer
	w, err := NewWriter(&b, oneShard(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range []string{"hello", "", "you"} {
		if err := w.Next(); err != nil {
			t.Fatal(err)
		}
		for _, c := range []byte(data) {
			if n, err := w.Write([]byte{c}); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		}
	}
	if err := errors.Join(w.Close(), w.Close()); err != nil {
		t.Fatal(err)
	}
	want := little().head(3, 1).pair("general.architecture", Text, "x").
		info("t0", I8, 0, 5).info("t1", I8, 32, 0).info("t2", I8, 32, 3).pad().
		add([]byte("hello"), make([]byte, 27), []byte("you"), make([]byte, 29))
	if !bytes.Equal(b.Bytes(), want.b) {
		t.Errorf("got  %q\nwant %q", b.Bytes(), want.b)
	}
}

func TestWriterRefusesTheWrongOrder(t *testing.T) {
	type step func(w *Writer) error
	next := func(w *Writer) error { return w.Next() }
	done := func(w *Writer) error { return w.Close() }
	data := func(n int) step {
		return func(w *Writer) error { _, err := w.Write(make([]byte, n)); return err }
	}
	tests := []struct {
		name  string
		steps []step // the last one errs
		is    error
		says  string
	}{
		{"data before the first tensor", []step{data(1)}, ErrTooMuchData, "before the first tensor: gguf: more data than the tensor holds: 1 bytes given, 0 left"},
		{"too much data", []step{next, data(4), data(2)}, ErrTooMuchData, `tensor "t0": gguf: more data than the tensor holds: 2 bytes given, 1 left`},
		{"data for a tensor without", []step{next, data(5), next, data(1)}, ErrTooMuchData, `tensor "t1"`},
		{"next one too early", []step{next, data(4), next}, ErrMissingData, `tensor "t0": gguf: tensor data is missing: 1 bytes`},
		{"close too early", []step{next, data(4), done}, ErrMissingData, `tensor "t0"`},
		{"close before the last", []step{next, data(5), next, done}, ErrMissingData, `tensor "t2": gguf: tensor data is missing`},
		{"close before the first", []step{done}, ErrMissingData, `tensor "t0"`},
		{"one more tensor", []step{next, data(5), next, next, data(3), next}, ErrNoMoreTensor, "no tensor is left"},
		{"data after close", []step{next, data(5), next, next, data(3), done, data(1)}, ErrClosed, "closed"},
		{"tensor after close", []step{next, data(5), next, next, data(3), done, next}, ErrClosed, "closed"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w, err := NewWriter(io.Discard, oneShard(t))
			if err != nil {
				t.Fatal(err)
			}
			last := len(test.steps) - 1
			for _, step := range test.steps[:last] {
				if err := step(w); err != nil {
					t.Fatal(err)
				}
			}
			err = test.steps[last](w)
			if !errors.Is(err, test.is) {
				t.Errorf("error is %v, want %v", err, test.is)
			}
			wantError(t, err, test.says)
			if test.is != ErrClosed && !errors.Is(w.Close(), test.is) {
				t.Error("the error does not stick")
			}
		})
	}
}

var errFull = errors.New("no space left on device")

// A fullWriter takes so many bytes and then fails, or says nothing when mute is set.
type fullWriter struct {
	left int
	mute bool
}

func (w *fullWriter) Write(p []byte) (int, error) {
	n := min(len(p), w.left)
	w.left -= n
	if n < len(p) && !w.mute {
		return n, errFull
	}
	return n, nil
}

// A destination that fails after n bytes, for every n, fails the shard.
func TestDestinationThatFails(t *testing.T) {
	l, err := NewLayout(sample(), Split{})
	if err != nil {
		t.Fatal(err)
	}
	shard, buf := l.Shards[0], make([]byte, 100)
	for n := int64(0); n < shard.Size; n += 1 + n/200 {
		err := shard.Write(context.Background(), &fullWriter{left: int(n)}, buf, nil)
		if !errors.Is(err, errFull) {
			t.Fatalf("full after %d bytes: %v", n, err)
		}
		err = shard.Write(context.Background(), &fullWriter{left: int(n), mute: true}, buf, nil)
		if !errors.Is(err, io.ErrShortWrite) {
			t.Fatalf("short after %d bytes: %v", n, err)
		}
	}
	if err := shard.Write(context.Background(), &fullWriter{left: int(shard.Size)}, buf, nil); err != nil {
		t.Error(err)
	}
}

// A source that fails or ends early fails the shard, and names tensor and place.
func TestSourceThatFails(t *testing.T) {
	data := bytes.Repeat([]byte{7}, 100)
	write := func(r io.ReaderAt) error {
		views := sized(100)
		views[0].Extents = []Extent{{r, 0, 40}, {r, 40, 60}}
		l, err := NewLayout(Contents{Version: 3, Metadata: NewMetadata(), Views: views}, Split{})
		if err != nil {
			t.Fatal(err)
		}
		return l.Shards[0].Write(context.Background(), io.Discard, make([]byte, 16), nil)
	}
	for n := range len(data) {
		err := write(&failingReader{data, n, errors.New("input/output error")})
		wantError(t, err, fmt.Sprintf(`tensor "t0": source: reading at byte %d: input/output error`, n))
		err = write(bytes.NewReader(data[:n]))
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("ends after %d bytes: %v", n, err)
		}
	}
	if err := write(bytes.NewReader(data)); err != nil {
		t.Error(err)
	}
}

// Metadata that stays in its file and cannot be read again names its key.
func TestMetadataThatCannotBeReadAgain(t *testing.T) {
	b := little().head(0, 1).pair("long", Array, uint32(Uint8), uint64(inlineValue), make([]byte, inlineValue))
	r := &failingReader{b: b.b, at: len(b.b), err: errors.New("input/output error")}
	f, err := NewFile("m.gguf", r, int64(len(b.b)))
	if err != nil {
		t.Fatal(err)
	}
	r.at = len(b.b) - 1
	l, err := NewLayout(Contents{Version: 3, Metadata: f.Metadata}, Split{})
	if err != nil {
		t.Fatal(err)
	}
	err = l.Shards[0].Write(context.Background(), io.Discard, nil, nil)
	wantError(t, err, `key "long": input/output error`)
}

func TestWriteStopsWhenCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	l, err := NewLayout(sample(), Split{})
	if err != nil {
		t.Fatal(err)
	}
	listen := func(view int) io.Writer {
		if view == 3 {
			cancel()
		}
		return nil
	}
	if err := l.Shards[0].Write(ctx, io.Discard, nil, listen); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}

// Listeners get the tensor's bytes and nothing else, whatever the buffer's size.
func TestListeners(t *testing.T) {
	data := strings.NewReader("0123456789abcdef")
	views := []View{
		{Name: "a", Type: I8, Shape: []uint64{7}, Extents: []Extent{{data, 10, 3}, {data, 0, 4}}},
		{Name: "b", Type: I8, Shape: []uint64{0}},
		{Name: "c", Type: I8, Shape: []uint64{2}, Extents: []Extent{{data, 15, 1}, {data, 15, 1}}},
		{Name: "d", Type: I8, Shape: []uint64{1}, Extents: []Extent{{data, 1, 1}}},
	}
	l, err := NewLayout(Contents{Version: 3, Metadata: NewMetadata(), Views: views}, Split{})
	if err != nil {
		t.Fatal(err)
	}
	for size := range 20 {
		var heard [4]bytes.Buffer
		listen := func(view int) io.Writer {
			if view == 3 {
				return nil
			}
			return &heard[view]
		}
		if err := l.Shards[0].Write(context.Background(), io.Discard, make([]byte, size), listen); err != nil {
			t.Fatal(err)
		}
		got := []string{heard[0].String(), heard[1].String(), heard[2].String(), heard[3].String()}
		if want := []string{"abc0123", "", "ff", ""}; !slices.Equal(got, want) {
			t.Errorf("buffer of %d: heard %q, want %q", size, got, want)
		}
	}
}

// A noted source remembers the first byte that was read of it.
type notedSource struct {
	io.ReaderAt
	first int64
}

func (n *notedSource) ReadAt(p []byte, off int64) (int, error) {
	n.first = min(n.first, off)
	return n.ReaderAt.ReadAt(p, off)
}

// TestWriteFrom goes on behind each byte of a file: the rest is the same, listeners see what
// is still to come, and no source is read for what is there.
func TestWriteFrom(t *testing.T) {
	data := []byte("hello, you there")
	source := &notedSource{ReaderAt: bytes.NewReader(data)}
	shard := *oneShard(t)
	shard.Views = slices.Clone(shard.Views)
	shard.Views[0].Extents = []Extent{{source, 0, 2}, {source, 2, 0}, {source, 2, 3}}
	shard.Views[2].Extents = []Extent{{source, 7, 3}}
	var whole bytes.Buffer
	if err := shard.Write(t.Context(), &whole, nil, nil); err != nil {
		t.Fatal(err)
	}
	for from := range shard.Size + 1 {
		source.first = int64(len(data))
		var rest bytes.Buffer
		heard := make([]*bytes.Buffer, len(shard.Views))
		err := shard.WriteFrom(t.Context(), &rest, from, nil, func(i int) io.Writer {
			heard[i] = &bytes.Buffer{}
			return heard[i]
		})
		if err != nil || !bytes.Equal(rest.Bytes(), whole.Bytes()[from:]) {
			t.Errorf("from %d: %q, %v", from, rest.Bytes(), err)
		}
		first := int64(len(data))
		for i, text := range []string{"hello", "", "you"} {
			start := shard.DataOffset + shard.Offsets[i]
			there := min(max(from-start, 0), int64(len(text)))
			if asked := start >= from || there < int64(len(text)); asked != (heard[i] != nil) {
				t.Errorf("from %d: tensor %d asked for: %t", from, i, heard[i] != nil)
			} else if asked && heard[i].String() != text[there:] {
				t.Errorf("from %d: tensor %d gave %q", from, i, heard[i])
			} else if asked && text != "" {
				first = min(first, []int64{0, 0, 7}[i]+there)
			}
		}
		if source.first != first {
			t.Errorf("from %d: the source was read from byte %d, want %d", from, source.first, first)
		}
	}
}

func TestAppendMergesNeighbours(t *testing.T) {
	a, b := strings.NewReader("a"), strings.NewReader("b")
	var v View
	for _, e := range []Extent{{a, 0, 5}, {a, 5, 5}, {a, 10, 0}, {a, 11, 1}, {b, 12, 1}, {b, 13, 2}, {a, 15, 1}} {
		v.Append(e)
	}
	want := []Extent{{a, 0, 10}, {a, 11, 1}, {b, 12, 3}, {a, 15, 1}}
	if !slices.Equal(v.Extents, want) || v.Size() != 15 {
		t.Errorf("got %v, %d bytes", v.Extents, v.Size())
	}
	// A source that cannot be compared is kept apart.
	var u View
	u.Append(Extent{sparse("x"), 0, 1})
	u.Append(Extent{sparse("x"), 1, 1})
	if len(u.Extents) != 2 {
		t.Errorf("got %v", u.Extents)
	}
}

// A shortWriter takes less than it is given, and says nothing.
type shortWriter struct{}

func (shortWriter) Write(p []byte) (int, error) { return len(p) / 2, nil }

func TestShortWritesOfPadding(t *testing.T) {
	if err := writeZeros(shortWriter{}, 8); err != io.ErrShortWrite {
		t.Errorf("got %v, want %v", err, io.ErrShortWrite)
	}
	var b bytes.Buffer
	if err := writeZeros(&b, 9000); err != nil || b.Len() != 9000 {
		t.Errorf("%d bytes, %v", b.Len(), err)
	}
}
