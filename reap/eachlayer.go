package reap

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
)

// maxLayersAtOnce bounds the memory of scoring: each layer at work holds a few rows.
const maxLayersAtOnce = 16

// A layerScore computes the scores of a layer's experts. It reports bytes read.
type layerScore func(ctx context.Context, l *Layer, progress func(bytes int64)) ([]float64, error)

// eachLayer computes the scores of every layer that routes, several layers at a time.
// The first error stops it; of several, that of the first layer is returned. Calls of
// progress, which may be nil, come one at a time.
func eachLayer(ctx context.Context, e *Experts, progress func(bytes int64), score layerScore) (map[int][]float64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var reporting sync.Mutex
	report := func(bytes int64) {
		reporting.Lock()
		defer reporting.Unlock()
		if progress != nil {
			progress(bytes)
		}
	}
	scores, errs := make([][]float64, len(e.Layers)), make([]error, len(e.Layers))
	var taken atomic.Int64
	var group sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), maxLayersAtOnce, len(e.Layers)) {
		group.Go(func() {
			for ctx.Err() == nil {
				i := int(taken.Add(1)) - 1
				if i >= len(e.Layers) {
					return
				}
				if scores[i], errs[i] = score(ctx, e.Layers[i], report); errs[i] != nil {
					cancel()
				}
			}
		})
	}
	group.Wait()
	for _, err := range errs {
		if err != nil && !errors.Is(err, context.Canceled) {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	byBlock := map[int][]float64{}
	for i, l := range e.Layers {
		byBlock[l.Block] = scores[i]
	}
	return byBlock, nil
}
