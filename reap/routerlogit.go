package reap

import (
	"context"
	"fmt"
	"math"

	"ggufreap/gguf"
)

// routerLogits are what is known of a layer's router logits when the normalised hidden
// state before the router is isotropic: each is normal, with a mean and a deviation.
type routerLogits struct {
	mean      []float64
	deviation []float64
}

// readRouterLogits reads the router of a layer. Router and norm must be F32, F16 or BF16.
// Sums run in order of the input in float64 with every step rounded, so the numbers are
// the same on every machine. Bytes read are reported to progress.
func readRouterLogits(ctx context.Context, m *gguf.Model, e *Experts, l *Layer, progress func(bytes int64)) (*routerLogits, error) {
	in, err := readRouterInput(m, e.Architecture, l)
	if err != nil {
		return nil, err
	}
	router := l.Tensor(Router)
	if err := in.check(router); err != nil {
		return nil, err
	}
	logits := &routerLogits{}
	err = eachRows(router.Tensor, rowsAtOnce, func(first int, rows [][]float64) error {
		deviations := in.deviations(rows)
		for i, row := range rows {
			mean, deviation := in.mean(row), deviations[i]
			if !finite(mean) || !finite(deviation) {
				return fmt.Errorf("tensor %q: expert %d: the logit has mean %v and deviation %v", router.Name, first+i, mean, deviation)
			}
			logits.mean = append(logits.mean, mean)
			logits.deviation = append(logits.deviation, deviation)
		}
		progress(int64(len(rows)) * router.SlabBytes)
		return ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	bias, err := expertVector(l, RouterBias)
	for expert, b := range bias {
		logits.mean[expert] += b
	}
	return logits, err
}

// expertVector reads a tensor with one number for each expert, nil when there is none.
func expertVector(l *Layer, role Role) ([]float64, error) {
	t := l.Tensor(role)
	if t == nil {
		return nil, nil
	}
	vector, err := readVector(t.Tensor)
	for expert, x := range vector {
		if !finite(x) {
			return nil, fmt.Errorf("tensor %q: expert %d is %v", t.Name, expert, x)
		}
	}
	return vector, err
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
