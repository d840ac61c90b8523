package gguf

import "testing"

// TestSpans wants the padded distances between tensors: the sample's tensors hold 5, 0,
// 1, 100, 33, 7 and 64 elements of 4 bytes and are aligned to 32.
func TestSpans(t *testing.T) {
	m := reopen(t, writeShards(t, layOutAs(t, sample(), Split{})))
	for i, want := range []int64{32, 0, 32, 416, 160, 32, 256} {
		if got := m.Tensors()[i].Span; got != want {
			t.Errorf("tensor %d spans %d bytes, want %d", i, got, want)
		}
	}
}
