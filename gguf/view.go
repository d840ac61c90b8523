package gguf

import (
	"fmt"
	"io"
)

// A View is a tensor to be written: what it is called, and the source bytes it is made
// of. A copied tensor has one extent, a pruned one an extent for each run of
// neighbouring slabs.
type View struct {
	Name    string
	Type    Type
	Shape   []uint64 // innermost dim first
	Extents []Extent
}

// An Extent is a range of bytes of a source.
type Extent struct {
	Source io.ReaderAt
	Offset int64
	Length int64
}

// Size returns the bytes of all extents together.
func (v View) Size() int64 {
	var n int64
	for _, e := range v.Extents {
		n += e.Length
	}
	return n
}

// Append adds an extent, and merges it with the last one when it continues it.
func (v *View) Append(e Extent) {
	if n := len(v.Extents); n > 0 {
		last := &v.Extents[n-1]
		if last.Source == e.Source && last.Offset+last.Length == e.Offset {
			last.Length += e.Length
			return
		}
	}
	if e.Length > 0 {
		v.Extents = append(v.Extents, e)
	}
}

// check compares the extents with what type and shape demand.
func (v View) check() error {
	if len(v.Name) > maxNameLength {
		return fmt.Errorf("tensor %q: name has %d bytes, at most %d can be written", v.Name, len(v.Name), maxNameLength)
	}
	if len(v.Shape) > maxDims {
		return fmt.Errorf("tensor %q: %d dims, at most %d can be written", v.Name, len(v.Shape), maxDims)
	}
	info, known := v.Type.Info()
	want, fault := dataSize(info, known, v.Shape)
	switch {
	case fault == shapeTooLarge:
		return fmt.Errorf("tensor %q: shape %v is too large", v.Name, v.Shape)
	case fault == shapeFine && want != v.Size():
		return fmt.Errorf("tensor %q: %d bytes of data, type %s and shape %v want %d", v.Name, v.Size(), v.Type, v.Shape, want)
	}
	return nil
}

// Contents is everything that is written of a model, before it is cut into shards.
type Contents struct {
	Version  uint32 // of the format: 2 or 3
	Metadata *Metadata
	Views    []View // in the order in which they are written
}
