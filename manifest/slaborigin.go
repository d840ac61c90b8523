package manifest

import (
	"fmt"

	"ggufreap/gguf"
)

// A slabOrigin says which slabs of a [Recorder]'s source those of a tensor are that is
// written from it. Their bytes pass the Recorder right before they are written, so that their
// digests are known then.
type slabOrigin struct {
	track *track
	slabs []slabPlace // by slab of the tensor
	size  int64       // bytes of each
}

// A slabPlace is a slab of the source.
type slabPlace struct{ tensor, slab int } // of the track's file; of the tensor

// newSlabOrigin returns the origin of a tensor whose data v are. It is nil where a byte of
// it may not reach the writer straight from the Recorder: where another lane reads the file
// too, or its place has passed already, bytes are read a second time, and whether they are
// the same then is for their own digest to tell.
func newSlabOrigin(v gguf.View, t *Tensor) *slabOrigin {
	if t.SlabCount() == 0 || t.Size/int64(t.SlabCount()) <= smallSlab {
		return nil
	}
	o := &slabOrigin{size: t.Size / int64(t.SlabCount())}
	next := int64(0)
	for i, e := range v.Extents {
		r, recorded := e.Source.(laneReader)
		switch {
		case !recorded || r.shared:
			return nil
		case i == 0:
			o.track, next = r.track, r.track.passed()
		}
		if r.track != o.track || e.Offset < next || !o.add(e) {
			return nil
		}
		next = e.Offset + e.Length
	}
	return o
}

// add adds the slabs of an extent, and reports whether it consists of some.
func (o *slabOrigin) add(e gguf.Extent) bool {
	for at := e.Offset; at < e.Offset+e.Length; at += o.size {
		place, ok := o.place(at)
		if !ok {
			return false
		}
		o.slabs = append(o.slabs, place)
	}
	return e.Length%o.size == 0
}

// place returns the slab of the source that begins at an offset of the file.
func (o *slabOrigin) place(at int64) (slabPlace, bool) {
	i := 0
	if n := len(o.slabs); n > 0 {
		i = o.slabs[n-1].tensor // mostly
	}
	if i = o.track.tensorAt(at, i); i < 0 {
		return slabPlace{}, false
	}
	t := &o.track.tensors[i]
	into := at - o.track.file.Tensors[i].DataOffset()
	if t.SlabCount() == 0 || t.Size/int64(t.SlabCount()) != o.size || into%o.size != 0 {
		return slabPlace{}, false
	}
	return slabPlace{i, int(into / o.size)}, true
}

// sum returns the digest of a slab of the tensor that is written.
func (o *slabOrigin) sum(slab int) (Sum, error) {
	place := o.slabs[slab]
	sum, ok := o.track.slabSum(place)
	if !ok {
		return sum, fmt.Errorf("%s: expert %d of tensor %q has not passed", o.track.file.Name, place.slab, o.track.tensors[place.tensor].Name)
	}
	return sum, nil
}
