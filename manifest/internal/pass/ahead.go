package pass

import "io"

// An Ahead announces bytes to a source far away before they are read. What reads files of
// this machine front to back is read ahead by the system.
type Ahead struct {
	source fetcher // nil for a file of this machine
	next   int64   // not announced yet
	end    int64
}

// A fetcher is a source that wants to know early what will be read.
type fetcher interface {
	Prefetch(off, n int64)
	FetchAhead() (window, step, gap int64)
}

// NewAhead returns an Ahead of the bytes from from to to, in which the source is read.
func NewAhead(r io.ReaderAt, from, to int64) *Ahead {
	source, _ := r.(fetcher)
	return &Ahead{source, from, to}
}

// Far reports that the source is far away.
func (a *Ahead) Far() bool {
	if a.source == nil {
		return false
	}
	_, step, _ := a.source.FetchAhead()
	return step > 0
}

// Announce announces what is to be on its way when offset is read.
func (a *Ahead) Announce(offset int64) {
	if a.source == nil {
		return
	}
	window, step, _ := a.source.FetchAhead()
	for step > 0 && a.next < a.end && a.next+min(step, a.end-a.next) <= offset+window {
		n := min(step, a.end-a.next)
		a.source.Prefetch(a.next, n)
		a.next += n
	}
}
