package files

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"ggufreap/cmd/ggufreap/internal/filekind"
	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/manifest"
)

// Stdin is the path that stands for standard input, and for standard output where a file is
// written.
const Stdin = "-"

// IsStream reports whether a path that was typed is no file: standard input, or what a shell
// puts in place of <(command).
func IsStream(path string) bool {
	if path == Stdin {
		return true
	}
	dir := filepath.Dir(filepath.Clean(path))
	if path != "/dev/stdin" && dir != "/dev/fd" && dir != "/proc/self/fd" {
		return false
	}
	info, err := os.Stat(path)
	return err == nil && info.Mode()&fs.ModeNamedPipe != 0
}

// Name is what a document's source is called in another document.
func Name(path string) string {
	if IsStream(path) {
		return "standard input"
	}
	return path
}

// ReadInput reads a document whose path was typed, from stdin where that is "-".
func ReadInput(stdin io.Reader, path string) ([]byte, error) {
	if path == os.DevNull {
		return nil, nil // the file without a byte
	}
	if !IsStream(path) {
		return Read(path)
	}
	r, err := openStream(stdin, path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, maxDocument+1))
	if err == nil && len(data) > maxDocument {
		err = fmt.Errorf("more than %d bytes, which are read at most", maxDocument)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", text.Safe(path), err)
	}
	return data, nil
}

// An Input is a file whose path was typed, or a copy of what came from a stream.
type Input struct {
	*os.File
	Size int64
	copy string // to be removed
}

// maxStream bounds what is copied of a stream.
const maxStream = 1 << 30

// OpenInput opens a file whose path was typed, and copies one that is a stream. The caller
// closes it.
func OpenInput(stdin io.Reader, path string) (*Input, error) {
	if !IsStream(path) {
		f, info, err := manifest.OpenRegular(path)
		if err != nil {
			return nil, refused(path, err)
		}
		return &Input{File: f, Size: info.Size()}, nil
	}
	r, err := openStream(stdin, path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	f, err := os.CreateTemp("", "ggufreap-*.part")
	if err != nil {
		return nil, err
	}
	in := &Input{File: f, copy: f.Name()}
	if in.Size, err = io.Copy(f, io.LimitReader(r, maxStream+1)); err == nil && in.Size > maxStream {
		err = fmt.Errorf("more than %d bytes, which are read at most", maxStream)
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		in.Close()
		return nil, fmt.Errorf("%s: %w", text.Safe(path), err)
	}
	return in, nil
}

// Close closes the file, and removes a copy.
func (in *Input) Close() error {
	err := in.File.Close()
	if in.copy != "" {
		os.Remove(in.copy)
	}
	return err
}

func openStream(stdin io.Reader, path string) (io.ReadCloser, error) {
	if path == Stdin {
		return io.NopCloser(stdin), nil
	}
	return os.Open(path)
}

// refused says how a named pipe can be read, which is not opened: it would wait for somebody
// to write.
func refused(path string, err error) error {
	if info, statErr := os.Stat(path); statErr == nil && info.Mode()&fs.ModeNamedPipe != 0 {
		return hint.With(err, "a pipe is read from standard input: - in place of the path, and < %s behind the command", strings.ReplaceAll(text.Safe(path), " ", `\ `))
	}
	return err
}

// ReadPin reads a pin whose path was typed.
func ReadPin(stdin io.Reader, path string) (*manifest.Pin, error) {
	in, err := OpenInput(stdin, path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	pin, err := manifest.DecodePin(in)
	if err != nil {
		return nil, filekind.Explain(fmt.Errorf("%s: %w", text.Safe(path), err), path, in, filekind.Pin)
	}
	return pin, nil
}
