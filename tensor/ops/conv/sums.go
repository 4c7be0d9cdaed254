package conv

import (
	_ "embed"
	"math"
	"slices"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/kit/panels"
)

// sums is what all three ops compute, as kernels see it: for each of some outer indices, groups and channels, and
// for each place of y, the sum over taps and depth of products of elements of x and w, which may be any of the three
// operands. Strides are in elements, and have any sign.
type sums struct {
	x, w, y                tensor.Operand
	outer                  tensor.Shape
	xOuter, wOuter, yOuter []int
	groups, channels       int // channels of a group
	depth                  int
	xGroup, wGroup, yGroup int
	wChannel, yChannel     int
	xDepth, wDepth         int
	wStart, yStart         int // of index 0
	axes                   []step
	zeros                  bool // there are elements of y that have no sum: they are 0
}

// step is a spatial dimension of sums: place o of y adds up, for all taps t, w's element t times x's element
// (o * stride + t * dilation - low) / spacing, if that is whole and from first to end-1.
type step struct {
	out, taps                      int
	stride, dilation, spacing, low int
	first, end                     int
	x, w, y                        int // strides
}

// unit is an axis of one place and one tap.
var unit = step{out: 1, taps: 1, stride: 1, dilation: 1, spacing: 1, end: 1}

// strides splits those of an operand: of the batch, broadcast to one, and of the n dimensions after it.
func strides(o tensor.Operand, batch tensor.Shape, n int) (outer, rest []int) {
	lead := len(o.Shape) - n
	rest = o.Strides[lead:]
	o.Shape, o.Strides = o.Shape[:lead], o.Strides[:lead]
	return kit.BroadcastOperand(o, batch).Strides, rest
}

func (v *window) operands(x, w, y tensor.Operand) (s *sums, xs, ws, ys []int) {
	s = &sums{x: x, w: w, y: y, axes: make([]step, len(v.axes)), outer: append(v.batch.Clone(), 0)}
	n := len(v.axes) + 2
	for _, o := range []struct {
		of          tensor.Operand
		outer, rest *[]int
	}{{x, &s.xOuter, &xs}, {w, &s.wOuter, &ws}, {y, &s.yOuter, &ys}} {
		outer, rest := strides(o.of, v.batch, n)
		*o.outer, *o.rest = append(append(make([]int, 0, len(outer)+1), outer...), 0), rest
	}
	return s, xs, ws, ys
}

// along sets the innermost of the outer dimensions.
func (s *sums) along(size, x, w, y int) {
	last := len(s.outer) - 1
	s.outer[last], s.xOuter[last], s.wOuter[last], s.yOuter[last] = size, x, w, y
}

// forward makes y from x and w.
func (v *window) forward(groups int, flip bool, x, w, y tensor.Operand) *sums {
	s, xs, ws, ys := v.operands(x, w, y)
	c := len(v.axes) + 1 // where channels are
	s.along(v.examples, xs[0], 0, ys[0])
	s.groups, s.channels, s.depth = groups, v.outs/groups, v.channels/groups
	s.xGroup, s.wGroup, s.yGroup = s.depth*xs[c], s.channels*ws[0], s.channels*ys[c]
	s.wChannel, s.yChannel, s.xDepth, s.wDepth = ws[0], ys[c], xs[c], ws[c]
	for i, a := range v.axes {
		s.axes[i] = step{out: a.out, taps: a.taps, stride: a.stride, dilation: a.dilation, spacing: a.spacing, low: a.low,
			first: a.first, end: a.end, x: xs[i+1], w: ws[i+1], y: ys[i+1]}
		if flip {
			s.axes[i].w, s.wStart = -ws[i+1], s.wStart+(a.taps-1)*ws[i+1]
		}
	}
	return s
}

// ofInput makes x from y and w: place i of x has all taps t and places o of y with
// o * stride + t * dilation - low = i * spacing, that is, counting taps backwards, a window over y.
func (v *window) ofInput(groups int, flip bool, y, w, x tensor.Operand) *sums {
	s, ys, ws, xs := v.operands(y, w, x)
	c := len(v.axes) + 1
	s.along(v.examples, ys[0], 0, xs[0])
	s.groups, s.channels, s.depth = groups, v.channels/groups, v.outs/groups
	s.xGroup, s.wGroup, s.yGroup = s.depth*ys[c], s.depth*ws[0], s.channels*xs[c]
	s.wChannel, s.yChannel, s.xDepth, s.wDepth = ws[c], xs[c], ys[c], ws[0]
	for i, a := range v.axes {
		reach := (a.taps - 1) * a.dilation
		s.axes[i] = step{out: a.end - a.first, taps: a.taps, stride: a.spacing, dilation: a.dilation, spacing: a.stride,
			low: reach - a.low - a.first*a.spacing, end: a.out, x: ys[i+1], w: ws[i+1], y: xs[i+1]}
		if !flip {
			s.axes[i].w, s.wStart = -ws[i+1], s.wStart+(a.taps-1)*ws[i+1]
		}
		s.yStart += a.first * xs[i+1]
		s.zeros = s.zeros || a.end-a.first != a.in
	}
	return s
}

// ofWeight makes w from x and y: a window as large as y moves over x, by dilation, for as many steps as there are
// taps.
func (v *window) ofWeight(groups int, flip bool, x, y, w tensor.Operand) *sums {
	s, xs, ys, ws := v.operands(x, y, w)
	c := len(v.axes) + 1
	each := v.channels / groups
	s.along(each, xs[c], 0, ws[c])
	s.groups, s.channels, s.depth = groups, v.outs/groups, v.examples
	s.xGroup, s.wGroup, s.yGroup = each*xs[c], s.channels*ys[c], s.channels*ws[0]
	s.wChannel, s.yChannel, s.xDepth, s.wDepth = ys[c], ws[0], xs[0], ys[0]
	for i, a := range v.axes {
		s.axes[i] = step{out: a.taps, taps: a.out, stride: a.dilation, dilation: a.stride, spacing: a.spacing, low: a.low,
			first: a.first, end: a.end, x: xs[i+1], w: ys[i+1], y: ws[i+1]}
		if flip {
			s.axes[i].y, s.yStart = -ws[i+1], s.yStart+(a.taps-1)*ws[i+1]
		}
	}
	return s
}

// places is how many places of y there are in a channel, and products the most products of a sum.
func (s *sums) places() (places, products int) {
	places, products = 1, s.depth
	for _, a := range s.axes {
		places *= a.out
		products *= a.taps * min(a.end-a.first, 1)
	}
	return places, products
}

// way is a way of computing sums without spacing. All ways add up in the order that order.go says.
type way interface {
	run(r *tensor.Run) error
	cycles() float64 // about how long it takes
}

// choose gives the way to make a pass; tests have others.
var choose = func(r *tensor.Run, s *sums) way {
	if r.Info().Host {
		return s.quickest()
	}
	return direct{s}
}

// quickest is the way that takes the fewest cycles of a processor.
func (s *sums) quickest() way {
	var best way = direct{s}
	if t := s.tiled(); t != nil && t.cycles() < best.cycles() {
		best = t
	}
	if g := s.acrossGroups(); g != nil && g.cycles() < best.cycles() {
		best = g
	}
	return best
}

func (s *sums) run(r *tensor.Run) error {
	places, products := s.places()
	passes := s.passes()
	made := 0 // of places
	for _, p := range passes {
		n, _ := p.places()
		made += n
	}
	if s.zeros || products == 0 || passes != nil && made < places {
		if err := r.Fill(s.y, make([]byte, s.y.DType.Size())); err != nil {
			return err
		}
	}
	switch {
	case places == 0 || products == 0: // all of y may be outside of the window
		return nil
	case passes == nil:
		return direct{s}.run(r)
	}
	for _, p := range passes {
		if err := choose(r, p).run(r); err != nil {
			return err
		}
	}
	return nil
}

//go:embed direct.metal
var directText string

var directKernels = kit.NewKernels[directVariant](panels.ArithmeticMSL, kit.StridesMSL, directText)

type directVariant struct{ panels.Elements }

// direct has a thread for each sum. It takes all windows, any device can run it, and it is what the other ways of
// computing are compared with.
type direct struct{ *sums }

func (s direct) cycles() float64 {
	places, products := s.places()
	return 2 * float64(places) * float64(products) * float64(s.outer.Size()*s.groups*s.channels)
}

func (s direct) run(r *tensor.Run) error {
	axes := [3]step{unit, unit, unit}
	copy(axes[:], s.axes)
	places, _ := s.places()
	for _, n := range []int{places, s.outer.Size(), s.groups * s.channels, s.depth} {
		if err := kit.CheckCount(n, math.MaxUint32, "places, examples or channels"); err != nil {
			return err
		}
	}
	dims := kit.Collapse(s.outer, s.xOuter, s.wOuter, s.yOuter)
	p := kit.Params{}.Long(s.xGroup, s.wGroup, s.yGroup, s.wChannel, s.yChannel, s.wStart, s.yStart)
	for _, a := range axes {
		p = p.Long(a.y)
	}
	for _, loop := range s.loops() {
		a := step{taps: s.depth, dilation: 1, spacing: 1, end: s.depth, x: s.xDepth, w: s.wDepth}
		if loop != ofDepth {
			a = axes[loop]
		}
		p = p.Long(a.stride, a.dilation, a.spacing, a.low, a.first, a.end, a.x, a.w).Uint(a.taps, loop)
	}
	cut := s.parts()
	p = p.Uint(axes[0].out, axes[1].out, axes[2].out, s.channels, cut.n, cut.second, cut.chunk0, cut.chunk1, dims.N)
	return directKernels.Launch(r, directVariant{panels.ElementsOf(s.y.DType)}, "direct",
		kit.Tiles(s.groups*s.channels, places, s.outer.Size()), s.x.Arg(), s.w.Arg(), s.y.Arg(), p.Arg(), dims.Shape(),
		dims.Strides(0), dims.Strides(1), dims.Strides(2))
}

// loops are all four loops, those of one product too, in an order in which the ones that are cut come first and second
// and the innermost one last.
func (s *sums) loops() [4]int {
	order := s.order()
	list := slices.Clone(order)
	for loop := range 4 {
		if !slices.Contains(order, loop) {
			list = slices.Insert(list, max(len(list)-1, 0), loop)
		}
	}
	return [4]int(list)
}
