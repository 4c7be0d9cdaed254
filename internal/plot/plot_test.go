package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"math"
	"math/rand/v2"
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
		{[]float64{1e15, 1e15}, 2, 1e15 - 0.5, 1e15 + 0.5, []int{0, 2}},
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

// Equal numbers have a histogram, however large they are: it is as wide as the numbers beside them.
func TestHistogramOfLargeEqualNumbers(t *testing.T) {
	for _, v := range []float64{1e17, -1e17, 1e300, math.MaxFloat64, -math.MaxFloat64} {
		bars, err := Histogram([]float64{v, v}, 3)
		require.NoError(t, err)
		low, high := bars[0].Low, bars[2].High
		require.True(t, low < high && low <= v && v <= high, "%v: %v", v, bars)
		require.Equal(t, 2, bars[0].Count+bars[1].Count+bars[2].Count)
		for name, draw := range drawings(&Figure{Bars: bars}) {
			require.NoError(t, draw(), name)
		}
	}
}

// drawings are the forms in which a figure is drawn.
func drawings(f *Figure) map[string]func() error {
	return map[string]func() error{
		"text": func() error { _, err := f.Text(60, 10, false); return err },
		"svg":  func() error { return f.SVG(io.Discard) },
		"png":  func() error { return f.PNG(io.Discard, 1) },
	}
}

// Any two numbers are the ends of an axis whose marks lie on it, in their order.
func TestAxesOfAnyNumbers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		low := math.Float64frombits(r.Uint64())
		high := math.Float64frombits(math.Float64bits(low) + uint64(r.IntN(5)))
		if r.IntN(2) == 0 {
			high = math.Float64frombits(r.Uint64())
		}
		if !finite(low) || !finite(high) || low > high {
			continue
		}
		a := newAxis(low, high, 8)
		require.NotEmpty(t, a.ticks, "%v to %v", low, high)
		require.True(t, slices.IsSorted(a.ticks))
		for _, v := range append(a.ticks, low, high) {
			require.True(t, 0 <= a.at(v) && a.at(v) <= 1, "%v to %v: %v", low, high, v)
		}
		_, err := (&Figure{Series: []Series{{X: []float64{low, high}, Y: []float64{low, high}}}}).Text(40, 4, false)
		require.NoError(t, err)
	}
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
		for name, draw := range drawings(f) {
			asked = 0
			require.ErrorIs(t, draw(), end, name)
			require.Equal(t, 21, asked, name)
		}
	}
}

// So it does with bars, and with the labels of lines.
func TestStopOfBarsAndLabels(t *testing.T) {
	asked, most := 0, 0
	end := errors.New("enough")
	stop := func() error {
		if asked++; asked > most {
			return end
		}
		return nil
	}
	bars := &Figure{Bars: make([]Bar, 1<<15), Stop: stop}
	for i := range bars.Bars {
		bars.Bars[i] = Bar{float64(i), float64(i + 1), i}
	}
	for name, draw := range drawings(bars) {
		asked, most = 0, 7
		require.ErrorIs(t, draw(), end, name)
		require.Equal(t, 8, asked, name)
	}
	lines := &Figure{Series: make([]Series, 20), Stop: stop}
	for i := range lines.Series {
		lines.Series[i] = Series{Label: "a", X: []float64{1}, Y: []float64{1}}
	}
	for _, name := range []string{"svg", "png"} {
		asked, most = 0, 50 // twice for each line, and then for labels
		require.ErrorIs(t, drawings(lines)[name](), end, name)
	}
}

// Many bars are drawn by the thousand, and what is small costs what its own pixels do: bars, labels, long texts.
func TestManyBars(t *testing.T) {
	f := &Figure{Bars: make([]Bar, 1<<14)}
	for i := range f.Bars {
		f.Bars[i] = Bar{float64(i), float64(i + 1), 3}
	}
	labels := &Figure{Title: strings.Repeat("a long title ", 1e5), Series: make([]Series, 100)}
	for i := range labels.Series {
		labels.Series[i] = Series{Label: strings.Repeat("é", 1000), X: []float64{1}, Y: []float64{1}, Points: true}
	}
	for _, f := range []*Figure{f, labels} {
		begun := time.Now()
		require.NoError(t, f.PNG(io.Discard, 2))
		require.Less(t, time.Since(begun), 5*time.Second)
	}
	text, err := labels.Text(60, 10, false)
	require.NoError(t, err)
	require.Contains(t, text, "── "+strings.Repeat("é", 300)+"…\n")
}

// Bars that are narrower than the gap between wide ones are seen, too.
func TestNarrowBars(t *testing.T) {
	values := make([]float64, 2000)
	for i := range values {
		values[i] = float64(i)
	}
	bars, err := Histogram(values, 2000)
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, (&Figure{Bars: bars}).SVG(&b))
	require.NotContains(t, b.String(), `width="0.00"`)
	require.NotContains(t, b.String(), `width="-`)
	b.Reset()
	require.NoError(t, (&Figure{Bars: bars}).PNG(&b, 1))
	img, err := png.Decode(&b)
	require.NoError(t, err)
	for x := 70; x < 610; x++ {
		r, _, _, _ := img.At(x, 200).RGBA()
		require.Less(t, r>>8, uint32(140), "blue at %d", x)
	}
}

// Each piece of a long line is drawn once: only where the line is cut a point stands twice.
func TestPiecesOfLines(t *testing.T) {
	var b bytes.Buffer
	f := waves(3*pollPoints + 5)
	f.Series = f.Series[:1]
	require.NoError(t, f.SVG(&b))
	_, drawn, _ := strings.Cut(b.String(), `stroke="#0072b2"`)
	points := 0
	for _, piece := range strings.Split(drawn, `points="`)[1:5] {
		list, _, _ := strings.Cut(piece, `"`)
		points += len(strings.Fields(list))
	}
	require.Equal(t, 3*pollPoints+5+3, points)
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
