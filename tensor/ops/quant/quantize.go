// Package quant is matrices packed in few bits: packing, unpacking, and products with them.
package quant

import (
	_ "embed"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// Quantization says how a matrix is packed: GroupSize neighbours of a row share a scale and a bias, an element has
// Bits bits. The zero value of a field means MLX's default, 64 and 4. Mode is "affine", which "" means too.
type Quantization struct {
	GroupSize, Bits int
	Mode            string
}

// quantization reads the parameters group_size, bits and mode of a call, from i on, and global_scale if there is one.
func quantization(a *sig.Args, i, global int) (Quantization, error) {
	for k, name := range []string{"group_size", "bits"} {
		if a.Given(i+k) && a.Int(i+k) <= 0 {
			return Quantization{}, fmt.Errorf("%s is %d, want a positive number", name, a.Int(i+k))
		}
	}
	if global >= 0 && a.Given(global) {
		return Quantization{}, errors.New("global_scale is for mode nvfp4, which is not supported")
	}
	return Quantization{GroupSize: a.Int(i), Bits: a.Int(i + 1), Mode: a.Text(i + 2)}, nil
}

// quantAttrs is a Quantization that was checked; mode affine.
type quantAttrs struct{ Group, Bits int }

// resolve fills in the defaults and refuses what is not supported.
func (q Quantization) resolve() (quantAttrs, error) {
	a := quantAttrs{q.GroupSize, q.Bits}
	switch q.Mode {
	case "", "affine":
	case "mxfp4", "mxfp8", "nvfp4":
		return a, fmt.Errorf("mode %q is not supported, want affine", q.Mode)
	default:
		return a, fmt.Errorf("unknown mode %q, want affine", q.Mode)
	}
	if a.Group == 0 {
		a.Group = 64
	}
	if a.Bits == 0 {
		a.Bits = 4
	}
	if !slices.Contains([]int{32, 64, 128}, a.Group) {
		return a, fmt.Errorf("group_size is %d, want 32, 64 or 128", a.Group)
	}
	if !slices.Contains([]int{1, 2, 3, 4, 5, 6, 8}, a.Bits) {
		return a, fmt.Errorf("bits is %d, want 1, 2, 3, 4, 5, 6 or 8", a.Bits)
	}
	return a, nil
}

// words is the 32-bit words of a packed group.
func (a quantAttrs) words() int { return a.Group * a.Bits / 32 }

// packingText defines what the kernels ask for beside GROUP and BITS.
//
//go:embed packing.metal
var packingText string

// groupVariant chooses a kernel that packs or unpacks groups of elements of type T into ones of type OUT.
type groupVariant struct {
	quantAttrs
	T, ACC, OUT tensor.DType
}

// checkPacked returns what is wrong with the shapes and dtypes of a packed matrix; cols is the elements of a row.
func (a quantAttrs) checkPacked(w, scales, biases tensor.Spec) (cols int, err error) {
	if w.DType != tensor.Uint32 {
		return 0, fmt.Errorf("the packed matrix has dtype %v, want uint32", w.DType)
	}
	if !scales.Shape.Equal(biases.Shape) {
		return 0, fmt.Errorf("scales have shape %v, biases %v", scales.Shape, biases.Shape)
	}
	n, m := len(w.Shape)-1, len(scales.Shape)-1
	if n < 1 || m != n || !slices.Equal(w.Shape[:n], scales.Shape[:n]) || w.Shape[n] != scales.Shape[n]*a.words() {
		return 0, fmt.Errorf("a packed matrix of shape %v does not fit scales of shape %v with group_size=%d and bits=%d",
			w.Shape, scales.Shape, a.Group, a.Bits)
	}
	return scales.Shape[n] * a.Group, nil
}

// dequantAttrs add the dtype of the result.
type dequantAttrs struct {
	quantAttrs
	Out tensor.DType
}

var (
	quantize   = tensor.Declare[quantAttrs]("quantize")
	dequantize = tensor.Declare[dequantAttrs]("dequantize")
	//go:embed quantize.metal
	quantizeText string
	groupKernels = kit.NewKernels[groupVariant](packingText, quantizeText)
)

func init() {
	quantize.Define(tensor.Rules[quantAttrs]{
		Shape: func(in []tensor.Spec, a quantAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			s := in[0].Shape
			if len(s) < 2 {
				return nil, fmt.Errorf("an array of shape %v is no matrix: it needs 2 dimensions or more", s)
			}
			last := len(s) - 1
			if s[last]%a.Group != 0 {
				return nil, fmt.Errorf("the last dimension of shape %v is no multiple of group_size=%d", s, a.Group)
			}
			groups := s[last] / a.Group
			per := append(s[:last].Clone(), groups)
			return append(outs, append(s[:last].Clone(), groups*a.words()), per, per), nil
		},
		DType: func(in []tensor.Spec, _ quantAttrs, outs []tensor.DType) ([]tensor.DType, error) {
			d := in[0].DType
			if !d.IsFloat() {
				return nil, fmt.Errorf("does not take dtype %v, want a real floating-point one", d)
			}
			return append(outs, tensor.Uint32, d, d), nil
		},
		Run:      runQuantize,
		Constant: true,
		VMap:     ops.BatchFirst(quantize),
	})
	dequantize.Define(tensor.Rules[dequantAttrs]{
		Shape: func(in []tensor.Spec, a dequantAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			cols, err := a.checkPacked(in[0], in[1], in[2])
			if err != nil {
				return nil, err
			}
			return append(outs, append(in[0].Shape[:len(in[0].Shape)-1].Clone(), cols)), nil
		},
		DType: func(in []tensor.Spec, a dequantAttrs, outs []tensor.DType) ([]tensor.DType, error) {
			_, err := kit.OneDTypeOf(nil, in[1:]...)
			return append(outs, a.Out), err
		},
		Run: runDequantize,
		VJP: func(g *tensor.VJP[dequantAttrs]) []*tensor.Array {
			grads := make([]*tensor.Array, 3)
			grads[1], grads[2] = groupGradients(g.Ctx, g.Attrs.quantAttrs, g.In[0], g.In[1], g.Cot[0])
			return grads
		},
		VMap: ops.BatchFirst(dequantize),
	})
}

// groupGradients are the gradients of scales and biases for a cotangent of the unpacked matrix: dw/dscale is q,
// dw/dbias is 1.
func groupGradients(c *tensor.Ctx, a quantAttrs, w, scales, cot *tensor.Array) (byScale, byBias *tensor.Array) {
	d := scales.DType()
	q := dequantize.One(c, dequantAttrs{a, d}, w, ops.OnesLike(scales, c), ops.ZerosLike(scales, c))
	groups := tensor.Concat(tensor.ShapeOf(scales), tensor.Sizes(a.Group))
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
	v := groupVariant{a, w.DType, kit.Accumulator(w.DType), w.DType}
	return groupKernels.Launch(r, v, "quantize", kit.Line(groups), w.Arg(), r.Out[0].Arg(), r.Out[1].Arg(), r.Out[2].Arg())
}

func runDequantize(r *tensor.Run, a dequantAttrs) error {
	out := r.Out[0]
	in, err := r.AllContiguous(3)
	if err != nil {
		return err
	}
	groups := in[1].Shape.Size()
	if err := kit.CheckCount(groups, math.MaxUint32, "groups"); err != nil {
		return err
	}
	d := in[1].DType
	return groupKernels.Launch(r, groupVariant{a.quantAttrs, d, kit.Accumulator(d), out.DType}, "dequantize",
		kit.Plane(a.Group, groups), in[0].Arg(), in[1].Arg(), in[2].Arg(), out.Arg())
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
// dimension that is a multiple of group_size. group_size is 32, 64 (which nil stands for) or 128, bits 1 to 6 (nil: 4)
// or 8, the mode "affine"; others are errors. Values are MLX's. No gradient flows.
func Quantize(w *tensor.Array, q Quantization, ctx ...*tensor.Ctx) []*tensor.Array {
	const op = "quantize"
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, op, w); f != nil {
		return []*tensor.Array{f, f, f}
	}
	a, err := q.resolve()
	if err != nil {
		f := tensor.Fail(c, op, "%w", err)
		return []*tensor.Array{f, f, f}
	}
	out := quantize.Call(c, a, w)
	if len(out) != 3 {
		return []*tensor.Array{out[0], out[0], out[0]}
	}
	return out
}

var _ = sig.Def("dequantize",
	"w scales biases:array? group_size:int? bits:int? mode:string=affine global_scale:array? dtype:dtype?",
	func(a *sig.Args) any {
		q, err := quantization(a, 3, 6)
		if err != nil {
			return err
		}
		return Dequantize(a.Array(0), a.Array(1), a.Array(2), q, a.DTypeOrNone(7), a.Ctx)
	})

// Dequantize unpacks a matrix that [Quantize] packed: scale*q + bias, computed in float32 (float64 for float64) and
// rounded once to dtype, or without one to the common dtype of scales and biases. Shapes that do not fit, dtypes that
// are not real floating-point ones and unknown quantizations are errors. Gradients flow to scales and biases.
func Dequantize(w, scales, biases *tensor.Array, q Quantization, dtype *tensor.DType,
	ctx ...*tensor.Ctx) *tensor.Array {
	const op = "dequantize"
	c := tensor.Call(ctx)
	a, f := packed(c, op, w, scales, biases, q)
	if f != nil {
		return f
	}
	in, f := ops.Convert(c, op, kit.AnyDType, scales, biases)
	if f != nil {
		return f
	}
	out := in[0].DType()
	if dtype != nil {
		out = *dtype
	}
	if !out.IsFloat() {
		return tensor.Fail(c, op, "the result's dtype is %v, want a real floating-point one", out)
	}
	return dequantize.One(c, dequantAttrs{a, out}, w, in[0], in[1])
}

// packed checks the arguments that all users of packed matrices take.
func packed(c *tensor.Ctx, op string, w, scales, biases *tensor.Array, q Quantization) (quantAttrs, *tensor.Array) {
	if biases == nil {
		return quantAttrs{}, tensor.Fail(c, op, "mode affine needs biases")
	}
	if f := kit.Unusable(c, op, w, scales, biases); f != nil {
		return quantAttrs{}, f
	}
	a, err := q.resolve()
	if err != nil {
		return a, tensor.Fail(c, op, "%w", err)
	}
	for i, x := range []*tensor.Array{scales, biases} {
		if !x.DType().IsFloat() {
			return a, tensor.Fail(c, op, "%s have dtype %v, want a real floating-point one",
				[]string{"scales", "biases"}[i], x.DType())
		}
	}
	return a, nil
}
