package manifest

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/zeebo/blake3"

	"ggufreap/gguf"
	"ggufreap/manifest/internal/pass"
)

const (
	// maxHeld bounds the memory for a part that is looked at before it is passed on; an
	// expert of the widest models has a few megabytes in a tensor. Larger ones wait in a file.
	maxHeld = 8 << 20
	// rereads is how often a part is asked for again that is not the pinned one.
	rereads = 2
)

// Guard has the files of a model that are far away, a [gguf.Fetcher], on whose way bytes can
// change, read through a look at each part as it arrives: each expert of a tensor that the pin
// tells apart, and all of any other tensor. A part that is not the pinned one is asked for
// again, twice, before that is a [DerivationError]. Parts of more than 8 MiB wait in a file
// without a name in the folder scratch ("" for that of temporary files); where it has no room
// for them, and where reading begins within one, they are passed on as they come.
//
// Readers and views that exist already are not guarded. Files of this machine are left alone.
func (p *Pin) Guard(m *gguf.Model, scratch string) {
	pinned := ByName(p)
	held := &heldParts{scratch: scratch}
	for _, f := range m.Files {
		f.ReadThrough(func(far gguf.FarReader) io.ReaderAt {
			g := &guardedFile{FarReader: far, name: f.Name, held: held}
			for _, t := range f.Tensors {
				if s := pinned[t.Name]; s != nil && s.Size > 0 && s.Size <= t.Size {
					g.tensors = append(g.tensors, newGuardedTensor(s, t.DataOffset()))
				}
			}
			slices.SortFunc(g.tensors, func(a, b guardedTensor) int { return cmp.Compare(a.offset, b.offset) })
			return g
		})
	}
}

// A guardedFile is a file far away whose parts are looked at.
type guardedFile struct {
	gguf.FarReader
	name    string
	tensors []guardedTensor // by offset
	held    *heldParts
}

// A guardedTensor is a tensor in its file, as its pin has it.
type guardedTensor struct {
	*Tensor
	offset int64
	part   int64 // bytes of an expert, or of the whole
}

func newGuardedTensor(s *Tensor, offset int64) guardedTensor {
	t := guardedTensor{s, offset, s.Size}
	if s.Slabs != nil {
		t.part = s.Size / int64(s.Slabs.Count)
	}
	return t
}

// filed reports whether its parts are too large to be in memory.
func (t *guardedTensor) filed() bool { return t.part > maxHeld }

// Unchanged asks the file, see [gguf.Source].
func (g *guardedFile) Unchanged() error {
	if c, ok := g.FarReader.(interface{ Unchanged() error }); ok {
		return c.Unchanged()
	}
	return nil
}

// at returns the tensor that has the byte at off, or nil and where the next one begins.
func (g *guardedFile) at(off, end int64) (*guardedTensor, int64) {
	i, exact := slices.BinarySearchFunc(g.tensors, off, func(t guardedTensor, off int64) int { return cmp.Compare(t.offset, off) })
	if !exact {
		i--
	}
	if i >= 0 && off < g.tensors[i].offset+g.tensors[i].Size {
		return &g.tensors[i], 0
	}
	if i+1 < len(g.tensors) {
		end = min(end, g.tensors[i+1].offset)
	}
	return nil, end
}

// Prefetch announces bytes, but for those of parts that wait in files: such a part is
// announced when it is taken, and then all of it.
func (g *guardedFile) Prefetch(off, n int64) {
	for end := off + n; off < end; {
		t, next := g.at(off, end)
		if t != nil {
			next = min(t.offset+t.Size, end)
		}
		if t == nil || !t.filed() || g.held.full() {
			next = g.plain(next, end)
			g.FarReader.Prefetch(off, next-off)
		}
		off = next
	}
}

// plain returns how far on from off bytes are announced as they are.
func (g *guardedFile) plain(off, end int64) int64 {
	for off < end {
		t, next := g.at(off, end)
		if t != nil && t.filed() && !g.held.full() {
			break
		}
		if t != nil {
			next = t.offset + t.Size
		}
		off = min(next, end)
	}
	return off
}

// ReadAt reads bytes of the file, as [io.ReaderAt].
func (g *guardedFile) ReadAt(p []byte, off int64) (int, error) {
	done := 0
	for done < len(p) {
		n, err := g.readPart(p[done:], off+int64(done))
		if done += n; err != nil {
			return done, err
		}
	}
	return done, nil
}

// readPart reads from one part, or from what lies between tensors.
func (g *guardedFile) readPart(p []byte, off int64) (int, error) {
	t, next := g.at(off, off+int64(len(p)))
	if t == nil {
		return g.FarReader.ReadAt(p[:next-off], off)
	}
	part, within := (off-t.offset)/t.part, (off-t.offset)%t.part
	p = p[:min(int64(len(p)), t.part-within)]
	held := g.held.get(heldKey{t.Tensor, part}, !t.filed() || within == 0 && !g.held.full())
	if held == nil {
		return g.FarReader.ReadAt(p, off)
	}
	last := within+int64(len(p)) == t.part
	defer g.held.done(held, last) // nobody reads a part twice
	if err := held.load(func() (io.ReaderAt, error) { return g.load(t, part) }); err != nil {
		return 0, err
	}
	if held.data == nil { // there was no room
		return g.FarReader.ReadAt(p, off)
	}
	return held.data.ReadAt(p, within)
}

// load takes a part until it is the pinned one, into memory or a file. It returns nil where
// there is no room for that.
func (g *guardedFile) load(t *guardedTensor, part int64) (io.ReaderAt, error) {
	if t.filed() {
		return g.loadFile(t, part)
	}
	memory := g.held.memory(t.part)
	err := g.until(t, part, func(off int64, try int) ([]byte, error) {
		if n, err := g.fetch(memory, off, try); n < len(memory) {
			return nil, err
		}
		if t.Slabs != nil && t.Slabs.Bytes != nil {
			return memory, nil
		}
		sum := blake3.Sum256(memory)
		return sum[:], nil
	})
	return heldMemory(memory), err
}

func (g *guardedFile) loadFile(t *guardedTensor, part int64) (io.ReaderAt, error) {
	file, err := NewScratchFile(g.held.scratch)
	if err != nil {
		g.held.fill()
		return nil, nil
	}
	err = g.until(t, part, func(off int64, try int) ([]byte, error) { return g.take(file, off, t.part, try) })
	switch {
	case err == nil:
		return file, nil
	case file.err != nil:
		g.held.fill()
		err = nil
	}
	file.Close()
	return nil, err
}

// until has a part taken until what identifies it is what the pin says.
func (g *guardedFile) until(t *guardedTensor, part int64, take func(off int64, try int) ([]byte, error)) error {
	place, want := fmt.Sprintf("%s: tensor %q", g.name, t.Name), t.BLAKE3[:]
	if t.Slabs != nil {
		place, want = fmt.Sprintf("%s: expert %d", place, part), t.Slabs.At(int(part))
	}
	for try := 0; ; try++ {
		got, err := take(t.offset+part*t.part, try)
		switch {
		case err != nil:
			return err
		case bytes.Equal(got, want):
			return nil
		case try == rereads && t.Slabs != nil && t.Slabs.Bytes != nil:
			return &DerivationError{fmt.Sprintf("%s: bytes are %x, the source's pin says %x, also when it was asked for again", place, got, want)}
		case try == rereads:
			return &DerivationError{fmt.Sprintf("%s: blake3 is %x, the source's pin says %x, also when it was asked for again", place, got, want)}
		}
	}
}

// take copies a part into a file and returns its digest.
func (g *guardedFile) take(file *ScratchFile, off, size int64, try int) ([]byte, error) {
	hash, buf := blake3.New(), make([]byte, 1<<20)
	ahead := pass.NewAhead(g.FarReader, off, off+size)
	for at := int64(0); at < size; {
		if try == 0 {
			ahead.Announce(off + at)
		}
		b := buf[:min(int64(len(buf)), size-at)]
		if n, err := g.fetch(b, off+at, try); n < len(b) {
			return nil, err
		}
		hash.Write(b)
		if _, err := file.WriteAt(b, at); err != nil {
			return nil, err
		}
		at += int64(len(b))
	}
	return hash.Sum(nil), nil
}

// fetch reads bytes, anew but for the first time: what was announced may still hold the wrong
// ones.
func (g *guardedFile) fetch(p []byte, off int64, try int) (int, error) {
	if try > 0 {
		return g.FetchAt(p, off)
	}
	return g.FarReader.ReadAt(p, off)
}
