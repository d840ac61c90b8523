package picture

import (
	"fmt"
	imagecolor "image/color"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"ggufreap/gguf/words"
)

type color = imagecolor.Color

// The colors of lines and letters. Series differ in dashes too. They are Okabe and Ito's,
// which people tell apart who see red and green as one, darkened to be read on white.
var (
	white = imagecolor.NRGBA{0xff, 0xff, 0xff, 0xff}
	ink   = imagecolor.NRGBA{0x22, 0x22, 0x26, 0xff}
	faint = imagecolor.NRGBA{0xd3, 0xd3, 0xd9, 0xff}
	one   = imagecolor.NRGBA{0x00, 0x63, 0xa5, 0xff}
	two   = imagecolor.NRGBA{0xbf, 0x4f, 0x00, 0xff}
	three = imagecolor.NRGBA{0x00, 0x7a, 0x5a, 0xff}
	four  = imagecolor.NRGBA{0x8a, 0x3f, 0x78, 0xff}
)

// variables turns the colors into those of a page.
var variables = func() *strings.Replacer {
	var pairs []string
	for _, c := range []struct {
		color imagecolor.NRGBA
		name  string
	}{{white, "paper"}, {ink, "ink"}, {faint, "faint"}, {one, "one"}, {two, "two"}, {three, "three"}, {four, "four"}} {
		pairs = append(pairs, fmt.Sprintf("#%02X%02X%02X", c.color.R, c.color.G, c.color.B), "var(--"+c.name+")")
	}
	return strings.NewReplacer(pairs...)
}()

// The size of a picture in points.
const (
	wide = 720
	tall = 320
)

// newPlot returns an empty plot with labelled axes.
func newPlot(x, y string) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil
	face := font.Font{Typeface: "Liberation", Variant: "Sans", Size: 12}
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Color = ink
		axis.Label.TextStyle.Font = face
		axis.Label.TextStyle.Color = ink
		axis.Tick.Label.Font = face
		axis.Tick.Label.Font.Size = 11
		axis.Tick.Label.Color = ink
		axis.Tick.Color = ink
		axis.Padding = 0
		axis.Label.Padding = 4
	}
	p.X.Label.Text, p.Y.Label.Text = x, y
	p.Legend.TextStyle.Font = face
	p.Legend.TextStyle.Color = ink
	p.Legend.ThumbnailWidth = 26
	p.Legend.Padding = 3
	return p
}

// grid draws faint lines behind the data.
func grid(p *plot.Plot) {
	g := plotter.NewGrid()
	g.Horizontal.Color, g.Vertical.Color = faint, faint
	g.Horizontal.Width, g.Vertical.Width = 0.5, 0.5
	p.Add(g)
}

// A series is one line of a plot.
type series struct {
	name  string
	color color
	dash  []vg.Length
	width vg.Length
	xs    []float64
	ys    []float64
}

// add draws a line, in pieces where a number is missing, and returns one of them; nil when
// all are.
func (s series) add(p *plot.Plot) *plotter.Line {
	var piece plotter.XYs
	var drawn *plotter.Line
	flush := func() {
		if len(piece) == 1 { // a line of one point would not be seen
			piece = plotter.XYs{{X: piece[0].X - 0.5, Y: piece[0].Y}, {X: piece[0].X + 0.5, Y: piece[0].Y}}
		}
		if len(piece) > 0 {
			drawn = &plotter.Line{XYs: piece, LineStyle: draw.LineStyle{Color: s.color, Width: s.width, Dashes: s.dash}}
			p.Add(drawn)
		}
		piece = nil
	}
	for i, y := range s.ys {
		if y != y {
			flush()
			continue
		}
		piece = append(piece, plotter.XY{X: s.xs[i], Y: y})
	}
	flush()
	return drawn
}

// mark draws a vertical line, with words above it.
func mark(p *plot.Plot, at, low, high float64, text string) {
	series{color: white, width: 4, xs: []float64{at, at}, ys: []float64{low, high}}.add(p) // seen on cells of any color
	series{color: two, width: 1.5, dash: []vg.Length{5, 3}, xs: []float64{at, at}, ys: []float64{low, high}}.add(p)
	roomAbove(p)
	p.Add(above{at, text})
}

// above writes words over the upper edge of the plot.
type above struct {
	at   float64
	text string
}

func (a above) Plot(c draw.Canvas, p *plot.Plot) {
	style := p.X.Tick.Label
	style.YAlign = draw.YBottom
	style.Color = two
	c.FillText(style, vg.Point{X: c.X(p.X.Norm(a.at)), Y: c.Max.Y + 3}, a.text)
}

var (
	solid  []vg.Length
	dashed = []vg.Length{7, 3}
	points = []vg.Length{2, 2}
)

// whole are ticks at whole numbers, with commas between thousands.
type whole struct{ format func(float64) string }

func (t whole) Ticks(low, high float64) []plot.Tick {
	step := 1.0
	for i := 0; (high-low)/step > 8; i++ {
		step *= []float64{2, 2.5, 2}[i%3]
	}
	var ticks []plot.Tick
	for at := float64(int64(low/step)) * step; at <= high; at += step {
		if at >= low && at == float64(int64(at)) {
			ticks = append(ticks, plot.Tick{Value: at, Label: t.label(at)})
		}
	}
	return ticks
}

func (t whole) label(at float64) string {
	if t.format != nil {
		return t.format(at)
	}
	return words.Group(int64(at))
}

// shares are ticks from 0 to 100 percent.
type shares struct{}

func (shares) Ticks(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	for n := 0; n <= 5; n++ {
		at := float64(n) / 5
		if at >= low && at <= high {
			ticks = append(ticks, plot.Tick{Value: at, Label: fmt.Sprintf("%d %%", 20*n)})
		}
	}
	return ticks
}

// percent writes a share; "none" for one that does not exist. Only a whole is 100 %.
func percent(x float64) string {
	switch {
	case x != x:
		return "none"
	case x < 1 && x >= 0.99995:
		return "> 99.99 %"
	}
	return fmt.Sprintf("%.2f %%", 100*x)
}

func number(x float64) string {
	if x != x {
		return "none"
	}
	return fmt.Sprintf("%.6g", x)
}
