package picture

import (
	"fmt"

	"gonum.org/v1/plot"
)

// shareCounts is into how many parts keep counts are cut for the curves.
const shareCounts = 56

// Shares shows which share of the score is kept for every keep count: the mean over layers,
// the best and the worst, and each layer faintly.
func Shares(c *Choice) *Picture {
	curves := newShareCurves(c)
	p := &Picture{
		Name: "shares", Title: "Share of the score that is kept",
		About:   "How much of a layer's total score the best experts have, for every number of experts that could be kept. Faint lines are layers.",
		Columns: []string{"kept", "mean", "worst layer", "best layer"},
		width:   wide, height: tall,
	}
	for i, n := range curves.counts {
		mean, worst := percent(curves.mean[i]), percent(curves.worst[i])
		p.Rows = append(p.Rows, []string{fmt.Sprint(n), mean, worst, percent(curves.best[i])})
		if i > 0 {
			p.hovers = append(p.hovers, hover{curves.xs[i-1], 0, curves.xs[i], 1, fmt.Sprintf("%d kept: %s of the score on average, %s in the worst layer", n, mean, worst)})
		}
	}
	p.plot = func() *plot.Plot { return curves.draw(c) }
	return p
}

// shareCurves are shares of the score by how many experts are kept.
type shareCurves struct {
	counts            []int
	xs                []float64 // counts
	layers            [][]float64
	mean, best, worst []float64 // over layers
}

func newShareCurves(c *Choice) *shareCurves {
	s := &shareCurves{counts: c.shareCounts()}
	for _, block := range c.Scores.Blocks() {
		s.layers = append(s.layers, c.shareCurve(block, s.counts))
	}
	for i, n := range s.counts {
		mean, worst, best := spread(s.layers, i)
		s.xs, s.mean, s.worst, s.best = append(s.xs, float64(n)), append(s.mean, mean), append(s.worst, worst), append(s.best, best)
	}
	return s
}

func (s *shareCurves) draw(c *Choice) *plot.Plot {
	drawn := newPlot("experts kept in each layer", "share of the score")
	drawn.X.Min, drawn.X.Max, drawn.Y.Min, drawn.Y.Max = 0, float64(c.Experts.Count), 0, 1
	drawn.X.Tick.Marker, drawn.Y.Tick.Marker = whole{}, shares{}
	grid(drawn)
	if c.Keep > 0 {
		mark(drawn, float64(c.Keep), 0, 1, fmt.Sprintf("%d kept", c.Keep))
	}
	for _, layer := range s.layers {
		series{color: faint, width: 0.5, xs: s.xs, ys: layer}.add(drawn)
	}
	for _, x := range []series{{"best layer", three, points, 1.5, s.xs, s.best}, {"mean", one, solid, 2, s.xs, s.mean}, {"worst layer", four, dashed, 1.5, s.xs, s.worst}} {
		if line := x.add(drawn); line != nil {
			drawn.Legend.Add(x.name, line)
		}
	}
	drawn.Legend.Left, drawn.Legend.YOffs, drawn.Legend.XOffs = true, 8, 520
	return drawn
}

// shareCounts are the counts of the curves: even steps, and the count that is kept.
func (c *Choice) shareCounts() []int {
	counts := []int{0}
	for i := 1; i <= shareCounts; i++ {
		n := c.Experts.Count * i / shareCounts
		if last := counts[len(counts)-1]; last < c.Keep && c.Keep < n {
			counts = append(counts, c.Keep)
		}
		if n > counts[len(counts)-1] {
			counts = append(counts, n)
		}
	}
	return counts
}

// shareCurve returns the share of a block's score for each count; NaN when there is no score.
func (c *Choice) shareCurve(block int, counts []int) []float64 {
	order := c.byScore(block)
	scores := c.Scores.Layers[block]
	sums := make([]float64, len(order)+1)
	for i, id := range order {
		sums[i+1] = sums[i] + scores[id]
	}
	curve := make([]float64, len(counts))
	for i, n := range counts {
		curve[i] = sums[n] / sums[len(order)]
	}
	return curve
}

// spread returns mean, least and greatest of one place of all curves that have a number there.
func spread(curves [][]float64, i int) (mean, least, most float64) {
	n := 0.0
	for _, curve := range curves {
		x := curve[i]
		if x != x {
			continue
		}
		if n == 0 {
			least, most = x, x
		}
		mean, least, most = mean+x, min(least, x), max(most, x)
		n++
	}
	if n == 0 {
		return curves[0][i], curves[0][i], curves[0][i]
	}
	return mean / n, least, most
}
