package conv

import (
	"slices"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// call makes a convolution in the name of the function that the user called.
func call(c *tensor.Ctx, op string, input, weight *tensor.Array, a attrs) *tensor.Array {
	in, f := operands(c, op, input, weight)
	if f != nil {
		return f
	}
	x, w := in[0].Spec().Shape, in[1].Spec().Shape
	if a.Spatial = len(x) - 2; a.Spatial < 1 || a.Spatial > 3 {
		return tensor.Fail(c, op, "the input %v has %s, want (examples, 1 to 3 spatial dimensions, channels)", x,
			tensor.Count(len(x), "dimension"))
	}
	if len(w) != len(x) {
		return tensor.Fail(c, op, "the weight %v has %s, want %d as the input %v: (outputs, spatial..., channels)", w,
			tensor.Count(len(w), "dimension"), len(x), x)
	}
	if a.Groups != 1 && a.Spatial == 3 {
		return tensor.Fail(c, op, "%d groups in 3 spatial dimensions: only 1 or 2 dimensions have groups", a.Groups)
	}
	return kit.FailedAs(c, op, forward.One(c, a, in...))
}

// operands are the input, whose dtype must be a real floating-point one, and the weight in their common dtype.
func operands(c *tensor.Ctx, op string, input, weight *tensor.Array) ([]*tensor.Array, *tensor.Array) {
	if f := kit.Unusable(c, op, input, weight); f != nil {
		return nil, f
	}
	if _, err := floats(input.DType()); err != nil {
		return nil, tensor.Fail(c, op, "%w", err)
	}
	return ops.Convert(c, op, kit.AnyDType, input, weight)
}

var floats = kit.Floats("the input has dtype")

// each is a list with a number for each of n dimensions: v has one for each, one for all, or none for the default.
func each(v []int, n, otherwise int) tensor.Ints {
	switch len(v) {
	case 0:
		v = slices.Repeat([]int{otherwise}, n)
	case 1:
		v = slices.Repeat(v, n)
	}
	return tensor.MakeInts(v)
}

// plain is a convolution of n spatial dimensions.
func plain(c *tensor.Ctx, op string, n int, x, w *tensor.Array, stride, padding, dilation []int,
	groups int) *tensor.Array {
	low := each(padding, n, 0)
	return call(c, op, x, w, attrs{Stride: each(stride, n, 1), Low: low, High: low, Dilation: each(dilation, n, 1),
		Groups: groups})
}

const signature = "input weight stride:ints=1 padding:ints=0 dilation:ints=1 groups:int=1"

var _ = sig.Def("conv1d", "input weight stride:int=1 padding:int=0 dilation:int=1 groups:int=1",
	func(a *sig.Args) any {
		return Conv1D(a.Array(0), a.Array(1), a.Int(2), a.Int(3), a.Int(4), a.Int(5), a.Ctx)
	})

// Conv1D moves the windows of weight, of shape (outputs, taps, channels / groups), along the dimension in the middle
// of input, of shape (examples, length, channels): the output (examples, places, outputs) holds the sums of the
// products of what lies upon each other. Windows are stride apart; padding zeros stand before and after each
// example, and a negative padding takes elements away; the taps of a window are dilation apart. Groups divide
// channels and outputs: each output sees the channels of its own group. Input has a real floating-point dtype, the
// output the common one of both; half types are added up in float32 and rounded once. Sizes that do not fit are
// errors, and so is a window that is larger than the input.
func Conv1D(input, weight *tensor.Array, stride, padding, dilation, groups int, ctx ...*tensor.Ctx) *tensor.Array {
	return plain(tensor.Call(ctx), "conv1d", 1, input, weight, []int{stride}, []int{padding}, []int{dilation}, groups)
}

var _ = sig.Def("conv2d", signature, func(a *sig.Args) any {
	return Conv2D(a.Array(0), a.Array(1), a.Ints(2), a.Ints(3), a.Ints(4), a.Int(5), a.Ctx)
})

// Conv2D is [Conv1D] in two dimensions: input has shape (examples, height, width, channels), weight (outputs, rows,
// columns, channels / groups). Stride, padding and dilation have one number for both dimensions, one for each, or
// none: then they are 1, 0 and 1.
func Conv2D(input, weight *tensor.Array, stride, padding, dilation []int, groups int,
	ctx ...*tensor.Ctx) *tensor.Array {
	return plain(tensor.Call(ctx), "conv2d", 2, input, weight, stride, padding, dilation, groups)
}

var _ = sig.Def("conv3d", signature, func(a *sig.Args) any {
	return Conv3D(a.Array(0), a.Array(1), a.Ints(2), a.Ints(3), a.Ints(4), a.Int(5), a.Ctx)
})

// Conv3D is [Conv1D] in three dimensions: input has shape (examples, depth, height, width, channels), weight
// (outputs, three sizes of the window, channels). Lists are as in [Conv2D]. As in MLX there is only one group.
func Conv3D(input, weight *tensor.Array, stride, padding, dilation []int, groups int,
	ctx ...*tensor.Ctx) *tensor.Array {
	return plain(tensor.Call(ctx), "conv3d", 3, input, weight, stride, padding, dilation, groups)
}

// Options are the arguments of [ConvGeneral]. A list has a number for each spatial dimension, one for all, or none
// for the default: 1, for paddings 0.
type Options struct {
	Stride                        []int
	PaddingLow, PaddingHigh       []int // before and after each example
	KernelDilation, InputDilation []int
	Groups                        int // at least 1
	Flip                          bool
}

var _ = sig.Def("conv_general", "input weight stride:ints=1 padding:intlists=0 kernel_dilation:ints=1 "+
	"input_dilation:ints=1 groups:int=1 flip:bool=false", func(a *sig.Args) any {
	o := Options{Stride: a.Ints(2), KernelDilation: a.Ints(4), InputDilation: a.Ints(5), Groups: a.Int(6),
		Flip: a.Bool(7)}
	switch p := a.IntLists(3); {
	case p.Depth < 2:
		o.PaddingLow, o.PaddingHigh = p.Lists[0], p.Lists[0]
	case len(p.Lists) == 2:
		o.PaddingLow, o.PaddingHigh = p.Lists[0], p.Lists[1]
	default:
		return tensor.Fail(a.Ctx, "conv_general", "padding has %d lists, want one, or one of low and one of high paddings",
			len(p.Lists))
	}
	return ConvGeneral(a.Array(0), a.Array(1), o, a.Ctx)
})

// ConvGeneral is [Conv1D], [Conv2D] or [Conv3D] as the input has 3, 4 or 5 dimensions, with paddings of their own
// before and after each example (in scripts padding is a number, a list, or a list of two lists), with kernel_dilation,
// which is their dilation, with input_dilation, how far apart the input's elements lie, with zeros between them, and
// with flip, which turns windows round: what mathematics calls a convolution.
func ConvGeneral(input, weight *tensor.Array, o Options, ctx ...*tensor.Ctx) *tensor.Array {
	return call(tensor.Call(ctx), "conv_general", input, weight, attrs{Stride: tensor.MakeInts(o.Stride),
		Low: tensor.MakeInts(o.PaddingLow), High: tensor.MakeInts(o.PaddingHigh),
		Dilation: tensor.MakeInts(o.KernelDilation),
		Spacing:  tensor.MakeInts(o.InputDilation), Groups: o.Groups, Flip: o.Flip})
}
