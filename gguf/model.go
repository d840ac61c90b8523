package gguf

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// A Model is the shards of one artifact read as one.
type Model struct {
	Name string // the file names' common stem
	// Files are the shards that are there, in order of split.no.
	Files []*File
	// Shards is how many shards the artifact has; more than len(Files) when some
	// are missing.
	Shards int
	// Missing names the shards that are not there.
	Missing []string
	// Unreadable are the paths of shards that are there, but cannot be read as GGUF.
	Unreadable []string
	// Pointers are those of them that stand for a file that Git LFS keeps elsewhere.
	Pointers []string
	// Aside is what lies beside the model in the folder that was opened and is no part of
	// it: projectors, imatrices, adapters.
	Aside []Aside
	// Problems are those of the set and of each file.
	Problems []Problem

	tensors nameIndex
	pool    *filePool
	folder  Folder
}

// NewModel joins parsed files into a model; they may come in any order. It returns an
// error only when there is no file. What is wrong with the set is listed in Problems.
func NewModel(name string, files ...*File) (*Model, error) {
	if len(files) == 0 {
		return nil, errors.New("a model needs at least one file")
	}
	return newModel(name, files, nil, newProblems(printable(name))), nil
}

// newModel joins files; found holds what is wrong with the unreadable ones.
func newModel(name string, files []*File, unreadable []string, found *problems) *Model {
	m := &Model{Name: name, Files: slices.Clone(files), Unreadable: unreadable}
	m.join(found)
	m.collect(found)
	m.checkTotal(found)
	m.checkArchitecture(found)
	m.Problems = found.all()
	for _, f := range m.Files {
		m.Problems = append(m.Problems, f.Problems...)
	}
	return m
}

// Complete reports whether all shards are there and could be read.
func (m *Model) Complete() bool { return len(m.Missing)+len(m.Unreadable) == 0 }

// Err joins the problems that are errors; it is nil for a sound and complete model.
func (m *Model) Err() error { return joinErrors(m.Problems) }

// Metadata returns the pairs of the first shard, which describe the whole model.
func (m *Model) Metadata() *Metadata { return m.Files[0].Metadata }

// HasMetadata reports whether the first shard is there. What a later one says in its place
// is not the model's metadata.
func (m *Model) HasMetadata() bool { return m.Shards == 1 || placeInSplit(m.Files[0]) == 0 }

// Tensors returns the tensors of all shards in order. The slice must not be changed.
func (m *Model) Tensors() []*Tensor { return m.tensors.list }

// Tensor returns the tensor of that name, or nil. When a name stands twice, which is a
// problem, it is the first.
func (m *Model) Tensor(name string) *Tensor { return m.tensors.find(name) }

// FileBytes returns the size of all files.
func (m *Model) FileBytes() int64 {
	var n int64
	for _, f := range m.Files {
		n = AddSize(n, f.Size)
	}
	return n
}

// TensorBytes returns the size of all tensor data without padding.
func (m *Model) TensorBytes() int64 {
	var n int64
	for _, t := range m.tensors.list {
		n = AddSize(n, t.Size)
	}
	return n
}

// Contents returns what is written to copy the model: every tensor whole.
func (m *Model) Contents() Contents {
	c := Contents{Version: m.Files[0].Version, Metadata: m.Metadata(), Views: make([]View, len(m.tensors.list))}
	for i, t := range m.tensors.list {
		c.Views[i] = t.View()
	}
	return c
}

// CheckWritable returns an error when the model cannot be the source of another one.
func (m *Model) CheckWritable() error {
	return cmp.Or(m.Err(), m.checkOrder())
}

// checkOrder returns an error when the model's byte order is one that is not written.
func (m *Model) checkOrder() error {
	if f := m.Files[0]; f.Order == binary.BigEndian {
		return fmt.Errorf("%s: big-endian files can be inspected and hashed, not written", printable(f.Name))
	}
	return nil
}

// Unchanged looks at every file again and returns an error when one was replaced,
// resized or written to since it was opened.
func (m *Model) Unchanged() error {
	for _, f := range m.Files {
		if s, ok := f.r.(changing); ok {
			if err := s.Unchanged(); err != nil {
				return err
			}
		}
	}
	return nil
}

// A changing source can tell whether it is still what it was.
type changing interface{ Unchanged() error }

// Paths returns the paths by which the files were opened, in shard order.
func (m *Model) Paths() []string {
	paths := make([]string, len(m.Files))
	for i, f := range m.Files {
		paths[i] = f.Name
	}
	return paths
}

// OnDisk returns the paths of the files that are read: those of Paths, and pieces in place of
// what is read from them.
func (m *Model) OnDisk() []string {
	var paths []string
	for _, f := range m.Files {
		if s, ok := f.r.(*joinedSource); ok {
			paths = append(paths, s.paths()...)
		} else {
			paths = append(paths, f.Name)
		}
	}
	return paths
}

// Folder returns the folder that [OpenFolder] found the model in, or nil.
func (m *Model) Folder() Folder { return m.folder }

// Close closes the files that [Open] opened, and the folder of [OpenFolder], if that is an
// [io.Closer].
func (m *Model) Close() error {
	var err error
	if c, ok := m.folder.(io.Closer); ok {
		err = c.Close()
	}
	if m.pool != nil {
		err = errors.Join(err, m.pool.close())
	}
	return err
}
