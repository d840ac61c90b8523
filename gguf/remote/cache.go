package remote

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
)

// fetchKept fetches a range, or takes it from the cache folder where an earlier client has
// left it. Ranges of files that nothing tells from others of their name and size are not kept.
func (f *File) fetchKept(ctx context.Context, off, end int64, w sink) error {
	path := f.cachePath(off, end)
	if path == "" {
		return f.fetch(ctx, off, end, w)
	}
	if data := readKept(path, end-off); data != nil {
		for len(data) > 0 {
			n := copy(w.room(), data)
			w.took(n)
			data = data[n:]
		}
		return nil
	}
	t := &tee{sink: w, kept: make([]byte, 0, end-off)}
	if err := f.fetch(ctx, off, end, t); err != nil {
		return err
	}
	if err := keep(path, t.kept); err != nil {
		return fmt.Errorf("keeping it in the cache folder: %w", err)
	}
	return nil
}

// cachePath names the file of a range: a folder for each identity, in it the range. It is ""
// where nothing is kept.
func (f *File) cachePath(off, end int64) string {
	id := f.Identity()
	if f.client.options.Cache == "" || end-off > maxPiece || id.Commit+id.ETag+id.Modified == "" {
		return ""
	}
	key := sha256.Sum256(fmt.Appendf(nil, "%q", []string{f.client.endpoint.Host, id.Repo, id.Commit, id.Path, id.Name, fmt.Sprint(id.Size), id.SHA256, id.ETag, id.Modified}))
	return filepath.Join(f.client.options.Cache, fmt.Sprintf("%x", key[:16]), fmt.Sprintf("%d-%d", off, end))
}

// readKept returns the bytes of a kept range, nil where there is none that is whole. Their
// SHA-256 follows them in the file.
func readKept(path string, size int64) []byte {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || info.Size() != size+sha256.Size {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil || int64(len(text)) != size+sha256.Size {
		return nil
	}
	if sum := sha256.Sum256(text[:size]); !bytes.Equal(sum[:], text[size:]) {
		return nil
	}
	return text[:size]
}

// keep writes a range so that it is there whole or not at all.
func keep(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".range-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // unless it has got its own name
	defer tmp.Close()
	sum := sha256.Sum256(data)
	for _, part := range [][]byte{data, sum[:]} {
		if _, err := tmp.Write(part); err != nil {
			return err
		}
	}
	if err := tmp.Close(); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

// A tee is a sink that keeps what another one takes.
type tee struct {
	sink
	last []byte
	kept []byte
}

func (t *tee) room() []byte {
	t.last = t.sink.room()
	return t.last
}

func (t *tee) took(n int) {
	t.kept = append(t.kept, t.last[:n]...)
	t.sink.took(n)
}
