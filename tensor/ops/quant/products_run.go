package quant

import (
	_ "embed"
	"math"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/kit/panels"
)

//go:embed plain.metal
var plainText string

// plainVariant chooses a plain kernel.
type plainVariant struct {
	productAttrs
	panels.Order
	T, ACC tensor.DType
	pick   bool
}

var plainKernels = kit.NewKernels[plainVariant](packingText, blocksText, plainText)

// order is how a product of so many rows with packed matrices is added up: in the order of depth, or if rows are few
// and W is packed along depth, by the lanes of a SIMD-group, a unit of whole words at a time.
func (a productAttrs) order(r *tensor.Run, rows, batch int) panels.Order {
	return panels.Order{Lanes: a.Transpose && kit.Few(r, rows) && rows*batch <= math.MaxUint32}
}

// runQuantizedMatmul multiplies by kernels for the host's processors where kernels run on these, elsewhere by the
// plain one.
func runQuantizedMatmul(r *tensor.Run, a productAttrs) error {
	out := r.Out[0]
	last := len(out.Shape) - 1
	rows, cols, depth := out.Shape[:last].Size(), out.Shape[last], r.In[0].Shape[last]
	if r.Info().GPU && !kit.Few(r, rows) {
		if done, err := unpackedProduct(r, a, rows); done || err != nil {
			return err
		}
	}
	switch {
	case !r.Info().Host && !onGPU(r, a, rows):
		return plainProduct(r, a, rows, 1, nil)
	case min(cols, depth) > 0 && a.shareRows(r, rows):
		return multiplyRows(r, a, rows)
	case kit.Few(r, rows), cols == 0, depth == 0:
		return runProduct(r, a, rows, 1, nil)
	}
	return multiplyPanels(r, a, rows)
}

// unpackedProduct has a device's library multiply many rows with the unpacked matrix, in the result's dtype. It reports
// false, and has encoded nothing, where there is none that does.
func unpackedProduct(r *tensor.Run, a productAttrs, rows int) (done bool, err error) {
	out := r.Out[0]
	cols, depth := out.Shape[len(out.Shape)-1], r.In[0].Shape[len(r.In[0].Shape)-1]
	element, known := ops.RoutineElement(out.DType)
	m := metal.MatMul{Element: element, M: rows, N: cols, K: depth, Batch: 1, A: metal.Matrix{Lead: depth},
		B: metal.Matrix{Lead: cols}}
	if a.Transpose {
		m.B = metal.Matrix{Turned: true, Lead: depth}
	}
	if !known || a.blocks() != nil || min(rows, cols, depth) == 0 || !r.Device().Offers(m) {
		return false, nil
	}
	in, err := a.contiguous(r, 4, 1)
	if err != nil {
		return true, err
	}
	w, err := r.Temp(tensor.Spec{Shape: tensor.Shape{cols, depth}, DType: out.DType})
	if err != nil {
		return true, err
	}
	d, args := in[2].DType, []tensor.Arg{in[1].Arg(), in[2].Arg(), w.Arg()}
	if a.Mode == affine {
		args = append(args, in[3].Arg())
	} else {
		d = out.DType
	}
	over := kit.Plane(a.Group, cols*depth/a.Group)
	if err := groupKernels.Launch(r, a.variant(d, out.DType, false), "dequantize", over, args...); err != nil {
		return true, err
	}
	x := in[0]
	return r.Call(m, []tensor.Operand{x, w}, []tensor.Operand{out})
}

// onGPU reports whether a GPU multiplies so many rows by a kernel of its own.
func onGPU(r *tensor.Run, a productAttrs, rows int) bool {
	return r.Info().GPU && a.Transpose && kit.Few(r, rows) && min(r.Out[0].Shape.Size(), r.In[0].Shape.Size()) > 0
}

// plainProduct multiplies a batch of matrices of that many rows, those of picks if there are such, by the kernel that
// any device can run.
func plainProduct(r *tensor.Run, a productAttrs, rows, batch int, picks *[2]panels.Picks) error {
	out := r.Out[0]
	in, err := a.contiguous(r, 4, 1)
	if err != nil {
		return err
	}
	cols, depth := out.Shape[len(out.Shape)-1], in[0].Shape[len(in[0].Shape)-1]
	if depth == 0 {
		return r.Fill(out, make([]byte, out.DType.Size()))
	}
	if err := kit.CheckRows(rows, batch); err != nil {
		return err
	}
	v := plainVariant{a, a.order(r, rows, batch), out.DType, kit.Accumulator(out.DType), picks != nil}
	groups := a.groupsIn(in[2].Shape)
	groups = groups[len(groups)-2:]
	params := kit.Params{}.Uint(rows, depth, cols, groups[1]).Long(rows*depth, groups.Size())
	args := []tensor.Arg{in[0].Arg(), in[1].Arg(), in[2].Arg(), in[3].Arg(), out.Arg(), params.Arg()}
	if picks != nil {
		args = append(args, picks[0].Numbers.Arg(), picks[1].Numbers.Arg())
	}
	over := kit.Tiles(cols, rows, batch)
	if v.Lanes {
		over = kit.Simds(cols, rows*batch, 8)
	}
	return plainKernels.Launch(r, v, "product", over, args...)
}
