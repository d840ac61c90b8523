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

// Sums takes the SHA-256 of files that are read at the same time. That is the slowest thing
// that happens to a byte, and it cannot be split within a file: but two files are hashed in
// less time than one after the other where [sha256pair.Faster], and a processor that no file
// keeps busy can hash what another one reads.
type Sums struct {
	mu      sync.Mutex
	changed sync.Cond
	waiting []*piece // those of one file in order
	streams int      // goroutines that may add pieces
	patient bool     // they may wait for each other
}

// NewSums returns a Sums for the Hashers of several files, by whom they may be read.
func NewSums() *Sums {
	q := &Sums{}
	q.changed.L = &q.mu
	return q
}

// join says that so many goroutines will add pieces.
func (q *Sums) join(streams int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.streams += streams
}

// add puts a piece into the queue.
func (q *Sums) add(p *piece) {
	q.mu.Lock()
	p.done = false
	q.waiting = append(q.waiting, p)
	q.mu.Unlock()
	q.changed.Broadcast()
}

// finish returns once p is hashed. Unless that has begun elsewhere, it does so itself,
// if it can together with a piece of another file: while enough other goroutines are at
// work, it waits for one.
func (q *Sums) finish(p *piece) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !p.done {
		if p.owner.hashing || q.patient && q.alone(p) && q.streams > runtime.GOMAXPROCS(0) && sha256pair.Faster() {
			q.changed.Wait()
			continue
		}
		q.sum(p.owner)
	}
}

// alone reports whether no piece but those of p's file waits.
func (q *Sums) alone(p *piece) bool {
	return !slices.ContainsFunc(q.waiting, func(other *piece) bool { return other.owner != p.owner })
}

// ready returns the place of the first piece that can be hashed now and is not of the file
// of besides, or -1.
func (q *Sums) ready(besides *Hasher) int {
	return slices.IndexFunc(q.waiting, func(p *piece) bool { return p.owner != besides && !p.owner.hashing })
}

// sum hashes the first piece of a file that waits, and one of another file if two are hashed
// like one. The queue is unlocked meanwhile.
func (q *Sums) sum(owner *Hasher) {
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
func (q *Sums) take(i int) *piece {
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

// leave says that one goroutine adds no more pieces. It then helps the others.
func (q *Sums) leave() {
	q.mu.Lock()
	q.streams--
	q.mu.Unlock()
	q.changed.Broadcast()
	q.help()
}

// help hashes the pieces of others: two at once, and single ones as long as there are more
// processors than others. It returns when all have left.
func (q *Sums) help() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.streams > 0 {
		i := q.ready(nil)
		if i < 0 || q.streams >= runtime.GOMAXPROCS(0) && q.ready(q.waiting[i].owner) < 0 {
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
	queue   *Sums // nil to hash at once
	pieces  [pieces]piece
	next    int  // that is being filled
	sent    int  // those before it that are in the queue, or free again
	hashing bool // one of them is being hashed; guarded by the queue's lock
}

// NewHasher returns a Hasher that hashes at once.
func NewHasher() *Hasher { return newHasher(nil) }

// Hasher returns a Hasher that hashes while the next bytes arrive, together with others.
func (q *Sums) Hasher() *Hasher { return newHasher(q) }

func newHasher(queue *Sums) *Hasher {
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
	if h.queue == nil {
		h.size += int64(len(p))
		return h.hash.Write(p)
	}
	for rest := p; len(rest) > 0; {
		n := copy(h.Next(), rest)
		rest = rest[n:]
		h.Filled(n)
	}
	return len(p), nil
}

// Next returns where the next bytes of the file may be put that [Hasher.Filled] takes then,
// of a Hasher of [Sums]: at least one, at most [BufferSize].
func (h *Hasher) Next() []byte {
	now := h.filling()
	if now.data == nil {
		now.data = make([]byte, 0, pieceSize)
	}
	return now.data[len(now.data):pieceSize]
}

// Filled takes the n bytes that were put where [Hasher.Next] said. They stay there until Next
// is called again.
func (h *Hasher) Filled(n int) {
	now := h.filling()
	h.size += int64(n)
	if now.data = now.data[:len(now.data)+n]; len(now.data) == pieceSize {
		h.send()
	}
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
