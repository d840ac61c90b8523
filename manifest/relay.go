package manifest

import (
	"sync"

	"ggufreap/manifest/internal/pass"
)

// A relay hashes parts of files while those who read them go on: it keeps a copy of what
// passes until it has a buffer full, which another goroutine then takes. Parts are hashed
// in the order in which they came.
type relay struct {
	mu   sync.Mutex
	next relayed // being filled
	sent relayed // being hashed
	busy chan error

	spare sync.Pool // of buffers for what readers leave out
}

// A relayed is a part of one file.
type relayed struct {
	track  *track
	offset int64
	data   []byte
}

func newRelay() *relay {
	r := &relay{busy: make(chan error, 1), spare: sync.Pool{New: func() any { return new([pass.BufferSize]byte) }}}
	for _, part := range []*relayed{&r.next, &r.sent} {
		part.data = make([]byte, 0, pass.BufferSize)
	}
	r.busy <- nil // nothing is being hashed
	return r
}

// pass takes a part of the track's file. It returns the first error of hashing so far.
func (r *relay) pass(t *track, part []byte, offset int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(part) > 0 {
		full := len(r.next.data) == cap(r.next.data)
		if full || r.next.track != t || r.next.offset+int64(len(r.next.data)) != offset {
			if err := r.send(); err != nil {
				return err
			}
			r.next.track, r.next.offset = t, offset
		}
		n := copy(r.next.data[len(r.next.data):cap(r.next.data)], part)
		r.next.data = r.next.data[:len(r.next.data)+n]
		part, offset = part[n:], offset+int64(n)
	}
	return nil
}

// send has what was filled hashed, once what was sent before is.
func (r *relay) send() error {
	err := <-r.busy
	if err != nil || len(r.next.data) == 0 {
		r.busy <- err
		return err
	}
	r.next, r.sent = r.sent, r.next
	r.next.data = r.next.data[:0]
	sent := r.sent
	go func() { r.busy <- sent.track.hash(sent.data, sent.offset) }()
	return nil
}

// drain returns when everything is hashed.
func (r *relay) drain() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.send(); err != nil {
		return err
	}
	err := <-r.busy
	r.busy <- err
	return err
}
