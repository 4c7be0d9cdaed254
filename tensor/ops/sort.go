package ops

import (
	_ "embed"
	"errors"
	"math"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

var (
	// Both sort along the last axis.
	sortOp  = tensor.Declare[tensor.None]("sort")
	argSort = tensor.Declare[tensor.None]("argsort")
	//go:embed sort.metal
	sortText    string
	sortKernels = kit.NewKernels[sortVariant](sortText)
)

// sortVariant is the dtype of keys, and whether their places are sorted instead.
type sortVariant struct {
	T     tensor.DType
	index bool
}

// Macros defines the order of keys.
func (v sortVariant) Macros() string { return "#define BEFORE(a, b) " + orderOf(v.T) + "\n" }

func init() {
	shape := func(in []tensor.Spec, _ tensor.None, outs []tensor.Shape) ([]tensor.Shape, error) {
		if len(in[0].Shape) == 0 {
			return nil, errors.New("a scalar has no axis to sort along")
		}
		return append(outs, in[0].Shape), nil
	}
	sortOp.Define(tensor.Rules[tensor.None]{
		Shape: shape,
		DType: kit.SameDType[tensor.None],
		Run:   runSort,
		Gradient: func(g *tensor.VJP[tensor.None]) *tensor.Array {
			last := g.In[0].NDim() - 1
			order := argSort.One(g.Ctx, tensor.None{}, g.In[0])
			zeros := Zeros(tensor.ShapeOf(g.In[0]), g.Cot[0].DType(), g.Ctx)
			return PutAlongAxis(zeros, order, g.Cot[0], &last, g.Ctx)
		},
		Tangent: func(g *tensor.JVP[tensor.None]) *tensor.Array {
			last := g.In[0].NDim() - 1
			order := argSort.One(g.Ctx, tensor.None{}, g.In[0])
			return TakeAlongAxis(g.Tan[0], order, &last, g.Ctx)
		},
		VMap: func(g *tensor.VMap[tensor.None]) ([]*tensor.Array, []int) {
			return []*tensor.Array{sortOp.One(g.Ctx, tensor.None{}, FrontOf(g, 0, 0))}, []int{0}
		},
	})
	argSort.Define(tensor.Rules[tensor.None]{
		Shape: shape,
		DType: func(_ []tensor.Spec, _ tensor.None, outs []tensor.DType) ([]tensor.DType, error) {
			return append(outs, tensor.Uint32), nil
		},
		Run:      runArgSort,
		Constant: true,
		VMap: func(g *tensor.VMap[tensor.None]) ([]*tensor.Array, []int) {
			return []*tensor.Array{argSort.One(g.Ctx, tensor.None{}, FrontOf(g, 0, 0))}, []int{0}
		},
	})
}

func runSort(r *tensor.Run, _ tensor.None) error {
	x, out := r.In[0], r.Out[0]
	if out.Shape.Size() == 0 {
		return nil
	}
	if out.Shape[len(out.Shape)-1] == 1 {
		return r.CopyTo(out, x)
	}
	x, err := r.Contiguous(0)
	if err != nil {
		return err
	}
	return sortRows(r, x, false, x, out)
}

func runArgSort(r *tensor.Run, _ tensor.None) error {
	x, err := r.Contiguous(0)
	if err != nil || r.Out[0].Shape.Size() == 0 {
		return err
	}
	return sortRows(r, x, true, x, r.Out[0])
}

// counted says whether rows of n keys are sorted in one pass, by counting for each key those before it: where rows are
// short, or where there is so little to do that the passes of merging would cost more than they save.
func counted(n, rows int) bool { return n <= 64 || n <= 1024 && rows <= 1<<15/n }

// argsortRows is the order of row-contiguous keys along their last axis, as uint32.
func argsortRows(r *tensor.Run, keys tensor.Operand) (tensor.Operand, error) {
	out, err := r.Temp(tensor.Spec{Shape: keys.Shape, DType: tensor.Uint32})
	if err != nil {
		return out, err
	}
	return out, sortRows(r, keys, true, keys, out)
}

// sortRows sorts the rows of keys, or their places (index), into out: short ones by counting, others by merging.
// Nothing is empty.
func sortRows(r *tensor.Run, keys tensor.Operand, index bool, from, out tensor.Operand) error {
	n := keys.Shape[len(keys.Shape)-1]
	rows := keys.Shape.Size() / n
	// Places are counted in 32 bits, up to twice a run's length.
	if err := kit.CheckCount(n, math.MaxInt32, "elements of a row"); err != nil {
		return err
	}
	v, over := sortVariant{keys.DType, index}, kit.Plane(n, rows)
	if counted(n, rows) {
		return sortKernels.Launch(r, v, "count_ranks", over, keys.Arg(), out.Arg(), kit.Uint(n))
	}
	temp, err := r.Temp(out.Spec)
	if err != nil {
		return err
	}
	passes := 0
	for width := 1; width < n; width *= 2 {
		passes++
	}
	to, next := out, temp // the last pass writes to out
	if passes%2 == 0 {
		to, next = temp, out
	}
	for width := 1; width < n; width *= 2 {
		first := 0
		if width == 1 {
			first = 1
		}
		args := []tensor.Arg{from.Arg(), to.Arg(), kit.Params{}.Uint(n, width, first).Arg()}
		if index {
			if width == 1 { // the places are not read in the first pass, but something must be bound
				args[0] = next.Arg()
			}
			args = append(args, keys.Arg())
		}
		if err := sortKernels.Launch(r, v, "merge_pass", over, args...); err != nil {
			return err
		}
		from, to, next = to, next, to
	}
	return nil
}

// orderOf says in MSL whether key a comes before key b: NaN comes after all numbers, complex numbers are ordered by
// their real parts, then by their imaginary ones.
func orderOf(d tensor.DType) string {
	switch {
	case d.IsFloat():
		return "((a) < (b) || ((b) != (b) && (a) == (a)))"
	case d.IsComplex():
		nan := func(v string) string {
			return "((" + v + ").real != (" + v + ").real || (" + v + ").imag != (" + v + ").imag)"
		}
		return "(!" + nan("a") + " && (" + nan("b") + " || (a).real < (b).real || " +
			"((a).real == (b).real && (a).imag < (b).imag)))"
	}
	return "((a) < (b))"
}

// alongLast calls an op of the last axis along another one; nil: along the flattened array.
func alongLast(c *tensor.Ctx, op *tensor.OpOf[tensor.None], a *tensor.Array, axis *int) *tensor.Array {
	name := op.Op().Name()
	if f := kit.Unusable(c, name, a); f != nil {
		return f
	}
	if axis == nil {
		return op.One(c, tensor.None{}, Flatten(a, 0, -1, c))
	}
	at, err := tensor.Axis(*axis, a.NDim())
	if err != nil {
		return tensor.Fail(c, name, "%w", err)
	}
	y := op.One(c, tensor.None{}, MoveAxis(a, at, -1, c))
	return MoveAxis(y, -1, at, c)
}

var _ = sig.Def("sort", "a axis:axis=-1", func(a *sig.Args) any { return Sort(a.Array(0), a.Axis(1), a.Ctx) })

// Sort is a with its elements in ascending order along an axis; nil: the flattened array's. Equal elements keep
// their order, NaN comes last, complex numbers are ordered by their real parts, then by their imaginary ones. A
// scalar has no axis to sort along: that is an error, as is an axis out of range.
func Sort(a *tensor.Array, axis *int, ctx ...*tensor.Ctx) *tensor.Array {
	return alongLast(tensor.Call(ctx), sortOp, a, axis)
}

var _ = sig.Def("argsort", "a axis:axis=-1", func(a *sig.Args) any { return ArgSort(a.Array(0), a.Axis(1), a.Ctx) })

// ArgSort is the indices, as uint32, that [TakeAlongAxis] sorts a with along an axis; nil: the flattened array's. The
// order is that of [Sort]. No gradient flows.
func ArgSort(a *tensor.Array, axis *int, ctx ...*tensor.Ctx) *tensor.Array {
	return alongLast(tensor.Call(ctx), argSort, a, axis)
}
