package conv

import (
	"fmt"

	"github.com/mlxlua/mlxlua/tensor"
)

// The ways of reading the numbers of a call.
const (
	general    = iota
	transposed // padding cuts the output, and stride lies between the input's elements
	full       // the three modes of convolve
	same
	valid
)

// attrs are a call's arguments as the user wrote them. A list has one number, which goes for all dimensions, or one
// for each; nil is the default.
type attrs struct {
	// Spatial is how many dimensions the window moves along. They stand before the channels and behind the examples, and
	// whatever stands before the examples is a batch of convolutions.
	Spatial                              int
	Mode                                 uint8
	Stride, Low, High, Dilation, Spacing tensor.Ints // High: what a transposed output is longer by, at its end
	Groups                               int
	Flip                                 bool
}

// axis is how the window moves along a dimension: output o adds up, over all taps t, the weight's element t times
// the input's element (o * stride + t * dilation - low) / spacing, if that is a whole number from first to end-1.
type axis struct {
	in, taps, out             int
	stride, dilation, spacing int
	low, first, end           int
}

// window is how a call reads its input, x, of shape (batch..., examples, spatial..., channels), with its weight, w,
// of shape (batch..., outs, taps..., channels / groups), for an output of shape (batch..., examples, spatial...,
// outs).
type window struct {
	batch          tensor.Shape
	axes           []axis
	examples       int
	channels, outs int // of all groups
}

// shape is the output's.
func (v *window) shape() tensor.Shape {
	s := append(v.batch.Clone(), v.examples)
	for _, a := range v.axes {
		s = append(s, a.out)
	}
	return append(s, v.outs)
}

// window is that of a call with an input of shape x and a weight of shape w.
func (a attrs) window(x, w tensor.Shape) (*window, error) {
	n := a.Spatial
	if len(x) < n+2 || len(w) < n+2 {
		return nil, fmt.Errorf("BUG: input %v and weight %v in %d spatial dimensions", x, w, n)
	}
	lead, leadW := len(x)-n-2, len(w)-n-2
	batch, err := tensor.Broadcast(x[:lead], w[:leadW])
	if err != nil {
		return nil, fmt.Errorf("batch dimensions of the input %v and the weight %v cannot be broadcast", x, w)
	}
	v := &window{batch: batch, axes: make([]axis, n), examples: x[lead], channels: x[len(x)-1], outs: w[leadW]}
	if err := a.checkGroups(x, w, v); err != nil {
		return nil, err
	}
	for _, list := range []struct {
		name  string
		v     tensor.Ints
		least bool
	}{{"stride", a.Stride, true}, {"padding", a.Low, false}, {"padding", a.High, false}, {"dilation", a.Dilation, true},
		{"input dilation", a.Spacing, true}} {
		if k := list.v.Len(); k > 1 && k != n {
			return nil, fmt.Errorf("%s %v has %d numbers for %s", list.name, list.v.Slice(), k, tensor.Count(n,
				"spatial dimension"))
		}
		for _, k := range list.v.Slice() {
			if list.least && k <= 0 {
				return nil, fmt.Errorf("%s is %v, it must be positive", list.name, list.v.Slice())
			}
			if k > most || k < -most {
				return nil, fmt.Errorf("%s is %v, numbers beyond %d are too many", list.name, list.v.Slice(), most)
			}
		}
	}
	for i := range v.axes {
		if v.axes[i], err = a.axis(i, x[lead:], w[leadW:]); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// most bounds the numbers of a call, so that places in an input fit 64 bits.
const most = 1<<31 - 1

func (a attrs) checkGroups(x, w tensor.Shape, v *window) error {
	g, each := a.Groups, w[len(w)-1]
	switch {
	case g <= 0:
		return fmt.Errorf("groups is %d, it must be positive", g)
	case v.channels%g != 0:
		return fmt.Errorf("%d groups do not divide the %d channels of the input %v", g, v.channels, x)
	case v.outs%g != 0:
		return fmt.Errorf("%d groups do not divide the %d outputs of the weight %v", g, v.outs, w)
	case v.channels != g*each && g == 1:
		return fmt.Errorf("channels differ: input %v, weight %v", x, w)
	case v.channels != g*each:
		return fmt.Errorf("%d groups of a weight %v need %d channels, the input %v has %d", g, w, g*each, x, v.channels)
	}
	return nil
}

// at is number i of a list: its only one, or otherwise where there is none.
func at(v tensor.Ints, i, otherwise int) int {
	s := v.Slice()
	switch len(s) {
	case 0:
		return otherwise
	case 1:
		return s[0]
	}
	return s[i]
}

// axis is spatial dimension i of an input of shape x and a weight of shape w.
func (a attrs) axis(i int, x, w tensor.Shape) (axis, error) {
	in, taps := x[i+1], w[i+1]
	d := axis{in: in, taps: taps, end: in, stride: at(a.Stride, i, 1), dilation: at(a.Dilation, i, 1),
		spacing: at(a.Spacing, i, 1)}
	low, high := at(a.Low, i, 0), at(a.High, i, 0)
	reach := d.dilation * (taps - 1)
	switch a.Mode {
	case transposed:
		d.stride, d.spacing = d.spacing, d.stride
		low = reach - low
		high += low
	case full, same, valid:
		return d.convolve(a.Mode)
	}
	// A negative padding takes elements away: of the input, before any come between them.
	d.first = min(max(-low, 0), in)
	d.end = max(in-max(-high, 0), d.first)
	low, high = max(low, 0), max(high, 0)
	room := 1 + d.spacing*(d.end-d.first-1) + low + high - (1 + reach)
	if room < 0 {
		return d, fmt.Errorf("the input is smaller than the weight along axis %d: input %v, weight %v, paddings %d and %d, "+
			"dilations %d and %d", i+1, x, w, low, high, d.dilation, d.spacing)
	}
	d.out = room/d.stride + 1
	d.low = low - d.first*d.spacing
	return d, nil
}

// convolve is the window of a mode of convolve, whose operands may change places.
func (d axis) convolve(mode uint8) (axis, error) {
	if d.in == 0 || d.taps == 0 {
		return d, fmt.Errorf("operands of %d and %d elements: none may be empty", d.in, d.taps)
	}
	short, long := min(d.in, d.taps), max(d.in, d.taps)
	d.low = d.taps - 1
	switch mode {
	case full:
		d.out = long + short - 1
	case same:
		d.out = long
		d.low -= short - 1 - short/2
	case valid:
		d.out = long - short + 1
		d.low -= short - 1
	}
	return d, nil
}
