package picture

import (
	"fmt"
	"math"
	"strings"
)

// A Sketch draws small pictures of letters, for terminals.
type Sketch struct {
	Columns int  // of the drawing itself, labels aside; at least 8
	ASCII   bool // where a terminal shows nothing more
}

// ramp are the letters of a cell, from a score of nothing to the greatest of its layer.
func (s Sketch) ramp() []rune {
	if s.ASCII {
		return []rune(" .:-=+*#%@")
	}
	return []rune(" ▁▂▃▄▅▆▇█")
}

// Heat returns a line for each layer: its experts, kept ones left of the |, each side from best
// to worst. A cell stands for as many experts as there are too many for the columns; its height,
// or darkness, is their mean of what [HeatMap] colors.
func (s Sketch) Heat(c *Choice) []string {
	blocks := c.Scores.Blocks()
	width := len(fmt.Sprint(blocks[len(blocks)-1]))
	var lines []string
	for _, block := range blocks {
		order, scores := c.order(block), c.Scores.Layers[block]
		most := greatest(scores)
		shades := make([]float64, len(order))
		for i, id := range order {
			shades[i] = float64(shadeOf(scores[id], most)) / (steps - 1)
		}
		kept, others := s.cut(len(order), c.Keep)
		line := s.cells(shades[:c.Keep], kept) + "|" + s.cells(shades[c.Keep:], others)
		lines = append(lines, fmt.Sprintf("%*d %s", width, block, strings.TrimRight(line, " ")))
	}
	return lines
}

// cut shares the columns between the kept experts and the others, each of which get one at
// least.
func (s Sketch) cut(count, keep int) (kept, others int) {
	columns := min(s.Columns, count)
	if keep == 0 || keep == count {
		return columns * keep / count, columns * (count - keep) / count
	}
	kept = min(max(columns*keep/count, 1), columns-1)
	return kept, columns - kept
}

// cells draws numbers from 0 to 1 in so many columns.
func (s Sketch) cells(list []float64, columns int) string {
	ramp := s.ramp()
	var b strings.Builder
	for i := range columns {
		from, to := i*len(list)/columns, (i+1)*len(list)/columns
		sum := 0.0
		for _, x := range list[from:to] {
			sum += x
		}
		level := int(math.Ceil(sum / float64(to-from) * float64(len(ramp)-1)))
		b.WriteRune(ramp[level])
	}
	return b.String()
}

// sketchRows is the height of the curve.
const sketchRows = 9

// Shares returns the lines of a curve: the mean share of the score for every number of experts
// that could be kept, and that of the worst layer below it. The columns of | stand at the number
// that is kept.
func (s Sketch) Shares(c *Choice) []string {
	counts := make([]int, s.Columns)
	for x := range counts {
		counts[x] = c.Experts.Count * (x + 1) / s.Columns
	}
	var curves [][]float64
	for _, block := range c.Scores.Blocks() {
		curves = append(curves, c.shareCurve(block, counts))
	}
	grid := make([][]rune, sketchRows)
	for y := range grid {
		grid[y] = []rune(strings.Repeat(" ", s.Columns))
		if c.Keep > 0 {
			grid[y][s.column(c)] = '|'
		}
	}
	mean, worst := '•', '·'
	if s.ASCII {
		mean, worst = '*', '.'
	}
	for x := range counts {
		m, w, _ := spread(curves, x)
		if math.IsNaN(m) {
			continue
		}
		grid[row(w)][x] = worst
		grid[row(m)][x] = mean
	}
	return s.axes(c, grid)
}

// column is where the number of kept experts stands.
func (s Sketch) column(c *Choice) int {
	return min(max((c.Keep*s.Columns+c.Experts.Count-1)/c.Experts.Count-1, 0), s.Columns-1)
}

// row is the line of a share, counted from above.
func row(share float64) int { return int(math.Round((1 - share) * (sketchRows - 1))) }

// axes puts the scales beside and under the drawing.
func (s Sketch) axes(c *Choice, grid [][]rune) []string {
	var lines []string
	for y, line := range grid {
		label := ""
		if y%(sketchRows/2) == 0 {
			label = fmt.Sprintf("%d %%", 100*(sketchRows-1-y)/(sketchRows-1))
		}
		lines = append(lines, strings.TrimRight(fmt.Sprintf("%5s %s", label, string(line)), " "))
	}
	scale := []rune(strings.Repeat(" ", s.Columns))
	put := func(text string, end int) {
		if from := max(end-len(text), 0); strings.TrimSpace(string(scale[from:min(from+len(text)+1, len(scale))])) == "" {
			copy(scale[from:], []rune(text))
		}
	}
	put(fmt.Sprint(c.Experts.Count), s.Columns)
	put(fmt.Sprint(c.Keep), s.column(c)+1)
	return append(lines, strings.TrimRight(fmt.Sprintf("%5s %s", "", string(scale)), " "))
}
