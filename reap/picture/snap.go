package picture

import (
	"image"
	"image/draw"
	"math"
	"sync"

	"codeberg.org/go-fonts/liberation/liberationsansregular"
	"github.com/golang/freetype/truetype"
	xfont "golang.org/x/image/font"
	"golang.org/x/image/math/fixed"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgimg"
)

// A snapped canvas puts everything on a grid of 1/64 point. Where a compiler fuses operations,
// coordinates differ in their last bits; on the grid they do not.
type snapped struct{ vg.Canvas }

// snap puts a coordinate on the grid. The grid is not centered on round numbers, where many
// coordinates lie, so that none of those lies between two of its lines.
func snap(x float64) float64 { return math.Floor(float64(x*64)+0.7071) / 64 }

func snapPoint(p vg.Point) vg.Point {
	return vg.Point{X: vg.Length(snap(float64(p.X))), Y: vg.Length(snap(float64(p.Y)))}
}

func snapPath(path vg.Path) vg.Path {
	on := make(vg.Path, len(path))
	for i, c := range path {
		c.Pos = snapPoint(c.Pos)
		on[i] = c
	}
	return on
}

func (s snapped) Stroke(path vg.Path) { s.Canvas.Stroke(snapPath(path)) }

func (s snapped) Fill(path vg.Path) { s.Canvas.Fill(snapPath(path)) }

func (s snapped) FillString(f font.Face, at vg.Point, text string) {
	s.Canvas.FillString(f, snapPoint(at), text)
}

func (s snapped) DrawImage(r vg.Rectangle, img image.Image) {
	s.Canvas.DrawImage(vg.Rectangle{Min: snapPoint(r.Min), Max: snapPoint(r.Max)}, img)
}

func (s snapped) Translate(p vg.Point) { s.Canvas.Translate(snapPoint(p)) }

// A dotted canvas draws letters and cells dot by dot: blending them, as [vgimg] does, rounds
// otherwise on other processors, and blurs them. It knows two directions of text.
type dotted struct {
	*vgimg.Canvas
	color  color
	upward []bool // for each Push, whether text runs upward
}

func newDotted(canvas *vgimg.Canvas) *dotted { return &dotted{canvas, ink, []bool{false}} }

func (d *dotted) SetColor(c color) {
	d.color = c
	d.Canvas.SetColor(c)
}

func (d *dotted) Push() {
	d.upward = append(d.upward, d.upward[len(d.upward)-1])
	d.Canvas.Push()
}

func (d *dotted) Pop() {
	d.upward = d.upward[:len(d.upward)-1]
	d.Canvas.Pop()
}

func (d *dotted) Rotate(angle float64) {
	d.upward[len(d.upward)-1] = angle > 1
	d.Canvas.Rotate(angle)
}

// dot returns the dot at a length from the left or lower edge.
func dot(at vg.Length) int { return int(math.Floor(float64(at) * dotsPerInch / 72)) }

// DrawImage enlarges cells without blending them.
func (d *dotted) DrawImage(r vg.Rectangle, img image.Image) {
	to := d.Image()
	height := to.Bounds().Dy()
	x0, x1, y0, y1 := dot(r.Min.X), dot(r.Max.X), height-dot(r.Max.Y), height-dot(r.Min.Y)
	for y := y0; y < y1; y++ {
		for x := x0; x < x1; x++ {
			to.Set(x, y, img.At((x-x0)*img.Bounds().Dx()/(x1-x0), (y-y0)*img.Bounds().Dy()/(y1-y0)))
		}
	}
}

// sans is the font of all pictures, read by a library that counts in whole numbers.
var sans = sync.OnceValue(func() *truetype.Font {
	f, err := truetype.Parse(liberationsansregular.TTF)
	if err != nil {
		panic(err) // part of the program
	}
	return f
})

func (d *dotted) FillString(f font.Face, at vg.Point, text string) {
	face := truetype.NewFace(sans(), &truetype.Options{Size: f.Font.Size.Points(), DPI: dotsPerInch})
	to := d.Image()
	height := to.Bounds().Dy()
	if !d.upward[len(d.upward)-1] {
		letters := xfont.Drawer{Dst: to, Src: image.NewUniform(d.color), Face: face, Dot: fixed.P(dot(at.X), height-dot(at.Y))}
		letters.DrawString(text)
		return
	}
	// Written level first, in a picture of its own, and then turned.
	size := face.Metrics().Ascent.Ceil() + face.Metrics().Descent.Ceil()
	base := face.Metrics().Ascent.Ceil()
	level := image.NewAlpha(image.Rect(0, 0, xfont.MeasureString(face, text).Ceil()+1, size))
	letters := xfont.Drawer{Dst: level, Src: image.Opaque, Face: face, Dot: fixed.P(0, base)}
	letters.DrawString(text)
	turned := image.NewAlpha(image.Rect(0, 0, level.Rect.Dy(), level.Rect.Dx()))
	for y := range level.Rect.Dy() {
		for x := range level.Rect.Dx() {
			turned.SetAlpha(y, level.Rect.Dx()-1-x, level.AlphaAt(x, y))
		}
	}
	// The axes are turned too: x runs up the page, y to the left.
	left, bottom := -dot(at.Y)-base, height-dot(at.X)
	place := turned.Rect.Add(image.Pt(left, bottom-turned.Rect.Dy()))
	draw.DrawMask(to, place, image.NewUniform(d.color), image.Point{}, turned, image.Point{}, draw.Over)
}
