package ops

import (
	"fmt"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// The format is E4M3: a sign, an exponent of four bits with a bias of 7, three bits of fraction, no infinities, and NaN
// where all bits but the sign are set. The greatest number is 448, the least one 2^-9.

// fromFP8Attrs is the dtype to convert to.
type fromFP8Attrs struct{ DType tensor.DType }

var (
	toFP8   = tensor.Declare[tensor.None]("to_fp8")
	fromFP8 = tensor.Declare[fromFP8Attrs]("from_fp8")
)

func init() {
	toFP8.Define(tensor.Rules[tensor.None]{
		Shape: func(in []tensor.Spec, _ tensor.None, outs []tensor.Shape) ([]tensor.Shape, error) {
			return append(outs, in[0].Shape), nil
		},
		DType: func(in []tensor.Spec, _ tensor.None, outs []tensor.DType) ([]tensor.DType, error) {
			if d := in[0].DType; !d.IsFloat() {
				return nil, fmt.Errorf("takes floats, not %v", d)
			}
			return append(outs, tensor.Uint8), nil
		},
		Expr: func(tensor.None, []tensor.DType) string {
			const bits, magnitude = "as_type<uint>(float($0))", "metal::fabs(float($0))"
			// The exponent's bias is 127 there, 120 more; what is cut off is added a half of, or a bit less to an even number.
			normal := "(((" + bits + " & 0x7fffffffu) + 0x7ffffu + (" + bits + " >> 20 & 1u)) >> 20) - (120u << 3)"
			tiny := "uint(metal::rint(" + magnitude + " * 512.0f))" // below the least exponent all numbers are 2^-9 apart
			return "((" + bits + " >> 24) & 0x80u) | (metal::isnan(" + magnitude + ") ? 0x7fu : " +
				magnitude + " >= 448.0f ? 0x7eu : " + magnitude + " < 0.015625f ? " + tiny + " : " + normal + ")"
		},
	})
	fromFP8.Define(tensor.Rules[fromFP8Attrs]{
		Shape: func(in []tensor.Spec, _ fromFP8Attrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			return append(outs, in[0].Shape), nil
		},
		DType: func(in []tensor.Spec, a fromFP8Attrs, outs []tensor.DType) ([]tensor.DType, error) {
			if d := in[0].DType; d != tensor.Uint8 {
				return nil, fmt.Errorf("takes the uint8 that to_fp8 gives, not %v", d)
			}
			if !a.DType.IsFloat() {
				return nil, fmt.Errorf("makes floats, not %v", a.DType)
			}
			return append(outs, a.DType), nil
		},
		Expr: func(fromFP8Attrs, []tensor.DType) string {
			return "(($0 & 0x80) != 0 ? -1.0f : 1.0f) * (($0 & 0x7f) == 0x7f ? as_type<float>(0x7fc00000u) : " +
				"($0 & 0x78) == 0 ? float($0 & 7) * 0.001953125f : as_type<float>((uint($0 & 0x7f) << 20) + (120u << 23)))"
		},
	})
}

var _ = sig.Def("to_fp8", "x", func(a *sig.Args) any { return ToFP8(a.Array(0), a.Ctx) })

// ToFP8 converts floats to those of eight bits, as uint8: the nearest number of the format E4M3, of two equally near
// ones the even one. Numbers beyond 448 and infinities become 448 with their sign; NaN stays NaN. x must be of a
// floating-point dtype; there is no derivative. [FromFP8] converts back.
func ToFP8(x *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, "to_fp8", x); f != nil {
		return f
	}
	return toFP8.One(c, tensor.None{}, x)
}

var _ = sig.Def("from_fp8", "x dtype:dtype=bfloat16", func(a *sig.Args) any {
	return FromFP8(a.Array(0), a.DType(1), a.Ctx)
})

// FromFP8 converts floats of eight bits, the uint8 that [ToFP8] gives, to a floating-point dtype, which holds each of
// them exactly.
func FromFP8(x *tensor.Array, dtype tensor.DType, ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, "from_fp8", x); f != nil {
		return f
	}
	return fromFP8.One(c, fromFP8Attrs{dtype}, x)
}
