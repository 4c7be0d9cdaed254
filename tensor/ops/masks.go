package ops

import (
	_ "embed"
	"fmt"
	"math"
	"slices"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
)

var (
	// maskRank is for each true element of a mask how many true ones stand before it, in row-major order, as int32; 0 for
	// false ones.
	maskRank = tensor.Declare[tensor.None]("mask_rank")
	// maskLike is a mask of input 1's leading dimensions as a view that broadcasts to it; only its shape is read.
	maskLike = tensor.Declare[tensor.None]("mask_like")
	//go:embed mask.metal
	maskText    string
	maskKernels = kit.NewKernels[kit.Plain](maskText)
)

func init() {
	maskRank.Define(tensor.Rules[tensor.None]{
		Shape:    sameShape[tensor.None],
		DType:    kit.Always[tensor.None](tensor.Int32),
		Run:      runMaskRank,
		Constant: true,
		// Ranks count within one example: the counts before the example are those of its first element.
		VMap: func(g *tensor.VMap[tensor.None]) ([]*tensor.Array, []int) {
			x := FrontOf(g, 0, 0)
			ranks := maskRank.One(g.Ctx, tensor.None{}, x)
			inner := kit.Shifted(kit.Identity(x.NDim() - 1))
			counts := Sum(x, inner, true, g.Ctx)
			last := Max(Where(x, ranks, Number(-1, tensor.Int32, g.Ctx), g.Ctx), inner, true, g.Ctx)
			before := Subtract(Add(last, Number(1, tensor.Int32, g.Ctx), g.Ctx), counts, g.Ctx)
			y := Where(x, Subtract(ranks, before, g.Ctx), Number(0, tensor.Int32, g.Ctx), g.Ctx)
			return []*tensor.Array{y}, []int{0}
		},
	})

	maskLike.Define(tensor.Rules[tensor.None]{
		Shape: func(in []tensor.Spec, _ tensor.None, outs []tensor.Shape) ([]tensor.Shape, error) {
			m, s := in[0].Shape, in[1].Shape
			if len(m) > len(s) || !slices.Equal(m, s[:len(m)]) {
				return nil, fmt.Errorf("a mask of shape %v for an array of shape %v", m, s)
			}
			return append(outs, append(m.Clone(), slices.Repeat([]int{1}, len(s)-len(m))...)), nil
		},
		DType:    kit.SameDType[tensor.None],
		SpecFrom: afterFirst[tensor.None],
		View:     tensor.SameView[tensor.None], // the further dimensions have size 1
		Constant: true,
		VMap:     BatchFirst(maskLike),
	})
}

// maskChunk is the elements that a thread counts.
const maskChunk = 256

func runMaskRank(r *tensor.Run, _ tensor.None) error {
	n := r.Out[0].Shape.Size()
	if err := kit.CheckCount(n, math.MaxInt32, "elements of a mask"); err != nil {
		return err
	}
	mask, err := r.Contiguous(0)
	if err != nil {
		return err
	}
	chunks := (n + maskChunk - 1) / maskChunk
	counts, err := r.Temp(tensor.Spec{Shape: tensor.Shape{chunks}, DType: tensor.Uint32})
	if err != nil {
		return err
	}
	run := func(entry string, threads int, args ...tensor.Arg) error {
		return maskKernels.Launch(r, kit.Plain{}, entry, kit.Line(threads), args...)
	}
	size := kit.Uint(n)
	if err := run("mask_count", chunks, mask.Arg(), counts.Arg(), size); err != nil {
		return err
	}
	if err := run("mask_sum", 1, counts.Arg(), kit.Uint(chunks)); err != nil {
		return err
	}
	return run("mask_rank", chunks, mask.Arg(), counts.Arg(), r.Out[0].Arg(), size)
}
