package ops

import (
	_ "embed"
	"fmt"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/tensor"
)

//go:embed unpack.metal
var unpackText string

// unpackTexts are the kernels' texts.
var unpackTexts texts[unpackKernel]

type unpackKernel struct {
	quantAttrs
	dtype     tensor.DType
	transpose bool
}

func (k unpackKernel) text() string {
	flag := map[bool]int{true: 1}
	return k.defines(k.dtype) + fmt.Sprintf("#define PANEL %d\n#define TRANSPOSED %d\n#define GROUPS %d\n",
		panelOf(k.dtype), flag[k.transpose], k.groups()) + unpackText
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
	x := stack{in[0], [2]int{depth, 1}}
	x.Shape, x.Strides = nil, nil
	p := &matrixProduct{Run: r, dtype: out.DType, rows: rows, depth: depth, cols: cols}
	pa, sa, err := p.pack(x, rows)
	if err != nil {
		return err
	}
	panel := panelOf(p.dtype)
	panels := (cols + panel - 1) / panel
	size := depth * panel * accumulator(p.dtype).Size()
	each := min(max(unpacked/size, 2), panels)
	pb, err := r.Temp(tensor.Spec{Shape: tensor.Shape{each, depth, panel}, DType: accumulator(p.dtype)})
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
		Text:    unpackTexts.get(kernel, unpackKernel.text),
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
			tensor.Const(number(nil, depth, cols, groups, first))); err != nil {
			return err
		}
		if err := p.multiply(pa, pb, sa, nil, first, n); err != nil {
			return err
		}
	}
	return nil
}
