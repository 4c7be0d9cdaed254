package luabind

import (
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/internal/picture"
	"github.com/mlxlua/mlxlua/internal/plot"
	"github.com/mlxlua/mlxlua/luabind/lua51"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
)

// plotOptions are the parameters that all plots have.
const plotOptions = " title:string? xlabel:string? ylabel:string? labels:strings? file:string?"

// plotRows draw arrays.
var plotRows = []row{
	{name: "plot.line", sig: "x:list y:list?" + plotOptions, host: true,
		help: "Draws lines through the points (x, y), or of one argument through its numbers one after the other: " +
			"arrays of one dimension, tables of numbers, or several of them in a table, also the columns of a matrix. " +
			"They are printed, in braille; with file, whose name ends in .png or .svg, they are written there. " +
			"labels names the lines.",
		call: func(a *args) any { return a.plotted(false) }},
	{name: "plot.scatter", sig: "x:list y:list?" + plotOptions, host: true,
		help: "As mx.plot.line, but draws the points alone.", call: func(a *args) any { return a.plotted(true) }},
	{name: "plot.hist", sig: "x:list bins:int=10 title:string? xlabel:string? file:string?", host: true,
		help: "Draws how many elements of an array, or a table of numbers, lie in each of so many equal bins, 2^20 at " +
			"most, between the least and the greatest one, as mx.plot.line does.",
		call: func(a *args) any {
			taken := lua51.Hold(a.s.State)
			defer taken.End()
			values := a.numbers(taken, 0, a.raw[0])
			if n := a.Int(1); 0 < n && n <= plot.MostBins {
				a.take(taken, n, a.barBytes(4))
			}
			bars, err := plot.Histogram(values, a.Int(1))
			if err != nil {
				a.fail("%w", err)
			}
			f := &plot.Figure{Bars: bars, Title: a.textOr(2), XLabel: a.textOr(3)}
			return a.drawn(f, 4)
		}},
	{name: "plot.image", sig: "x low:number? high:number? file:string?", host: true,
		help: "Draws a matrix in colours, from dark blue at low to yellow at high (the least and the greatest element), or " +
			"a picture as mx.data.draw_image does; with file, whose name ends in .png, it is written there, a small one " +
			"in squares.",
		call: plotImage},
}

// textOr is a text that may be left out.
func (a *args) textOr(i int) string {
	if !a.Given(i) {
		return ""
	}
	return a.Text(i)
}

// mostPlotted is how many numbers a plot takes, and plottedBytes what one takes while it is drawn.
const (
	mostPlotted  = 1 << 24
	plottedBytes = 40
)

// barBytes is what a bar takes while it is drawn: in a file, if argument i names one, or as a row of a text.
func (a *args) barBytes(i int) int {
	const bar = 24
	if a.Given(i) {
		return bar
	}
	const row, most = 32, 3 // of a row's own; of a character; both also where the text grows, and in the text
	return bar + 3*(row+most*textColumns(a.s))
}

// take counts what a drawing holds of n things.
func (a *args) take(taken *lua51.Holding, n, bytes int) {
	if err := taken.Add(int64(n) * int64(bytes)); err != nil {
		a.s.raise(err)
	}
}

// numbers are the elements of an array, or a table of numbers, as float64. It evaluates the array.
func (a *args) numbers(taken *lua51.Holding, i int, v lua.LValue) []float64 {
	x, ok := array(v)
	if !ok {
		var err error
		if x, err = arrayOf(a.s.Context(), a.Ctx, v, tensor.Float64, false); err != nil {
			a.fail("%s %v", a.f.params[i].Name, err)
		}
	}
	if x.DType() == tensor.Complex64 {
		a.fail("%s is %s, want real numbers", a.f.params[i].Name, describe(v))
	}
	n := x.Shape().Size()
	if n > mostPlotted {
		a.fail("%s has %d numbers, at most %d are drawn: take every n-th, or means", a.f.params[i].Name, n, mostPlotted)
	}
	a.take(taken, n, plottedBytes)
	out, err := ops.ToSlice[float64](a.s.Context(), ops.AsType(x, tensor.Float64, wide(a.Ctx)))
	if err != nil {
		a.s.raise(err)
	}
	return out
}

// wide is a context of the CPU, which has float64; c gives the rest, if it is not nil.
func wide(c *tensor.Ctx) *tensor.Ctx {
	s, err := tensor.DefaultStream(tensor.DeviceID{Kind: tensor.CPU})
	if err != nil {
		return c
	}
	d := tensor.Ctx{}
	if c != nil {
		d = *c
	}
	d.Stream = s
	return &d
}

// lists are the lists of numbers in argument i: itself, the arrays or tables in a table, or a matrix's columns.
func (a *args) lists(taken *lua51.Holding, i int) (out [][]float64) {
	v := a.raw[i]
	if x, ok := array(v); ok {
		shape := x.Shape()
		if len(shape) > 2 {
			a.fail("%s is %s, want one or two dimensions", a.f.params[i].Name, describe(v))
		}
		all := a.numbers(taken, i, v)
		if len(shape) < 2 {
			return [][]float64{all}
		}
		for c := range shape[1] {
			column := make([]float64, shape[0])
			for r := range column {
				column[r] = all[r*shape[1]+c]
			}
			out = append(out, column)
		}
		return out
	}
	t, ok := v.(*lua.LTable)
	if !ok {
		a.fail("%s %w", a.f.params[i].Name, wrong(v, "an array or a table of numbers"))
	}
	if _, number := t.RawGetInt(1).(lua.LNumber); number || t.Len() == 0 {
		return [][]float64{a.numbers(taken, i, v)}
	}
	for j := 1; j <= t.Len(); j++ {
		out = append(out, a.numbers(taken, i, t.RawGetInt(j)))
	}
	return out
}

// plotted draws lines or points.
func (a *args) plotted(points bool) any {
	taken := lua51.Hold(a.s.State)
	defer taken.End()
	xs, ys := a.lists(taken, 0), [][]float64(nil)
	if a.raw[1] != lua.LNil {
		ys = a.lists(taken, 1)
	} else {
		xs, ys = nil, xs
	}
	if len(xs) > 1 && len(xs) != len(ys) {
		a.fail("x has %s, and y %d", tensor.Count(len(xs), "series"), len(ys))
	}
	var labels []string
	if l, ok := a.V[5].([]string); ok {
		labels = l
	}
	if len(labels) > len(ys) {
		a.fail("there are %d labels for %s", len(labels), tensor.Count(len(ys), "line"))
	}
	f := &plot.Figure{Title: a.textOr(2), XLabel: a.textOr(3), YLabel: a.textOr(4)}
	for i, y := range ys {
		s := plot.Series{Y: y, Points: points}
		switch {
		case len(xs) > 1:
			s.X = xs[i]
		case len(xs) == 1:
			s.X = xs[0]
		default:
			s.X = make([]float64, len(y))
			for j := range s.X {
				s.X[j] = float64(j)
			}
		}
		if len(s.X) != len(s.Y) {
			a.fail("x has %s and y %d", tensor.Count(len(s.X), "number"), len(s.Y))
		}
		if i < len(labels) {
			s.Label = labels[i]
		}
		f.Series = append(f.Series, s)
	}
	return a.drawn(f, 6)
}

// drawn writes a figure to the file that argument i names, or prints it.
func (a *args) drawn(f *plot.Figure, i int) any {
	const rows, pixelsPerPoint = 16, 2
	f.Stop = a.s.Context().Err
	if !a.Given(i) {
		text, err := f.Text(textColumns(a.s), rows, paints(a.s))
		if err != nil {
			a.fail("%w", err)
		}
		a.s.Write(text)
		return nil
	}
	write := f.SVG
	switch path := a.Text(i); strings.ToLower(filepath.Ext(path)) {
	case ".svg":
	case ".png":
		write = func(w io.Writer) error { return f.PNG(w, pixelsPerPoint) }
	default:
		a.fail("file is %s, want a name that ends in .png or .svg", quote(path))
	}
	return a.save(a.writable(a.Text(i)), write)
}

// textColumns is how wide text may be: as the environment's COLUMNS says, or the host, or 80.
func textColumns(s *State) int {
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	if s.opt.Columns != nil {
		return s.opt.Columns()
	}
	return 80
}

// paints reports whether what is printed may have colours: on a terminal, if the environment has no NO_COLOR.
func paints(s *State) bool { return isTerminal(s.opt.Stdout, os.Stdout) && os.Getenv("NO_COLOR") == "" }

// plotImage draws a matrix in colours, or a picture.
func plotImage(a *args) any {
	x := a.Array(0)
	var p *picture.Picture
	if x.NDim() == 2 {
		p = a.heat(x)
	} else {
		p = a.picture(0)
	}
	if !a.Given(3) {
		text, err := p.Text(textColumns(a.s), paints(a.s), a.s.Context().Err)
		if err != nil {
			a.fail("%w", err)
		}
		a.s.Write(text)
		return nil
	}
	path := a.Text(3)
	if strings.ToLower(filepath.Ext(path)) != ".png" {
		a.fail("file is %s, want a name that ends in .png", quote(path))
	}
	return a.save(a.writable(path), enlarged(p).WritePNG)
}

// heat is a matrix in colours. What is no number is grey.
func (a *args) heat(x *tensor.Array) *picture.Picture {
	taken := lua51.Hold(a.s.State)
	defer taken.End()
	values := a.numbers(taken, 0, a.raw[0])
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			low, high = min(low, v), max(high, v)
		}
	}
	if a.Given(1) {
		low = a.Number(1)
	}
	if a.Given(2) {
		high = a.Number(2)
	}
	if low > high && len(values) > 0 && (a.Given(1) || a.Given(2)) {
		a.fail("low is %v, above high, %v", low, high)
	}
	shape := x.Shape()
	p := &picture.Picture{Height: shape[0], Width: shape[1], Channels: 3}
	for _, v := range values {
		c := [3]byte{128, 128, 128}
		if !math.IsNaN(v) {
			at := 0.5
			if high > low {
				at = min(max((v-low)/(high-low), 0), 1)
			}
			c = heatColor(at)
		}
		p.Samples = append(p.Samples, c[:]...)
	}
	return p
}

// heatStops are colours that grow brighter evenly, for colour-blind people too: points of the map that Matplotlib calls
// viridis (S. van der Walt, N. Smith, 2015; CC0).
var heatStops = [][3]float64{{68, 1, 84}, {72, 40, 120}, {62, 74, 137}, {49, 104, 142}, {38, 130, 142}, {31, 158, 137},
	{53, 183, 121}, {110, 206, 88}, {181, 222, 43}, {253, 231, 37}}

// heatColor is the colour of a number from 0 to 1.
func heatColor(at float64) (c [3]byte) {
	place := at * float64(len(heatStops)-1)
	i := min(int(place), len(heatStops)-2)
	for k := range c {
		c[k] = byte(math.Round(heatStops[i][k] + (place-float64(i))*(heatStops[i+1][k]-heatStops[i][k])))
	}
	return c
}

// enlarged is a picture whose pixels are squares if it is small.
func enlarged(p *picture.Picture) *picture.Picture {
	const side = 512
	by := side / max(p.Width, p.Height, 1)
	if by < 2 {
		return p
	}
	out := &picture.Picture{Height: p.Height * by, Width: p.Width * by, Channels: p.Channels}
	row := p.Width * p.Channels
	for y := range out.Height {
		line := p.Samples[y/by*row : (y/by+1)*row]
		for x := range out.Width {
			out.Samples = append(out.Samples, line[x/by*p.Channels:(x/by+1)*p.Channels]...)
		}
	}
	return out
}
