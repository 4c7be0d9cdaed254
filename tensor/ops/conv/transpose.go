package conv

import (
	"fmt"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// transpose is a transposed convolution of n spatial dimensions.
func transpose(c *tensor.Ctx, op string, n int, x, w *tensor.Array, stride, padding, dilation, output []int,
	groups int) *tensor.Array {
	return call(c, op, x, w, attrs{Mode: transposed, Stride: each(stride, n, 1), Low: each(padding, n, 0),
		High: each(output, n, 0), Dilation: each(dilation, n, 1), Groups: groups, Flip: true})
}

const transposedSignature = "input weight stride:ints=1 padding:ints=0 dilation:ints=1 output_padding:ints=0 " +
	"groups:int=1"

var _ = sig.Def("conv_transpose1d",
	"input weight stride:int=1 padding:int=0 dilation:int=1 output_padding:int=0 groups:int=1", func(a *sig.Args) any {
		return ConvTranspose1D(a.Array(0), a.Array(1), a.Int(2), a.Int(3), a.Int(4), a.Int(5), a.Int(6), a.Ctx)
	})

// ConvTranspose1D spreads each element of input, of shape (examples, length, channels), over a window of the output: it
// adds its products with weight, of shape (outputs, taps, channels / groups). Windows of neighbours are stride apart,
// taps dilation; padding takes that many places away at both ends, and output_padding adds places at the end. Dtypes,
// groups and errors are those of [Conv1D]. A padding that is larger than the window takes elements of the input away,
// as in MLX.
func ConvTranspose1D(input, weight *tensor.Array, stride, padding, dilation, outputPadding, groups int,
	ctx ...*tensor.Ctx) *tensor.Array {
	return transpose(tensor.Call(ctx), "conv_transpose1d", 1, input, weight, []int{stride}, []int{padding},
		[]int{dilation}, []int{outputPadding}, groups)
}

var _ = sig.Def("conv_transpose2d", transposedSignature, func(a *sig.Args) any {
	return ConvTranspose2D(a.Array(0), a.Array(1), a.Ints(2), a.Ints(3), a.Ints(4), a.Ints(5), a.Int(6), a.Ctx)
})

// ConvTranspose2D is [ConvTranspose1D] in two dimensions, with the shapes and lists of [Conv2D].
func ConvTranspose2D(input, weight *tensor.Array, stride, padding, dilation, outputPadding []int, groups int,
	ctx ...*tensor.Ctx) *tensor.Array {
	return transpose(tensor.Call(ctx), "conv_transpose2d", 2, input, weight, stride, padding, dilation, outputPadding,
		groups)
}

var _ = sig.Def("conv_transpose3d", transposedSignature, func(a *sig.Args) any {
	return ConvTranspose3D(a.Array(0), a.Array(1), a.Ints(2), a.Ints(3), a.Ints(4), a.Ints(5), a.Int(6), a.Ctx)
})

// ConvTranspose3D is [ConvTranspose1D] in three dimensions, with the shapes and lists of [Conv3D].
func ConvTranspose3D(input, weight *tensor.Array, stride, padding, dilation, outputPadding []int, groups int,
	ctx ...*tensor.Ctx) *tensor.Array {
	return transpose(tensor.Call(ctx), "conv_transpose3d", 3, input, weight, stride, padding, dilation, outputPadding,
		groups)
}

var _ = sig.Def("convolve", "a v mode:string=full", func(a *sig.Args) any {
	return Convolve(a.Array(0), a.Array(1), a.Text(2), a.Ctx)
}, sig.Same("a and v swapped", "a convolution is commutative"))

// Convolve is the convolution of a and v, of one dimension: element i is the sum of the products of elements whose
// indices add up to i. Mode is "full" (all of them), "same" (as many as the longer operand has, from the middle) or
// "valid" (those where the shorter one lies upon the longer one as a whole). The dtype is the common one, which must
// be floating-point or complex. Empty operands are errors.
func Convolve(a, v *tensor.Array, mode string, ctx ...*tensor.Ctx) *tensor.Array {
	const op = "convolve"
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, op, a, v); f != nil {
		return f
	}
	m, ok := map[string]uint8{"full": full, "same": same, "valid": valid}[mode]
	if !ok {
		return tensor.Fail(c, op, "mode is %q, want \"full\", \"same\" or \"valid\"", mode)
	}
	if a.NDim() != 1 || v.NDim() != 1 {
		return tensor.Fail(c, op, "a has shape %v, v %v, want one dimension each", a.Spec().Shape, v.Spec().Shape)
	}
	in, f := ops.Convert(c, op, func(d tensor.DType) (tensor.DType, error) {
		if !d.IsInexact() {
			return d, fmt.Errorf("operands have dtypes %v and %v, want a floating-point one", a.DType(), v.DType())
		}
		return d, nil
	}, a, v)
	if f != nil {
		return f
	}
	for i, x := range in {
		in[i] = ops.ExpandDims(x, []int{0, 2}, c)
	}
	y := forward.One(c, attrs{Spatial: 1, Mode: m, Groups: 1, Flip: true}, in...)
	return kit.FailedAs(c, op, ops.Squeeze(y, []int{0, 2}, c))
}
