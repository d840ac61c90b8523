package manifest

import (
	"crypto/sha256"
	"hash"
	"io"
	"runtime"
	"sync"
	"sync/atomic"

	"ggufreap/manifest/internal/pass"
	"ggufreap/manifest/internal/sha256pair"
)

// A hashing is what all tracks of a [Recorder] hash with.
type hashing struct {
	count   *pass.Meter
	blocks  sync.Pool
	hashers []pairHasher
	tracks  atomic.Uint32 // that have a side
}

// A block is a part of one file.
type block struct {
	track  *track
	offset int64
	data   []byte
}

// maxQueue is how many blocks of one file may have been read and not hashed.
const maxQueue = 8

func newHashing(count *pass.Meter) *hashing {
	h := &hashing{count: count, hashers: make([]pairHasher, runtime.GOMAXPROCS(0))}
	h.blocks.New = func() any { return &block{data: make([]byte, 0, pass.BufferSize)} }
	return h
}

// next returns the hasher of another track, and the side of it. Those that begin one after
// the other, as lanes do, are each other's other side.
func (h *hashing) next() (*pairHasher, int) {
	n := int(h.tracks.Add(1)-1) % (2 * len(h.hashers))
	return &h.hashers[n/2], n % 2
}

// A pairHasher hashes the blocks of two rows of tracks, two at a time where both have any:
// their SHA-256 then take hardly more time than one. A row alone waits for the other one,
// up to patience blocks. Its goroutine runs while there is something to hash.
type pairHasher struct {
	mu     sync.Mutex
	queues [2][]*block // in order
	busy   bool
	hurry  bool // somebody waits for the last blocks
}

// patience is how many blocks of a row wait for one of the other. Those of a file that is
// read are more than that when its reader waits.
const patience = maxQueue / 2

// add puts a block into a queue.
func (h *pairHasher) add(side int, b *block) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.queues[side] = append(h.queues[side], b)
	h.start()
}

// rush has all blocks hashed from now on, whether or not there are two.
func (h *pairHasher) rush() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hurry = true
	h.start()
}

func (h *pairHasher) start() {
	if !h.busy && h.ready() {
		h.busy = true
		go h.run()
	}
}

// ready reports whether there are two blocks, or one that is not to wait for another.
func (h *pairHasher) ready() bool {
	a, b := len(h.queues[0]), len(h.queues[1])
	return min(a, b) > 0 || max(a, b) > patience || max(a, b) > 0 && (h.hurry || !sha256pair.Faster())
}

// next takes a block of each queue that has one, and reports false when they are to wait.
func (h *pairHasher) next() (pair [2]*block, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.busy = h.ready(); !h.busy {
		return pair, false
	}
	for side := range pair {
		if queue := h.queues[side]; len(queue) > 0 {
			pair[side], h.queues[side] = queue[0], queue[1:]
		}
	}
	return pair, true
}

// run hashes until there are no blocks.
func (h *pairHasher) run() {
	for {
		pair, ok := h.next()
		if !ok {
			return
		}
		var whole [2]hash.Hash
		var data [2][]byte
		for side, b := range pair {
			whole[side] = sha256.New()
			if b != nil {
				whole[side], data[side] = b.track.begin().align(b.data)
			}
		}
		sha256pair.Write(whole[0], whole[1], data[0], data[1])
		for _, b := range pair {
			if b != nil {
				b.track.take(b)
			}
		}
	}
}

// A trackDigests takes the digests of one file.
type trackDigests struct {
	whole    hash.Hash
	carry    []byte // of the file's last bytes those that are no whole block of SHA-256
	listener *tensorListener
	spans    *pass.Cursor
}

// begin returns the digests of the track's file.
func (t *track) begin() *trackDigests {
	if t.digests != nil {
		return t.digests
	}
	t.digests = &trackDigests{whole: sha256.New(), listener: newTensorListener(nil)}
	listener := t.digests.listener
	var spans []pass.Span
	for i, tensor := range t.file.Tensors {
		spans = append(spans, pass.Span{Offset: tensor.DataOffset(), Size: t.tensors[i].Size, Begin: func() io.Writer { return listener.begin(&t.tensors[i]) }})
	}
	t.digests.spans = pass.NewCursor(spans)
	return t.digests
}

// align returns the file's hash and what of its next bytes are whole blocks of SHA-256, to
// be written to it. Those before and behind them it takes itself.
func (d *trackDigests) align(p []byte) (hash.Hash, []byte) {
	if len(d.carry) > 0 {
		n := min(sha256.BlockSize-len(d.carry), len(p))
		d.carry, p = append(d.carry, p[:n]...), p[n:]
		if len(d.carry) < sha256.BlockSize {
			return d.whole, nil
		}
		d.whole.Write(d.carry)
	}
	whole := len(p) / sha256.BlockSize * sha256.BlockSize
	d.carry = append(d.carry[:0], p[whole:]...)
	return d.whole, p[:whole]
}

// end returns the sum of a file of size bytes that has passed.
func (d *trackDigests) end(size int64) (sum Sum, err error) {
	d.whole.Write(d.carry)
	d.whole.Sum(sum[:0])
	if err := d.spans.End(size); err != nil {
		return sum, err
	}
	return sum, d.listener.end()
}
