package manifest

import (
	"bytes"
	"io"
	"sync"

	"github.com/zeebo/blake3"

	"ggufreap/gguf"
)

const (
	// maxReread bounds the memory for one expert; that of the widest models has a few
	// megabytes in a tensor.
	maxReread = 64 << 20
	// rereads is how often an expert is asked for again that is not the pinned one.
	rereads = 2
)

// Reread returns the same views, read through a look at each expert as it arrives: one that
// is not the pinned one is asked for again before that is an error. It is for sources far
// away, a [gguf.Fetcher], on whose way bytes can change; of others the views are returned.
func (d *Derivation) Reread(views []gguf.View) []gguf.View {
	reread := make([]gguf.View, len(views))
	for i, v := range views {
		reread[i] = v
		s, keep := d.source[v.Name], d.Keep(v.Name)
		if s == nil || s.Slabs == nil || s.Slabs.Bytes != nil || len(keep) == 0 || len(v.Extents) == 0 || d.Rewritten != nil && d.Rewritten(v.Name) {
			continue
		}
		far, ok := v.Extents[0].Source.(farSource)
		size := s.Size / int64(s.Slabs.Count)
		if !ok || size > maxReread {
			continue
		}
		r := &rereader{farSource: far, d: d, tensor: s, size: size, base: v.Extents[0].Offset - int64(keep[0])*size, held: -1}
		reread[i].Extents = make([]gguf.Extent, len(v.Extents))
		for j, e := range v.Extents {
			reread[i].Extents[j] = gguf.Extent{Source: r, Offset: e.Offset, Length: e.Length}
		}
	}
	return reread
}

// A farSource is a source of which bytes are announced.
type farSource interface {
	io.ReaderAt
	gguf.Fetcher
}

// A rereader reads one tensor, an expert at a time.
type rereader struct {
	farSource
	d      *Derivation
	tensor *Tensor
	size   int64 // of an expert's bytes
	base   int64 // where the tensor begins in its file

	mu   sync.Mutex
	slab []byte
	held int // the expert that slab has, -1 for none
}

// ReadAt reads bytes of the tensor, as [io.ReaderAt].
func (r *rereader) ReadAt(p []byte, off int64) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	done := 0
	for done < len(p) {
		at := off + int64(done) - r.base
		if err := r.load(int(at / r.size)); err != nil {
			return done, err
		}
		done += copy(p[done:], r.slab[at%r.size:])
	}
	return done, nil
}

// load reads an expert until it is the pinned one.
func (r *rereader) load(expert int) error {
	if r.held == expert {
		return nil
	}
	if r.slab == nil {
		r.slab = make([]byte, r.size)
	}
	r.held = -1
	want := r.tensor.Slabs.At(expert)
	for try := 0; ; try++ {
		read := r.farSource.ReadAt
		if try > 0 {
			read = r.FetchAt // what was announced may still hold the wrong bytes
		}
		if n, err := read(r.slab, r.base+int64(expert)*r.size); int64(n) < r.size {
			return err
		}
		got := blake3.Sum256(r.slab)
		switch {
		case bytes.Equal(got[:], want):
			r.held = expert
			return nil
		case try == rereads:
			return r.d.differs(r.tensor.Name, expert, "blake3 is %x, the source's pin says %x, also when it was asked for again", got, want)
		}
	}
}
