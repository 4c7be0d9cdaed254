// Package quant is matrices packed in few bits: packing, unpacking, and products with them.
package quant

import (
	_ "embed"
	"fmt"
	"math"
	"slices"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// groupVariant chooses a kernel that packs or unpacks groups of elements of type T into ones of type OUT. Global
// says that there is a global scale.
type groupVariant struct {
	quantAttrs
	T, ACC, OUT tensor.DType
	global      bool
}

func (a quantAttrs) variant(t, out tensor.DType, global bool) groupVariant {
	return groupVariant{a, t, kit.Accumulator(t), out, global}
}

// dequantAttrs add the dtype of the result.
type dequantAttrs struct {
	quantAttrs
	Out tensor.DType
}

var (
	// quantize takes a matrix and perhaps a global scale, and gives packed words, scales, and affine biases.
	quantize = tensor.Declare[quantAttrs]("quantize")
	// dequantize takes packed words, scales, biases, and perhaps a global scale.
	dequantize = tensor.Declare[dequantAttrs]("dequantize")
	//go:embed quantize.metal
	quantizeText string
	groupKernels = kit.NewKernels[groupVariant](packingText, blocksText, quantizeText)
)

func init() {
	quantize.Define(tensor.Rules[quantAttrs]{
		Shape: func(in []tensor.Spec, a quantAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			s := in[0].Shape
			if len(s) < 2 {
				return nil, fmt.Errorf("an array of shape %v is no matrix: it needs 2 dimensions or more", s)
			}
			last := len(s) - 1
			groups, err := a.groupsOf(in)
			per := append(s[:last].Clone(), groups)
			outs = append(outs, append(s[:last].Clone(), groups*a.words()), per)
			if a.Mode == affine {
				outs = append(outs, per)
			}
			return outs, err
		},
		DType: func(in []tensor.Spec, a quantAttrs, outs []tensor.DType) ([]tensor.DType, error) {
			d, err := kit.Floats("w has dtype")(in[0].DType)
			if err != nil {
				return nil, err
			}
			if a.Mode != affine {
				return append(outs, tensor.Uint32, tensor.Uint8), nil
			}
			return append(outs, tensor.Uint32, d, d), nil
		},
		Run:  runQuantize,
		VJP:  quantizeGradient,
		VMap: batchFactors(quantize, 1),
	})
	dequantize.Define(tensor.Rules[dequantAttrs]{
		Shape: func(in []tensor.Spec, a dequantAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			cols, err := a.checkPacked(in[0], in[1], in[2])
			if err == nil && len(in) > 3 {
				err = checkFactors(in[3], in[0].Shape)
			}
			if err != nil {
				return nil, err
			}
			return append(outs, append(in[0].Shape[:len(in[0].Shape)-1].Clone(), cols)), nil
		},
		DType: func(in []tensor.Spec, a dequantAttrs, outs []tensor.DType) ([]tensor.DType, error) {
			_, err := kit.OneDTypeOf(nil, in[1:3]...)
			return append(outs, a.Out), err
		},
		Run: runDequantize,
		VJP: func(g *tensor.VJP[dequantAttrs]) []*tensor.Array {
			grads := make([]*tensor.Array, len(g.In))
			if g.Attrs.Mode == affine {
				grads[1], grads[2] = groupGradients(g.Ctx, g.Attrs.quantAttrs, g.In[0], g.In[1], g.Cot[0])
			}
			return grads
		},
		VMap: batchFactors(dequantize, 3),
	})
}

// groupsOf is the groups of a row of a matrix to pack.
func (a quantAttrs) groupsOf(in []tensor.Spec) (int, error) {
	s := in[0].Shape
	last := len(s) - 1
	if last < 0 || s[last]%a.Group != 0 {
		return 0, fmt.Errorf("the last dimension of shape %v is no multiple of group_size=%d", s, a.Group)
	}
	if len(in) > 1 {
		return s[last] / a.Group, checkFactors(in[1], s)
	}
	return s[last] / a.Group, nil
}

// batchFactors is ops.BatchFirst for an op whose input at, if there is one, is a global scale.
func batchFactors[A comparable](op *tensor.OpOf[A], at int) func(g *tensor.VMap[A]) ([]*tensor.Array, []int) {
	return func(g *tensor.VMap[A]) ([]*tensor.Array, []int) {
		in := make([]*tensor.Array, len(g.In))
		for i := range in {
			rank := 0
			if i == at {
				rank = kit.ExampleRank(g, 0)
			}
			in[i] = ops.FrontOf(g, i, rank)
		}
		out := op.Call(g.Ctx, g.Attrs, in...)
		return out, make([]int, len(out))
	}
}

// factorArgs are the arguments for a global scale, input i of a call if there is one: the scale, and how many of all
// groups each of its elements is for.
func factorArgs(r *tensor.Run, i, groups int) ([]tensor.Arg, error) {
	if i >= len(r.In) {
		return nil, nil
	}
	factors, err := r.Contiguous(i)
	if err != nil {
		return nil, err
	}
	return []tensor.Arg{factors.Arg(), kit.Uint(groups / factors.Shape.Size())}, nil
}

// groupGradients are the gradients of scales and biases for a cotangent of the unpacked matrix: dw/dscale is q,
// dw/dbias is 1.
func groupGradients(c *tensor.Ctx, a quantAttrs, w, scales, cot *tensor.Array) (byScale, byBias *tensor.Array) {
	d := scales.DType()
	q := dequantize.One(c, dequantAttrs{a, d}, w, ops.OnesLike(scales, c), ops.ZerosLike(scales, c))
	groups := groupsShape(scales, a)
	sum := func(x *tensor.Array) *tensor.Array { return ops.Sum(ops.Reshape(x, groups, c), []int{-1}, false, c) }
	cot = ops.AsType(cot, d, c)
	return sum(ops.Multiply(cot, q, c)), sum(cot)
}

func runQuantize(r *tensor.Run, a quantAttrs) error {
	groups := r.Out[1].Shape.Size()
	if err := kit.CheckCount(groups, math.MaxUint32, "groups"); err != nil {
		return err
	}
	w, err := r.Contiguous(0)
	if err != nil {
		return err
	}
	factors, err := factorArgs(r, 1, groups)
	if err != nil {
		return err
	}
	args := []tensor.Arg{w.Arg(), r.Out[0].Arg(), r.Out[1].Arg()}
	if a.Mode == affine {
		args = append(args, r.Out[2].Arg())
	}
	return groupKernels.Launch(r, a.variant(w.DType, w.DType, factors != nil), "quantize", kit.Line(groups),
		append(args, factors...)...)
}

func runDequantize(r *tensor.Run, a dequantAttrs) error {
	out := r.Out[0]
	in, err := a.contiguous(r, 3, 0)
	if err != nil {
		return err
	}
	groups := a.groupsIn(in[1].Shape).Size()
	if err := kit.CheckCount(groups, math.MaxUint32, "groups"); err != nil {
		return err
	}
	factors, err := factorArgs(r, 3, groups)
	if err != nil {
		return err
	}
	d := in[1].DType
	args := []tensor.Arg{in[0].Arg(), in[1].Arg(), out.Arg()}
	if a.Mode == affine {
		args = append(args, in[2].Arg())
	} else { // the scales' dtype is no dtype to compute in
		d = out.DType
	}
	return groupKernels.Launch(r, a.variant(d, out.DType, factors != nil), "dequantize", kit.Plane(a.Group, groups),
		append(args, factors...)...)
}

var _ = sig.Def("quantize", "w group_size:int? bits:int? mode:string=affine global_scale:array?",
	func(a *sig.Args) any {
		q, err := quantization(a, 1, 4)
		if err != nil {
			return err
		}
		return Quantize(a.Array(0), q, a.Ctx)
	})

// Quantize packs the matrices of w (its last two dimensions): each group_size neighbours of a row get a scale and a
// bias, in w's dtype, such that scale*q + bias with q of that many bits comes near them, and the q are packed into
// uint32. The result is the packed matrix, scales and biases. W must be of a real floating-point dtype, with a last
// dimension that is a multiple of group_size. In mode "affine" group_size is 32, 64 (which nil stands for) or 128, bits
// 1 to 6 (nil: 4) or 8. The other modes have one group_size and number of bits each, no biases, and scales of a byte:
// an element is scale times a float of few bits. They are "mxfp4" (groups of 32; floats of 4 bits, which are 0, 0.5, 1,
// 1.5, 2, 3, 4 and 6 with signs; scales that are powers of two), "mxfp8" (32; floats e4m3, see mx.from_fp8; powers of
// two) and "nvfp4" (16; floats of 4 bits; scales e4m3). In nvfp4 global_scale, a float32 such as the greatest magnitude
// in w, sets the range of scales: elements have the factor global_scale / 2688 too. Others are errors. Values are
// MLX's. A group with inf or NaN has a scale that unpacks to inf or NaN. In mode affine gradients
// of scales and biases flow to the ends of each group's range, which they are made of; packed numbers have none.
func Quantize(w *tensor.Array, q Quantization, ctx ...*tensor.Ctx) []*tensor.Array {
	const op = "quantize"
	c := tensor.Call(ctx)
	f := kit.Unusable(c, op, w)
	a, err := q.resolve()
	if err == nil && a.blocks() != nil {
		err = fmt.Errorf("mode %s is only read: which scales a block gets is llama.cpp's own choice, by its importance "+
			"of weights; quantize a file with its llama-quantize", formats[a.Mode].name)
	}
	if f == nil && err != nil {
		f = tensor.Fail(c, op, "%w", err)
	}
	if f == nil {
		f = checkGlobal(c, op, a, q.GlobalScale)
	}
	if f != nil {
		return []*tensor.Array{f, f, f}
	}
	in := []*tensor.Array{w}
	if q.GlobalScale != nil {
		in = append(in, q.GlobalScale)
	}
	out := quantize.Call(c, a, in...)
	if out[0].Err() != nil {
		return []*tensor.Array{out[0], out[0], out[0]}
	}
	return out
}

var _ = sig.Def("dequantize",
	"w scales:array? biases:array? group_size:int? bits:int? mode:string=affine global_scale:array? dtype:dtype?",
	func(a *sig.Args) any {
		q, err := quantization(a, 3, 6)
		if err != nil {
			return err
		}
		return Dequantize(a.Array(0), a.Array(1), a.Array(2), q, a.DTypeOrNone(7), a.Ctx)
	})

// Dequantize unpacks a matrix that [Quantize] packed: scale*q + bias, computed in float32 (float64 for float64) and
// rounded once to dtype, or without one to the common dtype of scales and biases; modes without biases give bfloat16.
// The modes "q4_0", "q4_1", "q5_0", "q5_1", "q8_0" and "q2_k" to "q6_k" take llama.cpp's blocks, as .gguf files have
// them, and no scales: w is uint8, a row whole blocks. They give float32, which is llama.cpp's value to the bit.
// Global_scale is that of quantize. Shapes that do not fit, dtypes that are not real floating-point ones and unknown
// quantizations are errors. Gradients flow to scales and biases of mode affine.
func Dequantize(w, scales, biases *tensor.Array, q Quantization, dtype *tensor.DType,
	ctx ...*tensor.Ctx) *tensor.Array {
	const op = "dequantize"
	c := tensor.Call(ctx)
	parts, a, f := packed(c, op, w, scales, biases, q)
	if f == nil {
		f = checkGlobal(c, op, a, q.GlobalScale)
	}
	if f != nil {
		return f
	}
	in, out := parts[:], tensor.BFloat16
	switch {
	case a.blocks() != nil:
		out = tensor.Float32
	case a.Mode == affine:
		if in, f = ops.Convert(c, op, kit.AnyDType, in...); f != nil {
			return f
		}
		out = in[0].DType()
	}
	if dtype != nil {
		out = *dtype
	}
	if f := kit.Floats("the result's dtype is").Refused(c, op, out); f != nil {
		return f
	}
	in = slices.Insert(in, 0, w)
	if q.GlobalScale != nil {
		in = append(in, q.GlobalScale)
	}
	return dequantize.One(c, dequantAttrs{a, out}, in...)
}
