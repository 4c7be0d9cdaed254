// Package grad is the transforms of functions over arrays: vjp, jvp, grad, vmap, checkpoint and custom functions.
// They use the ops' rules and build ordinary graphs, so that they nest in any order and differentiate as often as
// one likes.
package grad

import (
	"slices"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
)

// Func is a function of arrays. It must not change the slice it is given.
type Func = func(in []*tensor.Array) ([]*tensor.Array, error)

// VJP calls f and gives its outputs and, for each primal, the vector-Jacobian product with the cotangents: one for
// each output, of its shape, converted to its dtype; nil means zero. The products have the primals' shapes and
// dtypes; where nothing depends on a primal they are zeros. As in MLX integers are no obstacle: their products are
// integers too. But there is no derivative by indices, which choose elements: where they are computed from a primal,
// in whatever way, an error says so, unless [ops.StopGradient] stands between.
func VJP(f Func, primals, cotangents []*tensor.Array, ctx ...*tensor.Ctx) (outs, grads []*tensor.Array, err error) {
	c := tensor.Call(ctx)
	outs, grads, err = vjp(c, "vjp", f, primals, nil, func(outs []*tensor.Array) ([]*tensor.Array, error) {
		if len(outs) != len(cotangents) {
			return nil, c.Errorf("vjp", "the function has %s, but the number of cotangents is %d",
				tensor.Count(len(outs), "output"), len(cotangents))
		}
		return likes(c, "vjp", "cotangent", "output", cotangents, outs)
	})
	return outs, grads, err
}

// Grad is the function that gives the gradients of f's first output, which must be a scalar, by the inputs whose
// indices argnums lists (nil: the first). Each has its input's shape and dtype.
func Grad(f Func, argnums []int, ctx ...*tensor.Ctx) Func {
	g := ValueAndGrad(f, argnums, tensor.Call(ctx))
	return func(in []*tensor.Array) ([]*tensor.Array, error) {
		_, grads, err := g(in)
		return grads, err
	}
}

// ValueAndGrad is as Grad, and gives all outputs of f too.
func ValueAndGrad(f Func, argnums []int, ctx ...*tensor.Ctx) func(in []*tensor.Array) (
	values, grads []*tensor.Array, err error) {
	c := tensor.Call(ctx)
	if argnums == nil {
		argnums = []int{0}
	}
	argnums = slices.Clone(argnums)
	return func(in []*tensor.Array) (values, grads []*tensor.Array, err error) {
		for i, a := range argnums {
			switch {
			case a < 0:
				return nil, nil, c.Errorf("grad", "argument index %d is negative", a)
			case a >= len(in):
				return nil, nil, c.Errorf("grad", "there is no argument %d: the function was called with %d", a, len(in))
			case slices.Contains(argnums[:i], a):
				return nil, nil, c.Errorf("grad", "argument index %d is given twice", a)
			}
		}
		return vjp(c, "grad", f, in, argnums, func(outs []*tensor.Array) ([]*tensor.Array, error) {
			if len(outs) == 0 {
				return nil, c.Errorf("grad", "the function must return a scalar: it returned nothing")
			}
			if s := outs[0].Spec(); len(s.Shape) != 0 {
				return nil, c.Errorf("grad", "the function must return a scalar: its result has shape %v", s.Shape)
			}
			cots := make([]*tensor.Array, len(outs))
			cots[0] = ops.OnesLike(outs[0], c)
			return cots, nil
		})
	}
}

// vjp differentiates by the primals that argnums lists (nil: all). seed gives the outputs' cotangents.
func vjp(c *tensor.Ctx, name string, f Func, primals []*tensor.Array, argnums []int,
	seed func(outs []*tensor.Array) ([]*tensor.Array, error)) (outs, grads []*tensor.Array, err error) {
	if argnums == nil {
		for i := range primals {
			argnums = append(argnums, i)
		}
	}
	defer c.Building()()
	trace := tensor.NewTrace(name, nil)
	defer trace.End()
	in := slices.Clone(primals)
	if err := firstError(c, name, "argument", in); err != nil {
		return nil, nil, err
	}
	watched := make([]*tensor.Array, len(argnums))
	for i, a := range argnums {
		in[a] = trace.Watch(c, primals[a])
		watched[i] = in[a]
	}
	if outs, err = call(c, name, f, in); err != nil {
		return nil, nil, err
	}
	cots, err := seed(outs)
	if err != nil {
		return nil, nil, err
	}
	grads, err = pullback(c, trace, outs, cots, watched)
	if err != nil {
		return nil, nil, err
	}
	for i, g := range grads {
		if g == nil {
			grads[i] = ops.ZerosLike(watched[i], c)
		}
	}
	return outs, grads, nil
}

// call calls f on a copy of in and refuses outputs that carry an error.
func call(c *tensor.Ctx, name string, f Func, in []*tensor.Array) ([]*tensor.Array, error) {
	outs, err := f(slices.Clone(in))
	if err != nil {
		return nil, err
	}
	return outs, firstError(c, name, "output", outs)
}

func firstError(c *tensor.Ctx, name, what string, xs []*tensor.Array) error {
	for i, x := range xs {
		if x == nil {
			return c.Errorf(name, "%s %d is nil", what, i)
		}
		if err := x.Err(); err != nil {
			return err
		}
	}
	return nil
}

// likes checks that vectors (tangents, cotangents) have the shapes of what they belong to, and gives them its dtypes.
func likes(c *tensor.Ctx, name, what, of string, vectors, xs []*tensor.Array) ([]*tensor.Array, error) {
	out := make([]*tensor.Array, len(vectors))
	for i, v := range vectors {
		if v == nil {
			continue
		}
		if err := v.Err(); err != nil {
			return nil, err
		}
		want, have := xs[i].Spec(), v.Spec()
		if !want.Shape.Equal(have.Shape) {
			return nil, c.Errorf(name, "%s %d has shape %v, but the %s has shape %v", what, i, have.Shape, of, want.Shape)
		}
		if out[i] = v; want.DType != have.DType {
			out[i] = ops.AsType(v, want.DType, c)
		}
	}
	return out, nil
}
