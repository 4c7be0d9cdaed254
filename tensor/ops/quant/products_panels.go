package quant

import (
	_ "embed"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/kit/panels"
)

//go:embed unpack.metal
var unpackText string

var unpackKernels = kit.NewKernels[unpackVariant](packingText, blocksText, unpackText)

// unpackVariant chooses a kernel that unpacks panels.
type unpackVariant struct {
	quantAttrs
	T, ACC        tensor.DType
	panel, groups int
	transpose     bool
	pick          bool
}

// panelGroups are the groups of a column that a threadgroup unpacks: up to 32 words lie along depth.
func (a quantAttrs) panelGroups() int {
	if a.blocks() != nil {
		return max(64/a.Group, 1)
	}
	return max(32/a.words(), 1)
}

// multiplyPanels multiplies many rows: some panels of the packed matrix at a time are unpacked.
func multiplyPanels(r *tensor.Run, a productAttrs, rows int) error {
	out := r.Out[0]
	last := len(out.Shape) - 1
	cols, depth := out.Shape[last], r.In[0].Shape[last]
	in, err := a.contiguous(r, 4, 1)
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
	each := min(p.AtOnce(count, depth*panel*acc.Size()), count)
	pb, err := r.Temp(tensor.Spec{Shape: tensor.Shape{each, depth, panel}, DType: acc})
	if err != nil {
		return err
	}
	u := a.unpacker(in, p)
	for first := 0; first < count; first += each {
		n := min(each, count-first)
		if err := u.unpack(pb, n, first, 0, nil); err != nil {
			return err
		}
		if err := p.Multiply(pa, pb, sa, nil, first, n); err != nil {
			return err
		}
	}
	return nil
}

// unpacker unpacks panels of packed matrices for a product.
type unpacker struct {
	v      unpackVariant
	in     []tensor.Operand
	p      *panels.Product
	groups tensor.Shape // of a packed matrix
	along  int          // places along depth that a threadgroup unpacks
}

func (a productAttrs) unpacker(in []tensor.Operand, p *panels.Product) unpacker {
	u := unpacker{unpackVariant{a.quantAttrs, p.DType, kit.Accumulator(p.DType), panels.Width(p.DType), a.panelGroups(),
		a.Transpose, false}, in, p, a.groupsIn(in[2].Shape)[len(in[2].Shape)-2:], 64}
	if a.Transpose {
		u.along = u.v.groups * a.Group
	}
	return u
}

// unpack unpacks n panels of a matrix from the first on; with picks all of the matrices that are picked from start on.
func (u unpacker) unpack(to tensor.Operand, n, first, start int, picks *tensor.Operand) error {
	panel := u.v.panel
	params := kit.Params{}.Uint(u.p.Depth, u.p.Cols, u.groups[1], first, (u.p.Cols+panel-1)/panel, start).
		Long(u.groups.Size())
	args := []tensor.Arg{u.in[1].Arg(), u.in[2].Arg(), u.in[3].Arg(), to.Arg(), params.Arg()}
	if picks != nil {
		u.v.pick, args = true, append(args, picks.Arg())
	}
	over := kit.Simds((u.p.Depth+u.along-1)/u.along*8, n, 8)
	return unpackKernels.Launch(u.p.Run, u.v, "unpack", over, args...)
}

// unpackedStrips is about how many strips of picked matrices are unpacked at once.
const unpackedStrips = 8

// gatherPanels multiplies picked matrices of many rows: some packed ones at a time are unpacked.
func gatherPanels(r *tensor.Run, a productAttrs, picks [2]panels.Picks) error {
	in, err := a.contiguous(r, 4, 1)
	if err != nil {
		return err
	}
	x, out := in[0].Shape[len(in[0].Shape)-2:], r.Out[0]
	last := len(out.Shape) - 1
	n := out.Shape[:last-1].Size()
	p := &panels.Product{Run: r, DType: out.DType, Batch: tensor.Shape{n}, Rows: x[0], Depth: x[1], Cols: out.Shape[last]}
	m := panels.Matrices{Operand: in[0], Step: [2]int{p.Depth, 1}}
	m.Shape, m.Strides = tensor.Shape{picks[0].Of}, []int{x.Size()}
	pa, err := p.PackPicked(m, p.Rows, picks[0])
	if err != nil {
		return err
	}
	panel, acc := panels.Width(p.DType), kit.Accumulator(p.DType)
	count := (p.Cols + panel - 1) / panel
	each := min(max(max(unpackedStrips, r.Info().Threads)*p.Strip()/(p.Depth*count*panel*acc.Size()), 1), n)
	pb, err := r.Temp(tensor.Spec{Shape: tensor.Shape{each, count, p.Depth, panel}, DType: acc})
	if err != nil {
		return err
	}
	u := a.unpacker(in, p)
	for start := 0; start < n; start += each {
		now := min(each, n-start)
		if _, err := p.Deep(now, count); err != nil {
			return err
		}
		if err := u.unpack(pb, now*count, 0, start, &picks[1].Numbers); err != nil {
			return err
		}
		if err := p.MultiplyPicked(pa, panels.Picked{Packed: pb, Picks: picks[1]}, start, now); err != nil {
			return err
		}
	}
	return nil
}
