package luabind

import (
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/random"
)

// unaryRow is a row of an element-wise function of one array.
func unaryRow(name string, f func(*tensor.Array, ...*tensor.Ctx) *tensor.Array) row {
	return row{name: name, sig: "a", call: func(a *args) any { return f(a.array(0), a.ctx) }}
}

// likeRow is a row of a constant of an array's shape, and of its dtype or another.
func likeRow(name, what string, f func(tensor.ShapeArg, tensor.DType, ...*tensor.Ctx) *tensor.Array) row {
	help := what + " of a's shape, and of its dtype unless another is given."
	return row{name: name, sig: "a dtype:dtype?", help: help, call: func(a *args) any {
		return f(tensor.ShapeOf(a.array(0)), a.dtype(1, a.array(0).DType()), a.ctx)
	}}
}

// binaryRow is a row of an element-wise function of two operands.
func binaryRow(name string, f func(x, y *tensor.Array, c ...*tensor.Ctx) *tensor.Array) row {
	return row{name: name, sig: "a:operand b:operand", call: func(a *args) any { return f(a.array(0), a.array(1), a.ctx) }}
}

// logicalRow is a row of an element-wise function of two truths: a number takes no dtype from the other operand.
func logicalRow(name, doc string, f func(x, y *tensor.Array, c ...*tensor.Ctx) *tensor.Array) row {
	return row{name: name, doc: doc, sig: "a b", call: func(a *args) any { return f(a.array(0), a.array(1), a.ctx) }}
}

// reduceRow is a row of a reduction.
func reduceRow(name string, f func(*tensor.Array, []int, bool, ...*tensor.Ctx) *tensor.Array) row {
	return row{name: name, sig: "a axis:axes? keepdims:bool=false", call: func(a *args) any {
		return f(a.array(0), a.ints(1), a.flag(2), a.ctx)
	}}
}

// spreadRow is a row of a variance or its root.
func spreadRow(name string, f func(*tensor.Array, []int, bool, int, ...*tensor.Ctx) *tensor.Array) row {
	return row{name: name, sig: "a axis:axes? keepdims:bool=false ddof:int=0", call: func(a *args) any {
		return f(a.array(0), a.ints(1), a.flag(2), a.int(3), a.ctx)
	}}
}

// argRow is a row of a reduction along one axis, or none for all.
func argRow(name, doc string, f func(*tensor.Array, []int, bool, ...*tensor.Ctx) *tensor.Array) row {
	return row{name: name, doc: doc, sig: "a axis:axis? keepdims:bool=false", call: func(a *args) any {
		var axes []int
		if axis := a.axisOrNone(1); axis != nil {
			axes = []int{*axis}
		}
		return f(a.array(0), axes, a.flag(2), a.ctx)
	}}
}

// opRows are the functions of arrays; those whose first parameter is an array are methods too.
var opRows = []row{
	unaryRow("abs", ops.Abs), unaryRow("negative", ops.Negative), unaryRow("sign", ops.Sign),
	unaryRow("square", ops.Square), unaryRow("sqrt", ops.Sqrt), unaryRow("rsqrt", ops.Rsqrt), unaryRow("floor", ops.Floor),
	unaryRow("exp", ops.Exp), unaryRow("log", ops.Log), unaryRow("sin", ops.Sin), unaryRow("cos", ops.Cos),
	unaryRow("tanh", ops.Tanh), unaryRow("sigmoid", ops.Sigmoid), unaryRow("conjugate", ops.Conjugate),
	unaryRow("isnan", ops.IsNaN), unaryRow("isinf", ops.IsInf), unaryRow("logical_not", ops.LogicalNot),
	unaryRow("stop_gradient", ops.StopGradient), likeRow("zeros_like", "Zeros", ops.Zeros),
	likeRow("ones_like", "Ones", ops.Ones), unaryRow("real", ops.Real), unaryRow("imag", ops.Imag),

	binaryRow("add", ops.Add), binaryRow("subtract", ops.Subtract), binaryRow("multiply", ops.Multiply),
	binaryRow("divide", ops.Divide), binaryRow("floor_divide", ops.FloorDivide),
	binaryRow("remainder", ops.Remainder), binaryRow("power", ops.Power), binaryRow("maximum", ops.Maximum),
	binaryRow("minimum", ops.Minimum), binaryRow("equal", ops.Equal), binaryRow("not_equal", ops.NotEqual),
	binaryRow("greater", ops.Greater), binaryRow("greater_equal", ops.GreaterEqual), binaryRow("less", ops.Less),
	binaryRow("less_equal", ops.LessEqual), logicalRow("logical_and", "LogicalAnd", ops.LogicalAnd),
	logicalRow("logical_or", "LogicalOr", ops.LogicalOr),

	reduceRow("sum", ops.Sum), reduceRow("prod", ops.Prod), reduceRow("mean", ops.Mean), reduceRow("max", ops.Max),
	reduceRow("min", ops.Min), argRow("argmax", "ArgMax", ops.ArgMax), argRow("argmin", "ArgMin", ops.ArgMin),
	reduceRow("all", ops.All), reduceRow("any", ops.Any), reduceRow("logsumexp", ops.LogSumExp),
	spreadRow("var", ops.Var), spreadRow("std", ops.Std),

	{name: "where", sig: "condition x:operand y:operand", call: func(a *args) any {
		return ops.Where(a.array(0), a.array(1), a.array(2), a.ctx)
	}},
	{name: "astype", sig: "a dtype:dtype", doc: "AsType", call: func(a *args) any {
		return ops.AsType(a.array(0), a.dtype(1, tensor.Float32), a.ctx)
	}},
	{name: "softmax", sig: "a axis:axes? precise:bool=false", call: func(a *args) any {
		// Softmax always computes as precise asks: half types in float32, rounded once.
		return ops.Softmax(a.array(0), a.ints(1), a.ctx)
	}},

	{name: "reshape", sig: "a shape:shape", spread: true, call: func(a *args) any {
		return ops.Reshape(a.array(0), a.shape(1), a.ctx)
	}},
	{name: "flatten", sig: "a start_axis:int=0 end_axis:int=-1", call: func(a *args) any {
		return ops.Flatten(a.array(0), a.int(1), a.int(2), a.ctx)
	}},
	{name: "transpose", sig: "a axes:axes?", spread: true, call: func(a *args) any {
		return ops.Transpose(a.array(0), a.ints(1), a.ctx)
	}},
	{name: "swapaxes", sig: "a axis1:int axis2:int", doc: "SwapAxes", call: func(a *args) any {
		return ops.SwapAxes(a.array(0), a.int(1), a.int(2), a.ctx)
	}},
	{name: "moveaxis", sig: "a source:int destination:int", doc: "MoveAxis", call: func(a *args) any {
		return ops.MoveAxis(a.array(0), a.int(1), a.int(2), a.ctx)
	}},
	{name: "expand_dims", sig: "a axis:axes", call: func(a *args) any {
		return ops.ExpandDims(a.array(0), a.ints(1), a.ctx)
	}},
	{name: "squeeze", sig: "a axis:axes?", call: func(a *args) any {
		return ops.Squeeze(a.array(0), a.ints(1), a.ctx)
	}},
	{name: "broadcast_to", sig: "a shape:shape", call: func(a *args) any {
		return ops.BroadcastTo(a.array(0), a.shape(1), a.ctx)
	}},

	{name: "zeros", sig: "shape:shape dtype:dtype?", call: func(a *args) any {
		return ops.Zeros(a.shape(0), a.dtype(1, tensor.Float32), a.ctx)
	}},
	{name: "ones", sig: "shape:shape dtype:dtype?", call: func(a *args) any {
		return ops.Ones(a.shape(0), a.dtype(1, tensor.Float32), a.ctx)
	}},
	{name: "full", sig: "shape:shape vals:any dtype:dtype?", call: func(a *args) any {
		value, d := a.fillValue(1, tensor.Float32)
		return ops.Full(a.shape(0), value, a.dtype(2, d), a.ctx)
	}},
	{name: "full_like", sig: "a vals:any dtype:dtype?", call: func(a *args) any {
		value, _ := a.fillValue(1, a.array(0).DType())
		return ops.FullLike(a.array(0), value, a.dtype(2, a.array(0).DType()), a.ctx)
	}},
	{name: "eye", sig: "n:int m:int? k:int=0 dtype:dtype?", call: func(a *args) any {
		cols := a.int(0)
		if a.given(1) {
			cols = a.int(1)
		}
		return ops.Eye(a.int(0), cols, a.int(2), a.dtype(3, tensor.Float32), a.ctx)
	}},
	{name: "arange", sig: "start:number stop:number? step:number? dtype:dtype?", call: func(a *args) any {
		start, stop, step := 0.0, a.number(0), 1.0
		if a.given(1) {
			start, stop = a.number(0), a.number(1)
		}
		if a.given(2) {
			step = a.number(2)
		}
		return ops.Arange(start, stop, step, a.dtype(3, ops.ArangeDType(start, stop, step)), a.ctx)
	}},

	{name: "random.key", sig: "seed:value", host: true, call: func(a *args) any {
		return random.Key(a.seed(0), a.ctx)
	}},
	{name: "random.split", sig: "key num:int=2", call: func(a *args) any {
		return random.Split(a.array(0), a.int(1), a.ctx)
	}},
	{name: "random.bits", sig: "shape:shape? width:int=4 key:array?", call: func(a *args) any {
		return random.Bits(a.shape(0), a.int(1), a.key(2), a.ctx)
	}},
	{name: "random.uniform", sig: "low:array? high:array? shape:shape? dtype:dtype? key:array?",
		call: func(a *args) any {
			low, high := a.array(0), a.array(1)
			if low == nil {
				low = ops.Number(0, tensor.Float32, a.ctx)
			}
			if high == nil {
				high = ops.Number(1, tensor.Float32, a.ctx)
			}
			return random.Uniform(low, high, a.shape(2), a.dtype(3, tensor.Float32), a.key(4), a.ctx)
		}},
	{name: "random.seed", sig: "seed:value", host: true, doc: "random.State.Seed", call: func(a *args) any {
		a.s.random.Seed(a.seed(0))
		return nil
	}},
}
