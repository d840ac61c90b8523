package remote

import (
	"slices"
	"sync"
)

const (
	// maxPiece is the most that one request asks for in advance: seven experts of a
	// Kimi-K3, in whose pruned form 19 of 20 runs of neighbours are shorter.
	maxPiece = 8 << 20
	// chunkSize is how a piece lies in memory, to be given back as it is read.
	chunkSize = 1 << 20
	// maxGap is how many bytes that nobody wants are cheaper than another request. A
	// connection of 12.5 MB/s that waits 80 ms for an answer could have carried 1 MB
	// meanwhile; of sixteen, the others go on, so that a wait costs the sixteenth part. Rows
	// of a router are fetched together then, and experts of a megabyte apart.
	maxGap = 64 << 10
	// budget bounds the memory of pieces that were asked for and not read yet.
	budget = 96 << 20
)

// FetchAhead says how announcing pays: at most window bytes ahead of reading, in ranges of at
// most step bytes, which may hold gaps of so many bytes that nobody wants.
func (f *File) FetchAhead() (window, step, gap int64) {
	return budget / 2, maxPiece, maxGap
}

// Prefetch announces that n bytes at off will be read once, after those that were announced
// before. They are asked for as soon as connections and memory allow.
func (f *File) Prefetch(off, n int64) {
	end := min(off+n, f.Size())
	if off < int64(len(f.front)) {
		off = int64(len(f.front))
	}
	for off < end {
		p := newPiece(f, off, min(off+maxPiece, end))
		off = p.end
		f.mu.Lock()
		f.pieces = append(f.pieces, p)
		f.mu.Unlock()
		f.client.queue.add(p)
	}
}

// piece returns the announced piece that has the byte at off, or nil and where the next one
// begins, at the latest the end of the file.
func (f *File) piece(off int64) (*piece, int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := f.id.Size
	for _, p := range f.pieces {
		switch {
		case p.off <= off && off < p.end:
			return p, 0
		case p.off > off:
			next = min(next, p.off)
		}
	}
	return nil, next
}

// drop forgets a piece that was read to its end, or cannot be.
func (f *File) drop(p *piece) {
	f.mu.Lock()
	if i := slices.Index(f.pieces, p); i >= 0 {
		f.pieces = slices.Delete(f.pieces, i, i+1)
	}
	f.mu.Unlock()
	f.client.queue.release(p)
}

// A piece is a range of a file that is fetched before it is read.
type piece struct {
	file     *File
	off, end int64

	mu     sync.Mutex
	more   sync.Cond
	chunks [][]byte // nil where nothing has come, or all was read
	have   int64    // bytes that came
	ended  bool
	err    error

	started, counted bool // guarded by the queue
}

func newPiece(f *File, off, end int64) *piece {
	p := &piece{file: f, off: off, end: end, chunks: make([][]byte, (end-off+chunkSize-1)/chunkSize)}
	p.more.L = &p.mu
	return p
}

// memory is what the piece takes once all of it has come.
func (p *piece) memory() int64 { return int64(len(p.chunks)) * chunkSize }

// room is the rest of the chunk that the next bytes belong to.
func (p *piece) room() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	i, at := p.have/chunkSize, p.have%chunkSize
	if p.chunks[i] == nil {
		p.chunks[i] = p.file.client.pool.get(min(chunkSize, p.end-p.off-i*chunkSize))
	}
	return p.chunks[i][at:]
}

// took says that bytes have come, which may be read now.
func (p *piece) took(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.have += int64(n)
	p.more.Broadcast()
}

// finish says that nothing more will come.
func (p *piece) finish(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended, p.err = true, err
	p.more.Broadcast()
}

// read waits for the byte at off and takes what has come from there on, within one chunk.
// What lies before is not wanted any more.
func (p *piece) read(b []byte, off int64) (int, error) {
	p.file.client.queue.hurry(p)
	at := off - p.off
	p.mu.Lock()
	for p.have <= at && !p.ended {
		p.more.Wait()
	}
	if p.have <= at {
		err := p.err
		p.mu.Unlock()
		p.file.drop(p)
		return 0, err
	}
	i := at / chunkSize
	end := min(p.have, (i+1)*chunkSize)
	chunk := p.chunks[i]
	if chunk == nil { // read before
		p.mu.Unlock()
		return p.readAgain(b, off)
	}
	n := copy(b, chunk[at-i*chunkSize:end-i*chunkSize])
	p.free((at + int64(n)) / chunkSize)
	done := at+int64(n) == p.end-p.off
	p.mu.Unlock()
	if done {
		p.file.drop(p)
	}
	return n, nil
}

// lend waits for the rest of the chunk that has the byte at off, and hands use at most n bytes
// of it. The chunk is out of the piece meanwhile: others read such bytes again. It lends
// nothing where reading has to tell what went wrong.
func (p *piece) lend(off, n int64, use func([]byte) error) (int64, error) {
	p.file.client.queue.hurry(p)
	at := off - p.off
	i := at / chunkSize
	end := min(p.end-p.off, (i+1)*chunkSize)
	p.mu.Lock()
	for p.have < end && !p.ended {
		p.more.Wait()
	}
	chunk := p.chunks[i]
	if p.have < end || chunk == nil {
		p.mu.Unlock()
		return 0, nil
	}
	p.chunks[i] = nil
	p.mu.Unlock()

	n = min(n, end-at)
	err := use(chunk[at-i*chunkSize:][:n])
	p.mu.Lock()
	p.chunks[i] = chunk
	p.free((at + n) / chunkSize)
	p.mu.Unlock()
	if at+n == p.end-p.off {
		p.file.drop(p)
	}
	return n, err
}

// readAgain reads what the piece had and gave away.
func (p *piece) readAgain(b []byte, off int64) (int, error) {
	chunkEnd := p.off + ((off-p.off)/chunkSize+1)*chunkSize
	b = b[:min(int64(len(b)), min(chunkEnd, p.end)-off)]
	into := &slice{b, 0}
	err := p.file.fetch(p.file.client.ctx, off, off+int64(len(b)), into)
	return into.n, err
}

// free gives the chunks before one back.
func (p *piece) free(before int64) {
	for i := range before {
		if p.chunks[i] != nil {
			p.file.client.pool.put(p.chunks[i])
			p.chunks[i] = nil
		}
	}
}

// freeAll gives back what is left of a piece to which nothing more will come.
func (p *piece) freeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended || p.have == p.end-p.off {
		p.free(int64(len(p.chunks)))
	}
}

// A queue starts pieces in the order in which they were announced, as many as memory allows.
type queue struct {
	client *Client

	mu      sync.Mutex
	waiting []*piece
	used    int64 // memory of the pieces that were started and not dropped
}

// add announces a piece.
func (q *queue) add(p *piece) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, p)
	q.startSome()
}

// startSome starts what memory allows.
func (q *queue) startSome() {
	for len(q.waiting) > 0 {
		p := q.waiting[0]
		if q.used > 0 && q.used+p.memory() > budget {
			return
		}
		q.waiting = q.waiting[1:]
		q.start(p)
	}
}

func (q *queue) start(p *piece) {
	p.started, p.counted = true, true
	q.used += p.memory()
	q.client.group.Go(func() { p.finish(p.file.fetchKept(q.client.ctx, p.off, p.end, p)) })
}

// hurry starts a piece that somebody waits for, whatever memory is left.
func (q *queue) hurry(p *piece) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if p.started {
		return
	}
	if i := slices.Index(q.waiting, p); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
	q.start(p)
}

// release gives the memory of a piece back.
func (q *queue) release(p *piece) {
	p.freeAll()
	q.mu.Lock()
	defer q.mu.Unlock()
	if p.counted {
		p.counted = false
		q.used -= p.memory()
		q.startSome()
	}
}

// A pool keeps chunks, each with room for chunkSize bytes, to be used again.
type pool struct {
	mu    sync.Mutex
	spare [][]byte // of chunkSize
}

// get returns memory for at most chunkSize bytes.
func (c *pool) get(n int64) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last := len(c.spare) - 1; last >= 0 {
		chunk := c.spare[last]
		c.spare = c.spare[:last]
		return chunk[:n]
	}
	return make([]byte, n, chunkSize)
}

func (c *pool) put(chunk []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if int64(len(c.spare)) < budget/chunkSize {
		c.spare = append(c.spare, chunk)
	}
}
