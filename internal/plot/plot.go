// Package plot draws lines, points and histograms: as text for terminals, as SVG and as PNG. It knows no arrays.
package plot

import (
	"fmt"
	"iter"
	"math"
	"strconv"
	"strings"
)

// Series is a line through points, or the points alone. A number that is not finite interrupts the line.
type Series struct {
	Label  string
	X, Y   []float64
	Points bool
}

// Figure is what is drawn: series in one frame, or a histogram's bars.
type Figure struct {
	Title, XLabel, YLabel string
	Series                []Series
	Bars                  []Bar
	// Stop is asked now and then while the figure is drawn: an error ends that. nil: nothing does.
	Stop func() error
}

// pollPoints is how many points are drawn between two questions of Stop's.
const pollPoints = 1 << 12

// stopped asks Stop at each so many points.
func (f *Figure) stopped(points int) error {
	if f.Stop == nil || points%pollPoints != 0 {
		return nil
	}
	return f.Stop()
}

// Bar is a bar of a histogram: how many values lie from Low to High.
type Bar struct {
	Low, High float64
	Count     int
}

// Histogram counts values in bins of equal width between the least and the greatest one; each bin has its lower end,
// the last one both. Values that are not finite are left out. Bins are 1 to 2^20.
func Histogram(values []float64, bins int) ([]Bar, error) {
	if bins < 1 {
		return nil, fmt.Errorf("bins is %d, want at least 1", bins)
	}
	if bins > MostBins {
		return nil, fmt.Errorf("bins is %d, want at most %d", bins, MostBins)
	}
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if finite(v) {
			low, high = min(low, v), max(high, v)
		}
	}
	if low > high {
		return nil, fmt.Errorf("none of the %d values is finite", len(values))
	}
	if low == high { // as NumPy does, where a half makes a difference
		low = max(min(low-0.5, math.Nextafter(low, math.Inf(-1))), -math.MaxFloat64)
		high = min(max(high+0.5, math.Nextafter(high, math.Inf(1))), math.MaxFloat64)
	}
	bars := make([]Bar, bins)
	scale := 1.0
	if math.IsInf(high-low, 0) { // of smaller numbers all is finite
		scale = 0.25 / MostBins
	}
	width := high*scale - low*scale
	edge := func(i int) float64 { return (low*scale + width*float64(i)/float64(bins)) / scale }
	for i := range bars {
		bars[i].Low, bars[i].High = edge(i), edge(i+1)
	}
	for _, v := range values {
		if finite(v) {
			i := min(int(float64(bins)*((v*scale-low*scale)/width)), bins-1)
			switch { // the edges are rounded
			case v < bars[i].Low && i > 0:
				i--
			case v >= bars[i].High && i < bins-1:
				i++
			}
			bars[i].Count++
		}
	}
	return bars, nil
}

// MostBins is how many bars a histogram may have at most.
const MostBins = 1 << 20

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// axis is a range of numbers with marks at round ones.
type axis struct {
	low, high float64
	ticks     []float64
	decimals  int
}

// newAxis is an axis over a range with about as many marks: multiples of 1, 2 or 5 times a power of ten.
func newAxis(low, high float64, about int) axis {
	if low > high {
		low, high = 0, 1
	}
	if high/2-low/2 < 1e-290 { // where rounding would leave no marks
		wider := max(math.Abs(low)*0.1, 0.5)
		low, high = max(low-wider, -math.MaxFloat64), min(high+wider, math.MaxFloat64)
	}
	rough := high/float64(about) - low/float64(about)
	power := math.Floor(math.Log10(rough))
	step := math.Pow(10, power)
	for _, m := range []float64{1, 2, 5, 10} {
		if step = m * math.Pow(10, power); step >= rough*0.999 {
			break
		}
	}
	a := axis{low: low, high: high, decimals: max(0, int(-math.Floor(math.Log10(step)+1e-9)))}
	first := math.Ceil(low/step - 1e-9)
	for i := 0; i <= 4*about && (first+float64(i))*step <= high+step*1e-9; i++ {
		a.ticks = append(a.ticks, min(max((first+float64(i))*step, low), high)) // which are rounded
	}
	return a
}

// text is a mark's number.
func (a axis) text(v float64) string {
	if v == 0 {
		v = 0 // not -0
	}
	if math.Max(math.Abs(a.low), math.Abs(a.high)) >= 1e6 || a.decimals > 5 {
		return strconv.FormatFloat(v, 'g', 4, 64)
	}
	return strconv.FormatFloat(v, 'f', a.decimals, 64)
}

// at is where a number lies on the axis: from 0 to 1.
func (a axis) at(v float64) float64 { return (v/2 - a.low/2) / (a.high/2 - a.low/2) }

// axes are those of a figure's series or bars. It fails if there is nothing to draw.
func (f *Figure) axes(aboutX, aboutY int) (x, y axis, err error) {
	xl, xh, yl, yh := math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
	for i, s := range f.Series {
		if len(s.X) != len(s.Y) {
			return x, y, fmt.Errorf("series %d has %d numbers for x and %d for y", i+1, len(s.X), len(s.Y))
		}
		for j := range s.X {
			if err := f.stopped(j); err != nil {
				return x, y, err
			}
			if finite(s.X[j]) && finite(s.Y[j]) {
				xl, xh, yl, yh = min(xl, s.X[j]), max(xh, s.X[j]), min(yl, s.Y[j]), max(yh, s.Y[j])
			}
		}
	}
	for _, b := range f.Bars {
		xl, xh, yl, yh = min(xl, b.Low), max(xh, b.High), 0, max(yh, float64(b.Count))
	}
	if xl > xh {
		return x, y, fmt.Errorf("there is no point whose numbers are finite")
	}
	return newAxis(xl, xh, aboutX), newAxis(yl, yh, aboutY), nil
}

// runs are the parts of a line between numbers that are not finite. Each is valid until the next one.
func (s *Series) runs() iter.Seq[[][2]float64] {
	return func(yield func([][2]float64) bool) {
		var run [][2]float64
		for i := range s.X {
			if finite(s.X[i]) && finite(s.Y[i]) {
				run = append(run, [2]float64{s.X[i], s.Y[i]})
				continue
			}
			if len(run) > 0 && !yield(run) {
				return
			}
			run = run[:0]
		}
		if len(run) > 0 {
			yield(run)
		}
	}
}

// mostText is how many characters of a text are drawn: more than a drawing has room for.
const mostText = 300

// short is a text, or the beginning of a long one.
func short(text string) string {
	count := 0
	for i := range text {
		if count++; count > mostText {
			return text[:i] + "…"
		}
	}
	return text
}

// labels are the series' labels, if there are any.
func (f *Figure) labels() (out []string) {
	for _, s := range f.Series {
		out = append(out, short(s.Label))
	}
	if strings.Join(out, "") == "" {
		return nil
	}
	return out
}
