package reap

import (
	"context"

	"ggufreap/gguf"
)

// RouterNormScores computes for each expert the deviation of its router logit when the
// normalised hidden state is isotropic: with W the expert's router row and gamma the
// weights of the norm before the router,
//
//	sqrt(sum_j (W_j * gamma_j)^2)
//
// It needs the model alone, no text. An expert with a small deviation is rarely chosen
// unless its bias says so; the score knows nothing of what the expert computes, so it
// is a proxy, not a measurement. The scores are the same on every machine.
//
// Router and norm must be F32, F16 or BF16. A few router rows are held at a time. Bytes
// read are reported to progress, which may be nil.
func RouterNormScores(ctx context.Context, m *gguf.Model, e *Experts, progress func(bytes int64)) (*Scores, error) {
	return eachLayer(ctx, e, RouterNorm, progress, func(ctx context.Context, l *Layer, progress func(bytes int64)) ([]float64, []int, error) {
		logits, err := readRouterLogits(ctx, m, e, l, progress)
		if err != nil {
			return nil, nil, err
		}
		return logits.deviation, nil, nil
	})
}
