package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// IsSink reports whether an output path that was typed is no file to be made: a device of
// characters such as /dev/null, a pipe, or what a shell puts in place of >(command). It is
// written to as it is, and nothing is replaced.
func IsSink(path string) bool {
	if _, ok := descriptor(path); ok {
		return true
	}
	info, err := os.Stat(path)
	return err == nil && info.Mode()&(fs.ModeCharDevice|fs.ModeNamedPipe) != 0
}

// descriptor returns the number of the open file that a path such as /dev/fd/3 stands for.
func descriptor(path string) (int, bool) {
	path = filepath.Clean(path)
	if dir := filepath.Dir(path); dir != "/dev/fd" && dir != "/proc/self/fd" {
		return 0, false
	}
	n, err := strconv.ParseUint(filepath.Base(path), 10, 31)
	return int(n), err == nil
}

// writeSink writes to what an output path leads to, and returns how much.
func writeSink(path string, write func(io.Writer) error) (size int64, err error) {
	f, err := openSink(path)
	if err != nil {
		return 0, writing(path, err)
	}
	b := &counter{w: f}
	err = write(b)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return b.n, writing(path, err)
}

// openSink opens a sink. A file that the shell has opened is written to where it stands: to open
// it by its path once more would begin at its first byte.
func openSink(path string) (*os.File, error) {
	n, ok := descriptor(path)
	info, err := os.Stat(path)
	if ok && err == nil && info.Mode().IsRegular() {
		if f := os.NewFile(uintptr(n), path); f != nil {
			return f, nil
		}
		return nil, fmt.Errorf("no file is open as number %d", n)
	}
	if err == nil && info.Mode()&fs.ModeNamedPipe != 0 {
		return openPipe(path)
	}
	return os.OpenFile(path, os.O_WRONLY, 0)
}

// readerWait is how long a pipe may have nobody who reads from it.
const readerWait = 5 * time.Second

// openPipe opens a pipe to write to, and does not wait for ever for somebody to read.
func openPipe(path string) (*os.File, error) {
	for end := time.Now().Add(readerWait); ; time.Sleep(20 * time.Millisecond) {
		f, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if !errors.Is(err, syscall.ENXIO) {
			return f, err
		}
		if time.Now().After(end) {
			return nil, errors.New("nobody reads from this pipe")
		}
	}
}

// A counter counts what is written.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
