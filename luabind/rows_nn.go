package luabind

import (
	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/fast"
	"github.com/mlxlua/mlxlua/tensor/ops/random"
)

// scanRow is a row of a cumulative op. Those of sums and products take a dtype to convert to first.
func scanRow(name, doc string, typed bool,
	f func(a *tensor.Array, axis *int, reverse, inclusive bool, c ...*tensor.Ctx) *tensor.Array) row {
	sig := "a axis:axis? reverse:bool=false inclusive:bool=true"
	if typed {
		sig += " dtype:dtype?"
	}
	return row{name: name, doc: doc, sig: sig, call: func(a *args) any {
		x := a.array(0)
		if typed && a.given(4) {
			x = ops.AsType(x, a.dtype(4, x.DType()), a.ctx)
		}
		return f(x, a.axisOrNone(1), a.flag(2), a.flag(3), a.ctx)
	}}
}

// joinRow is a row of concatenate's names.
func joinRow(name string) row {
	return row{name: name, sig: "arrays:arrays axis:axis=0", doc: "Concatenate", call: func(a *args) any {
		return ops.Concatenate(a.arrays(0), a.axisOrNone(1), a.ctx)
	}}
}

// list is arrays as one table.
func (a *args) list(xs []*tensor.Array) lua.LValue {
	t := a.s.L.CreateTable(len(xs), 0)
	for _, x := range xs {
		t.Append(a.s.wrap(x))
	}
	return t
}

// split cuts by a number of sections or by a table of indices.
func (a *args) split() any {
	if n, ok := a.raw[1].(lua.LNumber); ok {
		sections, err := toInt(n)
		if err != nil {
			a.fail("indices_or_sections %v", err)
		}
		return a.list(ops.Split(a.array(0), sections, a.int(2), a.ctx))
	}
	t, ok := a.raw[1].(*lua.LTable)
	if !ok {
		a.fail("indices_or_sections is %s, want a number of sections or a table of indices", describe(a.raw[1]))
	}
	indices, err := intList(t)
	if err != nil {
		a.fail("indices_or_sections%v", err)
	}
	return a.list(ops.SplitAt(a.array(0), indices, a.int(2), a.ctx))
}

// attention reads the mask, which is "causal" or an array, and the sinks.
func (a *args) attention() any {
	var opt fast.AttentionOptions
	switch v := a.raw[4].(type) {
	case *lua.LNilType:
	case lua.LString:
		if v != "causal" {
			a.fail("mask is %q, want \"causal\" or an array", string(v))
		}
		opt.Causal = true
	default:
		x, err := toArray(a, v)
		if err != nil {
			a.fail("mask is %s, want \"causal\" or an array", describe(v))
		}
		opt.Mask = x.(*tensor.Array)
	}
	opt.Sinks = a.array(5)
	// There is one kernel, which is a fused one: force_fused asks for nothing else.
	return fast.ScaledDotProductAttention(a.array(0), a.array(1), a.array(2), a.number(3), opt, a.ctx)
}

// rope reads the arguments of rotary encoding.
func (a *args) rope() any {
	opt := fast.RoPEOptions{Dims: a.int(1), Traditional: a.flag(2), Scale: a.number(4), Offset: a.array(5),
		Freqs: a.array(6)}
	if a.given(3) {
		base := a.number(3)
		opt.Base = &base
	}
	return fast.RoPE(a.array(0), opt, a.ctx)
}

const closeSig = "a:operand b:operand rtol:number=1e-5 atol:number=1e-8 equal_nan:bool=false"

func (a *args) tolerance() ops.Tolerance {
	return ops.Tolerance{Rel: a.number(2), Abs: a.number(3), NaN: a.flag(4)}
}

// nnRows are the functions that models need most: joins, scans, partitions, the fast ops, and more element-wise ones.
var nnRows = []row{
	unaryRow("expm1", ops.Expm1), unaryRow("log1p", ops.Log1p), unaryRow("log2", ops.Log2), unaryRow("log10", ops.Log10),
	unaryRow("reciprocal", ops.Reciprocal), unaryRow("tan", ops.Tan), unaryRow("sinh", ops.Sinh),
	unaryRow("cosh", ops.Cosh), unaryRow("erf", ops.Erf), unaryRow("erfinv", ops.ErfInv), unaryRow("ceil", ops.Ceil),
	unaryRow("isfinite", ops.IsFinite), binaryRow("arctan2", ops.ArcTan2),
	unaryRow("arcsin", ops.ArcSin), unaryRow("arccos", ops.ArcCos), unaryRow("arctan", ops.ArcTan),
	unaryRow("arcsinh", ops.ArcSinh), unaryRow("arccosh", ops.ArcCosh), unaryRow("arctanh", ops.ArcTanh),
	binaryRow("logaddexp", ops.LogAddExp),

	{name: "clip", sig: "a:operand a_min:operand? a_max:operand?", call: func(a *args) any {
		return ops.Clip(a.array(0), a.array(1), a.array(2), a.ctx)
	}},
	{name: "isclose", sig: closeSig, call: func(a *args) any {
		return ops.IsClose(a.array(0), a.array(1), a.tolerance(), a.ctx)
	}},
	{name: "allclose", sig: closeSig, call: func(a *args) any {
		return ops.AllClose(a.array(0), a.array(1), a.tolerance(), a.ctx)
	}},
	joinRow("concatenate"), joinRow("concat"),
	{name: "stack", sig: "arrays:arrays axis:int=0", call: func(a *args) any {
		return ops.Stack(a.arrays(0), a.int(1), a.ctx)
	}},
	{name: "split", sig: "a indices_or_sections:list axis:int=0",
		help: "A table of views of a, cut along an axis: into that many sections of equal size, or at a table of " +
			"indices, n of which give n + 1 pieces, from one index to the next. Indices are clamped, and negative ones " +
			"count from the end; where one is before the last the piece is empty. A size that the number of sections " +
			"does not divide is an error.",
		call: (*args).split},

	scanRow("cumsum", "CumSum", true, ops.CumSum), scanRow("cumprod", "CumProd", true, ops.CumProd),
	scanRow("cummax", "CumMax", false, ops.CumMax), scanRow("cummin", "CumMin", false, ops.CumMin),
	scanRow("logcumsumexp", "LogCumSumExp", false, ops.LogCumSumExp),

	{name: "partition", sig: "a kth:int axis:axis=-1", call: func(a *args) any {
		return ops.Partition(a.array(0), a.int(1), a.axisOrNone(2), a.ctx)
	}},
	{name: "argpartition", sig: "a kth:int axis:axis=-1", doc: "ArgPartition", call: func(a *args) any {
		return ops.ArgPartition(a.array(0), a.int(1), a.axisOrNone(2), a.ctx)
	}},
	{name: "topk", sig: "a k:int axis:axis=-1", doc: "TopK", call: func(a *args) any {
		return ops.TopK(a.array(0), a.int(1), a.axisOrNone(2), a.ctx)
	}},

	{name: "fast.rms_norm", sig: "x weight:array? eps:number", call: func(a *args) any {
		return fast.RMSNorm(a.array(0), a.array(1), a.number(2), a.ctx)
	}},
	{name: "fast.layer_norm", sig: "x weight:array? bias:array? eps:number", call: func(a *args) any {
		return fast.LayerNorm(a.array(0), a.array(1), a.array(2), a.number(3), a.ctx)
	}},
	{name: "fast.rope", sig: "a dims:int traditional:bool=false base:number? scale:number=1 offset:array? freqs:array?",
		call: (*args).rope},
	{name: "fast.scaled_dot_product_attention",
		sig:  "q k v scale:number mask:value? sinks:array? force_fused:bool=false",
		call: (*args).attention},

	{name: "random.normal", sig: "shape:shape? dtype:dtype? loc:array? scale:array? key:array?",
		call: func(a *args) any {
			return random.Normal(a.shape(0), a.dtype(1, tensor.Float32), a.array(2), a.array(3), a.key(4), a.ctx)
		}},
}
