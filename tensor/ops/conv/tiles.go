package conv

import (
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit/panels"
)

// tileVariant chooses a kernel; Y is the dtype of what tiles write.
type tileVariant struct {
	panels.Elements
	Y          tensor.DType
	rows, cols int
	wide       bool
	unit       bool // neighbours in memory are lanes' elements: of y, or of w when it is packed
	inside     bool // a SIMD-group makes all parts of its sums
}

// tile is how many rows a tile has, and how many channels.
func (v tileVariant) tile() (rows, channels int) {
	if v.wide {
		return 32 * v.cols, v.rows
	}
	return v.rows, 32 * v.cols
}

// tileShapes are the tiles there are, of rows by columns of a SIMD-group's width: no more sums than fit registers.
var tileShapes = [][2]int{{12, 2}, {8, 2}, {8, 1}, {4, 4}, {4, 2}, {2, 4}, {2, 2}, {1, 8}, {1, 4}, {1, 2}}

// rows are sums without spacing seen as rows of one axis, or of the examples: axes are the other three, and outer has
// no examples where those are the rows.
type rows struct {
	sums
	row   step
	at    int   // the number of row's axis; 3: examples
	order []int // the order of the sums' loops, of which one may be over row's taps
	cut   parts
	size  [3]int // of packed x along the axes
}

// level is a loop over products: n times, by steps in packed x and in w.
type level struct{ n, x, w int }

// tiles are rows cut into tiles.
type tiles struct {
	*rows
	tileVariant
	line   int // of packed x: row.stride parts of a row
	levels [4]level
	along  int // which level is the taps along rows, which its step in x does not say; -1: none
}

func ceil(n, d int) int { return (n + d - 1) / d }

// tiled is the way of making tiles that takes the fewest cycles; nil if there is none.
func (s *sums) tiled() *tiles {
	var best *tiles
	f := s.folded()
	for axis := range 4 {
		rows := f.rows(axis)
		if rows == nil {
			continue
		}
		for _, shape := range tileShapes {
			for _, wide := range []bool{false, true} {
				if t := rows.tiles(shape, wide); t != nil && (best == nil || t.cycles() < best.cycles()) {
					best = t
				}
			}
		}
	}
	return best
}

// dense is an axis of one tap and whole strides as one whose places follow each other.
func (a step) dense() step {
	if a.taps == 1 && a.low == 0 && a.stride > 1 {
		a.x, a.first, a.end, a.stride = a.x*a.stride, ceil(a.first, a.stride), ceil(a.end, a.stride), 1
	}
	return a
}

// rows are sums of three axes seen along one of them, or with 3 along the examples; nil if those have no length.
func (s *sums) rows(axis int) *rows {
	v := &rows{sums: *s, at: axis, order: s.order(), cut: s.parts()}
	v.axes = make([]step, 3)
	for i, a := range s.axes {
		v.axes[i] = a.dense()
	}
	if axis < 3 {
		v.row = v.axes[axis]
		v.axes[axis] = unit
	} else {
		last := len(s.outer) - 1
		n := s.outer[last]
		v.row = step{out: n, taps: 1, stride: 1, dilation: 1, end: n, x: s.xOuter[last], y: s.yOuter[last]}
		v.outer, v.xOuter, v.wOuter, v.yOuter = s.outer[:last], s.xOuter[:last], s.wOuter[:last], s.yOuter[:last]
	}
	if v.row.out == 1 && v.row.taps == 1 {
		return nil
	}
	for i, a := range v.axes {
		v.size[i] = (a.out-1)*a.stride + (a.taps-1)*a.dilation + 1
	}
	return v
}

// tiles are the rows in tiles of a shape; nil if packed x would be too large.
func (v *rows) tiles(shape [2]int, wide bool) *tiles {
	t := &tiles{rows: v, tileVariant: tileVariant{Elements: panels.ElementsOf(v.y.DType), Y: v.y.DType, rows: shape[0],
		cols: shape[1], wide: wide}}
	if t.ACC.Size() > 4 { // sums take twice the registers
		if t.cols /= 2; t.cols == 0 {
			return nil
		}
	}
	long, _ := t.tile()
	t.line = (ceil(v.row.out, long)*long + (v.row.taps-1)*v.row.dilation/v.row.stride) * v.row.stride
	whole := float64(t.line) * float64(v.depth) * float64(v.outer.Size()*v.groups)
	for _, n := range v.size {
		whole *= float64(n)
	}
	if whole > 4*float64(v.x.Shape.Size()+v.y.Shape.Size())+1<<16 {
		return nil
	}
	if !t.setLevels() {
		return nil
	}
	return t
}

// packed is the strides of packed x along the axes, and how much of it a group of an outer index has.
func (t *tiles) packed() (axes [3]int, all int) {
	all = t.line * t.depth
	for i := 2; i >= 0; i-- {
		axes[i] = all
		all *= t.size[i]
	}
	return axes, all
}

// setLevels makes levels of the sums' loops in their order. The innermost level cannot be taps along rows that are
// strides apart: it reports whether the levels before it hold all loops then.
func (t *tiles) setLevels() bool {
	axes, _ := t.packed()
	for i := range t.levels {
		t.levels[i].n = 1
	}
	t.along = -1
	for k, loop := range t.order {
		to := k
		if k == len(t.order)-1 {
			to = 3
		}
		switch {
		case loop == ofDepth:
			t.levels[to] = level{t.depth, t.line, t.wDepth}
		case loop != t.at:
			a := t.axes[loop]
			t.levels[to] = level{a.taps, a.dilation * axes[loop], a.w}
		case t.row.stride == 1:
			t.levels[to] = level{t.row.taps, t.row.dilation, t.row.w}
		case to == 3 && k == 3:
			return false
		default:
			t.along = min(to, 2)
			t.levels[t.along] = level{t.row.taps, 0, t.row.w}
		}
	}
	return true
}

// places are how many places of the axes there are, without rows.
func (t *tiles) places() int { return t.axes[0].out * t.axes[1].out * t.axes[2].out }

// cycles is about how long the tiles take: to multiply, to load, to pack, and to launch.
func (t *tiles) cycles() float64 {
	long, channels := t.tile()
	blocks := ceil(t.channels, channels)
	outer := float64(t.outer.Size() * t.groups)
	count := float64(ceil(t.row.out, long)*blocks) * float64(t.places()) * outer
	width := t.ACC.Size() / 4
	r, c := t.tileVariant.rows, t.cols*width
	each := float64(max(r*c, r+2*c+8, 8)) // of one product of each sum: multiplying, or loading
	outside := float64(t.levels[0].n * t.levels[1].n * t.levels[2].n)
	_, all := t.packed()
	weights := outside * float64(t.levels[3].n*blocks*channels*t.groups)
	for i, n := range t.outer {
		if t.wOuter[i] != 0 {
			weights *= float64(n)
		}
	}
	if t.wide { // their packed channels are few, and do not fill a vector
		weights *= 3
	}
	return count*(60+outside*(8+each*float64(t.levels[3].n))) + 1.5*(float64(all)*outer+weights) + 15000
}

// apart reports whether parts are made by SIMD-groups of their own, which pays where sums are few.
func (t *tiles) apart() bool {
	_, all := t.packed()
	return t.cut.n > 1 && t.cut.n*t.places()*t.row.out*t.channels <= all
}
