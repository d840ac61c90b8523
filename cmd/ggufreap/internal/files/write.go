// Package files reads and writes the small files that commands take and give: plans, pins,
// lists. A file is written whole or not at all, and never over a source. It knows nothing of
// what stands in them.
package files

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/manifest"
)

// Write makes a file of what write writes, so that it is there whole or not at all,
// and returns its size. An existing file that holds other data is replaced with force
// only, and never when it is one of the sources. What is no file, see [IsSink], is written to.
func Write(path string, force bool, sources []string, write func(io.Writer) error) (size int64, err error) {
	if IsSink(path) {
		return writeSink(path, write)
	}
	if err := checkName(path); err != nil {
		return 0, err
	}
	tmp, err := createPart(path)
	if err != nil {
		return 0, writing(path, err)
	}
	defer os.Remove(tmp.Name()) // unless it has got its own name
	defer tmp.Close()
	b := bufio.NewWriterSize(tmp, 64<<10)
	if err = cmp.Or(write(b), b.Flush()); err != nil {
		return 0, writing(path, err)
	}
	if size, err = tmp.Seek(0, io.SeekCurrent); err != nil {
		return 0, writing(path, err)
	}
	if sameBytes(tmp, path) {
		return size, nil
	}
	if err := CheckOutput(path, force, sources); err != nil {
		return 0, err
	}
	return size, publish(tmp, path)
}

// publish gives a temporary file its name.
func publish(tmp *os.File, path string) error {
	err := cmp.Or(tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	return writing(path, err)
}

// Replace makes a file of some bytes, whole or not at all, whatever is there. It is for those
// who know that the file is theirs; [Write] looks.
func Replace(path string, data []byte) error {
	tmp, err := createPart(path)
	if err != nil {
		return writing(path, err)
	}
	defer os.Remove(tmp.Name()) // unless it has got its own name
	defer tmp.Close()
	if _, err := tmp.Write(data); err != nil {
		return writing(path, err)
	}
	return publish(tmp, path)
}

// Remove removes what [Replace] makes, and what killed runs left of it. That something stays
// is no error.
func Remove(path string) {
	dir, name := filepath.Split(path)
	removeParts(filepath.Join(dir, "."+name+"."))
	os.Remove(path)
}

// Bytes returns what writes a text that is there whole.
func Bytes(text []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	}
}

// sameBytes reports whether a regular file is at path that holds what f does.
func sameBytes(f *os.File, path string) bool {
	there, info, err := manifest.OpenRegular(path)
	if err != nil {
		return false
	}
	defer there.Close()
	if own, err := f.Stat(); err != nil || own.Size() != info.Size() {
		return false
	}
	a, b := make([]byte, 32<<10), make([]byte, 32<<10)
	for at := int64(0); at < info.Size(); at += int64(len(a)) {
		n := min(info.Size()-at, int64(len(a)))
		_, errOwn := f.ReadAt(a[:n], at)
		_, err := there.ReadAt(b[:n], at)
		if errOwn != nil || err != nil || !bytes.Equal(a[:n], b[:n]) {
			return false
		}
	}
	return true
}

// writing says which file could not be written: not the temporary one that the system's
// error names.
func writing(path string, err error) error {
	if err == nil {
		return nil
	}
	var fault *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &fault):
		err = fault.Err
	case errors.As(err, &link):
		err = link.Err
	}
	return fmt.Errorf("writing %s: %w", text.Safe(path), err)
}

// CheckOutput refuses an output path that would harm something.
func CheckOutput(path string, force bool, sources []string) error {
	if path == Stdin || IsSink(path) {
		return nil
	}
	there, err := os.Stat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, source := range sources {
		if info, err := os.Stat(source); there != nil && err == nil && os.SameFile(info, there) {
			return fmt.Errorf("output %s is the source %s", text.Safe(path), text.Safe(source))
		}
	}
	if err := checkName(path); err != nil || there == nil {
		return err
	}
	switch {
	case !there.Mode().IsRegular():
		return fmt.Errorf("output %s exists and is not a regular file", text.Safe(path))
	case !force:
		return hint.With(fmt.Errorf("output %s exists", text.Safe(path)), "--force replaces it")
	}
	return nil
}

// WritePin writes a pin document, unless path is "" or "-", and returns its size.
func WritePin(path string, pin *manifest.Pin, force bool, sources []string) (int64, error) {
	if path == "" || path == Stdin {
		return 0, nil
	}
	return Write(path, force, sources, func(w io.Writer) error { return manifest.EncodePin(w, path, pin) })
}
