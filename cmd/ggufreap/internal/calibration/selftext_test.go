package calibration

import "testing"

func TestSideBySide(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		documents  int
		each, free uint64
		want       int
	}{
		{100, 0, 1 << 40, fewStreams}, // what a document takes is not known
		{3, 0, 0, 3},
		{100, 60, 1 << 40, mostStreams},
		{100, 465 * mib, 64 << 30, mostStreams}, // Kimi-K3
		{100, 465 * mib, 16 << 30, 8},
		{100, 465 * mib, 1 << 30, 1},
		{5, 465 * mib, 64 << 30, 5},
	} {
		if got := sideBySide(c.documents, c.each, c.free); got != c.want {
			t.Errorf("%d documents of %d bytes in %d: %d side by side, want %d", c.documents, c.each, c.free, got, c.want)
		}
	}
}

// A little text is many short documents, much text more of full length.
func TestWriting(t *testing.T) {
	for _, c := range []struct{ tokens, ctx, context, want int }{
		{100, 0, 2048, 1}, {1024, 0, 2048, 8}, {4096, 0, 2048, 32}, {16384, 0, 2048, 32}, {65536, 0, 2048, 128},
		{65536, 0, 256, 256}, {65536, 2048, 2048, 32}, {2, 0, 2048, 1}, {101, 2, 2, 51},
	} {
		campaign := Campaign{Self: c.tokens, Context: c.ctx}
		if w := campaign.writing(c.context); w.Documents != c.want || w.Tokens != c.tokens {
			t.Errorf("%d tokens, --ctx %d of %d: %d documents, want %d", c.tokens, c.ctx, c.context, w.Documents, c.want)
		}
	}
}
