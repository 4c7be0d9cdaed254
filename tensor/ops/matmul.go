package ops

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/tensor"
)

var (
	// matmul takes operands of two dimensions or more and of one dtype.
	matmul = tensor.Declare[tensor.None]("matmul")
	//go:embed matmul.metal
	matmulText string
)

func init() {
	matmul.Define(tensor.Rules[tensor.None]{
		Shape: func(in []tensor.Spec, _ tensor.None) ([]tensor.Shape, error) {
			batch, a, b, err := matrices(in[0].Shape, in[1].Shape)
			return []tensor.Shape{append(batch, a[0], b[1])}, err
		},
		DType: func(in []tensor.Spec, _ tensor.None) ([]tensor.DType, error) {
			d := in[0].DType
			if !d.IsInexact() || in[1].DType != d {
				return nil, fmt.Errorf("BUG: operands %v and %v", in[0], in[1])
			}
			return []tensor.DType{d}, nil
		},
		Run: runMatmul,
		VJP: func(g *tensor.VJP[tensor.None]) []*tensor.Array {
			grads := make([]*tensor.Array, 2)
			if g.Cot[0] == nil {
				return grads
			}
			c, a, b := g.Ctx, g.In[0], g.In[1]
			if g.Want[0] {
				grads[0] = SumTo(matmul.One(c, tensor.None{}, g.Cot[0], adjoint(c, b)), tensor.ShapeOf(a), c)
			}
			if g.Want[1] {
				grads[1] = SumTo(matmul.One(c, tensor.None{}, adjoint(c, a), g.Cot[0]), tensor.ShapeOf(b), c)
			}
			return grads
		},
		JVP: func(g *tensor.JVP[tensor.None]) []*tensor.Array {
			var sum *tensor.Array
			if g.Tan[0] != nil {
				sum = matmul.One(g.Ctx, tensor.None{}, g.Tan[0], g.In[1])
			}
			if g.Tan[1] != nil {
				t := matmul.One(g.Ctx, tensor.None{}, g.In[0], g.Tan[1])
				if sum == nil {
					sum = t
				} else {
					sum = Add(sum, t, g.Ctx)
				}
			}
			return []*tensor.Array{sum}
		},
		VMap: func(g *tensor.VMap[tensor.None]) ([]*tensor.Array, []int) {
			rank := max(exampleRank(g, 0), exampleRank(g, 1))
			y := matmul.One(g.Ctx, tensor.None{}, frontOf(g, 0, rank), frontOf(g, 1, rank))
			return []*tensor.Array{y}, []int{0}
		},
	})
}

// adjoint is x with its last two dimensions exchanged, and conjugated.
func adjoint(c *tensor.Ctx, x *tensor.Array) *tensor.Array { return conj(c, SwapAxes(x, -1, -2, c)) }

// matrices splits the shapes of a product's operands: their common batch, and the matrices.
func matrices(a, b tensor.Shape) (batch, ma, mb tensor.Shape, err error) {
	ma, mb = a[len(a)-2:], b[len(b)-2:]
	if ma[1] != mb[0] {
		return nil, ma, mb, fmt.Errorf("inner dimensions differ: a %v, b %v", a, b)
	}
	batch, err = tensor.Broadcast(a[:len(a)-2], b[:len(b)-2])
	if err != nil {
		err = fmt.Errorf("batch dimensions of a %v and b %v cannot be broadcast", a, b)
	}
	return batch, ma, mb, err
}

// matmulTexts are the kernels' texts.
var matmulTexts texts[matmulVariant]

type matmulVariant struct {
	dtype tensor.DType
	rows  int  // of a tile
	cols  int  // of a tile
	unit  bool // the columns of b lie side by side
}

func (v matmulVariant) text() string {
	acc := accumulator(v.dtype)
	flag := map[bool]int{true: 1}
	text := fmt.Sprintf("#define T %s\n#define ACC %s\n#define ZERO %s\n", v.dtype.MSL(), acc.MSL(), zeroOf(acc)) +
		fmt.Sprintf("#define ROWS %d\n#define COLS %d\n#define UNIT %d\n", v.rows, v.cols, flag[v.unit])
	if v.dtype.IsComplex() {
		return text + "#define FMA(a, b, c) ((a) * (b) + (c))\n" + matmulText
	}
	return text + "#define FMA(a, b, c) metal::fma(a, b, c)\n" + matmulText
}

func runMatmul(r *tensor.Run, _ tensor.None) error {
	a, b, out := r.In[0], r.In[1], r.Out[0]
	if out.Shape.Size() == 0 {
		return nil
	}
	batch, ma, mb, err := matrices(a.Shape, b.Shape)
	if err != nil {
		return err
	}
	if ma[1] == 0 {
		return r.Fill(out, make([]byte, out.DType.Size()))
	}
	d := a.DType
	v := matmulVariant{dtype: d, rows: tileRows(ma[0]), cols: 1, unit: b.Strides[len(b.Strides)-1] == 1}
	if v.unit && mb[1]%4 == 0 && !d.IsComplex() {
		v.cols = 4
	}
	p, err := r.Kernel(metal.Source{
		Label:   "matmul",
		Text:    matmulTexts.get(v, matmulVariant.text),
		Options: metal.Options{MathMode: metal.MathSafe, Portable: true, Float64: d == tensor.Float64},
	}, "matmul")
	if err != nil {
		return err
	}
	stack := func(o tensor.Operand) (tensor.Operand, []int) {
		s := o.Strides[len(o.Strides)-2:]
		o.Shape, o.Strides = o.Shape[:len(o.Shape)-2], o.Strides[:len(o.Strides)-2]
		return broadcastOperand(o, batch), s
	}
	a, sa := stack(a)
	b, sb := stack(b)
	if batch.Size() > math.MaxUint32 {
		return fmt.Errorf("a batch of %d matrices, the most are %d", batch.Size(), math.MaxUint32)
	}
	shape, as, bs := collapse2(batch, a.Strides, b.Strides)
	var params []byte
	for _, v := range []int{sa[0], sa[1], sb[0], sb[1]} {
		params = binary.LittleEndian.AppendUint64(params, uint64(v))
	}
	for _, v := range []int{ma[0], ma[1], mb[1], len(shape)} {
		params = binary.LittleEndian.AppendUint32(params, uint32(v))
	}
	grid, group := tiles(ma[0], mb[1]/v.cols, v.rows, batch.Size())
	if v.cols > 1 {
		// Few columns and many rows: what a threadgroup reads of b stays in the cache from row to row.
		group.X = min(grid.X, 16)
		group.Y = min(grid.Y, 64)
	}
	return r.Dispatch(p, grid, group, a.Arg(), b.Arg(), out.Arg(), tensor.Const(params), tensor.Const(shape),
		tensor.Const(as), tensor.Const(bs))
}

// tileRows is how many rows of a product a thread makes.
func tileRows(rows int) int {
	if rows == 1 {
		return 1
	}
	return 4
}

// tiles is the grid of a batch of products.
func tiles(rows, cols, tile, batch int) (grid, group metal.Size) {
	grid = metal.Size{X: cols, Y: (rows + tile - 1) / tile, Z: batch}
	x := min(cols, 64)
	return grid, metal.Size{X: x, Y: min(grid.Y, max(256/x, 1)), Z: 1}
}

// collapse2 is collapse for two operands of one shape.
func collapse2(s tensor.Shape, a, b []int) (shape []uint32, as, bs []int64) {
	for i, n := range s {
		if n == 1 {
			continue
		}
		k := len(shape) - 1
		if k >= 0 && as[k] == int64(n)*int64(a[i]) && bs[k] == int64(n)*int64(b[i]) {
			shape[k] *= uint32(n)
			as[k], bs[k] = int64(a[i]), int64(b[i])
			continue
		}
		shape, as, bs = append(shape, uint32(n)), append(as, int64(a[i])), append(bs, int64(b[i]))
	}
	if len(shape) == 0 {
		return []uint32{1}, []int64{0}, []int64{0}
	}
	return shape, as, bs
}

// Matmul is the matrix product of a and b in their common dtype, which must be a floating-point or complex one.
// Dimensions before the last two are a batch and are broadcast. An a of one dimension is a row, a b of one
// dimension a column, and the result does not have that dimension. Half types are added up in float32 and rounded
// once. A scalar, and inner dimensions that differ, are errors.
func Matmul(a, b *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	const op = "matmul"
	c := tensor.Call(ctx)
	if f := unusable(c, op, a, b); f != nil {
		return f
	}
	if a.NDim() == 0 || b.NDim() == 0 {
		return tensor.Fail(c, op, "a scalar has no rows or columns: use multiply")
	}
	d := tensor.Promote(a.DType(), b.DType())
	if !d.IsInexact() {
		return tensor.Fail(c, op, "operands have dtypes %v and %v, want floating-point or complex ones: use astype",
			a.DType(),
			b.DType())
	}
	if sa, sb := a.Spec().Shape, b.Spec().Shape; (len(sa) == 1 || len(sb) == 1) &&
		sa[len(sa)-1] != sb[max(len(sb)-2, 0)] {
		return tensor.Fail(c, op, "inner dimensions differ: a %v, b %v", sa, sb)
	}
	a, b = AsType(a, d, c), AsType(b, d, c)
	var dropped []int
	if a.NDim() == 1 {
		a, dropped = ExpandDims(a, []int{0}, c), append(dropped, -2)
	}
	if b.NDim() == 1 {
		b, dropped = ExpandDims(b, []int{1}, c), append(dropped, -1)
	}
	y := matmul.One(c, tensor.None{}, a, b)
	if len(dropped) > 0 {
		y = Squeeze(y, dropped, c)
	}
	return y
}
