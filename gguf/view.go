package gguf

import (
	"fmt"
	"io"
	"reflect"
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
		if last.Offset+last.Length == e.Offset && sameSource(last.Source, e.Source) {
			last.Length += e.Length
			return
		}
	}
	if e.Length > 0 {
		v.Extents = append(v.Extents, e)
	}
}

// sameSource compares sources, of which some cannot be compared.
func sameSource(a, b io.ReaderAt) bool {
	return reflect.TypeOf(a).Comparable() && reflect.TypeOf(b).Comparable() && a == b
}

// check refuses what could not be read back, and compares the extents with what type
// and shape demand. Where those give no size, for an unknown type or a row that is not
// whole blocks, the extents are taken as they are.
func (v View) check() error {
	if err := v.checkExtents(); err != nil {
		return err
	}
	info, known := v.Type.Info()
	want, fault := dataSize(info, known, v.Shape)
	switch {
	case len(v.Name) > maxNameLength:
		return fmt.Errorf("name has %d bytes, at most %d can be written", len(v.Name), maxNameLength)
	case len(v.Shape) > maxDims:
		return fmt.Errorf("%d dims, at most %d can be written", len(v.Shape), maxDims)
	case fault == shapeTooLarge:
		return fmt.Errorf("shape %v of type %s takes more bytes than any file has", v.Shape, v.Type)
	case fault == shapeFine && want != v.Size():
		return fmt.Errorf("%d bytes of data, type %s and shape %v want %d", v.Size(), v.Type, v.Shape, want)
	}
	return nil
}

func (v View) checkExtents() error {
	var size int64
	for i, e := range v.Extents {
		if e.Source == nil || e.Offset < 0 || e.Length < 0 || e.Length > maxOffset {
			return fmt.Errorf("extent %d cannot be %d bytes at byte %d", i, e.Length, e.Offset)
		}
		if size += e.Length; size > maxOffset {
			return fmt.Errorf("extents hold more bytes than any file")
		}
	}
	return nil
}

// Contents is everything that is written of a model, before it is cut into shards.
type Contents struct {
	Version  uint32 // of the format: 2 or 3
	Metadata *Metadata
	Views    []View // in the order in which they are written
}
