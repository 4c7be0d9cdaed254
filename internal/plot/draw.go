package plot

import (
	"bufio"
	"fmt"
	"html"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"strings"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"
)

// The size of a drawing, and where its frame lies in it, in points.
const (
	width, height            = 640.0, 400.0
	left, right, top, bottom = 64.0, 620.0, 40.0, 350.0
	fontSize                 = 12.0
)

// palette are the colours of series: those of Okabe and Ito, which colour-blind people tell apart.
var palette = []color.NRGBA{{0, 114, 178, 255}, {230, 159, 0, 255}, {0, 158, 115, 255}, {213, 94, 0, 255},
	{204, 121, 167, 255}, {86, 180, 233, 255}}

var (
	black = color.NRGBA{40, 40, 40, 255}
	pale  = color.NRGBA{225, 225, 225, 255}
)

// canvas is what a figure is drawn on, in points from the upper left corner.
type canvas interface {
	line(points [][2]float64, width float64, c color.NRGBA)
	discs(points [][2]float64, radius float64, c color.NRGBA)
	boxes(boxes []box, c color.NRGBA)
	// text writes a text whose begin, middle or end, by anchor 0, 0.5 or 1, is at x, on a base line at y.
	text(x, y, anchor float64, text string)
}

// box is a rectangle: its upper left corner and its lower right one.
type box struct{ x0, y0, x1, y1 float64 }

// draw draws the figure.
func (f *Figure) draw(on canvas) error {
	x, y, err := f.axes(8, 6)
	if err != nil {
		return err
	}
	place := func(px, py float64) (float64, float64) {
		return left + x.at(px)*(right-left), bottom - y.at(py)*(bottom-top)
	}
	for _, t := range x.ticks {
		at, _ := place(t, y.low)
		on.line([][2]float64{{at, top}, {at, bottom}}, 0.6, pale)
		on.text(at, bottom+18, 0.5, x.text(t))
	}
	for _, t := range y.ticks {
		_, at := place(x.low, t)
		on.line([][2]float64{{left, at}, {right, at}}, 0.6, pale)
		on.text(left-6, at+4, 1, y.text(t))
	}
	for from := 0; from < len(f.Bars); from += pollPoints {
		if err := f.stopped(from); err != nil {
			return err
		}
		var boxes []box
		for _, b := range f.Bars[from:min(from+pollPoints, len(f.Bars))] {
			x0, y0 := place(b.Low, float64(b.Count))
			x1, y1 := place(b.High, 0)
			gap := min(0.5, (x1-x0)/8) // on either side
			boxes = append(boxes, box{x0 + gap, y0, x1 - gap, y1})
		}
		on.boxes(boxes, palette[0])
	}
	for i, s := range f.Series {
		c := palette[i%len(palette)]
		for run := range s.runs() {
			for j, p := range run {
				run[j][0], run[j][1] = place(p[0], p[1])
			}
			for from := 0; from < len(run); from += pollPoints {
				if err := f.stopped(from); err != nil {
					return err
				}
				to := min(from+pollPoints, len(run))
				if s.Points || len(run) == 1 {
					on.discs(run[from:to], 2.5, c)
				}
				if !s.Points {
					on.line(run[max(from-1, 0):to], 1.6, c)
				}
			}
		}
	}
	on.line([][2]float64{{left, top}, {left, bottom}, {right, bottom}}, 1, black)
	on.text((left+right)/2, top-16, 0.5, short(f.Title))
	on.text((left+right)/2, bottom+38, 0.5, short(f.XLabel))
	on.text(8, top-16, 0, short(f.YLabel))
	for i, label := range f.labels() {
		if err := f.stopped(0); err != nil {
			return err
		}
		at := top + 14 + 18*float64(i)
		on.line([][2]float64{{right - 24, at - 4}, {right - 6, at - 4}}, 3, palette[i%len(palette)])
		on.text(right-30, at, 1, label)
	}
	return nil
}

// SVG writes the figure as SVG 1.1.
func (f *Figure) SVG(w io.Writer) error {
	s := &svg{bufio.NewWriterSize(w, 1<<16)}
	fmt.Fprintf(s, `<svg xmlns="http://www.w3.org/2000/svg" width="%g" height="%g" viewBox="0 0 %g %g" `+
		`font-family="sans-serif" font-size="%g"><rect width="100%%" height="100%%" fill="white"/>`+"\n",
		width, height, width, height, fontSize)
	if err := f.draw(s); err != nil {
		return err
	}
	fmt.Fprintln(s, "</svg>")
	return s.Flush() // it keeps the first error
}

// svg is a canvas that writes elements of SVG.
type svg struct{ *bufio.Writer }

func hex(c color.NRGBA) string { return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B) }

func (s *svg) line(points [][2]float64, width float64, c color.NRGBA) {
	fmt.Fprintf(s, `<polyline fill="none" stroke="%s" stroke-width="%g" stroke-linejoin="round" points="`, hex(c), width)
	for i, p := range points {
		if i > 0 {
			fmt.Fprint(s, " ")
		}
		fmt.Fprintf(s, "%.2f,%.2f", p[0], p[1])
	}
	fmt.Fprint(s, "\"/>\n")
}

func (s *svg) discs(points [][2]float64, radius float64, c color.NRGBA) {
	for _, p := range points {
		fmt.Fprintf(s, "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"%g\" fill=\"%s\"/>\n", p[0], p[1], radius, hex(c))
	}
}

func (s *svg) boxes(boxes []box, c color.NRGBA) {
	for _, b := range boxes {
		fmt.Fprintf(s, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\"/>\n", b.x0, b.y0, b.x1-b.x0,
			b.y1-b.y0, hex(c))
	}
}

func (s *svg) text(x, y, anchor float64, text string) {
	if text == "" {
		return
	}
	names := map[float64]string{0: "start", 0.5: "middle", 1: "end"}
	clean := strings.Map(func(r rune) rune { // which XML does not allow
		if r < ' ' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	fmt.Fprintf(s, "<text x=\"%.2f\" y=\"%.2f\" text-anchor=\"%s\" fill=\"%s\">%s</text>\n", x, y, names[anchor],
		hex(black), html.EscapeString(clean))
}

// PNG writes the figure as a PNG file, with so many pixels to a point.
func (f *Figure) PNG(w io.Writer, scale float64) error {
	parsed, err := opentype.Parse(goregular.TTF)
	if err != nil {
		return err
	}
	face, err := opentype.NewFace(parsed, &opentype.FaceOptions{Size: fontSize, DPI: 72 * scale})
	if err != nil {
		return err
	}
	p := &pixels{img: image.NewRGBA(image.Rect(0, 0, int(width*scale), int(height*scale))), scale: scale, face: face}
	for i := range p.img.Pix {
		p.img.Pix[i] = 255
	}
	if err := f.draw(p); err != nil {
		return err
	}
	return png.Encode(w, p.img)
}

// pixels is a canvas of pixels.
type pixels struct {
	img   *image.RGBA
	scale float64
	face  font.Face
}

// fill fills polygons, all of which go around the same way. It looks at the pixels around them and no others.
func (p *pixels) fill(c color.NRGBA, polygons ...[][2]float64) {
	around := p.around(polygons)
	if around.Empty() {
		return
	}
	r := vector.NewRasterizer(around.Dx(), around.Dy())
	for _, points := range polygons {
		for i, q := range points {
			x, y := float32(q[0]*p.scale-float64(around.Min.X)), float32(q[1]*p.scale-float64(around.Min.Y))
			if i == 0 {
				r.MoveTo(x, y)
			} else {
				r.LineTo(x, y)
			}
		}
		r.ClosePath()
	}
	r.Draw(p.img, around, image.NewUniform(c), image.Point{})
}

// around are the pixels of the image that polygons touch.
func (p *pixels) around(polygons [][][2]float64) image.Rectangle {
	size := p.img.Bounds()
	x0, y0, x1, y1 := float64(size.Max.X), float64(size.Max.Y), 0.0, 0.0
	for _, points := range polygons {
		for _, q := range points {
			x, y := q[0]*p.scale, q[1]*p.scale
			x0, y0, x1, y1 = min(x0, x), min(y0, y), max(x1, x), max(y1, y)
		}
	}
	x1, y1 = min(x1, float64(size.Max.X)), min(y1, float64(size.Max.Y))
	return image.Rectangle{Min: image.Pt(int(max(x0, 0)), int(max(y0, 0))),
		Max: image.Pt(int(math.Ceil(x1)), int(math.Ceil(y1)))}
}

// line fills each piece of the line, and a disc at each joint.
func (p *pixels) line(points [][2]float64, width float64, c color.NRGBA) {
	var polygons [][][2]float64
	for i, b := range points {
		if i == 0 {
			continue
		}
		a := points[i-1]
		dx, dy := b[0]-a[0], b[1]-a[1]
		length := math.Hypot(dx, dy)
		if length == 0 {
			continue
		}
		nx, ny := -dy/length*width/2, dx/length*width/2
		polygons = append(polygons, [][2]float64{{a[0] + nx, a[1] + ny}, {a[0] - nx, a[1] - ny}, {b[0] - nx, b[1] - ny},
			{b[0] + nx, b[1] + ny}})
		if i+1 < len(points) {
			polygons = append(polygons, round(b[0], b[1], width/2))
		}
	}
	p.fill(c, polygons...)
}

// round is a polygon that looks like a circle, and goes around as the pieces of lines do.
func round(x, y, radius float64) [][2]float64 {
	const corners = 16
	out := make([][2]float64, corners)
	for i := range out {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / corners)
		out[i] = [2]float64{x + radius*cos, y + radius*sin}
	}
	return out
}

func (p *pixels) discs(points [][2]float64, radius float64, c color.NRGBA) {
	polygons := make([][][2]float64, len(points))
	for i, q := range points {
		polygons[i] = round(q[0], q[1], radius)
	}
	p.fill(c, polygons...)
}

func (p *pixels) boxes(boxes []box, c color.NRGBA) {
	polygons := make([][][2]float64, len(boxes))
	for i, b := range boxes {
		polygons[i] = [][2]float64{{b.x0, b.y0}, {b.x1, b.y0}, {b.x1, b.y1}, {b.x0, b.y1}}
	}
	p.fill(c, polygons...)
}

func (p *pixels) text(x, y, anchor float64, text string) {
	d := font.Drawer{Dst: p.img, Src: image.NewUniform(black), Face: p.face}
	wide := d.MeasureString(text)
	d.Dot = fixed.Point26_6{X: fixed.Int26_6(x*p.scale*64) - fixed.Int26_6(anchor*float64(wide)),
		Y: fixed.Int26_6(y * p.scale * 64)}
	d.DrawString(text)
}
