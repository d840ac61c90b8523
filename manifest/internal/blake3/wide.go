package blake3

const (
	lanes     = 16 // inputs that are hashed at once
	batchSize = lanes * chunkSize
	halfSize  = lanes * valueSize
)

// nodes are the chaining values of thirty-two neighbouring nodes of the tree: the blocks
// of their sixteen parents.
type nodes [2 * halfSize]byte

// wide is a Hasher that works on sixteen chunks, or sixteen parents, at once. It keeps
// for each level of the tree the values that have no parent yet, always none or sixteen
// of them: when sixteen more arrive, the thirty-two become sixteen of the level above.
// That gives the tree of section 2.1, whose left subtrees are full, and goes like the
// carrying of a binary counter of batches.
type wide struct {
	batches uint64  // hashed
	levels  []nodes // the first half is in use where batches has a one
	buf     [batchSize]byte
	n       int // bytes in buf
}

func (h *wide) Reset() { h.batches, h.n = 0, 0 }

func (h *wide) Write(p []byte) (int, error) {
	written := len(p)
	if h.n > 0 {
		n := copy(h.buf[h.n:], p)
		p = p[n:]
		if h.n += n; h.n < batchSize {
			return written, nil
		}
		h.batch(h.buf[:])
	}
	for ; len(p) >= batchSize; p = p[batchSize:] {
		h.batch(p[:batchSize])
	}
	h.n = copy(h.buf[:], p)
	return written, nil
}

// batch adds sixteen chunks. They have siblings, so none of them is the root.
func (h *wide) batch(p []byte) {
	hashChunks(h.next(0), p, h.batches*lanes)
	for level := 0; h.batches>>level&1 == 1; level++ {
		hashParents(h.next(level+1), &h.levels[level])
	}
	h.batches++
}

// next is where the next sixteen values of a level go.
func (h *wide) next(level int) []byte {
	if level == len(h.levels) {
		h.levels = append(h.levels, nodes{})
	}
	second := h.batches >> level & 1
	return h.levels[level][halfSize*second:][:halfSize]
}

// Sum appends the digest. It pairs the values that are left level by level.
func (h *wide) Sum(b []byte) []byte {
	var sum [valueSize]byte
	if h.batches == 0 && h.n <= chunkSize {
		hashOne(sum[:], h.buf[:h.n], 0, chunkStart, chunkEnd|root)
		return append(b, sum[:]...)
	}
	var left nodes
	count := h.rest(&left)
	for level := 0; count != 2 || h.batches>>level > 0; level++ {
		if h.batches>>level&1 == 1 {
			copy(left[halfSize:], left[:halfSize])
			copy(left[:], h.levels[level][:halfSize])
			count += lanes
		}
		count = pair(&left, count)
	}
	hashOne(sum[:], left[:blockSize], 0, parent, root)
	return append(b, sum[:]...)
}

// rest hashes the chunks in buf, the last of which may be short, and counts them.
func (h *wide) rest(left *nodes) int {
	first := h.batches * lanes
	count := h.n / chunkSize
	if count > 0 {
		hashChunks(left[:], h.buf[:], first)
	}
	if short := h.buf[count*chunkSize : h.n]; len(short) > 0 {
		hashOne(left[count*valueSize:], short, first+uint64(count), chunkStart, chunkEnd)
		count++
	}
	return count
}

// pair replaces count values by those of their parents, and counts them. The last of an
// odd number rises as it is.
func pair(left *nodes, count int) int {
	if count%2 == 0 {
		hashParents(left[:], left)
		return count / 2
	}
	last := [valueSize]byte(left[(count-1)*valueSize:])
	hashParents(left[:], left)
	copy(left[count/2*valueSize:], last[:])
	return count/2 + 1
}

// hashChunks puts the values of sixteen chunks, of which the first is number first, at
// the beginning of out.
func hashChunks(out, p []byte, first uint64) {
	var counters [2][lanes]uint32
	for i := range uint64(lanes) {
		counters[0][i], counters[1][i] = uint32(first+i), uint32((first+i)>>32)
	}
	hash16(out[:halfSize], p[:batchSize], chunkSize, &counters, chunkStart, chunkEnd)
}

var noCounters [2][lanes]uint32

// hashParents puts the values of sixteen parents at the beginning of out, which may be
// that of their children.
func hashParents(out []byte, children *nodes) {
	hash16(out[:halfSize], children[:], blockSize, &noCounters, parent, 0)
}
