package gguftest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"

	"ggufreap/gguf"
)

// Layout cuts the model into shards.
func (s Spec) Layout(split gguf.Split) (*gguf.Layout, error) {
	c, err := s.Contents()
	if err != nil {
		return nil, err
	}
	return gguf.NewLayout(c, split)
}

// Write writes the model's files into dir, which it makes if need be, and returns their paths in shard order.
func (s Spec) Write(dir string, split gguf.Split) ([]string, error) {
	buf := make([]byte, 1<<20)
	return s.create(dir, split, func(f *os.File, shard *gguf.ShardLayout) error {
		return shard.Write(context.Background(), f, buf, nil)
	})
}

// WriteSparse writes files with real headers whose data is a hole: zeros that take no room
// on disk. Whole releases of real size fit on any machine this way.
func (s Spec) WriteSparse(dir string, split gguf.Split) ([]string, error) {
	return s.create(dir, split, func(f *os.File, shard *gguf.ShardLayout) error {
		if _, err := gguf.NewWriter(f, shard); err != nil {
			return err
		}
		return f.Truncate(shard.Size)
	})
}

func (s Spec) create(dir string, split gguf.Split, write func(*os.File, *gguf.ShardLayout) error) ([]string, error) {
	layout, err := s.Layout(split)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	var paths []string
	for i, shard := range layout.Shards {
		path := filepath.Join(dir, gguf.ShardName(s.Name, i, len(layout.Shards)))
		f, err := os.Create(path)
		if err != nil {
			return nil, err
		}
		if err := write(f, shard); err != nil {
			f.Close()
			return nil, err
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// Model opens the model without writing it: every byte is made when it is read.
func (s Spec) Model(split gguf.Split) (*gguf.Model, error) {
	layout, err := s.Layout(split)
	if err != nil {
		return nil, err
	}
	var files []*gguf.File
	for i, shard := range layout.Shards {
		r, err := newShardReader(shard)
		if err != nil {
			return nil, err
		}
		f, err := gguf.NewFile(gguf.ShardName(s.Name, i, len(layout.Shards)), r, shard.Size)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return gguf.NewModel(s.Name, files...)
}

// File returns the bytes of the model as one file.
func (s Spec) File() ([]byte, error) {
	layout, err := s.Layout(gguf.Split{})
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = layout.Shards[0].Write(context.Background(), &b, make([]byte, 64<<10), nil)
	return b.Bytes(), err
}

// shardReader is the file that a layout describes, as a reader.
type shardReader struct {
	shard  *gguf.ShardLayout
	header []byte
}

func newShardReader(shard *gguf.ShardLayout) (*shardReader, error) {
	var header bytes.Buffer
	if _, err := gguf.NewWriter(&header, shard); err != nil {
		return nil, err
	}
	return &shardReader{shard, header.Bytes()}, nil
}

// ReadAt reads bytes of the file at off.
func (r *shardReader) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("negative offset %d", off)
	}
	done := 0
	for done < len(p) {
		n, err := r.readPart(p[done:], off+int64(done))
		done += n
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

// readPart reads from the one part of the file that off lies in: header, tensor or padding.
func (r *shardReader) readPart(p []byte, off int64) (int, error) {
	if off >= r.shard.Size {
		return 0, io.EOF
	}
	if off < int64(len(r.header)) {
		return copy(p, r.header[off:]), nil
	}
	data := off - r.shard.DataOffset
	i := sort.Search(len(r.shard.Offsets), func(i int) bool { return r.shard.Offsets[i] > data }) - 1
	end := r.shard.Size - r.shard.DataOffset
	if i+1 < len(r.shard.Offsets) {
		end = r.shard.Offsets[i+1]
	}
	view := r.shard.Views[i]
	if at := data - r.shard.Offsets[i]; at < view.Size() {
		part := p[:min(int64(len(p)), view.Size()-at)]
		n, err := view.Extents[0].Source.ReadAt(part, at) // views of a spec have one extent, from its start
		if n == len(part) {
			err = nil
		}
		return n, err
	}
	padding := p[:min(int64(len(p)), end-data)]
	clear(padding)
	return len(padding), nil
}
