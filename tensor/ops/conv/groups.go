package conv

import (
	_ "embed"
	"slices"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/kit/panels"
)

//go:embed groups.metal
var groupsText string

var groupKernels = kit.NewKernels[groupVariant](panels.ArithmeticMSL, kit.StridesMSL, groupsText)

type groupVariant struct {
	panels.Elements
	W    tensor.DType // of what holds the weights
	unit bool         // groups are neighbours in y
	// How many places and taps are computed at a time, and how many of the elements that they share those are apart.
	rows, taps, stride, dilation int
	depthLast                    bool // the loop over depth is the innermost one, else the outermost one
	inside                       bool // sums have parts
}

// acrossGroups are sums without spacing of many groups that are neighbours in x, computed for 32 groups at a time. The
// last axis has the places that are computed at a time.
type acrossGroups struct {
	sums
	loops     [4]int // which loops of the sums are those of the axes and of depth
	cut       parts
	depthLast bool
}

// groupLanes is how many groups a SIMD-group makes, groupSpan of how many places.
const groupLanes, groupSpan = 32, 64

// acrossGroups is that way of computing, or nil where groups are not neighbours.
func (s *sums) acrossGroups() *acrossGroups {
	if s.xGroup != 1 || s.groups == 1 {
		return nil
	}
	g := &acrossGroups{sums: *s, cut: s.parts(), loops: [4]int{0, 1, 2, ofDepth}}
	order := s.order()
	g.depthLast = len(order) > 1 && order[len(order)-1] == ofDepth
	axes := slices.DeleteFunc(order, func(loop int) bool { return loop == ofDepth })
	row := 0 // the axis of the innermost loop over taps; where there is none the longest
	if len(axes) > 0 {
		row = axes[len(axes)-1]
	} else {
		for i, a := range s.axes {
			if a.out >= s.axes[row].out {
				row = i
			}
		}
	}
	g.axes = slices.Clone(s.axes)
	for len(g.axes) < 3 {
		g.axes = append(g.axes, unit)
	}
	g.axes = append(slices.Delete(slices.Clone(g.axes), row, row+1), g.axes[row])
	copy(g.loops[:], append(slices.Delete([]int{0, 1, 2}, row, row+1), row))
	return g
}

func (g *acrossGroups) cycles() float64 {
	places, products := g.places()
	n := g.axes[2].out
	rows, taps, stride, dilation := g.block()
	loads := float64((rows-1)*stride+(taps-1)*dilation+1) / float64(taps)
	runs := float64(places/n*ceil(n, rows)) * float64(ceil(g.groups, groupLanes)*g.channels*g.outer.Size())
	return runs*(100+float64(products)*(3*loads+float64(rows))) + 10000
}

// block is how many places and taps are computed at a time: as many as fit registers with the elements that they share,
// of which places are stride and taps dilation apart.
func (g *acrossGroups) block() (rows, taps, stride, dilation int) {
	a := g.axes[2]
	rows = min(a.out, 8)
	if a.stride > 2 || a.dilation > 2 || g.depthLast {
		return rows, 1, 1, 1
	}
	for taps = min(a.taps, 8); taps > 1; taps-- {
		if a.taps%taps == 0 && (rows-1)*a.stride+(taps-1)*a.dilation < 20 {
			return rows, taps, a.stride, a.dilation
		}
	}
	return rows, 1, 1, 1
}

func (g *acrossGroups) run(r *tensor.Run) error {
	blocks := ceil(g.groups, groupLanes)
	v := groupVariant{Elements: panels.ElementsOf(g.y.DType), W: g.y.DType, unit: g.yGroup == 1}
	v.depthLast, v.inside = g.depthLast, g.cut.n > 1
	v.rows, v.taps, v.stride, v.dilation = g.block()
	w, wOuter, start, block, channel, depth := g.w, g.wOuter, g.wStart, groupLanes, g.wChannel, g.wDepth
	taps := [3]int{g.axes[0].w, g.axes[1].w, g.axes[2].w}
	if g.wGroup != 1 {
		// Packed, groups are neighbours, behind the taps and depth.
		v.W = v.ACC
		kept := weights{from: g.w, start: g.wStart, outer: g.outer, strides: g.wOuter, groups: g.channels, group: g.wChannel,
			channels: g.groups, channel: g.wGroup, levels: [4]level{{n: g.depth, w: g.wDepth}}}
		step := groupLanes
		for i := 2; i >= 0; i-- {
			kept.levels[i+1] = level{n: g.axes[i].taps, w: taps[i]}
			taps[i] = step
			step *= g.axes[i].taps
		}
		depth, block, channel, start = step, step*g.depth, step*g.depth*blocks, 0
		var err error
		lanes := tileVariant{Elements: v.Elements, Y: v.T, rows: 1, cols: 1}
		if w, wOuter, err = kept.pack(r, lanes); err != nil {
			return err
		}
		for i := range wOuter {
			wOuter[i] *= channel * g.channels
		}
	}
	dims := kit.Collapse(g.outer, g.xOuter, wOuter, g.yOuter)
	p := kit.Params{}
	element, tap := 1, taps[2]
	if v.taps == 1 {
		element = g.axes[2].stride
	}
	for i, a := range g.axes {
		if i == 2 { // as many taps are one
			a.dilation, taps[2] = a.dilation*v.taps, tap*v.taps
		}
		p = p.Long(a.stride, a.dilation, a.low, a.first, a.end, a.x, taps[i], a.y, a.out)
	}
	p = p.Long(element, element*g.axes[2].x, tap, g.xDepth, start, block, channel, depth, g.yStart, g.yGroup, g.yChannel)
	for i, n := range []int{g.axes[0].taps, g.axes[1].taps, g.axes[2].taps / v.taps, g.depth} {
		size, div, mod := g.cut.chunk(g.loops[i], n)
		p = p.Uint(n, size, div, mod)
	}
	p = p.Uint(g.channels, g.groups, blocks, g.cut.n, dims.N)
	places, _ := g.places()
	row := g.axes[2].out
	return groupKernels.Launch(r, v, "across_groups",
		kit.Simds(places/row*ceil(row, groupSpan), blocks*g.channels*g.outer.Size(), 8), g.x.Arg(), w.Arg(), g.y.Arg(),
		p.Arg(), dims.Shape(), dims.Strides(0), dims.Strides(1), dims.Strides(2))
}
