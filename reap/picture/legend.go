package picture

import (
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// A legend names the series in a row above the plot.
type legend []legendEntry

type legendEntry struct {
	name  string
	thumb plot.Thumbnailer
}

// addTo puts the legend over a plot, which makes room for it.
func (l legend) addTo(p *plot.Plot) {
	roomAbove(p)
	p.Add(l)
}

// roomAbove keeps a line free over the plot.
func roomAbove(p *plot.Plot) {
	p.Title.Text, p.Title.TextStyle.Font, p.Title.Padding = " ", p.X.Tick.Label.Font, 3
}

func (l legend) Plot(c draw.Canvas, p *plot.Plot) {
	style := p.Legend.TextStyle
	x, y := c.Min.X, c.Max.Y+5
	for _, e := range l {
		icon := c
		icon.Min, icon.Max = vg.Point{X: x, Y: y}, vg.Point{X: x + p.Legend.ThumbnailWidth, Y: y + 9}
		e.thumb.Thumbnail(&icon)
		x += p.Legend.ThumbnailWidth + 5
		c.FillText(style, vg.Point{X: x, Y: y}, e.name)
		x += style.Width(e.name) + 20
	}
}
