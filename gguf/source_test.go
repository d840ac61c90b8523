package gguf

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// openSet writes a set and opens it.
func openSet(t *testing.T, n int) (m *Model, paths []string) {
	t.Helper()
	dir := t.TempDir()
	put(t, dir, set("m", n))
	m, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m, m.Paths()
}

// A source that changes while in use is an error that names it, not other bytes.
func TestSourceThatChanges(t *testing.T) {
	tests := []struct {
		name   string
		change func(path string) error
		want   string
	}{
		{"touched", func(path string) error { return os.Chtimes(path, time.Time{}, time.Now().Add(time.Hour)) }, "it was written to while in use"},
		{"grown", func(path string) error { return os.Truncate(path, 5000) }, "it changed while in use: it has 5000 bytes, had"},
		{"cut", func(path string) error { return os.Truncate(path, 10) }, "it changed while in use: it has 10 bytes, had"},
		{"replaced", func(path string) error {
			b, err := os.ReadFile(path)
			if err == nil {
				err = os.WriteFile(path+".new", b, 0o666)
			}
			if err == nil {
				err = os.Rename(path+".new", path)
			}
			return err
		}, "it was replaced by another file while in use"},
		{"removed", os.Remove, "no such file"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m, paths := openSet(t, 2)
			if err := m.Unchanged(); err != nil {
				t.Fatal(err)
			}
			if err := test.change(paths[1]); err != nil {
				t.Fatal(err)
			}
			err := m.Unchanged()
			wantError(t, err, test.want)
			wantError(t, err, paths[1])
			// A file that is opened again later is looked at again.
			m.pool.mu.Lock()
			for m.pool.evict() {
			}
			m.pool.mu.Unlock()
			_, err = io.ReadAll(m.Tensors()[1].Reader())
			wantError(t, err, test.want)
			wantError(t, err, paths[1]+": reading at byte ")
		})
	}
}

// A file that is cut while open gives fewer bytes than it had: an error with the place.
func TestSourceCutWhileOpen(t *testing.T) {
	m, paths := openSet(t, 1)
	tensor := m.Tensors()[0]
	if _, err := io.ReadAll(tensor.Reader()); err != nil {
		t.Fatal(err)
	}
	at := tensor.DataOffset() + 5
	if err := os.Truncate(paths[0], at); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(tensor.Reader())
	wantError(t, err, fmt.Sprintf("%s: reading at byte %d: the file ends here, it had", paths[0], at))
	if len(got) != 5 {
		t.Errorf("%d bytes read", len(got))
	}
}

// The data of a truncated file is an error when it is read, whoever did not ask Err.
func TestTruncatedTensorCannotBeReadAsShort(t *testing.T) {
	dir := t.TempDir()
	whole := set("m", 1)["m-00001-of-00001.gguf"]
	put(t, dir, map[string][]byte{"m.gguf": whole[:len(whole)-7]})
	m, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	wantError(t, m.Err(), "7 more are needed")
	got, err := io.ReadAll(m.Tensors()[0].Reader())
	if !errors.Is(err, io.ErrUnexpectedEOF) || len(got) != 25 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestReadingAfterClose(t *testing.T) {
	m, paths := openSet(t, 1)
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := io.ReadAll(m.Tensors()[0].Reader())
	if !errors.Is(err, fs.ErrClosed) {
		t.Errorf("error is %v", err)
	}
	wantError(t, err, paths[0])
	if err := m.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

func TestFoldersAreRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "d.gguf"), 0o777); err != nil {
		t.Fatal(err)
	}
	_, err := OpenFiles([]string{filepath.Join(dir, "d.gguf")})
	wantError(t, err, "d.gguf: is a folder, want a regular file")
}

// A model of 1,200 shards is read by many goroutines at once with few files open.
func TestManyShardsUnderFewDescriptors(t *testing.T) {
	m, _ := openSet(t, 1200)
	if len(m.Files) != 1200 || m.Err() != nil {
		t.Fatal(len(m.Files), m.Err())
	}
	var group sync.WaitGroup
	faults := make(chan error, 64)
	for worker := range 64 {
		group.Go(func() {
			for i := range 50 {
				tensor := m.Tensors()[(worker*37+i*97)%1200]
				got, err := io.ReadAll(tensor.Reader())
				if err != nil || !bytes.Equal(got, bytes.Repeat([]byte{0xd7}, 32)) {
					faults <- fmt.Errorf("%s: %x, %v", tensor.Name, got, err)
					return
				}
				m.pool.mu.Lock()
				open := len(m.pool.open)
				m.pool.mu.Unlock()
				if open > maxOpenFiles {
					faults <- fmt.Errorf("%d files open", open)
					return
				}
			}
		})
	}
	group.Wait()
	close(faults)
	for err := range faults {
		t.Error(err)
	}
}

// Errors of any source say where they happened.
func TestReadErrorsNameThePlace(t *testing.T) {
	broken := errors.New("input/output error")
	file := tiny(little(), 3)
	for n := range len(file) - 32 {
		_, err := NewFile("m.gguf", &failingReader{file, n, broken}, int64(len(file)))
		if !errors.Is(err, broken) {
			t.Fatalf("fault at byte %d: %v", n, err)
		}
		wantError(t, err, fmt.Sprintf("m.gguf: reading at byte %d: input/output error", n))
	}
	// A source that is shorter than was said.
	_, err := NewFile("m.gguf", bytes.NewReader(file[:40]), int64(len(file)))
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("short source: %v", err)
	}
	wantError(t, err, "m.gguf: reading at byte 40: unexpected EOF")
}

// A failingReader fails at a byte.
type failingReader struct {
	b   []byte
	at  int
	err error
}

func (r *failingReader) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) <= int64(r.at) {
		return copy(p, r.b[off:]), nil
	}
	if off >= int64(r.at) {
		return 0, r.err
	}
	return copy(p, r.b[off:r.at]), r.err
}
