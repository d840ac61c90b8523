package manifest

import (
	"io"
	"slices"
	"sync"
)

// maxHeldBytes bounds the memory for parts that were read in part and are wanted no more.
const maxHeldBytes = 32 << 20

// heldParts are the parts of tensors that were looked at and are being read.
type heldParts struct {
	scratch string // folder of files

	mu     sync.Mutex
	parts  []*heldPart // the one that was used last comes last
	noRoom bool        // for files
	spare  []byte      // memory of a part that is gone
}

// A heldMemory is a part in memory.
type heldMemory []byte

func (m heldMemory) ReadAt(p []byte, off int64) (int, error) { return copy(p, m[off:]), nil }

// memory returns memory for n bytes.
func (l *heldParts) memory(n int64) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	spare := l.spare
	if l.spare = nil; int64(cap(spare)) < n {
		return make([]byte, n)
	}
	return spare[:n]
}

// A heldKey names a part.
type heldKey struct {
	tensor *Tensor
	part   int64
}

// A heldPart is in memory or in a file.
type heldPart struct {
	heldKey
	users int // guarded by heldParts.mu
	gone  bool

	once sync.Once
	data io.ReaderAt
	err  error
}

// load has the part loaded once, whoever comes first.
func (h *heldPart) load(load func() (io.ReaderAt, error)) error {
	h.once.Do(func() { h.data, h.err = load() })
	return h.err
}

// size is the memory that it takes and nobody reads.
func (h *heldPart) size() int64 {
	if h.users > 0 { // it may be loading
		return 0
	}
	memory, _ := h.data.(heldMemory)
	return int64(len(memory))
}

// get returns a part for a user, a new one if there may be one, else nil.
func (l *heldParts) get(key heldKey, may bool) *heldPart {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.parts, func(h *heldPart) bool { return h.heldKey == key })
	if i < 0 && !may {
		return nil
	}
	h := &heldPart{heldKey: key}
	if i >= 0 {
		h = l.parts[i]
		l.parts = slices.Delete(l.parts, i, i+1)
	}
	h.users++
	l.parts = append(l.parts, h)
	return h
}

// done says that a user is done with a part, and with last that it is wanted no more.
func (l *heldParts) done(h *heldPart, last bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h.users--
	if h.gone = h.gone || last || h.data == nil || h.err != nil; h.gone {
		l.forget(h)
		return
	}
	var bytes int64
	for i := len(l.parts) - 1; i >= 0; i-- {
		old := l.parts[i]
		if bytes += old.size(); bytes > maxHeldBytes && old.users == 0 {
			l.forget(old)
		}
	}
}

// forget gives a part back once nobody uses it.
func (l *heldParts) forget(h *heldPart) {
	l.parts = slices.DeleteFunc(l.parts, func(other *heldPart) bool { return other == h })
	if h.users > 0 {
		return
	}
	switch data := h.data.(type) {
	case io.Closer:
		data.Close()
	case heldMemory:
		l.spare = data
	}
}

// fill says that there is no room for files.
func (l *heldParts) fill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.noRoom = true
}

// full reports that there is none.
func (l *heldParts) full() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.noRoom
}
