package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// writeDocument writes a file so that it is there whole or not at all. An existing
// file that holds other data is replaced with force only, and never when it is one of
// the sources.
func writeDocument(path string, data []byte, force bool, sources []string) (err error) {
	if there, err := readDocument(path); err == nil && bytes.Equal(there, data) {
		return nil
	}
	if err := checkOutput(path, force, sources); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return writing(path, err)
	}
	defer func() {
		if err != nil {
			os.Remove(tmp.Name())
			err = writing(path, err)
		}
	}()
	_, err = tmp.Write(data)
	if err = cmp.Or(err, tmp.Chmod(0o644), tmp.Sync()); err != nil {
		tmp.Close()
		return err
	}
	if err := tmp.Close(); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

// writing says which file could not be written: not the temporary one that the system's
// error names.
func writing(path string, err error) error {
	var fault *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &fault):
		err = fault.Err
	case errors.As(err, &link):
		err = link.Err
	}
	return fmt.Errorf("writing %s: %w", safe(path), err)
}

// checkOutput refuses an output path that would harm something.
func checkOutput(path string, force bool, sources []string) error {
	there, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, source := range sources {
		if info, err := os.Stat(source); err == nil && os.SameFile(info, there) {
			return fmt.Errorf("output %s is the source %s", safe(path), safe(source))
		}
	}
	switch {
	case !there.Mode().IsRegular():
		return fmt.Errorf("output %s exists and is not a regular file", safe(path))
	case !force:
		return withHint(fmt.Errorf("output %s exists", safe(path)), "--force replaces it")
	}
	return nil
}
