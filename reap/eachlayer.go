package reap

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// maxLayersAtOnce bounds the memory of scoring: each layer at work holds a few rows.
const maxLayersAtOnce = 16

// A layerScore computes the scores of a layer's experts, and their places where the scores
// do not tell all. It reports bytes read.
type layerScore func(ctx context.Context, l *Layer, progress func(bytes int64)) (scores []float64, places []int, err error)

// eachLayer makes the scores of every layer that routes, several layers at a time.
// An error stops it from beginning with further layers; those before are finished, so that
// the error of the first layer that has one is returned, whichever worker was faster. Calls
// of progress, which may be nil, come one at a time.
func eachLayer(ctx context.Context, e *Experts, criterion string, progress func(bytes int64), score layerScore) (*Scores, error) {
	report := oneAtATime(progress)
	scores, places := make([][]float64, len(e.Layers)), make([][]int, len(e.Layers))
	errs := make([]error, len(e.Layers))
	var taken atomic.Int64
	var failed atomic.Bool
	var group sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), maxLayersAtOnce, len(e.Layers)) {
		group.Go(func() {
			for ctx.Err() == nil && !failed.Load() {
				i := int(taken.Add(1)) - 1
				if i >= len(e.Layers) {
					return
				}
				if scores[i], places[i], errs[i] = score(ctx, e.Layers[i], report); errs[i] != nil {
					failed.Store(true)
				}
			}
		})
	}
	group.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(errs, func(err error) bool { return err != nil }); i >= 0 {
		return nil, errs[i]
	}
	s := &Scores{Criterion: NewCriterion(criterion), Layers: map[int][]float64{}}
	for i, l := range e.Layers {
		s.Layers[l.Block] = scores[i]
		s.setPlaces(l.Block, places[i])
	}
	return s, nil
}

// oneAtATime lets several workers report to a function that wants its calls one by one, and
// may be nil.
func oneAtATime(progress func(bytes int64)) func(bytes int64) {
	var mu sync.Mutex
	return func(bytes int64) {
		mu.Lock()
		defer mu.Unlock()
		if progress != nil {
			progress(bytes)
		}
	}
}
