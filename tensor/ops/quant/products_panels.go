package quant

import (
	_ "embed"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/kit/panels"
)

//go:embed unpack.metal
var unpackText string

var unpackKernels = kit.NewKernels[unpackVariant](packingText, unpackText)

// unpackVariant chooses a kernel that unpacks panels.
type unpackVariant struct {
	quantAttrs
	T, ACC        tensor.DType
	panel, groups int
	transpose     bool
}

// panelGroups are the groups of a column that a threadgroup unpacks: up to 32 words lie along depth.
func (a quantAttrs) panelGroups() int { return max(32/a.words(), 1) }

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
	in, err := r.AllContiguous(4)
	if err != nil {
		return err
	}
	x := panels.Matrices{Operand: in[0], Step: [2]int{depth, 1}}
	x.Shape, x.Strides = nil, nil
	p := &panels.Product{Run: r, DType: out.DType, Rows: rows, Depth: depth, Cols: cols}
	pa, sa, err := p.Pack(x, rows)
	if err != nil {
		return err
	}
	panel, acc := panels.Width(p.DType), kit.Accumulator(p.DType)
	count := (cols + panel - 1) / panel
	each := min(max(unpacked/(depth*panel*acc.Size()), 2), count)
	pb, err := r.Temp(tensor.Spec{Shape: tensor.Shape{each, depth, panel}, DType: acc})
	if err != nil {
		return err
	}
	v := unpackVariant{a.quantAttrs, out.DType, acc, panel, a.panelGroups(), a.Transpose}
	along := 64
	if a.Transpose {
		along = v.groups * a.Group
	}
	groups := in[2].Shape[len(in[2].Shape)-1]
	for first := 0; first < count; first += each {
		n := min(each, count-first)
		params := kit.Params{}.Uint(depth, cols, groups, first)
		err := unpackKernels.Launch(r, v, "unpack", kit.Simds((depth+along-1)/along*8, n, 8), in[1].Arg(), in[2].Arg(),
			in[3].Arg(), pb.Arg(), params.Arg())
		if err != nil {
			return err
		}
		if err := p.Multiply(pa, pb, sa, nil, first, n); err != nil {
			return err
		}
	}
	return nil
}
