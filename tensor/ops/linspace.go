package ops

import (
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

var _ = sig.Def("linspace", "start:number stop:number num:int=50 endpoint:bool=true dtype:dtype=float32",
	func(a *sig.Args) any {
		return Linspace(a.Number(0), a.Number(1), a.Int(2), a.Bool(3), a.DType(4), a.Ctx)
	})

// Linspace is num numbers from start to stop at equal distances: the last one is stop, or without endpoint the one
// before it. Element i is start*(1-t) + stop*t for t = i/(num-1), without endpoint i/num, in float32 (float64 if dtype
// is that), converted to dtype. A negative num is an error.
func Linspace(start, stop float64, num int, endpoint bool, dtype tensor.DType, ctx ...*tensor.Ctx) *tensor.Array {
	const op = "linspace"
	c := tensor.Call(ctx)
	d := tensor.Float32
	if dtype == tensor.Float64 {
		d = dtype
	}
	switch {
	case num < 0:
		return tensor.Fail(c, op, "num is %d, want 0 or more", num)
	case num == 1:
		return Full(tensor.Sizes(1), Number(start, d, c), dtype, c)
	}
	steps := num
	if endpoint {
		steps--
	}
	i := Arange(0, float64(num), 1, d, c)
	t := Divide(i, Number(float64(steps), d, c), c)
	rest := Subtract(Number(1, d, c), t, c)
	from, to := Multiply(rest, Number(start, d, c), c), Multiply(t, Number(stop, d, c), c)
	sum := Add(from, to, c)
	out := AsType(sum, dtype, c)
	tensor.Drop(i, t, rest, from, to) // so that they need not be stored
	if out != sum {
		tensor.Drop(sum)
	}
	return out
}
