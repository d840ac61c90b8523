// Package pass reads files from front to back, several at once, and takes the SHA-256 of
// each while others look at the same bytes.
package pass

import (
	"context"
	"errors"
	"runtime"
	"sync"
)

const (
	// BufferSize is what one Worker reads at a time: small enough for what was read to
	// stay in the processor's cache while several hashes look at it.
	BufferSize = 256 << 10
	// copySize is what it reads and writes at a time: file systems take few large writes
	// with less effort than many small ones.
	copySize = 1 << 20
)

// maxWorkers bounds the memory of any number of workers that a caller asks for: each has
// two buffers, three pieces and the values of two trees, 2.25 MiB together.
const maxWorkers = 64

// A Worker has what one goroutine needs for any number of files.
type Worker struct {
	Buf  []byte // to read into
	copy []byte // a larger one, for writing; nil until it is wanted
	sums *Hasher
}

func newWorker(queue *Sums) *Worker {
	return &Worker{Buf: make([]byte, BufferSize), sums: newHasher(queue)}
}

// CopyBuffer returns the buffer for writing.
func (w *Worker) CopyBuffer() []byte {
	if w.copy == nil {
		w.copy = make([]byte, copySize)
	}
	return w.copy
}

// Hasher returns the worker's hasher, ready for another file.
func (w *Worker) Hasher() *Hasher {
	w.sums.Reset()
	return w.sums
}

// Workers returns on how many goroutines [ForEach] works at n things when it is asked for
// so many workers. No more than n of them get any.
func Workers(n, workers int) int {
	processors := runtime.GOMAXPROCS(0)
	if workers <= 0 {
		workers = 2 * processors
	}
	return min(workers, maxWorkers, max(n, processors))
}

// ForEach calls work for each i below n, on at most workers goroutines (0: two for each
// processor, so that one can wait for the disk). Those that find nothing left to do help
// the others with their sums. The first error cancels the context of the others and is
// returned when all have ended; of several, the one of the lowest i.
func ForEach(ctx context.Context, n, workers int, work func(ctx context.Context, i int, w *Worker) error) error {
	sums := NewSums()
	sums.patient = true
	return sums.forEach(ctx, n, workers, 0, work)
}

// ForEach does as [ForEach], with the sums of the workers and others taken together. There is
// help with them from the start: the workers may be few, and each have two files.
func (q *Sums) ForEach(ctx context.Context, n, workers int, work func(ctx context.Context, i int, w *Worker) error) error {
	return q.forEach(ctx, n, workers, runtime.GOMAXPROCS(0), work)
}

func (q *Sums) forEach(ctx context.Context, n, workers, helpers int, work func(ctx context.Context, i int, w *Worker) error) error {
	workers = Workers(n, workers)
	if n == 0 {
		return ctx.Err()
	}
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	next := make(chan int)
	errs := make([]error, n)
	q.join(workers)
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			defer q.leave()
			var w *Worker
			for i := range next {
				if w == nil {
					w = newWorker(q)
				}
				if errs[i] = work(inner, i, w); errs[i] != nil {
					cancel()
				}
			}
		})
	}
	for range helpers {
		group.Go(q.help)
	}
	handOut(inner, n, next)
	group.Wait()
	return firstError(ctx, errs)
}

// handOut sends the indexes below n until ctx is done.
func handOut(ctx context.Context, n int, next chan<- int) {
	defer close(next)
	for i := range n {
		select {
		case next <- i:
		case <-ctx.Done():
			return
		}
	}
}

// firstError prefers a cause to the cancellations that it led to.
func firstError(ctx context.Context, errs []error) error {
	for _, err := range errs {
		if err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return errors.Join(errs...)
}

// A Meter adds up what workers have done. Reports come one at a time and never go back,
// but from several goroutines.
type Meter struct {
	mu     sync.Mutex
	done   int64
	total  int64
	again  int64 // bytes to come that were counted before
	report func(done, total int64)
}

// NewMeter returns a Meter of total bytes; report may be nil.
func NewMeter(total int64, report func(done, total int64)) *Meter {
	return &Meter{total: total, report: report}
}

// Write counts bytes that pass by.
func (m *Meter) Write(p []byte) (int, error) {
	if m.report != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		counted := min(m.again, int64(len(p)))
		m.again -= counted
		m.done += int64(len(p)) - counted
		m.report(m.done, m.total)
	}
	return len(p), nil
}

// Repeat says that n of the bytes that passed by will do so once more.
func (m *Meter) Repeat(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.again += n
}

// Spare says that n bytes need not pass by.
func (m *Meter) Spare(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.total -= n
}
