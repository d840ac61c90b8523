package picture

import (
	"image"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// A scale says above the plot what the colors of cells mean.
type scale struct {
	shades bool     // of scores
	others []uint8  // single colors
	names  []string // of them
	right  bool     // at the right edge, where the left one is taken
}

// scaleOf is the scale of cells with a cut at a share of the width.
func scaleOf(cells *image.Paletted, shades bool, cut float64) scale {
	s := scale{shades: shades, right: cut > 0 && cut < 0.55}
	if !shades {
		s.others, s.names = []uint8{plainCell}, []string{"kept"}
	}
	for _, single := range []struct {
		cell uint8
		name string
	}{{dropped, "dropped"}, {never, "no tokens"}} {
		for _, cell := range cells.Pix {
			if cell == single.cell {
				s.others, s.names = append(s.others, single.cell), append(s.names, single.name)
				break
			}
		}
	}
	return s
}

const (
	stripWidth  = 90
	stripHeight = 8
)

func (s scale) Plot(c draw.Canvas, p *plot.Plot) {
	style := p.X.Tick.Label
	style.XAlign, style.YAlign = draw.XLeft, draw.YBottom
	x, y := c.Min.X, c.Max.Y+5
	if s.right {
		x = c.Max.X - s.width(style)
	}
	place := func(cells image.Image, width vg.Length) {
		c.DrawImage(vg.Rectangle{Min: vg.Point{X: x, Y: y}, Max: vg.Point{X: x + width, Y: y + stripHeight}}, cells)
		x += width + 4
	}
	say := func(text string) {
		c.FillText(style, vg.Point{X: x, Y: y}, text)
		x += style.Width(text) + 6
	}
	if s.shades {
		strip := image.NewPaletted(image.Rect(0, 0, steps, 1), colors)
		for i := range steps {
			strip.Pix[i] = uint8(i)
		}
		say("0")
		place(strip, stripWidth)
		say("greatest in layer")
		x += 10
	}
	for i, cell := range s.others {
		one := image.NewPaletted(image.Rect(0, 0, 1, 1), colors)
		one.Pix[0] = cell
		place(one, 12)
		say(s.names[i])
		x += 10
	}
}

// width is how much room the scale takes, and some for wider letters.
func (s scale) width(style draw.TextStyle) vg.Length {
	var w vg.Length
	if s.shades {
		w = style.Width("0 greatest in layer") + stripWidth + 40
	}
	for _, name := range s.names {
		w += style.Width(name) + 50
	}
	return w
}
