package pass

import (
	"crypto/sha256"
	"hash"
	"runtime"
	"slices"
	"sync"

	"ggufreap/manifest/internal/sha256pair"
)

// pieceSize is how much of a file is hashed with SHA-256 at a time.
const pieceSize = 256 << 10

// pieces is how many pieces of one file may wait at once: enough for one of another file to
// be found that is hashed along.
const pieces = 3

// A piece of a file waits for its turn to be hashed.
type piece struct {
	owner *Hasher
	data  []byte
	done  bool // the owner's hash has seen data
}

// A sumQueue takes the SHA-256 of files that are read at the same time. That is the
// slowest thing that happens to a byte, and it cannot be split within a file: but two
// files are hashed in the time of one where [sha256pair.Faster], and a processor that no
// file keeps busy can hash what another one reads.
type sumQueue struct {
	mu      sync.Mutex
	changed sync.Cond
	waiting []*piece // those of one file in order
	streams int      // goroutines that may add pieces
}

func newSumQueue(streams int) *sumQueue {
	q := &sumQueue{streams: streams}
	q.changed.L = &q.mu
	return q
}

// add puts a piece into the queue.
func (q *sumQueue) add(p *piece) {
	q.mu.Lock()
	p.done = false
	q.waiting = append(q.waiting, p)
	q.mu.Unlock()
	q.changed.Broadcast()
}

// finish returns once p is hashed. Unless that has begun elsewhere, it does so itself,
// if it can together with a piece of another file: while enough other goroutines are at
// work, it waits for one.
func (q *sumQueue) finish(p *piece) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !p.done {
		if p.owner.hashing || q.alone(p) && q.streams > runtime.GOMAXPROCS(0) && sha256pair.Faster() {
			q.changed.Wait()
			continue
		}
		q.sum(p.owner)
	}
}

// alone reports whether no piece but those of p's file waits.
func (q *sumQueue) alone(p *piece) bool {
	return !slices.ContainsFunc(q.waiting, func(other *piece) bool { return other.owner != p.owner })
}

// ready returns the place of the first piece that can be hashed now and is not of the file
// of besides, or -1.
func (q *sumQueue) ready(besides *Hasher) int {
	return slices.IndexFunc(q.waiting, func(p *piece) bool { return p.owner != besides && !p.owner.hashing })
}

// sum hashes the first piece of a file that waits, and one of another file if two are hashed
// like one. The queue is unlocked meanwhile.
func (q *sumQueue) sum(owner *Hasher) {
	list := []*piece{q.take(slices.IndexFunc(q.waiting, func(p *piece) bool { return p.owner == owner }))}
	if i := q.ready(owner); i >= 0 && sha256pair.Faster() {
		list = append(list, q.take(i))
	}
	q.mu.Unlock()
	sumPieces(list)
	q.mu.Lock()
	for _, p := range list {
		p.owner.hashing, p.done = false, true
	}
	q.changed.Broadcast()
}

// take removes a piece from the queue for its file to be hashed.
func (q *sumQueue) take(i int) *piece {
	p := q.waiting[i]
	p.owner.hashing = true
	q.waiting = slices.Delete(q.waiting, i, i+1)
	return p
}

// sumPieces hashes one piece or two.
func sumPieces(list []*piece) {
	if len(list) == 2 {
		sha256pair.Write(list[0].owner.hash, list[1].owner.hash, list[0].data, list[1].data)
	} else {
		list[0].owner.hash.Write(list[0].data)
	}
}

// leave says that one goroutine adds no more pieces. It then hashes those of others, as
// long as there are more processors than others, and returns when all have left.
func (q *sumQueue) leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.streams--
	q.changed.Broadcast()
	for q.streams > 0 {
		i := q.ready(nil)
		if i < 0 || q.streams >= runtime.GOMAXPROCS(0) {
			q.changed.Wait()
			continue
		}
		q.sum(q.waiting[i].owner)
	}
}

// A Hasher takes the SHA-256 and the length of what passes by. That of a Worker hashes
// pieces while the next ones arrive. It may be used again after Reset.
type Hasher struct {
	hash    hash.Hash
	size    int64
	queue   *sumQueue // nil to hash at once
	pieces  [pieces]piece
	next    int  // that is being filled
	sent    int  // those before it that are in the queue, or free again
	hashing bool // one of them is being hashed; guarded by the queue's lock
}

// NewHasher returns a Hasher that hashes at once.
func NewHasher() *Hasher { return newHasher(nil) }

func newHasher(queue *sumQueue) *Hasher {
	h := &Hasher{hash: sha256.New(), queue: queue}
	for i := range h.pieces {
		h.pieces[i].owner = h
	}
	return h
}

// Reset begins a new file.
func (h *Hasher) Reset() {
	h.settle()
	h.hash.Reset()
	h.size = 0
	h.filling().data = h.filling().data[:0]
}

// filling returns the piece that is being filled.
func (h *Hasher) filling() *piece { return &h.pieces[h.next] }

// Write takes the next bytes of the file.
func (h *Hasher) Write(p []byte) (int, error) {
	h.size += int64(len(p))
	if h.queue == nil {
		return h.hash.Write(p)
	}
	for rest := p; len(rest) > 0; {
		now := h.filling()
		if now.data == nil {
			now.data = make([]byte, 0, pieceSize)
		}
		n := min(len(rest), pieceSize-len(now.data))
		now.data = append(now.data, rest[:n]...)
		rest = rest[n:]
		if len(now.data) == pieceSize {
			h.send()
		}
	}
	return len(p), nil
}

// send puts the piece that was filled into the queue, and takes the one that has been there
// longest to be filled next.
func (h *Hasher) send() {
	h.queue.add(h.filling())
	h.next = (h.next + 1) % pieces
	if h.sent++; h.sent == pieces {
		h.queue.finish(h.filling())
		h.sent--
	}
	h.filling().data = h.filling().data[:0]
}

// settle waits for the pieces in the queue.
func (h *Hasher) settle() {
	if h.sent > 0 {
		h.queue.finish(&h.pieces[(h.next+pieces-1)%pieces]) // the last of them
		h.sent = 0
	}
}

// Size returns how many bytes have passed by since Reset.
func (h *Hasher) Size() int64 { return h.size }

// Sum returns the digest of what has passed by since Reset. More may follow: it is hashed
// as fast as before where this is a multiple of [sha256.BlockSize].
func (h *Hasher) Sum() [sha256.Size]byte {
	h.settle()
	h.hash.Write(h.filling().data)
	h.filling().data = h.filling().data[:0]
	return [sha256.Size]byte(h.hash.Sum(nil))
}
