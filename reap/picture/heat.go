package picture

import (
	"fmt"
	"image"
	imagecolor "image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"ggufreap/reap"
)

// shade is a scale from dark blue to yellow that grows evenly in lightness, so that it reads
// on paper without colors too: nine points of viridis, and straight lines between them.
var shade = [9][3]int{{68, 1, 84}, {71, 44, 122}, {59, 81, 139}, {44, 113, 142}, {33, 144, 141}, {39, 173, 129}, {92, 200, 99}, {170, 220, 50}, {253, 231, 37}}

// steps of the scale: what one byte for a cell can hold, with places for what is no shade.
const (
	steps   = 241
	dropped = steps     // an expert that is not kept
	never   = steps + 1 // an expert to which no token came

	plainCell = 90 // a kept expert where there are no scores
)

// colors is the scale, and what is no shade.
var colors = func() imagecolor.Palette {
	var p imagecolor.Palette
	for i := range steps {
		at, rest := i/30, i%30
		low, high := shade[at], shade[min(at+1, 8)]
		mix := func(n int) uint8 { return uint8((low[n]*(30-rest) + high[n]*rest) / 30) }
		p = append(p, imagecolor.NRGBA{mix(0), mix(1), mix(2), 0xff})
	}
	return append(p, imagecolor.NRGBA{0xdd, 0xdd, 0xdd, 0xff}, imagecolor.NRGBA{0x80, 0x80, 0x80, 0xff})
}()

// shadeOf returns the step for a score beside the greatest of its layer. The root spreads the
// small ones, of which there are most.
func shadeOf(score, most float64) uint8 {
	if most <= 0 || score <= 0 {
		return 0
	}
	return uint8(math.Sqrt(min(score/most, 1)) * (steps - 1))
}

// HeatMap shows the scores of all experts, a row for each layer, the kept ones to the left of
// the cut, each side from best to worst.
func HeatMap(c *Choice) *Picture {
	blocks := c.Scores.Blocks()
	count := c.Experts.Count
	cells := image.NewPaletted(image.Rect(0, 0, count, len(blocks)), colors)
	p := &Picture{
		Name: "scores", Title: "Scores by layer and rank",
		About:   "Each row is a layer, each cell an expert, kept ones left of the dashed line, both sides from best to worst. Color is the root of the score's share of the greatest in its layer; gray had no tokens.",
		Columns: []string{"layer", "greatest", "median", "least kept", "greatest dropped", "least"},
	}
	for row, block := range blocks {
		order := c.order(block)
		scores := c.Scores.Layers[block]
		most := greatest(scores)
		for rank, id := range order {
			cells.Pix[row*cells.Stride+rank] = shadeOf(scores[id], most)
			if counts := c.Scores.Counts[block]; counts != nil && counts[id] == 0 {
				cells.Pix[row*cells.Stride+rank] = never
			}
		}
		p.Rows = append(p.Rows, c.rankRow(block, order))
		p.hovers = append(p.hovers, c.rankHovers(row, block, order)...)
	}
	p.frame(cells, blocks, "experts, from best to worst", float64(c.Keep), true)
	return p
}

// rankRow is what the table says of a layer.
func (c *Choice) rankRow(block int, order []int) []string {
	scores := c.Scores.Layers[block]
	at := func(ranks []int, worst func(a, b float64) float64) string {
		if len(ranks) == 0 {
			return "none"
		}
		x := scores[ranks[0]]
		for _, id := range ranks {
			x = worst(x, scores[id])
		}
		return number(x)
	}
	least := func(a, b float64) float64 { return min(a, b) }
	most := func(a, b float64) float64 { return max(a, b) }
	return []string{fmt.Sprint(block), at(order, most), number(scores[order[len(order)/2]]),
		at(order[:c.Keep], least), at(order[c.Keep:], most), at(order, least)}
}

// hoverRanks is how many experts one hint is about: one for each would be most of the file.
const hoverRanks = 32

func (c *Choice) rankHovers(row, block int, order []int) []hover {
	scores := c.Scores.Layers[block]
	var list []hover
	for from := 0; from < len(order); {
		to := min(from+hoverRanks, len(order))
		if from < c.Keep {
			to = min(to, c.Keep)
		}
		said := "dropped"
		switch {
		case c.Keep == 0:
			said = "no cut"
		case from < c.Keep:
			said = "kept"
		}
		list = append(list, hover{float64(from), float64(row), float64(to), float64(row + 1),
			fmt.Sprintf("layer %d, rank %d to %d, %s: %s to %s", block, from+1, to, said, number(scores[order[from]]), number(scores[order[to-1]]))})
		from = to
	}
	return list
}

// KeptMap shows which experts a plan keeps, by their numbers.
func KeptMap(plan *reap.Plan, scores *reap.Scores) *Picture {
	blocks := plan.Blocks()
	cells := image.NewPaletted(image.Rect(0, 0, plan.NumExperts, len(blocks)), colors)
	p := &Picture{
		Name: "kept", Title: "Experts that are kept, by number",
		About:   "Each row is a layer, each cell an expert by its number in the source. Light gray experts are dropped.",
		Columns: []string{"layer", "kept", "dropped", "first kept", "last kept"},
	}
	if scores != nil {
		p.About += " Color is the root of the score's share of the greatest in its layer."
	}
	for row, block := range blocks {
		line := cells.Pix[row*cells.Stride : row*cells.Stride+plan.NumExperts]
		for i := range line {
			line[i] = dropped
		}
		list := plan.Layers[block]
		var most float64
		if scores != nil {
			most = greatest(scores.Layers[block])
		}
		for _, id := range list {
			line[id] = plainCell
			if scores != nil {
				line[id] = shadeOf(scores.Layers[block][id], most)
			}
		}
		p.Rows = append(p.Rows, keptRow(block, line, len(list)))
		p.hovers = append(p.hovers, keptHovers(row, block, line)...)
	}
	p.frame(cells, blocks, "experts, by number in the source", 0, scores != nil)
	return p
}

func keptRow(block int, line []uint8, kept int) []string {
	first, last := -1, -1
	for id, cell := range line {
		if cell == dropped {
			continue
		}
		if first < 0 {
			first = id
		}
		last = id
	}
	return []string{fmt.Sprint(block), fmt.Sprint(kept), fmt.Sprint(len(line) - kept), fmt.Sprint(first), fmt.Sprint(last)}
}

func keptHovers(row, block int, line []uint8) []hover {
	var list []hover
	for from := 0; from < len(line); from += hoverRanks {
		to := min(from+hoverRanks, len(line))
		kept := 0
		for _, cell := range line[from:to] {
			if cell != dropped {
				kept++
			}
		}
		list = append(list, hover{float64(from), float64(row), float64(to), float64(row + 1),
			fmt.Sprintf("layer %d, experts %d to %d: %d of %d kept", block, from, to-1, kept, to-from)})
	}
	return list
}

// frame puts axes around cells, a scale of colors, and a line at the cut unless it is 0.
func (p *Picture) frame(cells *image.Paletted, blocks []int, x string, cut float64, shades bool) {
	rows, count := len(blocks), cells.Rect.Dx()
	p.width, p.height = wide, vg.Length(max(130, min(80+4*rows, 480)))
	p.plot = func() *plot.Plot {
		drawn := newPlot(x, "layer")
		drawn.X.Min, drawn.X.Max, drawn.Y.Min, drawn.Y.Max = 0, float64(count), 0, float64(rows)
		drawn.X.Tick.Marker = whole{}
		drawn.Y.Scale = plot.InvertedScale{Normalizer: plot.LinearScale{}}
		drawn.Y.Tick.Marker = layerTicks(blocks)
		drawn.Add(cellImage{cells})
		roomAbove(drawn)
		drawn.Add(scaleOf(cells, shades, cut/float64(count)))
		if cut > 0 {
			mark(drawn, cut, 0, float64(rows), fmt.Sprintf("%.0f kept", cut))
		}
		return drawn
	}
}

// cellImage fills the plot with cells.
type cellImage struct{ *image.Paletted }

func (i cellImage) Plot(c draw.Canvas, _ *plot.Plot) { c.DrawImage(c.Rectangle, i.Paletted) }

// layerTicks label some rows with their layers, in the middle of the row.
type layerTicks []int

func (l layerTicks) Ticks(_, _ float64) []plot.Tick {
	every := 1 + (len(l)-1)/12
	var ticks []plot.Tick
	for row := 0; row < len(l); row += every {
		ticks = append(ticks, plot.Tick{Value: float64(row) + 0.5, Label: fmt.Sprint(l[row])})
	}
	return ticks
}
