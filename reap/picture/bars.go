package picture

import (
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// A barGroup is what stands at one place of a bar chart.
type barGroup struct {
	name   string
	values []float64
	hover  string
}

// bars draws groups of bars, one series in each color.
func (p *Picture) bars(x, y string, groups []barGroup, series ...string) {
	p.width, p.height = wide, 280
	most := 0.0
	for _, g := range groups {
		most = max(most, greatest(g.values))
	}
	if most == 0 || y == "share" {
		most = 1
	}
	for i, g := range groups {
		p.hovers = append(p.hovers, hover{float64(i), 0, float64(i + 1), most, g.hover})
	}
	p.plot = func() *plot.Plot {
		drawn := newPlot(x, y)
		drawn.X.Min, drawn.X.Max, drawn.Y.Min, drawn.Y.Max = 0, float64(len(groups)), 0, most
		drawn.X.Tick.Marker, drawn.Y.Tick.Marker = nameTicks(groups), amounts{y}
		if y == "share" {
			drawn.Y.Tick.Marker = shares{}
		} else {
			drawn.Y.Max += most / 16
		}
		grid(drawn)
		drawn.Add(barPlot(groups))
		var names legend
		for i, name := range series {
			names = append(names, legendEntry{name, swatch(i)})
		}
		if names != nil {
			names.addTo(drawn)
		}
		return drawn
	}
}

// barColors are those of the series, in turn.
var barColors = []color{one, two}

type barPlot []barGroup

func (b barPlot) Plot(c draw.Canvas, p *plot.Plot) {
	for i, g := range b {
		width := 0.8 / float64(len(g.values))
		for n, y := range g.values {
			if !(y > 0) {
				continue
			}
			left := float64(i) + 0.1 + float64(width*float64(n))
			fill(c, barColors[n], c.X(p.X.Norm(left)), c.Y(p.Y.Norm(0)), c.X(p.X.Norm(left+width)), c.Y(p.Y.Norm(y)))
		}
	}
}

// fill draws a rectangle.
func fill(c draw.Canvas, paint color, x0, y0, x1, y1 vg.Length) {
	c.SetColor(paint)
	var path vg.Path
	path.Move(vg.Point{X: x0, Y: y0})
	path.Line(vg.Point{X: x1, Y: y0})
	path.Line(vg.Point{X: x1, Y: y1})
	path.Line(vg.Point{X: x0, Y: y1})
	path.Close()
	c.Fill(path)
}

// swatch is the color of a series in the legend.
type swatch int

func (s swatch) Thumbnail(c *draw.Canvas) {
	fill(*c, barColors[s], c.Min.X+6, c.Min.Y+1, c.Max.X-4, c.Max.Y-1)
}

// nameTicks label the groups, some of them where there are many.
type nameTicks []barGroup

func (n nameTicks) Ticks(_, _ float64) []plot.Tick {
	every := 1 + (len(n)-1)/16
	var ticks []plot.Tick
	for i := 0; i < len(n); i += every {
		ticks = append(ticks, plot.Tick{Value: float64(i) + 0.5, Label: shorten(n[i].name, 120/len(n))})
	}
	return ticks
}

// shorten cuts a name that is longer than its place, but leaves some of it.
func shorten(name string, room int) string {
	letters := []rune(name)
	if room = max(room, 4); len(letters) <= room {
		return name
	}
	return string(letters[:room-1]) + "…"
}

// amounts are ticks of counts and bytes, with the names of powers of 1000.
type amounts struct{ of string }

func (a amounts) Ticks(low, high float64) []plot.Tick {
	unit, name := 1.0, ""
	if a.of != "bytes" {
		return whole{}.Ticks(low, high)
	}
	for _, u := range []struct {
		size float64
		name string
	}{{1e12, " TB"}, {1e9, " GB"}, {1e6, " MB"}, {1e3, " kB"}} {
		if high >= 2*u.size {
			unit, name = u.size, u.name
			break
		}
	}
	ticks := whole{}.Ticks(low/unit, high/unit)
	for i := range ticks {
		ticks[i].Value *= unit
		if ticks[i].Value > 0 {
			ticks[i].Label += name
		}
	}
	return ticks
}
