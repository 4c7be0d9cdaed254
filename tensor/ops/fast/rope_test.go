package fast_test

import (
	"testing"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/fast"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

func TestRoPE(t *testing.T) {
	base := 100.0
	run := func(name string, opt fast.RoPEOptions, cases ...optest.Case) {
		optest.Run(t, optest.Subject{
			Name: name, Ops: []string{"rope"}, Cases: cases, DTypes: optest.FloatTypes, Second: true,
			Tol: optest.Tol{Rel: 1e-5, Abs: 4e-6}, // the angles' own rounding
			Fn: optest.One(func(in []*array) *array {
				opt := opt
				if len(in) > 1 {
					opt.Offset = in[1]
				}
				if len(in) > 2 {
					opt.Freqs = in[2]
				}
				return fast.RoPE(in[0], opt)
			}),
		})
	}
	offset := func(n int) *array { return ops.Number(float64(n), tensor.Int32) }
	like := fast.RoPEOptions{Dims: 8, Base: &base, Scale: 1}
	run("rope", like, optest.Of("n,m,k,8"), optest.Of("n,m,9"), optest.Of("2,n,m,2,8"), optest.Of("2,5,n,8"))
	back := like
	back.Traditional, back.Offset = true, offset(7)
	run("rope traditional", back, optest.Of("n,m,k,8"))
	part := like
	part.Dims, part.Scale, part.Offset = 6, 0.5, offset(2)
	run("rope part", part, optest.Of("n,m,k,8"))
	pair := like
	pair.Dims, pair.Traditional = 2, true
	run("rope traditional part", pair, optest.Of("n,m,9"))
	whole := optest.In("", optest.Ints(3, 3)).As(tensor.Int32)
	each := optest.In("n", optest.Ints(0, 5)).As(tensor.Int32)
	run("rope offset", like, optest.With(optest.Of("n,m,k,8"), whole), optest.With(optest.Of("n,m,8"), each),
		optest.With(optest.Of("n,2,m,8"), whole.Whole()),
		optest.With(optest.Of("2,n,8"), optest.In("1", optest.Ints(3, 3)).As(tensor.Int32)))
	freqs := optest.In("4", optest.Uniform(1, 4))
	given := fast.RoPEOptions{Dims: 8, Scale: 1}
	run("rope freqs", given, optest.With(optest.Of("n,m,k,8"), whole, freqs), optest.With(optest.Of("n,m,8"), each, freqs))
	neighbours := fast.RoPEOptions{Dims: 8, Scale: 0.5, Traditional: true}
	optest.Run(t, optest.Subject{
		Name: "rope freqs traditional", Ops: []string{"rope"}, DTypes: optest.FloatTypes, Second: true,
		Tol: optest.Tol{Rel: 1e-5, Abs: 4e-6}, Cases: []optest.Case{optest.With(optest.Of("n,m,9"), each, freqs)},
		Fn: optest.One(func(in []*array) *array {
			opt := neighbours
			opt.Offset, opt.Freqs = in[1], in[2]
			return fast.RoPE(in[0], opt)
		}),
	})

	change := func(f func(o *fast.RoPEOptions)) fast.RoPEOptions {
		o := like
		f(&o)
		return o
	}
	x := optest.Zeros(2, 3, 5, 8)
	optest.Fails(t, fast.RoPE(optest.Zeros(5, 8), like), "[rope] x has shape (5, 8), it needs 3 dimensions or more")
	for _, dims := range []int{3, 10, 0, -2} {
		optest.Fails(t, fast.RoPE(x, change(func(o *fast.RoPEOptions) { o.Dims = dims })),
			"want an even number from 2 to the last")
	}
	optest.Fails(t, fast.RoPE(x, change(func(o *fast.RoPEOptions) { o.Base = nil })), "[rope] want either base or freqs")
	optest.Fails(t, fast.RoPE(x, change(func(o *fast.RoPEOptions) { o.Freqs = optest.Zeros(4) })),
		"[rope] want either base or freqs")
	optest.Fails(t, fast.RoPE(x, change(func(o *fast.RoPEOptions) { o.Base, o.Freqs = nil, optest.Zeros(3) })),
		"[rope] freqs has shape (3,), want (4,)")
	optest.Fails(t, fast.RoPE(x, change(func(o *fast.RoPEOptions) { o.Offset = optest.Zeros(2) })),
		"[rope] offset has dtype float32, want integers")
	optest.Fails(t, fast.RoPE(x, change(func(o *fast.RoPEOptions) {
		o.Offset = ops.Zeros(tensor.Sizes(3),
			tensor.Int64)
	})),
		"[rope] offset has shape (3,), want a scalar or one for each of the 2 examples")
	optest.Fails(t, fast.RoPE(ops.AsType(x, tensor.Int32), like), "[rope] a has dtype int32")
	optest.Fails(t, fast.RoPE(nil, like), "[rope] an input is nil")
}
