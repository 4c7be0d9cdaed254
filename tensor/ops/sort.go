package ops

import (
	_ "embed"
	"errors"
	"fmt"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

var (
	// Both sort along the last axis.
	sortOp  = tensor.Declare[tensor.None]("sort")
	argSort = tensor.Declare[tensor.None]("argsort")
	//go:embed digits.metal
	digitsText string
	//go:embed sort.metal
	sortText    string
	sortKernels = kit.NewKernels[sortVariant](digitsText + sortText)
)

// sortVariant is the dtype of keys, whether their places are sorted instead, and which pass it is.
type sortVariant struct {
	keys               tensor.DType
	index, first, last bool
}

// Macros defines the type of keys and their order.
func (v sortVariant) Macros() string {
	return fmt.Sprintf("#define MOST_RANKED %d\n", ranked(v.keys)) + orderMSL(v.keys)
}

// orderMSL defines K, the bits of keys of dtype d, and ordered(x), by which they are compared.
func orderMSL(d tensor.DType) string {
	return fmt.Sprintf("#define K %[1]s\ninline %[1]s ordered(%[1]s x) {\n%[2]s}\n", kit.Bits(d), orderOf(d))
}

func init() {
	shape := func(in []tensor.Spec, _ tensor.None, outs []tensor.Shape) ([]tensor.Shape, error) {
		if len(in[0].Shape) == 0 {
			return nil, errors.New("a scalar has no axis to sort along")
		}
		return append(outs, in[0].Shape), nil
	}
	defineOrder(sortOp, argSort, shape, func(r *tensor.Run, x tensor.Operand, _ tensor.None, index bool) error {
		return sortRows(r, x, index, r.Out[0])
	})
}

// defineOrder gives an op of elements in an order along the last axis, and the op of their places, their rules. Run
// gets row-contiguous keys, and whether to write places.
func defineOrder[A comparable](sorted, order *tensor.OpOf[A],
	shape func([]tensor.Spec, A, []tensor.Shape) ([]tensor.Shape, error),
	run func(r *tensor.Run, keys tensor.Operand, attrs A, index bool) error) {
	rule := func(index bool) func(*tensor.Run, A) error {
		return func(r *tensor.Run, attrs A) error {
			if in := r.In[0].Shape; !index && in[len(in)-1] == 1 {
				return r.CopyTo(r.Out[0], r.In[0])
			}
			keys, err := r.Contiguous(0)
			if err != nil {
				return err
			}
			return run(r, keys, attrs, index)
		}
	}
	sorted.Define(tensor.Rules[A]{
		Shape: shape,
		DType: kit.SameDType[A],
		Run:   rule(false),
		Gradient: func(g *tensor.VJP[A]) *tensor.Array {
			zeros := Zeros(tensor.ShapeOf(g.In[0]), g.Cot[0].DType(), g.Ctx)
			by := StopGradient(order.One(g.Ctx, g.Attrs, g.In[0]), g.Ctx)
			return PutAlongAxis(zeros, by, g.Cot[0], new(-1), g.Ctx)
		},
		Tangent: func(g *tensor.JVP[A]) *tensor.Array {
			by := StopGradient(order.One(g.Ctx, g.Attrs, g.In[0]), g.Ctx)
			return TakeAlongAxis(g.Tan[0], by, new(-1), g.Ctx)
		},
		VMap: BatchFirst(sorted),
	})
	order.Define(tensor.Rules[A]{
		Shape:    shape,
		DType:    kit.Always[A](tensor.Uint32),
		Run:      rule(true),
		Constant: true,
		VMap:     BatchFirst(order),
	})
}

// ranked is the most keys of a row that is sorted by counting for each key those before it: with more, passes over
// their digits are faster, of which there is one for each byte.
func ranked(keys tensor.DType) int { return min(128*keys.Size(), 512) }

// argsortRows is the order of row-contiguous keys along their last axis, as uint32.
func argsortRows(r *tensor.Run, keys tensor.Operand) (tensor.Operand, error) {
	out, err := r.Temp(tensor.Spec{Shape: keys.Shape, DType: tensor.Uint32})
	if err != nil {
		return out, err
	}
	return out, sortRows(r, keys, true, out)
}

// How many keys of a long row a SIMD-group sorts by a digit, at most and at least.
const mostChunk, leastChunk = 1 << 13, 1 << 9

// sortRows sorts the rows of keys, or their places (index), into out: short ones by counting, others digit by digit.
// Nothing is empty.
func sortRows(r *tensor.Run, keys tensor.Operand, index bool, out tensor.Operand) error {
	n := keys.Shape[len(keys.Shape)-1]
	rows := keys.Shape.Size() / n
	if err := kit.CheckRows(rows, n); err != nil {
		return err
	}
	if n <= ranked(keys.DType) {
		return rankRows(r, keys, keptPlaces{0, n}, index, out)
	}
	length, chunks := chunked(r, rows, n)
	s := sorting{Run: r, n: n, rows: rows, length: length, chunks: chunks, index: index, keys: keys, out: out}
	var err error
	if chunks > 1 {
		if s.counts, err = r.Temp(tensor.Spec{Shape: tensor.Shape{rows, 256, chunks}, DType: tensor.Uint32}); err != nil {
			return err
		}
	}
	if s.temp, err = r.Temp(out.Spec); err != nil {
		return err
	}
	if index {
		for i := range s.moved {
			if s.moved[i], err = r.Temp(keys.Spec); err != nil {
				return err
			}
		}
	}
	passes := keys.DType.Size()
	for pass := range passes {
		if err := s.pass(pass, passes); err != nil {
			return err
		}
	}
	return nil
}

// chunked says into how many chunks each of several rows of n keys is cut, and how long they are but for the last one.
// Where rows are few, a device that keeps many SIMD-groups at once gets shorter ones, so that all of it has work.
func chunked(r *tensor.Run, rows, n int) (length, chunks int) {
	many := kit.Many(r)
	if rows >= many {
		return n, 1 // there is enough to share
	}
	least := max(mostChunk/max(r.Info().Simds, 1), leastChunk)
	length = min(max(rows*n/many, least), mostChunk, n)
	return length, (n + length - 1) / length
}

// rankRows sorts rows of at most as many keys as [ranked] says by counting, and puts a window of their order into out.
func rankRows(r *tensor.Run, keys tensor.Operand, w keptPlaces, index bool, out tensor.Operand) error {
	rows, n, err := kit.RowsOf(keys.Shape)
	if err != nil {
		return err
	}
	v := sortVariant{keys: keys.DType, index: index}
	if n <= 16 {
		return sortKernels.Launch(r, v, "rank_keys", kit.Plane(n, rows), keys.Arg(), out.Arg(), w.arg(n))
	}
	return sortKernels.Launch(r, v, "rank_rows", kit.Simds(rows, 1, 4), keys.Arg(), out.Arg(), w.arg(n))
}

// sorting is the sort of rows by digits.
type sorting struct {
	*tensor.Run
	n, rows        int
	length, chunks int // of chunks, and in a row
	index          bool
	keys, out      tensor.Operand
	counts, temp   tensor.Operand
	moved          [2]tensor.Operand // keys beside their places
}

// pass sorts by one digit: from where the pass before wrote to where the next one reads, or the result is.
func (s *sorting) pass(pass, passes int) error {
	v := sortVariant{keys: s.keys.DType, index: s.index}
	to, from := s.out, s.temp
	if (passes-pass)%2 == 0 {
		to, from = from, to
	}
	keys, places, moved := from, from, to
	if s.index {
		v.first, v.last = pass == 0, pass == passes-1
		keys, moved = s.moved[(pass+1)%2], s.moved[pass%2]
	}
	if pass == 0 {
		keys = s.keys
	}
	if !s.index {
		places, moved = keys, to // something must be bound
	}
	params := kit.Params{}.Uint(s.n, s.length, s.chunks, 8*pass).Arg()
	if s.chunks == 1 {
		return sortKernels.Launch(s.Run, v, "sort_rows", kit.Simds(s.rows, 1, 1), keys.Arg(), places.Arg(), moved.Arg(),
			to.Arg(), params)
	}
	over := kit.Simds(s.chunks, s.rows, 1)
	counting := v
	counting.first, counting.last = false, false
	if err := sortKernels.Launch(s.Run, counting, "count_digits", over, keys.Arg(), s.counts.Arg(), params); err != nil {
		return err
	}
	err := sortKernels.Launch(s.Run, counting, "add_counts", kit.Simds(s.rows, 1, 1), s.counts.Arg(), params)
	if err != nil {
		return err
	}
	return sortKernels.Launch(s.Run, v, "move_keys", over, keys.Arg(), places.Arg(), s.counts.Arg(), moved.Arg(), to.Arg(),
		params)
}

// orderOf is MSL that returns an unsigned number of x, the bits of a key of dtype d, which has the order of the keys
// and is the same for equal ones: NaN comes after all numbers, complex numbers are ordered by their real parts, then by
// their imaginary ones.
func orderOf(d tensor.DType) string {
	word := kit.Bits(d)
	bits := 8 * d.Size()
	float := func(x, word string, bits int, infinity uint64) string { // nan and key of the number with bits x
		sign := fmt.Sprintf("%s(%#xul)", word, uint64(1)<<(bits-1))
		return fmt.Sprintf("bool nan_%[1]s = %[2]s(%[1]s & %[2]s(~%[3]s)) > %[2]s(%#[4]xul);\n"+
			"%[2]s key_%[1]s = %[2]s(%[1]s & %[2]s(~%[3]s)) == 0 ? %[3]s : "+
			"(%[1]s & %[3]s) != 0 ? %[2]s(~%[1]s) : %[2]s(%[1]s | %[3]s);\n", x, word, sign, infinity)
	}
	infinities := map[tensor.DType]uint64{tensor.Float16: 0x7C00, tensor.BFloat16: 0x7F80, tensor.Float32: 0x7F800000,
		tensor.Float64: 0x7FF << 52}
	switch {
	case d.IsFloat():
		return float("x", word, bits, infinities[d]) + "return nan_x ? " + word + "(~" + word + "(0)) : key_x;\n"
	case d.IsComplex():
		return "uint re = uint(x);\nuint im = uint(x >> 32);\n" + float("re", "uint", 32, infinities[tensor.Float32]) +
			float("im", "uint", 32, infinities[tensor.Float32]) +
			"return nan_re || nan_im ? ~0ul : (ulong(key_re) << 32) | key_im;\n"
	case d.IsSigned():
		return fmt.Sprintf("return %s(x ^ %s(%#xul));\n", word, word, uint64(1)<<(bits-1))
	}
	return "return x;\n"
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
