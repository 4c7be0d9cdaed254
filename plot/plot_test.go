package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func waves(n int) *Figure {
	var s, c Series
	for i := range n {
		x := float64(i) / 10
		s.X, s.Y = append(s.X, x), append(s.Y, math.Sin(x))
		c.X, c.Y = append(c.X, x), append(c.Y, math.Cos(x))
	}
	s.Label, c.Label = "sin", "cos <&>"
	return &Figure{Title: "waves", XLabel: "x", YLabel: "y", Series: []Series{s, c}}
}

// Counts are those of numpy.histogram(values, bins).
func TestHistogram(t *testing.T) {
	for _, c := range []struct {
		values    []float64
		bins      int
		low, high float64
		want      []int
	}{
		{[]float64{1, 2, 2, 3, 4, 4, 4, 5}, 4, 1, 5, []int{1, 2, 1, 4}},
		{[]float64{0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1}, 10, 0, 1, []int{1, 1, 1, 1, 1, 1, 1, 1, 1, 2}},
		{[]float64{3, 3, 3}, 2, 2.5, 3.5, []int{0, 3}},
		{[]float64{math.NaN(), -1, math.Inf(1), 1}, 2, -1, 1, []int{1, 1}},
	} {
		bars, err := Histogram(c.values, c.bins)
		require.NoError(t, err)
		require.Equal(t, c.low, bars[0].Low)
		require.Equal(t, c.high, bars[len(bars)-1].High)
		var got []int
		for _, b := range bars {
			got = append(got, b.Count)
		}
		require.Equal(t, c.want, got, "%v", c.values)
	}
	_, err := Histogram([]float64{math.NaN()}, 3)
	require.ErrorContains(t, err, "none of the 1 values is finite")
	_, err = Histogram([]float64{1}, 0)
	require.ErrorContains(t, err, "bins is 0, want at least 1")
}

// Marks are round numbers in the range, and none of them is far from its place.
func TestAxes(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		want      string
	}{
		{0, 10, "0 2 4 6 8 10"}, {-1, 1, "-1.0 -0.5 0.0 0.5 1.0"}, {0.001, 0.0049, "0.001 0.002 0.003 0.004"},
		{3, 3, "2.6 2.8 3.0 3.2 3.4"}, {0, 2e9, "0 5e+08 1e+09 1.5e+09 2e+09"}, {1, -1, "0.0 0.2 0.4 0.6 0.8 1.0"},
	} {
		a := newAxis(c.low, c.high, 5)
		var got []string
		for _, v := range a.ticks {
			got = append(got, a.text(v))
		}
		require.Equal(t, c.want, strings.Join(got, " "))
	}
	for _, high := range []float64{math.MaxFloat64, math.SmallestNonzeroFloat64, 1e-300} {
		a := newAxis(-high, high, 5)
		require.LessOrEqual(t, len(a.ticks), 21)
		require.False(t, math.IsNaN(a.at(0)))
	}
}

// A line in a terminal goes where its points are; rows are no wider than asked for.
func TestText(t *testing.T) {
	f := &Figure{Title: "up", XLabel: "step", Series: []Series{{X: []float64{0, 1, 2, 3}, Y: []float64{0, 1, 2, 3}}}}
	text, err := f.Text(24, 4, false)
	require.NoError(t, err)
	rows := strings.Split(text, "\n")
	require.Equal(t, "           up", rows[0])
	top, low := []rune(rows[1]), []rune(rows[4])
	require.NotZero(t, (top[len(top)-1]-0x2800)&8, "the last point is in the upper right corner: %q", rows[1])
	require.Len(t, top, 24)
	begin := strings.IndexAny(rows[4], "┤│")
	require.NotZero(t, ([]rune(rows[4][begin:])[1]-0x2800)&64, "and the first in the lower left one: %q", rows[4])
	require.Less(t, len(low), len(top))
	for _, columns := range []int{24, 60, 100} {
		text, err := waves(100).Text(columns, 10, false)
		require.NoError(t, err)
		for _, row := range strings.Split(text, "\n") {
			require.LessOrEqual(t, utf8.RuneCountInString(row), columns+6, row)
		}
		require.Contains(t, text, "── sin\n── cos <&>\n")
		require.NotContains(t, text, "\x1b")
	}
	colored, err := waves(100).Text(60, 10, true)
	require.NoError(t, err)
	require.Contains(t, colored, "\x1b[34m")
	require.Contains(t, colored, "\x1b[33m")
	bars, err := Histogram([]float64{1, 2, 2, 3, 4, 4, 4, 5}, 4)
	require.NoError(t, err)
	text, err = (&Figure{Bars: bars}).Text(24, 4, false)
	require.NoError(t, err)
	require.Equal(t, "1 │████▊ 1\n2 │█████████▌ 2\n3 │████▊ 1\n4 │███████████████████ 4\n5 │\n", text)
}

func collected(s *Series) (out [][][2]float64) {
	for run := range s.runs() {
		out = append(out, slices.Clone(run))
	}
	return out
}

// What asks for an end ends a drawing, in each form; the first question comes before the work.
func TestStop(t *testing.T) {
	end := errors.New("enough")
	for _, points := range []bool{false, true} {
		f := waves(1 << 16)
		asked := 0
		f.Stop = func() error {
			if asked++; asked > 20 {
				return end
			}
			return nil
		}
		for i := range f.Series {
			f.Series[i].Points = points
		}
		for name, draw := range map[string]func() error{
			"text": func() error { _, err := f.Text(60, 10, false); return err },
			"svg":  func() error { return f.SVG(io.Discard) },
			"png":  func() error { return f.PNG(io.Discard, 1) },
		} {
			asked = 0
			require.ErrorIs(t, draw(), end, name)
			require.Equal(t, 21, asked, name)
		}
	}
}

// Many points are drawn by the thousand.
func TestManyPoints(t *testing.T) {
	f := waves(20000)
	for i := range f.Series {
		f.Series[i].Points = true
	}
	begun := time.Now()
	require.NoError(t, f.PNG(io.Discard, 2))
	require.Less(t, time.Since(begun), 5*time.Second)
}

// Numbers whose difference is none have a histogram, too; how many bars there are is bounded.
func TestHistogramOfWideRanges(t *testing.T) {
	end, half := math.Ldexp(1.5, 1023), math.Ldexp(1.5, 1022)
	bars, err := Histogram([]float64{-end, end, 0, -end}, 4)
	require.NoError(t, err)
	require.Equal(t, []Bar{{-end, -half, 2}, {-half, 0, 0}, {0, half, 1}, {half, end, 1}}, bars)
	_, err = Histogram([]float64{1, 2}, 1e9)
	require.EqualError(t, err, "bins is 1000000000, want at most 1048576")
}

// A line is where its numbers are not finite: in two parts; there must be something to draw.
func TestGaps(t *testing.T) {
	s := Series{X: []float64{0, 1, 2, 3, 4}, Y: []float64{1, 2, math.NaN(), 3, math.Inf(1)}}
	require.Equal(t, [][][2]float64{{{0, 1}, {1, 2}}, {{3, 3}}}, collected(&s))
	for _, f := range []*Figure{{}, {Series: []Series{{X: []float64{1}, Y: []float64{math.NaN()}}}}} {
		_, err := f.Text(60, 10, false)
		require.ErrorContains(t, err, "no point whose numbers are finite")
		require.Error(t, f.SVG(io.Discard))
		require.Error(t, f.PNG(io.Discard, 1))
	}
	require.ErrorContains(t, (&Figure{Series: []Series{{X: []float64{1}, Y: nil}}}).SVG(io.Discard),
		"1 numbers for x and 0 for y")
}

// An SVG is XML whose lines go through the points.
func TestSVG(t *testing.T) {
	var b bytes.Buffer
	f := &Figure{Title: "a <b> & \x01", Series: []Series{{X: []float64{0, 1}, Y: []float64{0, 1}}}}
	require.NoError(t, f.SVG(&b))
	require.Contains(t, b.String(), `points="64.00,350.00 620.00,40.00"`)
	for d := xml.NewDecoder(&b); ; {
		if _, err := d.Token(); err == io.EOF {
			break
		} else {
			require.NoError(t, err)
		}
	}
}

// A PNG has the series' colours where their lines are, and white where nothing is.
func TestPNG(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, (&Figure{Title: "line", Series: []Series{{X: []float64{0, 1, 2}, Y: []float64{0, 1, 2}},
		{X: []float64{1}, Y: []float64{0.5}, Points: true}}}).PNG(&b, 2))
	img, err := png.Decode(&b)
	require.NoError(t, err)
	require.Equal(t, 1280, img.Bounds().Dx())
	require.Equal(t, 800, img.Bounds().Dy())
	at := func(x, y float64) [3]uint32 {
		r, g, b, _ := img.At(int(x*2), int(y*2)).RGBA()
		return [3]uint32{r >> 8, g >> 8, b >> 8}
	}
	require.Equal(t, [3]uint32{0, 114, 178}, at(342, 195), "the middle of the line, where a joint is")
	require.Equal(t, [3]uint32{230, 159, 0}, at(342, 272.5), "the point")
	require.Equal(t, [3]uint32{255, 255, 255}, at(100, 60))
	dark := 0
	for y := 10; y < 60; y++ {
		for x := 600; x < 760; x++ {
			if r, _, _, _ := img.At(x, y).RGBA(); r>>8 < 100 {
				dark++
			}
		}
	}
	require.Greater(t, dark, 40, "the title is written")
}
