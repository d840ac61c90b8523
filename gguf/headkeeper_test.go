package gguf

import "testing"

// TestHeadKeeperIsBounded keeps what fits, and no more.
func TestHeadKeeperIsBounded(t *testing.T) {
	k := &headKeeper{keeping: true}
	half := make([]byte, maxHead/2)
	for i := range 3 {
		k.keep(half, int64(i)*maxHead/2)
	}
	if len(k.parts) != 2 || k.size != maxHead {
		t.Errorf("%d parts of %d bytes, want 2 of %d", len(k.parts), k.size, maxHead)
	}
}
