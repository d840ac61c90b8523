package gguf

import "io"

// A Prefetcher is a source of bytes that can make use of knowing which of them are wanted
// soon. The files that [Open] opens are.
type Prefetcher interface {
	// Prefetch announces that n bytes at off will be read. It returns at once, and has
	// no effect but on time.
	Prefetch(off, n int64)
}

// A Fetcher is a Prefetcher far away: bytes that are announced travel at once, others when
// they are read, and each range costs a round trip. It tells what pays.
type Fetcher interface {
	Prefetcher
	// FetchAhead returns how many bytes are best announced before they are read, how many
	// at once, and over how many that nobody wants a range may go on.
	FetchAhead() (window, step, gap int64)
	// FetchAt reads bytes anew, whatever was announced and has come: for bytes that turned
	// out to be wrong. It fills p or returns an error.
	FetchAt(p []byte, off int64) (int, error)
}

// A Lender is a source that has bytes in its own memory, which need not be copied to be used.
type Lender interface {
	// Lend hands use the bytes from off on, at least one and at most n of them, and returns
	// how many: 0 where it has none to lend, so that they must be read. They are the
	// source's again when use returns, whose error it returns.
	Lend(off, n int64, use func(p []byte) error) (int64, error)
}

// A FarReader is a file far away.
type FarReader interface {
	io.ReaderAt
	Fetcher
}

// ReadThrough has a file far away read through another source of the same bytes from now on,
// such as one that looks at them. Readers and views that there are keep theirs. A file of this
// machine is left alone.
func (f *File) ReadThrough(wrap func(far FarReader) io.ReaderAt) {
	if far, ok := f.r.(FarReader); ok {
		f.r = wrap(far)
	}
}

// Prefetch announces bytes of the whole file, header included, as [Prefetcher].
func (f *File) Prefetch(off, n int64) { prefetch(f.r, off, n) }

// FetchAhead tells what pays, as [Fetcher]; nothing for a file of this machine, which the
// system reads ahead.
func (f *File) FetchAhead() (window, step, gap int64) {
	if far, ok := f.r.(Fetcher); ok {
		return far.FetchAhead()
	}
	return 0, 0, 0
}

func prefetch(r io.ReaderAt, off, n int64) {
	if p, ok := r.(Prefetcher); ok {
		p.Prefetch(off, n)
	}
}

// Prefetch asks the kernel to read bytes of the file into memory. That it cannot be asked
// is left to the reading to find out.
func (s *sourceFile) Prefetch(off, n int64) {
	f, err := s.acquire()
	if err != nil {
		return
	}
	defer s.release()
	willNeed(f, off, n)
}

const (
	// prefetchWindow is how far announcing runs before reading. It covers what a disk
	// delivers while a few buffers are hashed and written.
	prefetchWindow = 8 << 20
	// prefetchStep is what is announced at a time. Linux caps a request at what the
	// device takes at once, from 1 MiB up.
	prefetchStep = 1 << 20
	// prefetchGap is how far apart two extents may be to be announced as one.
	prefetchGap = 64 << 10
)

// A prefetching announces the extents of views in the order in which they are copied. A
// kernel that reads ahead on its own reads what lies between them too: a third of a model
// whose dropped experts are in the way.
type prefetching struct {
	views  []View // not announced to their end
	extent int    // of the first view
	done   int64  // bytes of that extent that are announced
	lead   int64  // bytes announced and not copied yet
}

// copied says that n more bytes were copied.
func (p *prefetching) copied(n int64) {
	p.lead -= n
	for p.announce() {
	}
}

// announce announces the next step, and reports whether there was one within the window.
func (p *prefetching) announce() bool {
	e, ok := p.peek()
	if !ok {
		return false
	}
	window, step, gap := int64(prefetchWindow), int64(prefetchStep), int64(prefetchGap)
	if f, far := e.Source.(Fetcher); far {
		window, step, gap = f.FetchAhead()
	}
	if p.lead > window-step {
		return false
	}
	e, _ = p.next(step)
	end := e.Offset + e.Length
	for end-e.Offset < step {
		more, ok := p.peek()
		if !ok || !sameSource(more.Source, e.Source) || more.Offset < end || more.Offset-end > gap {
			break
		}
		if more, ok = p.next(step - (more.Offset - e.Offset)); !ok {
			break
		}
		end = more.Offset + more.Length
	}
	prefetch(e.Source, e.Offset, end-e.Offset)
	return true
}

// peek returns what is left of the extent that is announced next.
func (p *prefetching) peek() (Extent, bool) {
	for len(p.views) > 0 {
		if p.extent < len(p.views[0].Extents) {
			e := p.views[0].Extents[p.extent]
			return Extent{e.Source, e.Offset + p.done, e.Length - p.done}, true
		}
		p.views, p.extent = p.views[1:], 0
	}
	return Extent{}, false
}

// next takes up to most bytes of the extent that is announced next.
func (p *prefetching) next(most int64) (Extent, bool) {
	e, ok := p.peek()
	if !ok || most <= 0 {
		return e, false
	}
	if e.Length > most {
		e.Length = most
		p.done += most
	} else {
		p.extent, p.done = p.extent+1, 0
	}
	p.lead += e.Length
	return e, true
}

// Ranges counts the ranges that writing views announces to a source far away, each of at
// most step bytes and with gaps of at most so many that nobody wants, and their bytes.
func Ranges(views []View, step, gap int64) (count int, bytes int64) {
	counters := map[io.ReaderAt]*rangeCounter{}
	counted := make([]View, len(views))
	for i, v := range views {
		counted[i] = v
		counted[i].Extents = nil
		for _, e := range v.Extents {
			if counters[e.Source] == nil {
				counters[e.Source] = &rangeCounter{ReaderAt: e.Source, step: step, gap: gap}
			}
			counted[i].Extents = append(counted[i].Extents, Extent{counters[e.Source], e.Offset, e.Length})
		}
	}
	(&prefetching{views: counted}).copied(0)
	for _, c := range counters {
		count += c.count
		bytes += c.bytes
	}
	return count, bytes
}

// A rangeCounter is a source far away that counts what is announced.
type rangeCounter struct {
	io.ReaderAt
	step, gap, bytes int64
	count            int
}

func (c *rangeCounter) Prefetch(_, n int64) {
	c.count++
	c.bytes += n
}

func (c *rangeCounter) FetchAhead() (window, step, gap int64) { return maxOffset, c.step, c.gap }

func (c *rangeCounter) FetchAt(p []byte, off int64) (int, error) { return c.ReadAt(p, off) }
