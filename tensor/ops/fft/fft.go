// Package fft is MLX's discrete Fourier transforms: of any length, along any dimensions, of complex and of real
// numbers.
package fft

import (
	"errors"
	"fmt"
	"math"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
)

// kind is what goes in and comes out.
type kind uint8

const (
	complexToComplex kind = iota
	realToComplex         // of the spectrum comes the half that has the rest as its mirror image
	complexToReal         // of such a half
	half                  // of such a half, to complex numbers whose parts are the real ones: within one transform
	conjugatedHalf        // the same of its conjugate
)

// scaling is what a result is multiplied by.
type scaling uint8

const (
	byOne     scaling = iota
	byRoot            // 1 / sqrt(n)
	byInverse         // 1 / n
)

// attrs describe a transform along an axis. N is the length, if the user gave one: the input is cut, or followed by
// zeros. Otherwise it is the input's, or that of a second input's shape, or that of the real numbers that fit a
// half. Transposed says that frequencies of which a half has one and the whole two count as in the transpose of the
// transform of the other direction. So a transform's transpose is always another one: that of the opposite kind and
// sign.
type attrs struct {
	Axis, N    int
	Kind       kind
	Inverse    bool
	Scaling    scaling
	Transposed bool
}

var (
	transform = tensor.Declare[attrs]("fft")
	// fit cuts an axis, or puts zeros at its end, to the size that the second input has there.
	fit = tensor.Declare[axisAttrs]("fft_fit")
)

type axisAttrs struct{ Axis int }

func init() {
	transform.Define(tensor.Rules[attrs]{
		Shape: func(in []tensor.Spec, a attrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			_, axis, n, err := a.length(in)
			if err != nil {
				return nil, err
			}
			s := in[0].Shape.Clone()
			s[axis] = n
			if a.Kind == realToComplex {
				s[axis] = n/2 + 1
			}
			return append(outs, s), nil
		},
		Flops: func(in, _ []tensor.Spec, a attrs) float64 { // the usual count: 5 n log2 n for n complex numbers
			_, axis, n, err := a.length(in)
			if err != nil || n < 2 {
				return 0
			}
			times := float64(in[0].Shape.Size()) / float64(max(in[0].Shape[axis], 1))
			flops := 5 * times * float64(n) * math.Log2(float64(n))
			if a.Kind == realToComplex || a.Kind == complexToReal {
				flops /= 2
			}
			return flops
		},
		DType: func(_ []tensor.Spec, a attrs, outs []tensor.DType) ([]tensor.DType, error) {
			if a.Kind == complexToReal {
				return append(outs, tensor.Float32), nil
			}
			return append(outs, tensor.Complex64), nil
		},
		SpecFrom: func(attrs, int) int { return 1 },
		Run:      run,
		Gradient: func(g *tensor.VJP[attrs]) *tensor.Array {
			a, x := g.Attrs, g.In[0]
			t := attrs{Axis: a.Axis, Inverse: !a.Inverse, Scaling: a.Scaling, Transposed: !a.Transposed}
			in := []*tensor.Array{g.Cot[0]}
			switch a.Kind {
			case realToComplex:
				t.Kind, t.N = complexToReal, a.N
				if a.N == 0 {
					in = append(in, x)
				}
			case complexToReal:
				t.Kind = realToComplex
			}
			y := transform.One(g.Ctx, t, in...)
			if a.N != 0 {
				y = fit.One(g.Ctx, axisAttrs{a.Axis}, y, x)
			}
			return y
		},
		Tangent: func(g *tensor.JVP[attrs]) *tensor.Array {
			return transform.One(g.Ctx, g.Attrs, append([]*tensor.Array{g.Tan[0]}, g.In[1:]...)...)
		},
		VMap: func(g *tensor.VMap[attrs]) ([]*tensor.Array, []int) {
			a := g.Attrs
			a.Axis = pastBatch(g, a.Axis)
			return []*tensor.Array{transform.One(g.Ctx, a, fronts(g)...)}, []int{0}
		},
	})
	fit.Define(tensor.Rules[axisAttrs]{
		Shape: func(in []tensor.Spec, a axisAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			axis, err := tensor.Axis(a.Axis, len(in[0].Shape))
			if err != nil || len(in[1].Shape) != len(in[0].Shape) {
				return nil, fmt.Errorf("BUG: axis %d of %v is to be like that of %v", a.Axis, in[0], in[1])
			}
			s := in[0].Shape.Clone()
			s[axis] = in[1].Shape[axis]
			return append(outs, s), nil
		},
		DType:    kit.SameDType[axisAttrs],
		SpecFrom: func(axisAttrs, int) int { return 1 },
		Run: func(r *tensor.Run, a axisAttrs) error {
			x, out := r.In[0], r.Out[0]
			axis, err := tensor.Axis(a.Axis, len(x.Shape))
			if err != nil {
				return err
			}
			if out.Shape[axis] > x.Shape[axis] {
				if err := r.Fill(out, make([]byte, out.DType.Size())); err != nil {
					return err
				}
			}
			n := min(x.Shape[axis], out.Shape[axis])
			return kit.CopyPart(r, out, x, axis, 0, 0, n)
		},
		Gradient: func(g *tensor.VJP[axisAttrs]) *tensor.Array {
			return fit.One(g.Ctx, g.Attrs, g.Cot[0], g.In[0])
		},
		Tangent: func(g *tensor.JVP[axisAttrs]) *tensor.Array {
			return fit.One(g.Ctx, g.Attrs, g.Tan[0], g.In[1])
		},
		VMap: func(g *tensor.VMap[axisAttrs]) ([]*tensor.Array, []int) {
			a := axisAttrs{pastBatch(g, g.Attrs.Axis)}
			return []*tensor.Array{fit.One(g.Ctx, a, fronts(g)...)}, []int{0}
		},
	})
}

// fronts are a batch's inputs with their batch axes first; pastBatch counts an axis of an example past it.
func fronts[A comparable](g *tensor.VMap[A]) []*tensor.Array {
	in := make([]*tensor.Array, len(g.In))
	for i := range in {
		in[i] = ops.FrontOf(g, i, 0)
	}
	return in
}

func pastBatch[A comparable](g *tensor.VMap[A], axis int) int {
	axis, _ = tensor.Axis(axis, kit.ExampleRank(g, 0))
	return axis + 1
}

// length is the axis of a transform, how many numbers the input has there, and the length of the transform.
func (a attrs) length(in []tensor.Spec) (numbers, axis, n int, err error) {
	s := in[0].Shape
	if len(s) == 0 {
		return 0, 0, 0, errors.New("a scalar has no axis to transform along")
	}
	if axis, err = tensor.Axis(a.Axis, len(s)); err != nil {
		return 0, 0, 0, err
	}
	numbers = s[axis]
	switch {
	case a.N != 0:
		n = a.N
	case len(in) > 1:
		n = in[1].Shape[axis]
	case a.Kind == complexToReal:
		n = 2 * (numbers - 1)
	default:
		n = numbers
	}
	if n <= 0 {
		return 0, 0, 0, fmt.Errorf("a transform of %d numbers along axis %d of an array of shape %v: the least is 1", n,
			axis, s)
	}
	return numbers, axis, n, nil
}

// run encodes a transform.
func run(r *tensor.Run, a attrs) error {
	specs := make([]tensor.Spec, len(r.In))
	for i, x := range r.In {
		specs[i] = x.Spec
	}
	numbers, axis, n, err := a.length(specs)
	if err != nil {
		return err
	}
	x, err := r.Contiguous(0)
	if err != nil {
		return err
	}
	out := r.Out[0]
	j := &job{Run: r, variant: variant{kind: a.Kind, inverse: a.Inverse}, in: x, out: out, n: n,
		outer: x.Shape[:axis].Size(), inner: x.Shape[axis+1:].Size(), inLength: numbers, outLength: out.Shape[axis],
		scale: 1, weight: 1, tables: map[int]table{}}
	j.known = min(numbers, n)
	if a.Kind == complexToReal {
		j.known = min(numbers, n/2+1)
	}
	switch a.Scaling {
	case byRoot:
		j.scale = 1 / math.Sqrt(float64(n))
	case byInverse:
		j.scale = 1 / float64(n)
	}
	switch {
	case a.Transposed && a.Kind == realToComplex:
		j.weight = 2
	case a.Transposed && a.Kind == complexToReal:
		j.weight = 0.5
	}
	return j.encode()
}
