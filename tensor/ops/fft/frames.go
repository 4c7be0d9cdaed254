package fft

import (
	_ "embed"
	"fmt"
	"math"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
)

// padding says how a row goes on at its ends.
type padding uint8

const (
	noPadding padding = iota
	zeroPadding
	edgePadding
	reflectPadding
	symmetricPadding
)

// framesAttrs are frames of Size numbers that begin Hop apart in a row, which is continued by half a frame at both
// ends if there is a padding.
type framesAttrs struct {
	Size, Hop int
	Padding   padding
}

// Each of the two is the transpose of the other.
var (
	frames = tensor.Declare[framesAttrs]("fft_frames")
	// overlapAdd adds up frames where they were cut from: in a row like the second input's, or one that they fill.
	overlapAdd = tensor.Declare[framesAttrs]("fft_overlap_add")
	//go:embed frames.metal
	framesText    string
	framesKernels = kit.NewKernels[framesVariant](framesText)
)

type framesVariant struct {
	T    tensor.DType
	mode padding
}

// Macros defines the number 0.
func (v framesVariant) Macros() string { return "#define ZERO " + kit.Zero(v.T) + "\n" }

func init() {
	frames.Define(tensor.Rules[framesAttrs]{
		Shape: func(in []tensor.Spec, a framesAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			s := in[0].Shape
			n := s[len(s)-1]
			if n == 0 {
				return nil, fmt.Errorf("an array of shape %v has no numbers to cut frames from", s)
			}
			if a.Padding != noPadding {
				n += a.Size / 2 * 2
			}
			if n < a.Size {
				return nil, fmt.Errorf("frames of %d numbers are longer than the input, shape %v", a.Size, s)
			}
			return append(outs, append(s[:len(s)-1].Clone(), (n-a.Size)/a.Hop+1, a.Size)), nil
		},
		DType: kit.SameDType[framesAttrs],
		Run: func(r *tensor.Run, a framesAttrs) error {
			x, out := r.In[0].Shape, r.Out[0].Shape
			batch, count := x[:len(x)-1].Size(), out[len(out)-2]
			return a.launch(r, "frames", kit.Tiles(a.Size, count, batch), count, x[len(x)-1])
		},
		Gradient: func(g *tensor.VJP[framesAttrs]) *tensor.Array {
			return overlapAdd.One(g.Ctx, g.Attrs, g.Cot[0], g.In[0])
		},
		Tangent: func(g *tensor.JVP[framesAttrs]) *tensor.Array { return frames.One(g.Ctx, g.Attrs, g.Tan[0]) },
		VMap:    ops.BatchFirst(frames),
	})
	overlapAdd.Define(tensor.Rules[framesAttrs]{
		Shape: func(in []tensor.Spec, a framesAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			s := in[0].Shape
			last := len(s) - 1
			if s[last] != a.Size || s[last-1] == 0 {
				return nil, fmt.Errorf("want one frame of %d numbers or several, not an array of shape %v", a.Size, s)
			}
			out := append(s[:last-1].Clone(), (s[last-1]-1)*a.Hop+a.Size)
			if len(in) > 1 {
				out[last-1] = in[1].Shape[last-1]
			}
			return append(outs, out), nil
		},
		DType:    kit.SameDType[framesAttrs],
		SpecFrom: func(framesAttrs, int) int { return 1 },
		Run: func(r *tensor.Run, a framesAttrs) error {
			out, count := r.Out[0].Shape, r.In[0].Shape[len(r.In[0].Shape)-2]
			n := out[len(out)-1]
			return a.launch(r, "overlap_add", kit.Plane(n, out[:len(out)-1].Size()), count, n)
		},
		Gradient: func(g *tensor.VJP[framesAttrs]) *tensor.Array { return frames.One(g.Ctx, g.Attrs, g.Cot[0]) },
		Tangent: func(g *tensor.JVP[framesAttrs]) *tensor.Array {
			return overlapAdd.One(g.Ctx, g.Attrs, append([]*tensor.Array{g.Tan[0]}, g.In[1:]...)...)
		},
		VMap: ops.BatchFirst(overlapAdd),
	})
}

// launch encodes a kernel over rows of n numbers and their frames.
func (a framesAttrs) launch(r *tensor.Run, entry string, over kit.Grid, count, n int) error {
	x, err := r.Contiguous(0)
	if err != nil {
		return err
	}
	long := max(n, (count-1)*a.Hop) + 2*a.Size
	if err := kit.CheckCount(long, math.MaxInt32, "numbers in a row and at its ends"); err != nil {
		return err
	}
	m := kit.Params{}.Uint(a.Size, a.Hop, count, n)
	return framesKernels.Launch(r, framesVariant{x.DType, a.Padding}, entry, over, x.Arg(), r.Out[0].Arg(), m.Arg())
}
