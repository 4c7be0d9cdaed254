package conv

import (
	_ "embed"
	"math"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/kit/panels"
)

//go:embed tiles.metal
var tilesText string

var tileKernels = kit.NewKernels[tileVariant](panels.ArithmeticMSL, kit.StridesMSL, tilesText)

// span is SPAN in the kernels.
const span = 32

// run packs x and w, and makes the tiles.
func (t *tiles) run(r *tensor.Run) error {
	x, err := t.packX(r)
	if err != nil {
		return err
	}
	w, wOuter, err := t.weights().pack(r, t.tileVariant)
	if err != nil {
		return err
	}
	if !t.apart() {
		return t.multiply(r, x, w, wOuter, t.rows)
	}
	cut := t.cut
	// The sums of parts lie in the order of outer indices, groups, axes, rows and channels.
	all := t.places() * t.row.out * t.channels
	to, err := r.Temp(tensor.Spec{Shape: tensor.Shape{cut.n, t.outer.Size() * t.groups, all}, DType: t.ACC})
	if err != nil {
		return err
	}
	own := *t.rows
	own.y, own.yStart, own.yChannel, own.row.y = to, 0, 1, t.channels
	own.axes = append([]step(nil), t.axes...)
	at := t.row.out * t.channels
	for i := 2; i >= 0; i-- {
		own.axes[i].y = at
		at *= own.axes[i].out
	}
	own.yGroup = all
	own.yOuter = t.outer.Strides()
	for i := range own.yOuter {
		own.yOuter[i] *= all * t.groups
	}
	sum := *t
	sum.Y = t.ACC
	if err := sum.multiply(r, x, w, wOuter, &own); err != nil {
		return err
	}
	return t.total(r, cut.n, to)
}

// packX lays x out: for outer indices, groups, the axes, and places along depth a row, in as many parts as rows'
// stride.
func (t *tiles) packX(r *tensor.Run) (tensor.Operand, error) {
	_, all := t.packed()
	deep := t.outer.Size() * t.groups
	x, err := r.Temp(tensor.Spec{Shape: tensor.Shape{deep, all}, DType: t.ACC})
	if err != nil {
		return x, err
	}
	dims := kit.Collapse(t.outer, t.xOuter)
	p := kit.Params{}.Long(t.xGroup, t.xDepth, t.row.x)
	for _, get := range []func(a step) int{
		func(a step) int { return a.x }, func(a step) int { return a.low }, func(a step) int { return a.first },
		func(a step) int { return a.end }} {
		for _, a := range t.axes {
			p = p.Long(get(a))
		}
	}
	p = p.Long(t.row.low, t.row.first, t.row.end).Uint(t.size[:]...).Uint(t.line/t.row.stride, t.row.stride, t.groups,
		t.depth, dims.N)
	over := kit.Simds(t.size[0]*t.size[1]*t.size[2]*ceil(t.depth, span), deep, 8)
	return x, tileKernels.Launch(r, t.tileVariant, "pack", over, t.x.Arg(), x.Arg(), p.Arg(), dims.Shape(),
		dims.Strides(0))
}

// weights are w as it is packed: for the different ones of the outer indices, and for groups, in blocks of channels, in
// the order of the levels.
type weights struct {
	from             tensor.Operand
	start            int
	outer            tensor.Shape
	strides          []int
	groups, channels int
	group, channel   int // strides
	levels           [4]level
}

func (t *tiles) weights() weights {
	return weights{from: t.w, start: t.wStart, outer: t.outer, strides: t.wOuter, groups: t.groups, channels: t.channels,
		group: t.wGroup, channel: t.wChannel, levels: t.levels}
}

// pack packs them as tiles of v need them. It gives the strides of outer indices, in the weights of one.
func (w weights) pack(r *tensor.Run, v tileVariant) (packed tensor.Operand, strides []int, err error) {
	kept, steps := panels.Distinct(panels.Matrices{Operand: tensor.Operand{Spec: tensor.Spec{Shape: w.outer},
		View: tensor.View{Strides: w.strides}}})
	_, channels := v.tile()
	blocks, depth := ceil(w.channels, channels), 1
	for _, l := range w.levels {
		depth *= l.n
	}
	deep := kept.Size() * w.groups * blocks
	if err := kit.CheckCount(depth, math.MaxUint32, "products of an element"); err != nil {
		return packed, nil, err
	}
	packed, err = r.Temp(tensor.Spec{Shape: tensor.Shape{deep, depth, channels}, DType: v.ACC})
	if err != nil {
		return packed, nil, err
	}
	dims := kit.Collapse(kept, steps)
	p := kit.Params{}.Long(w.start, w.group, w.channel)
	for _, l := range w.levels {
		p = p.Long(l.w)
	}
	for _, l := range w.levels {
		p = p.Uint(l.n)
	}
	p = p.Uint(w.channels, w.groups, blocks, dims.N)
	whole := tensor.Operand{Spec: tensor.Spec{Shape: kept}, View: tensor.View{Strides: kept.Strides()}}
	if v.unit = w.channel == 1; v.unit {
		deep = deep / blocks * ceil(blocks*channels, 32)
	}
	over := kit.Simds(depth/w.levels[3].n*ceil(w.levels[3].n, span), deep, 8)
	return packed, kit.BroadcastOperand(whole, w.outer).Strides, tileKernels.Launch(r, v, "pack_weights", over,
		w.from.Arg(), packed.Arg(), p.Arg(), dims.Shape(), dims.Strides(0))
}

// multiply makes the tiles where to's strides say: of each part, or of all of them.
func (t *tiles) multiply(r *tensor.Run, x, w tensor.Operand, wOuter []int, to *rows) error {
	axes, all := t.packed()
	long, channels := t.tile()
	count, blocks := ceil(t.row.out, long), ceil(t.channels, channels)
	xOuter := t.outer.Strides()
	for i := range xOuter {
		xOuter[i] *= all * t.groups
	}
	dims := kit.Collapse(t.outer, xOuter, wOuter, to.yOuter)
	p := kit.Params{}.Long(all)
	for i, a := range t.axes {
		p = p.Long(a.stride * axes[i])
	}
	dilation := [3]int{}
	if t.along >= 0 {
		dilation[t.along] = t.row.dilation
	}
	for _, l := range t.levels {
		p = p.Long(l.x)
	}
	p = p.Long(t.line/t.row.stride, to.yStart, to.yGroup, to.row.y, to.yChannel)
	for _, a := range to.axes {
		p = p.Long(a.y)
	}
	p = p.Long(t.outer.Size() * t.groups * t.places() * t.row.out * t.channels)
	for _, l := range t.levels {
		p = p.Uint(l.n)
	}
	v, cut, apart := t.tileVariant, t.cut, 1
	if v.inside = cut.n > 1; t.apart() {
		v.inside, apart = false, cut.n
	}
	p = p.Uint(dilation[:]...).Uint(t.row.stride, t.axes[0].out, t.axes[1].out, t.axes[2].out, t.row.out, count,
		t.channels, t.groups, blocks, cut.second, cut.chunk0, cut.chunk1, cut.n, dims.N)
	v.unit = v.wide && to.row.y == 1 || !v.wide && to.yChannel == 1
	return tileKernels.Launch(r, v, "tile", kit.Simds(count*t.places()*apart, t.outer.Size()*t.groups*blocks, 8),
		x.Arg(), w.Arg(), to.y.Arg(), p.Arg(), dims.Shape(), dims.Strides(0), dims.Strides(1), dims.Strides(2))
}

// total adds the sums of parts up.
func (t *tiles) total(r *tensor.Run, count int, from tensor.Operand) error {
	dims := kit.Collapse(t.outer, t.yOuter)
	p := kit.Params{}.Long(t.yStart, t.yGroup, t.row.y, t.yChannel, t.axes[0].y, t.axes[1].y, t.axes[2].y)
	p = p.Uint(t.axes[0].out, t.axes[1].out, t.axes[2].out, t.row.out, t.channels, t.groups, count, dims.N)
	return tileKernels.Launch(r, t.tileVariant, "total",
		kit.Tiles(t.channels, t.places()*t.row.out, t.outer.Size()*t.groups), from.Arg(), t.y.Arg(), p.Arg(), dims.Shape(),
		dims.Strides(0))
}
