package reap

import (
	"context"
	"fmt"
	"math"

	"ggufreap/gguf"
)

// RouterNorm is the criterion of [RouterNormScores].
const RouterNorm = "router-norm"

// RouterNormScores computes for each expert the deviation of its router logit when the
// normalised hidden state is isotropic: with W the expert's router row and gamma the
// weights of the norm before the router,
//
//	sqrt(sum_j (W_j * gamma_j)^2)
//
// It needs the model alone, no text. An expert with a small deviation is rarely chosen
// unless its bias says so; the score knows nothing of what the expert computes, so it
// is a proxy, not a measurement. The sum runs over j in order in float64 with every
// step rounded, so the scores are the same on every machine.
//
// Router and norm must be F32, F16 or BF16. One router row is held at a time. Bytes
// read are reported to progress, which may be nil.
func RouterNormScores(ctx context.Context, m *gguf.Model, e *Experts, progress func(bytes int64)) (*Scores, error) {
	s := &Scores{Criterion: Criterion{Name: RouterNorm, Version: 1}, Layers: map[int][]float64{}}
	for _, l := range e.Layers {
		gamma, err := routerScale(m, e.Architecture, l)
		if err != nil {
			return nil, err
		}
		router := l.Tensor(Router)
		if gamma != nil && uint64(len(gamma)) != router.Shape[0] {
			return nil, fmt.Errorf("tensor %q: rows of %d, but the norm before it has %d weights", router.Name, router.Shape[0], len(gamma))
		}
		scores := make([]float64, 0, e.Count)
		err = eachRow(router.Tensor, func(_ int, row []float64) error {
			scores = append(scores, scaledNorm(row, gamma))
			if progress != nil {
				progress(router.SlabBytes)
			}
			return ctx.Err()
		})
		if err != nil {
			return nil, err
		}
		s.Layers[l.Block] = scores
	}
	return s, nil
}

// scaledNorm is the Euclidean norm of row times gamma. The conversions keep the
// compiler from fusing a product with the sum, which would round once instead of twice
// on some processors. Square roots are exact to the last bit everywhere.
func scaledNorm(row, gamma []float64) float64 {
	var sum float64
	for j, w := range row {
		if gamma != nil {
			w = float64(w * gamma[j])
		}
		sum = float64(sum + float64(w*w))
	}
	return math.Sqrt(sum)
}
