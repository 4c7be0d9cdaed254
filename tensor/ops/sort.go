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
	defineSort(sortOp, argSort, shape)
}

// defineSort gives an op that orders elements along the last axis, and the op of their order, their rules.
func defineSort[A comparable](sorted, order *tensor.OpOf[A],
	shape func([]tensor.Spec, A, []tensor.Shape) ([]tensor.Shape, error)) {
	sorted.Define(tensor.Rules[A]{
		Shape: shape,
		DType: kit.SameDType[A],
		Run:   func(r *tensor.Run, _ A) error { return runSort(r) },
		Gradient: func(g *tensor.VJP[A]) *tensor.Array {
			zeros := Zeros(tensor.ShapeOf(g.In[0]), g.Cot[0].DType(), g.Ctx)
			return PutAlongAxis(zeros, order.One(g.Ctx, g.Attrs, g.In[0]), g.Cot[0], new(-1), g.Ctx)
		},
		Tangent: func(g *tensor.JVP[A]) *tensor.Array {
			return TakeAlongAxis(g.Tan[0], order.One(g.Ctx, g.Attrs, g.In[0]), new(-1), g.Ctx)
		},
		VMap: BatchFirst(sorted),
	})
	order.Define(tensor.Rules[A]{
		Shape:    shape,
		DType:    kit.Always[A](tensor.Uint32),
		Run:      func(r *tensor.Run, _ A) error { return runArgSort(r) },
		Constant: true,
		VMap:     BatchFirst(order),
	})
}

func runSort(r *tensor.Run) error {
	x, out := r.In[0], r.Out[0]
	if out.Shape[len(out.Shape)-1] == 1 {
		return r.CopyTo(out, x)
	}
	x, err := r.Contiguous(0)
	if err != nil {
		return err
	}
	return sortRows(r, x, false, x, out)
}

func runArgSort(r *tensor.Run) error {
	x, err := r.Contiguous(0)
	if err != nil {
		return err
	}
	return sortRows(r, x, true, x, r.Out[0])
}

// counted reports whether rows of n keys are sorted in one pass, by counting for each key those before it: where rows
// are short, or where there is so little to do that the passes of merging would cost more than they save.
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
func alongLast[A comparable](c *tensor.Ctx, op *tensor.OpOf[A], attrs A, a *tensor.Array, axis *int) *tensor.Array {
	return byAxis(c, op.Op().Name(), a, axis, func(x *tensor.Array) *tensor.Array { return op.One(c, attrs, x) })
}

// byAxis moves an axis to the end for f, and back; nil: f sees the flattened array.
func byAxis(c *tensor.Ctx, op string, a *tensor.Array, axis *int,
	f func(x *tensor.Array) *tensor.Array) *tensor.Array {
	if bad := kit.Unusable(c, op, a); bad != nil {
		return bad
	}
	if axis == nil {
		return f(Flatten(a, 0, -1, c))
	}
	at, err := tensor.Axis(*axis, a.NDim())
	if err != nil {
		return tensor.Fail(c, op, "%w", err)
	}
	return MoveAxis(f(MoveAxis(a, at, -1, c)), -1, at, c)
}

var _ = sig.Def("sort", "a axis:axis=-1", func(a *sig.Args) any { return Sort(a.Array(0), a.Axis(1), a.Ctx) })

// Sort is a with its elements in ascending order along an axis; nil: the flattened array's. Equal elements keep
// their order, NaN comes last, complex numbers are ordered by their real parts, then by their imaginary ones. A
// scalar has no axis to sort along: that is an error, as is an axis out of range.
func Sort(a *tensor.Array, axis *int, ctx ...*tensor.Ctx) *tensor.Array {
	return alongLast(tensor.Call(ctx), sortOp, tensor.None{}, a, axis)
}

var _ = sig.Def("argsort", "a axis:axis=-1", func(a *sig.Args) any { return ArgSort(a.Array(0), a.Axis(1), a.Ctx) })

// ArgSort is the indices, as uint32, that [TakeAlongAxis] sorts a with along an axis; nil: the flattened array's. The
// order is that of [Sort]. No gradient flows.
func ArgSort(a *tensor.Array, axis *int, ctx ...*tensor.Ctx) *tensor.Array {
	return alongLast(tensor.Call(ctx), argSort, tensor.None{}, a, axis)
}
