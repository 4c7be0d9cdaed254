package quant

import (
	_ "embed"
	"fmt"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/kit/panels"
)

//go:embed unpack.metal
var unpackText string

// unpackTexts are the kernels' texts.
var unpackTexts kit.Texts[unpackKernel]

type unpackKernel struct {
	quantAttrs
	dtype     tensor.DType
	transpose bool
}

func (k unpackKernel) text() string {
	flag := map[bool]int{true: 1}
	return k.defines(k.dtype) + fmt.Sprintf("#define PANEL %d\n#define TRANSPOSED %d\n#define GROUPS %d\n",
		panels.Width(k.dtype), flag[k.transpose], k.groups()) + unpackText
}

// groups are those of a column that a threadgroup unpacks: up to 32 words lie along depth.
func (k unpackKernel) groups() int { return max(32/k.words(), 1) }

// unpacked is about how many bytes of a packed matrix are unpacked at once: they stay in the cache until they have been
// multiplied with.
const unpacked = 1 << 20

func runQuantizedMatmul(r *tensor.Run, a productAttrs) error {
	out := r.Out[0]
	last := len(out.Shape) - 1
	rows, cols := out.Shape[:last].Size(), out.Shape[last]
	depth := r.In[0].Shape[last]
	if rows <= fewDots || cols == 0 || depth == 0 {
		return runProduct(r, a, rows, 1, nil)
	}
	in := make([]tensor.Operand, 4)
	for i := range in {
		var err error
		if in[i], err = r.Contiguous(i); err != nil {
			return err
		}
	}
	x := panels.Matrices{Operand: in[0], Step: [2]int{depth, 1}}
	x.Shape, x.Strides = nil, nil
	p := &panels.Product{Run: r, DType: out.DType, Rows: rows, Depth: depth, Cols: cols}
	pa, sa, err := p.Pack(x, rows)
	if err != nil {
		return err
	}
	panel := panels.Width(p.DType)
	panels := (cols + panel - 1) / panel
	size := depth * panel * kit.Accumulator(p.DType).Size()
	each := min(max(unpacked/size, 2), panels)
	pb, err := r.Temp(tensor.Spec{Shape: tensor.Shape{each, depth, panel}, DType: kit.Accumulator(p.DType)})
	if err != nil {
		return err
	}
	kernel := unpackKernel{a.quantAttrs, out.DType, a.Transpose}
	along := 64
	if a.Transpose {
		along = kernel.groups() * a.Group
	}
	pipe, err := r.Kernel(metal.Source{
		Label:   r.OpName(),
		Text:    unpackTexts.Get(kernel, unpackKernel.text),
		Options: metal.Options{MathMode: metal.MathSafe, Portable: true, Float64: out.DType == tensor.Float64},
	}, "unpack")
	if err != nil {
		return err
	}
	groups := in[2].Shape[len(in[2].Shape)-1]
	for first := 0; first < panels; first += each {
		n := min(each, panels-first)
		grid := metal.Size{X: 32, Y: (depth + along - 1) / along * 8, Z: n}
		if err := r.Dispatch(pipe, grid, metal.Size{X: 32, Y: 8, Z: 1}, in[1].Arg(), in[2].Arg(), in[3].Arg(), pb.Arg(),
			tensor.Const(kit.Numbers(nil, depth, cols, groups, first))); err != nil {
			return err
		}
		if err := p.Multiply(pa, pb, sa, nil, first, n); err != nil {
			return err
		}
	}
	return nil
}
