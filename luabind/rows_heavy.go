package luabind

import (
	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/linalg"
	"github.com/mlxlua/mlxlua/tensor/ops/quant"
	"github.com/mlxlua/mlxlua/tensor/ops/random"
)

// axisOrNone is a parameter of kind axis, nil for none.
func (a *args) axisOrNone(i int) *int {
	if !a.given(i) {
		return nil
	}
	axis := a.int(i)
	return &axis
}

// quantization reads group_size, bits, mode and global_scale, the parameters from i on.
func (a *args) quantization(i int) quant.Quantization {
	q := quant.Quantization{GroupSize: a.int(i), Bits: a.int(i + 1), Mode: a.text(i + 2)}
	for k, name := range []string{"group_size", "bits"} {
		if a.given(i+k) && a.int(i+k) <= 0 {
			a.fail("%s is %d, want a positive number", name, a.int(i+k))
		}
	}
	if i+3 < len(a.v) && a.f.params[i+3].name == "global_scale" && a.given(i+3) {
		a.fail("global_scale is for mode nvfp4, which is not supported")
	}
	return q
}

// heavyRows are the products, gathers, sorts, quantized operations and decompositions.
var heavyRows = []row{
	binaryRow("matmul", ops.Matmul),
	{name: "take", sig: "a indices:indices axis:axis?", call: func(a *args) any {
		return ops.Take(a.array(0), a.array(1), a.axisOrNone(2), a.ctx)
	}},
	{name: "take_along_axis", sig: "a indices:indices axis:axis=-1", call: func(a *args) any {
		return ops.TakeAlongAxis(a.array(0), a.array(1), a.axisOrNone(2), a.ctx)
	}},
	{name: "put_along_axis", sig: "a indices:indices values axis:axis?", call: func(a *args) any {
		return ops.PutAlongAxis(a.array(0), a.array(1), a.array(2), a.axisOrNone(3), a.ctx)
	}},
	{name: "sort", sig: "a axis:axis=-1", call: func(a *args) any {
		return ops.Sort(a.array(0), a.axisOrNone(1), a.ctx)
	}},
	{name: "argsort", sig: "a axis:axis=-1", doc: "ArgSort", call: func(a *args) any {
		return ops.ArgSort(a.array(0), a.axisOrNone(1), a.ctx)
	}},
	{name: "quantize", doc: "quant.Quantize",
		sig: "w group_size:int? bits:int? mode:string=affine global_scale:array?", call: func(a *args) any {
			return quant.Quantize(a.array(0), a.quantization(1), a.ctx)
		}},
	{name: "dequantize", doc: "quant.Dequantize",
		sig: "w scales biases:array? group_size:int? bits:int? mode:string=affine global_scale:array? dtype:dtype?",
		call: func(a *args) any {
			var d *tensor.DType
			if a.given(7) {
				v := a.dtype(7, tensor.Float32)
				d = &v
			}
			return quant.Dequantize(a.array(0), a.array(1), a.array(2), a.quantization(3), d, a.ctx)
		}},
	{name: "quantized_matmul", doc: "quant.QuantizedMatmul",
		sig: "x w scales biases:array? transpose:bool=true group_size:int? bits:int? mode:string=affine",
		call: func(a *args) any {
			return quant.QuantizedMatmul(a.array(0), a.array(1), a.array(2), a.array(3), a.flag(4), a.quantization(5), a.ctx)
		}},
	{name: "gather_qmm", doc: "quant.GatherQMM",
		sig: "x w scales biases:array? lhs_indices:indices? rhs_indices:indices? transpose:bool=true group_size:int? " +
			"bits:int? mode:string=affine global_scale:array? sorted_indices:bool=false",
		call: func(a *args) any {
			return quant.GatherQMM(a.array(0), a.array(1), a.array(2), a.array(3), quant.GatherQMMCall{
				LHS: a.array(4), RHS: a.array(5), NoTranspose: !a.flag(6), SortedIndices: a.flag(11),
				Quantization: a.quantization(7),
			}, a.ctx)
		}},
	{name: "tril", sig: "x k:int=0", call: func(a *args) any { return ops.Tril(a.array(0), a.int(1), a.ctx) }},
	{name: "triu", sig: "x k:int=0", call: func(a *args) any { return ops.Triu(a.array(0), a.int(1), a.ctx) }},
	{name: "linalg.tri_inv", sig: "a upper:bool=false", call: func(a *args) any {
		return linalg.TriInv(a.array(0), a.flag(1), a.ctx)
	}},
	{name: "random.randint", sig: "low:array high:array shape:shape? dtype:dtype? key:array?",
		call: func(a *args) any {
			return random.Randint(a.array(0), a.array(1), a.shape(2), a.dtype(3, tensor.Int32), a.key(4), a.ctx)
		}},
	{name: "random.bernoulli", sig: "p:array? shape:shape? key:array?", call: func(a *args) any {
		p := a.array(0)
		if n, ok := a.raw[0].(lua.LNumber); ok {
			p = ops.Number(float64(n), tensor.Float32, a.ctx)
		} else if p == nil {
			p = ops.Number(0.5, tensor.Float32, a.ctx)
		}
		shape := a.shape(1)
		if !a.given(1) {
			shape = tensor.ShapeOf(p)
		}
		return random.Bernoulli(p, shape, a.key(2), a.ctx)
	}},
	{name: "linalg.cholesky", sig: "a upper:bool=false", call: func(a *args) any {
		return linalg.Cholesky(a.array(0), a.flag(1), a.ctx)
	}},
}
