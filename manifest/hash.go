package manifest

import (
	"fmt"
	"slices"

	"ggufreap/manifest/internal/blake3"
)

// smallSlab is the size up to which a slab stands for itself: its bytes are no
// longer than its digest, and say more.
const smallSlab = int64(len(Sum{}))

// hashStep is what both digests look at in turn, so that the second finds it in the
// processor's inner cache.
const hashStep = 64 << 10

// TensorSums are the digests of one tensor's data. A tensor with n slabs has either
// n digests, 32 bytes each, in SlabSums or, where a slab has 32 bytes or
// less, the n slabs themselves in SlabBytes. Without slabs both are nil.
type TensorSums struct {
	BLAKE3    Sum
	SlabSums  []byte
	SlabBytes []byte
}

// TensorHasher takes the digest of one tensor and of each of its slabs while the
// bytes pass by, in chunks of any size. It may be used again after Reset; it is
// for one goroutine.
type TensorHasher struct {
	whole, slab blake3.Hasher
	size        int64                       // bytes expected
	done        int64                       // bytes seen
	slabSize    int64                       // 0 without slabs
	slabLeft    int64                       // bytes that the current slab lacks
	known       func(slab int) (Sum, error) // its digest once it has passed; nil to take it
	sums        TensorSums
}

// NewTensorHasher returns a hasher that needs a Reset before the first byte.
func NewTensorHasher() *TensorHasher {
	return &TensorHasher{whole: blake3.New(), slab: blake3.New()}
}

// Reset prepares for a tensor of size bytes that is slabs equal parts; 0 slabs say
// that it has none.
func (h *TensorHasher) Reset(size int64, slabs int) error {
	if size < 0 || slabs < 0 {
		return fmt.Errorf("%d bytes for %d experts", size, slabs)
	}
	if slabs > 0 && (size == 0 || size%int64(slabs) != 0) {
		return fmt.Errorf("%d bytes do not divide into %d experts", size, slabs)
	}
	h.whole.Reset()
	h.size, h.done, h.slabSize, h.known, h.sums = size, 0, 0, nil, TensorSums{}
	if slabs == 0 {
		return nil
	}
	h.slab.Reset()
	h.slabSize = size / int64(slabs)
	h.slabLeft = h.slabSize
	if h.slabSize <= smallSlab {
		h.sums.SlabBytes = make([]byte, 0, size)
	} else {
		h.sums.SlabSums = make([]byte, 0, slabs*len(Sum{}))
	}
	return nil
}

// Write takes the next bytes of the tensor. More than Reset was told is an error.
func (h *TensorHasher) Write(p []byte) (int, error) {
	if int64(len(p)) > h.size-h.done {
		return 0, fmt.Errorf("got %d bytes of a tensor that has %d", h.done+int64(len(p)), h.size)
	}
	h.done += int64(len(p))
	for part := range slices.Chunk(p, hashStep) {
		h.whole.Write(part)
		switch {
		case h.sums.SlabBytes != nil:
			h.sums.SlabBytes = append(h.sums.SlabBytes, part...)
		case h.sums.SlabSums != nil:
			if err := h.writeSlabs(part); err != nil {
				return 0, err
			}
		}
	}
	return len(p), nil
}

func (h *TensorHasher) writeSlabs(p []byte) error {
	for len(p) > 0 {
		n := min(int64(len(p)), h.slabLeft)
		if h.known == nil {
			h.slab.Write(p[:n])
		}
		p = p[n:]
		if h.slabLeft -= n; h.slabLeft > 0 {
			continue
		}
		if err := h.endSlab(); err != nil {
			return err
		}
	}
	return nil
}

// endSlab adds the digest of the slab that has passed.
func (h *TensorHasher) endSlab() error {
	h.slabLeft = h.slabSize
	if h.known == nil {
		h.sums.SlabSums = h.slab.Sum(h.sums.SlabSums)
		h.slab.Reset()
		return nil
	}
	sum, err := h.known(len(h.sums.SlabSums) / len(Sum{}))
	h.sums.SlabSums = append(h.sums.SlabSums, sum[:]...)
	return err
}

// Sums returns the digests. That bytes are missing is an error.
func (h *TensorHasher) Sums() (TensorSums, error) {
	if h.done != h.size {
		return TensorSums{}, fmt.Errorf("got %d bytes of a tensor that has %d", h.done, h.size)
	}
	h.whole.Sum(h.sums.BLAKE3[:0])
	return h.sums, nil
}
