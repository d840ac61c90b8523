// Package gguftest builds models for tests: in memory or on disk, as one file or as shards,
// from a description and a seed. The same description makes the same bytes on every
// machine. Data is generated as it is read, so that a model of any size needs no memory.
package gguftest

import (
	"bytes"
	"fmt"
	"io"

	"ggufreap/gguf"
)

// Spec describes a model.
type Spec struct {
	Name     string // the stem of file names
	Seed     uint64
	Metadata *gguf.Metadata
	Tensors  []Tensor
}

// Tensor describes one tensor of a [Spec].
type Tensor struct {
	Name  string
	Type  gguf.Type
	Shape []uint64 // innermost dim first
	Fill  Fill
	// Data, unless nil, is the tensor's bytes in place of generated ones. A type of unknown
	// block size needs it.
	Data []byte
}

// Tensor returns the tensor of that name, to be changed in place, or nil.
func (s Spec) Tensor(name string) *Tensor {
	for i := range s.Tensors {
		if s.Tensors[i].Name == name {
			return &s.Tensors[i]
		}
	}
	return nil
}

// Bytes returns the data of the tensor of that name.
func (s Spec) Bytes(name string) ([]byte, error) {
	t := s.Tensor(name)
	if t == nil {
		return nil, fmt.Errorf("no tensor %q", name)
	}
	v, err := t.view(s.Seed)
	if err != nil {
		return nil, err
	}
	data := make([]byte, v.Size())
	for _, e := range v.Extents {
		if _, err := e.Source.ReadAt(data, 0); err != nil && err != io.EOF {
			return nil, err
		}
	}
	return data, nil
}

// Clone returns a copy whose metadata and tensors can be changed without changing s.
func (s Spec) Clone() Spec {
	s.Metadata = s.Metadata.Clone()
	s.Tensors = append([]Tensor(nil), s.Tensors...)
	return s
}

// Contents returns what the model consists of, for a layout.
func (s Spec) Contents() (gguf.Contents, error) {
	c := gguf.Contents{Version: 3, Metadata: s.Metadata, Views: make([]gguf.View, len(s.Tensors))}
	for i := range s.Tensors {
		v, err := s.Tensors[i].view(s.Seed)
		if err != nil {
			return gguf.Contents{}, err
		}
		c.Views[i] = v
	}
	return c, nil
}

func (t *Tensor) view(seed uint64) (gguf.View, error) {
	v := gguf.View{Name: t.Name, Type: t.Type, Shape: t.Shape}
	if t.Data != nil {
		v.Append(gguf.Extent{Source: bytes.NewReader(t.Data), Length: int64(len(t.Data))})
		return v, nil
	}
	size, err := gguf.TypeSize(t.Type, t.Shape)
	if err != nil {
		return v, fmt.Errorf("tensor %q: %w", t.Name, err)
	}
	slab := int64(1)
	for _, d := range t.Shape[:max(len(t.Shape)-1, 0)] {
		slab *= int64(d)
	}
	v.Append(gguf.Extent{Source: newSource(seed, t.Name, t.Type, slab, size, t.Fill), Length: size})
	return v, nil
}
