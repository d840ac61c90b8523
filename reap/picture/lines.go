package picture

import (
	"fmt"
	"slices"

	"gonum.org/v1/plot"

	"ggufreap/reap"
)

// Evenness shows how even routing is, layer by layer, as Gini's coefficient: 0 when all
// experts have the same, near 1 when one has all. Tokens are shown where they were counted.
func Evenness(c *Choice) *Picture {
	p := &Picture{
		Name: "evenness", Title: "How uneven experts are",
		About:   "Gini's coefficient by layer: 0 when all experts of a layer have the same, near 1 when one has all. Where experts are even, there is little to choose by.",
		Columns: []string{"layer", "of the scores", "of the tokens"},
	}
	blocks := c.Scores.Blocks()
	xs, scores, tokens := positions(blocks), []float64{}, []float64{}
	for i, block := range blocks {
		scores = append(scores, gini(c.Scores.Layers[block]))
		tokens = append(tokens, gini(c.Scores.Counts[block]))
		p.Rows = append(p.Rows, []string{fmt.Sprint(block), decimal(scores[i]), decimal(tokens[i])})
		p.hovers = append(p.hovers, hover{xs[i] - 0.5, 0, xs[i] + 0.5, 1, fmt.Sprintf("layer %d: scores %s, tokens %s", block, decimal(scores[i]), decimal(tokens[i]))})
	}
	p.lines(xs, "Gini's coefficient", decimals{},
		series{"scores", one, solid, 1.5, xs, scores}, series{"tokens", two, dashed, 1.5, xs, tokens})
	return p
}

// gini returns Gini's coefficient of numbers that are not negative; NaN for none, or when all
// are 0.
func gini(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	var sum, weighted float64
	for i, x := range sorted {
		sum += x
		weighted += float64(float64(2*i+1-len(sorted)) * x)
	}
	return weighted / float64(float64(len(sorted))*sum)
}

// Agreement shows, layer by layer, which share of the experts two plans have in common, and
// what the other plan keeps of the score.
func Agreement(c *reap.Comparison, other string) *Picture {
	p := &Picture{
		Name: "agreement", Title: "Agreement with " + visible(other),
		About:   fmt.Sprintf("The share of experts that both plans keep, where blind choices would share %s, and the share of the best score that the other plan has.", percent(c.Chance)),
		Columns: []string{"layer", "same experts", "score retained", "experts that differ", "of them equal at the cut"},
	}
	blocks := make([]int, len(c.Layers))
	for i, l := range c.Layers {
		blocks[i] = l.Block
	}
	xs := positions(blocks)
	var same, retained, chance []float64
	for i, l := range c.Layers {
		same, retained, chance = append(same, l.Overlap), append(retained, l.Retention), append(chance, c.Chance)
		p.Rows = append(p.Rows, []string{fmt.Sprint(l.Block), percent(l.Overlap), percent(l.Retention), fmt.Sprint(l.Differing), fmt.Sprint(l.Ties)})
		p.hovers = append(p.hovers, hover{xs[i] - 0.5, 0, xs[i] + 0.5, 1, fmt.Sprintf("layer %d: %s the same, %s of the score", l.Block, percent(l.Overlap), percent(l.Retention))})
	}
	p.lines(xs, "share", shares{}, series{"same experts", one, solid, 1.5, xs, same},
		series{"score retained", three, dashed, 1.5, xs, retained}, series{"chance", two, points, 1.5, xs, chance})
	return p
}

// positions are the layers as numbers.
func positions(blocks []int) []float64 {
	xs := make([]float64, len(blocks))
	for i, b := range blocks {
		xs[i] = float64(b)
	}
	return xs
}

// lines draws series over layers, from 0 to 1.
func (p *Picture) lines(xs []float64, y string, ticks plot.Ticker, list ...series) {
	p.width, p.height = wide, 280
	p.plot = func() *plot.Plot {
		drawn := newPlot("layer", y)
		drawn.X.Min, drawn.X.Max = slices.Min(xs)-0.5, slices.Max(xs)+0.5
		drawn.Y.Min, drawn.Y.Max = 0, 1
		drawn.X.Tick.Marker, drawn.Y.Tick.Marker = whole{}, ticks
		grid(drawn)
		var names legend
		for _, s := range list {
			if line := s.add(drawn); line != nil {
				names = append(names, legendEntry{s.name, line})
			}
		}
		names.addTo(drawn)
		return drawn
	}
}

// decimals are ticks from 0 to 1.
type decimals struct{}

func (decimals) Ticks(_, _ float64) []plot.Tick {
	ticks := []plot.Tick{{Value: 1, Label: "1"}}
	for n := range 5 {
		ticks = append(ticks, plot.Tick{Value: float64(n) / 5, Label: fmt.Sprintf("0.%d", 2*n)})
	}
	return ticks
}

func decimal(x float64) string {
	if x != x {
		return "not known"
	}
	return fmt.Sprintf("%.3f", x)
}
