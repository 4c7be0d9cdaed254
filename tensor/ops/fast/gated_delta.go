package fast

import (
	_ "embed"
	"fmt"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// deltaAttrs describe a gated delta rule. Its inputs are q, k, v, gamma and beta of one dtype, the state, and the mask
// if there is one. Out is the dtype of the first output.
type deltaAttrs struct {
	Out  tensor.DType
	Mask bool
}

var (
	gatedDelta = tensor.Declare[deltaAttrs]("gated_delta_update")
	//go:embed gated_delta.metal
	gatedDeltaText    string
	gatedDeltaKernels = kit.NewKernels[deltaVariant](gatedDeltaText)
)

type deltaVariant struct {
	T, OUT, ACC    tensor.DType
	vector, masked bool
}

func init() {
	gatedDelta.Define(tensor.Rules[deltaAttrs]{
		Shape: func(in []tensor.Spec, a deltaAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			if err := checkDelta(in, a); err != nil {
				return nil, err
			}
			q, v := in[0].Shape, in[2].Shape
			return append(outs, v, tensor.Shape{v[0], v[2], v[3], q[3]}), nil
		},
		DType: func(in []tensor.Spec, a deltaAttrs, outs []tensor.DType) ([]tensor.DType, error) {
			if _, err := kit.OneDTypeOf(nil, in[:5]...); err != nil {
				return nil, err
			}
			return append(outs, a.Out, kit.Accumulator(in[0].DType)), nil
		},
		Run:  runDelta,
		VJP:  deltaVJP,
		VMap: vmapDelta,
	})
}

func checkDelta(in []tensor.Spec, a deltaAttrs) error {
	names := []string{"q", "k", "v", "gamma", "beta"}
	for i, rank := range []int{4, 4, 4, 0, 3} {
		n := len(in[i].Shape)
		if i == 3 && n != 3 && n != 4 {
			return fmt.Errorf("gamma has shape %v, want 3 or 4 dimensions", in[i].Shape)
		}
		if i != 3 && n != rank {
			return fmt.Errorf("%s has shape %v, want %d dimensions", names[i], in[i].Shape, rank)
		}
	}
	q, k, v := in[0].Shape, in[1].Shape, in[2].Shape
	batch, steps, heads := v[0], v[1], v[2]
	switch {
	case !q.Equal(k):
		return fmt.Errorf("q and k differ: shapes %v and %v", q, k)
	case q[0] != batch || q[1] != steps:
		return fmt.Errorf("the first two dimensions of q %v and v %v differ", q, v)
	case steps == 0:
		return fmt.Errorf("there is no step: v has shape %v", v)
	case q[2] == 0 && heads != 0 || q[2] != 0 && heads%q[2] != 0:
		return fmt.Errorf("v %v has %d heads, want a multiple of the %d of k %v", v, heads, q[2], k)
	}
	for i := 3; i < 5; i++ {
		want := tensor.Shape{batch, steps, heads}
		if len(in[i].Shape) == 4 {
			want = append(want, q[3])
		}
		if !in[i].Shape.Equal(want) {
			return fmt.Errorf("%s has shape %v, want %v as q %v and v %v", names[i], in[i].Shape, want, q, v)
		}
	}
	if want := (tensor.Shape{batch, heads, v[3], q[3]}); !in[5].Shape.Equal(want) {
		return fmt.Errorf("the initial state has shape %v, want %v as q %v and v %v", in[5].Shape, want, q, v)
	}
	if want := (tensor.Shape{batch, steps}); a.Mask && !in[6].Shape.Equal(want) {
		return fmt.Errorf("the mask has shape %v, want %v as v %v", in[6].Shape, want, v)
	}
	return nil
}

func runDelta(r *tensor.Run, a deltaAttrs) error {
	y, state := r.Out[0], r.Out[1]
	d := r.In[0].DType
	if err := r.CopyTo(state, r.In[5]); err != nil {
		return err
	}
	in, err := r.AllContiguous(5)
	if err != nil {
		return err
	}
	q, v := in[0].Shape, in[2].Shape
	rows := v[0] * v[2] * v[3]
	if rows == 0 {
		return nil
	}
	if err := kit.CheckRows(rows, max(q[3], v[1])); err != nil {
		return err
	}
	m := kit.Params{}.Uint(v[1], q[2], v[2], q[3], v[3])
	args := []tensor.Arg{in[0].Arg(), in[1].Arg(), in[2].Arg(), in[3].Arg(), in[4].Arg(), y.Arg(), state.Arg(), m.Arg()}
	if a.Mask {
		mask, err := r.Contiguous(6)
		if err != nil {
			return err
		}
		args = append(args, mask.Arg())
	}
	variant := deltaVariant{T: d, OUT: a.Out, ACC: kit.Accumulator(d), vector: len(in[3].Shape) == 4, masked: a.Mask}
	return gatedDeltaKernels.Launch(r, variant, "gated_delta", kit.Rows(rows), args...)
}

// vmapDelta makes examples of the batch and its examples.
func vmapDelta(g *tensor.VMap[deltaAttrs]) ([]*tensor.Array, []int) {
	c := g.Ctx
	in := make([]*tensor.Array, len(g.In))
	var v *tensor.Array
	for i := range in {
		x := ops.FrontOf(g, i, 0)
		if i == 2 {
			v = x
		}
		in[i] = ops.Flatten(x, 0, 1, c)
	}
	out := gatedDelta.Call(c, g.Attrs, in...)
	for i, y := range out {
		shape := tensor.Concat(tensor.DimOf(v, 0), tensor.DimOf(v, 1))
		for k := 1; k < y.NDim(); k++ {
			shape = tensor.Concat(shape, tensor.DimOf(y, k))
		}
		out[i] = ops.Reshape(y, shape, c)
	}
	return out, []int{0, 0}
}

// DeltaOptions are the optional arguments of [GatedDeltaUpdate].
type DeltaOptions struct {
	InitialState *tensor.Array // (batch, heads, width, depth); nil: zeros
	Mask         *tensor.Array // (batch, steps): steps where it is 0 do not happen
}

var _ = sig.Def("fast.gated_delta_update", "q k v gamma beta initial_state:array? mask:array?", func(a *sig.Args) any {
	y, state := GatedDeltaUpdate(a.Array(0), a.Array(1), a.Array(2), a.Array(3), a.Array(4),
		DeltaOptions{InitialState: a.Array(5), Mask: a.Array(6)}, a.Ctx)
	return []*tensor.Array{y, state}
})

// GatedDeltaUpdate runs the gated delta rule over steps: a state S of (batch, heads, width, depth), a memory,
// becomes for each step gamma S + beta (v - gamma S k) k^T, and the result of the step is S q. Q and k are (batch,
// steps, key heads, depth), v is (batch, steps, heads, width), heads a multiple of the key heads, neighbours of
// which share theirs; gamma and beta are (batch, steps, heads), or gamma has a fourth dimension with a number for
// each of depth, or one for all. It gives the results, in v's shape and the common dtype of q and k, and the last
// state, float32, or float64 where an operand is. The state begins as the initial one, broadcast to (batch, heads,
// width, depth), or as zeros. Steps where the mask, (batch, steps), is false or 0 leave the state and give 0. Half
// types are computed in float32, integers too; complex numbers, no steps, and shapes that do not fit are errors.
// The gradient takes memory for the states of all steps.
func GatedDeltaUpdate(q, k, v, gamma, beta *tensor.Array, o DeltaOptions,
	ctx ...*tensor.Ctx) (y, state *tensor.Array) {
	const op = "gated_delta_update"
	c := tensor.Call(ctx)
	given := []*tensor.Array{q, k, v, gamma, beta}
	if f := kit.Unusable(c, op, given...); f != nil {
		return f, f
	}
	out := tensor.Promote(q.DType(), k.DType()).Inexact()
	in, f := ops.Convert(c, op, kit.Refuse(kit.Inexact, "", tensor.Complex64), given...)
	if f != nil {
		return f, f
	}
	acc := kit.Accumulator(in[0].DType())
	if v.NDim() != 4 || q.NDim() != 4 {
		f = tensor.Fail(c, op, "q has shape %v and v %v, want 4 dimensions", q.Spec().Shape, v.Spec().Shape)
		return f, f
	}
	depth := tensor.DimOf(q, 3)
	if g := in[3]; g.NDim() == 4 { // one number for all of depth, or one for each
		in[3] = ops.BroadcastTo(g, tensor.Concat(tensor.DimOf(g, 0), tensor.DimOf(g, 1), tensor.DimOf(g, 2), depth), c)
	}
	s, shape := o.InitialState, tensor.Concat(tensor.DimOf(v, 0), tensor.DimOf(v, 2), tensor.DimOf(v, 3), depth)
	switch {
	case s == nil:
		s = ops.Zeros(shape, acc, c)
	case s.Err() != nil:
		return s, s
	case s.DType().IsComplex():
		f = tensor.Fail(c, op, "the initial state is complex, want a real one")
		return f, f
	default:
		if err := kit.CheckBroadcast(s.Spec().Shape, tensor.Shape{v.Spec().Shape[0], v.Spec().Shape[2], v.Spec().Shape[3],
			q.Spec().Shape[3]}); err != nil {
			f = tensor.Fail(c, op, "the initial state: %w", err)
			return f, f
		}
		s = ops.BroadcastTo(s, shape, c)
	}
	a := deltaAttrs{Out: out}
	in = append(in, ops.AsType(s, acc, c))
	if m := o.Mask; m != nil {
		a.Mask = true
		in = append(in, ops.AsType(m, tensor.Bool, c))
	}
	if f := kit.Unusable(c, op, in...); f != nil {
		return f, f
	}
	both := gatedDelta.Call(c, a, in...)
	return both[0], both[len(both)-1] // a call that failed gives one array
}
