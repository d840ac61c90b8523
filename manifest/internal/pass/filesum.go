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

// A piece of a file waits for its turn to be hashed.
type piece struct {
	hash hash.Hash
	data []byte
	done chan struct{} // receives once hash has seen data
}

func newPiece(h hash.Hash) *piece {
	return &piece{hash: h, data: make([]byte, 0, pieceSize), done: make(chan struct{}, 1)}
}

// A sumQueue takes the SHA-256 of files that are read at the same time. That is the
// slowest thing that happens to a byte, and it cannot be split within a file: but two
// files are hashed in the time of one where [sha256pair.Faster], and a processor that no
// file keeps busy can hash what another one reads.
type sumQueue struct {
	mu      sync.Mutex
	changed sync.Cond
	waiting []*piece
	streams int // goroutines that may add pieces
}

func newSumQueue(streams int) *sumQueue {
	q := &sumQueue{streams: streams}
	q.changed.L = &q.mu
	return q
}

// add puts a piece into the queue.
func (q *sumQueue) add(p *piece) {
	q.mu.Lock()
	q.waiting = append(q.waiting, p)
	q.mu.Unlock()
	q.changed.Broadcast()
}

// finish returns once p is hashed. Unless that has begun elsewhere, it does so itself,
// if it can together with another piece: while enough other goroutines are at work, it
// waits for one.
func (q *sumQueue) finish(p *piece) {
	q.mu.Lock()
	for q.alone(p) && q.streams > runtime.GOMAXPROCS(0) && sha256pair.Faster() {
		q.changed.Wait()
	}
	i := slices.Index(q.waiting, p)
	if i < 0 {
		q.mu.Unlock()
	} else {
		pieces := q.take(i)
		q.mu.Unlock()
		sumPieces(pieces)
	}
	<-p.done
}

// alone reports whether p waits and nothing else does.
func (q *sumQueue) alone(p *piece) bool { return len(q.waiting) == 1 && q.waiting[0] == p }

// take removes piece i from the queue, and another if two are hashed like one.
func (q *sumQueue) take(i int) []*piece {
	q.changed.Broadcast()
	pieces := []*piece{q.waiting[i]}
	q.waiting = slices.Delete(q.waiting, i, i+1)
	if len(q.waiting) > 0 && sha256pair.Faster() {
		pieces = append(pieces, q.waiting[0])
		q.waiting = slices.Delete(q.waiting, 0, 1)
	}
	return pieces
}

// sumPieces hashes one piece or two.
func sumPieces(pieces []*piece) {
	if len(pieces) == 2 {
		sha256pair.Write(pieces[0].hash, pieces[1].hash, pieces[0].data, pieces[1].data)
	} else {
		pieces[0].hash.Write(pieces[0].data)
	}
	for _, p := range pieces {
		p.done <- struct{}{}
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
		if len(q.waiting) == 0 || q.streams >= runtime.GOMAXPROCS(0) {
			q.changed.Wait()
			continue
		}
		pieces := q.take(0)
		q.mu.Unlock()
		sumPieces(pieces)
		q.mu.Lock()
	}
}

// A Hasher takes the SHA-256 and the length of what passes by. That of a Worker hashes a
// piece while the next one arrives. It may be used again after Reset.
type Hasher struct {
	hash  hash.Hash
	size  int64
	queue *sumQueue // nil to hash at once
	next  *piece    // being filled
	sent  *piece    // in the queue, or free
	busy  bool      // sent is in the queue
}

// NewHasher returns a Hasher that hashes at once.
func NewHasher() *Hasher { return newHasher(nil) }

func newHasher(queue *sumQueue) *Hasher {
	h := &Hasher{hash: sha256.New(), queue: queue}
	if queue != nil {
		h.next, h.sent = newPiece(h.hash), newPiece(h.hash)
	}
	return h
}

// Reset begins a new file.
func (h *Hasher) Reset() {
	h.settle()
	h.hash.Reset()
	h.size = 0
	if h.queue != nil {
		h.next.data = h.next.data[:0]
	}
}

// Write takes the next bytes of the file.
func (h *Hasher) Write(p []byte) (int, error) {
	h.size += int64(len(p))
	if h.queue == nil {
		return h.hash.Write(p)
	}
	for rest := p; len(rest) > 0; {
		n := min(len(rest), pieceSize-len(h.next.data))
		h.next.data = append(h.next.data, rest[:n]...)
		rest = rest[n:]
		if len(h.next.data) == pieceSize {
			h.send()
		}
	}
	return len(p), nil
}

// send puts the piece that was filled into the queue.
func (h *Hasher) send() {
	h.settle()
	h.next, h.sent = h.sent, h.next
	h.busy = true
	h.queue.add(h.sent)
	h.next.data = h.next.data[:0]
}

// settle waits for the piece in the queue.
func (h *Hasher) settle() {
	if h.busy {
		h.queue.finish(h.sent)
		h.busy = false
	}
}

// Size returns how many bytes have passed by since Reset.
func (h *Hasher) Size() int64 { return h.size }

// Sum returns the digest of what has passed by since Reset. More may follow: it is hashed
// as fast as before where this is a multiple of [sha256.BlockSize].
func (h *Hasher) Sum() [sha256.Size]byte {
	h.settle()
	if h.queue != nil {
		h.hash.Write(h.next.data)
		h.next.data = h.next.data[:0]
	}
	return [sha256.Size]byte(h.hash.Sum(nil))
}
