package quant

import (
	_ "embed"
	"fmt"
	"math"
	"slices"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/kit/panels"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// productAttrs describe a product with a packed matrix W: x W^T if Transpose, else x W. InOrder says that a gathered
// product takes the matrices of x in their order: then its indices of them need not be computed.
type productAttrs struct {
	quantAttrs
	Transpose, InOrder bool
}

var (
	// quantizedMatmul takes x of one dimension or more and one packed matrix; all dimensions of x but the last are rows.
	quantizedMatmul = tensor.Declare[productAttrs]("quantized_matmul")
	// gatherQMM takes x, packed matrices, scales, biases, and the indices of packed matrices and of those of x.
	gatherQMM = tensor.Declare[productAttrs]("gather_qmm")
	//go:embed pieces.metal
	piecesText string
	//go:embed products.metal
	productText string
)

func init() {
	dtype := func(in []tensor.Spec, a productAttrs, outs []tensor.DType) ([]tensor.DType, error) {
		if err := kit.CheckIndices(in[4:]); err != nil {
			return nil, err
		}
		if a.Mode != affine {
			return kit.OneDTypeOf(outs, in[0])
		}
		return kit.OneDTypeOf(outs, in[0], in[2], in[3])
	}
	quantizedMatmul.Define(tensor.Rules[productAttrs]{
		Shape: func(in []tensor.Spec, a productAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			cols, err := a.columns(in)
			if err != nil {
				return nil, err
			}
			s := in[0].Shape
			return append(outs, append(s[:len(s)-1].Clone(), cols)), nil
		},
		DType: dtype,
		Run:   runQuantizedMatmul,
		Flops: kit.ProductFlops[productAttrs],
		VJP:   quantizedMatmulVJP,
		JVP:   productJVP(quantizedMatmul),
		VMap:  quantizedMatmulVMap,
	})
	gatherQMM.Define(tensor.Rules[productAttrs]{
		Shape: func(in []tensor.Spec, a productAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			x := in[0].Shape
			if len(x) < 2 {
				return nil, fmt.Errorf("x has shape %v, it needs 2 dimensions or more", x)
			}
			cols, err := a.columns(in)
			if err != nil {
				return nil, err
			}
			batch, err := tensor.Broadcast(in[5].Shape, in[4].Shape)
			if err != nil {
				return nil, fmt.Errorf("lhs_indices and rhs_indices: %w", err)
			}
			return append(outs, append(batch, x[len(x)-2], cols)), nil
		},
		Flops: kit.ProductFlops[productAttrs],
		DType: dtype,
		SpecFrom: func(a productAttrs, n int) int {
			if a.InOrder {
				return n - 1
			}
			return n
		},
		IndicesFrom: func(productAttrs, int) int { return 4 },
		Bounds: func(in []tensor.Spec, _ productAttrs, bounds []tensor.Ints) []tensor.Ints {
			x, w := in[0].Shape, in[1].Shape
			return append(bounds, tensor.MakeInts([]int{w[:len(w)-2].Size()}), tensor.MakeInts([]int{x[:len(x)-2].Size()}))
		},
		Run:  runGatherQMM,
		VJP:  gatherQMMVJP,
		JVP:  productJVP(gatherQMM),
		VMap: gatherQMMVMap,
	})
}

// columns is the result's last dimension.
func (a productAttrs) columns(in []tensor.Spec) (int, error) {
	cols, err := a.checkPacked(in[1], in[2], in[3])
	if err != nil {
		return 0, err
	}
	w := in[1].Shape
	depth := w[len(w)-2]
	if a.Transpose {
		depth, cols = cols, depth
	}
	if x := in[0].Shape; len(x) == 0 || x[len(x)-1] != depth {
		return 0, fmt.Errorf("inner dimensions differ: x %v, the unpacked matrix (%d, %d)", in[0].Shape, depth, cols)
	}
	return cols, nil
}

// productJVP: the product is linear in x, and in scales and biases together.
func productJVP(op *tensor.OpOf[productAttrs]) func(g *tensor.JVP[productAttrs]) []*tensor.Array {
	return func(g *tensor.JVP[productAttrs]) []*tensor.Array {
		in := func(x, scales, biases *tensor.Array) []*tensor.Array {
			return append([]*tensor.Array{x, g.In[1], scales, biases}, g.In[4:]...)
		}
		var sum *tensor.Array
		if g.Tan[0] != nil {
			sum = op.One(g.Ctx, g.Attrs, in(g.Tan[0], g.In[2], g.In[3])...)
		}
		if g.Attrs.Mode != affine {
			return []*tensor.Array{sum}
		}
		if t := ops.WithZeros(g.Ctx, g.Tan[2:4], g.In[2:4]); t != nil {
			sum = ops.AddTerm(g.Ctx, sum, op.One(g.Ctx, g.Attrs, in(g.In[0], t[0], t[1])...))
		}
		return []*tensor.Array{sum}
	}
}

// dotCols is how many columns of a row a SIMD-group makes at once, as measured: with more of them the registers do not
// hold what a lane needs.
func (a quantAttrs) dotCols() int {
	switch {
	case a.Mode == mxfp8:
		return 1
	case a.blocks() != nil: // products.metal has no loop over columns for them
		return 1
	case a.Bits == 6:
		return 2
	}
	return 4
}

// productVariant chooses a kernel: rows are those of a thread's tile; with dots a SIMD-group makes cols columns of a
// row. LHS and RHS are the dtypes of a gathered product's indices.
type productVariant struct {
	productAttrs
	T, ACC         tensor.DType
	rows, cols     int
	gathered, dots bool
	wide, exact    bool
	split          int
	LHS, RHS       tensor.DType
}

// wideSimds is the SIMD-groups of a threadgroup of GPUs.
const wideSimds = 4

// widen has GPUs multiply in pieces of 16 bytes, if matrices are packed so. Where they are deep two SIMD-groups of a
// threadgroup share depth; so many that each has work for some rounds.
func (v *productVariant) widen(r *tensor.Run, depth, cols int) {
	const pieceBits = 128
	if v.split = 1; !r.Info().GPU || !v.dots || v.Mode != affine || v.blocks() != nil || v.Bits != 4 && v.Bits != 8 ||
		v.ACC != tensor.Float32 {
		return
	}
	if v.wide, v.exact, v.cols = true, v.T == tensor.Float32, 4; cols <= 4096 {
		v.cols = 2
	}
	if depth*v.Bits/pieceBits >= 8*32 {
		v.split = 2
	}
}

var productKernels = kit.NewKernels[productVariant](packingText, blocksText, kit.IndicesMSL, piecesText, unitsText,
	productText)

// runProduct multiplies a batch of matrices of that many rows; those of a gathered product are at places.
func runProduct(r *tensor.Run, a productAttrs, rows, batch int, at *places) error {
	out := r.Out[0]
	in, err := a.contiguous(r, 4, 1)
	if err != nil {
		return err
	}
	depth := in[0].Shape[len(in[0].Shape)-1]
	if depth == 0 {
		return r.Fill(out, make([]byte, out.DType.Size()))
	}
	if err := kit.CheckRows(rows, batch); err != nil {
		return err
	}
	cols := out.Shape[len(out.Shape)-1]
	v := productVariant{productAttrs: a, T: out.DType, ACC: kit.Accumulator(out.DType), rows: 4}
	v.dots = a.order(r, rows, batch).Lanes
	if v.dots || rows == 1 {
		v.rows = 1
	}
	if v.dots {
		v.cols = a.dotCols()
	}
	v.widen(r, depth, cols)
	if at != nil {
		v.gathered, v.RHS, v.LHS = true, r.In[4].DType, r.In[5].DType
	}
	s := a.groupsIn(in[2].Shape)
	groups, perMatrix := s[len(s)-1], s[len(s)-2:].Size()
	params := kit.Params{}.Uint(rows, depth, cols, groups).Long(perMatrix)
	args := append(make([]tensor.Arg, 0, 13), in[0].Arg(), in[1].Arg(), in[2].Arg(), in[3].Arg(), out.Arg(), params.Arg())
	if at != nil {
		args = append(args, at.args[:at.n]...)
	}
	over := kit.Tiles(cols, (rows+v.rows-1)/v.rows, batch)
	switch {
	case v.wide:
		simds := (cols + v.cols - 1) / v.cols * v.split
		over = kit.Simds((simds+wideSimds-1)/wideSimds*wideSimds, rows*batch, wideSimds)
	case v.dots:
		over = kit.Simds((cols+v.cols-1)/v.cols, rows*batch, 8)
	}
	return productKernels.Launch(r, v, "product", over, args...)
}

func runGatherQMM(r *tensor.Run, a productAttrs) error {
	x, w, out := r.In[0].Shape, r.In[1].Shape, r.Out[0].Shape
	batch := out[:len(out)-2]
	if err := kit.CheckCount(batch.Size(), math.MaxUint32, "matrices"); err != nil {
		return err
	}
	ofX, packed := x[:len(x)-2].Size(), w[:len(w)-2].Size()
	notes, err := kit.NewNotes(r, 2)
	if err != nil {
		return err
	}
	if err := gathered(r, a, batch, [2]int{ofX, packed}, notes); err != nil {
		return err
	}
	notes.Check(r.OpName(), func(i int, index string) string {
		return fmt.Sprintf("index %s of %s is out of range for %d matrices", index,
			[...]string{"lhs_indices", "rhs_indices"}[i], [...]int{ofX, packed}[i])
	})
	return nil
}

// gathered multiplies by kernels for the host's processors where kernels run on these, elsewhere by the plain one.
func gathered(r *tensor.Run, a productAttrs, batch tensor.Shape, of [2]int, notes kit.Notes) error {
	x := r.In[0].Shape[len(r.In[0].Shape)-2:]
	some := min(r.Out[0].Shape.Size(), x[1], of[0], of[1]) > 0
	switch {
	case some && !r.Info().Host && !onGPU(r, a, x[0]), some && !kit.Few(r, x[0]):
		picks, err := newPicks(r, a, batch, of, notes)
		if err != nil {
			return err
		}
		if !r.Info().Host {
			return plainProduct(r, a, x[0], batch.Size(), &picks)
		}
		return gatherPanels(r, a, picks)
	}
	at := newPlaces(r, a, batch, notes, kit.Params{}.Long(of[0], of[1], x.Size()))
	return runProduct(r, a, x[0], batch.Size(), &at)
}

// newPicks reads the indices of a product.
func newPicks(r *tensor.Run, a productAttrs, batch tensor.Shape, of [2]int, notes kit.Notes) (picks [2]panels.Picks,
	err error) {
	lhs := r.In[5]
	if a.InOrder {
		lhs.Strides = lhs.Shape.Strides()
	}
	for i, index := range [2]tensor.Operand{lhs, r.In[4]} {
		index = kit.BroadcastOperand(index, batch)
		if picks[i], err = panels.NewPicks(r, index, a.InOrder && i == 0, of[i], notes.Arg(i)); err != nil {
			return picks, err
		}
	}
	return picks, nil
}

// places are the arguments that say which matrices a gathered product multiplies.
type places struct {
	args [7]tensor.Arg
	n    int
}

// newPlaces are the places of a batch; sizes are the matrices of x, the packed ones, and the elements of one of x.
func newPlaces(r *tensor.Run, a productAttrs, batch tensor.Shape, notes kit.Notes, sizes kit.Params) places {
	lhs := r.In[5]
	if a.InOrder {
		lhs.Strides = lhs.Shape.Strides()
	}
	lhs, rhs := kit.BroadcastOperand(lhs, batch), kit.BroadcastOperand(r.In[4], batch)
	dims := kit.Collapse(batch, lhs.Strides, rhs.Strides)
	at := places{n: 6, args: [7]tensor.Arg{sizes.Uint(dims.N).Arg(), dims.Shape(), dims.Strides(0), dims.Strides(1),
		notes.Arg(0), rhs.Arg()}}
	if !a.InOrder {
		at.args[6], at.n = lhs.Arg(), 7
	}
	return at
}

// product checks and converts the operands that both ops take.
func product(c *tensor.Ctx, op string, x, w, scales, biases *tensor.Array, q Quantization) (in []*tensor.Array,
	a quantAttrs, fail *tensor.Array) {
	if f := kit.Unusable(c, op, x); f != nil {
		return nil, a, f
	}
	parts, a, f := packed(c, op, w, scales, biases, q)
	if f == nil {
		f = checkGlobal(c, op, a, q.GlobalScale)
	}
	if f != nil {
		return nil, a, f
	}
	rule := kit.Floats("x has dtype")
	if a.Mode != affine {
		if in, f = ops.Convert(c, op, rule, x); f != nil {
			return nil, a, f
		}
		return append(in, w, parts[0], parts[1]), a, nil
	}
	if in, f = ops.Convert(c, op, rule, x, scales, biases); f != nil {
		return nil, a, f
	}
	return slices.Insert(in, 1, w), a, nil
}

var _ = sig.Def("quantized_matmul",
	"x w scales:array? biases:array? transpose:bool=true group_size:int? bits:int? mode:string=affine",
	func(a *sig.Args) any {
		q, err := quantization(a, 5, -1)
		if err != nil {
			return err
		}
		return QuantizedMatmul(a.Array(0), a.Array(1), a.Array(2), a.Array(3), a.Bool(4), q, a.Ctx)
	})

// QuantizedMatmul is x times the transpose of the matrix that w, scales and biases pack (see [Quantize]; modes of
// llama.cpp's blocks, see [Dequantize], have no scales), or times the matrix itself if transpose is false, in the
// common dtype of x, scales and biases (modes without biases: in x's), added up in float32 (float64 for float64).
// Dimensions before the last two are a batch and are broadcast. Shapes that do not fit, a complex x and unknown
// quantizations are errors. Gradients flow to x, scales and biases.
func QuantizedMatmul(x, w, scales, biases *tensor.Array, transpose bool, q Quantization,
	ctx ...*tensor.Ctx) *tensor.Array {
	const op = "quantized_matmul"
	c := tensor.Call(ctx)
	if q.GlobalScale != nil {
		return withFactor(c, op, x, q, nil, func(x *tensor.Array, q Quantization) *tensor.Array {
			return QuantizedMatmul(x, w, scales, biases, transpose, q, c)
		})
	}
	in, a, f := product(c, op, x, w, scales, biases, q)
	if f != nil {
		return f
	}
	return kit.FailedAs(c, op, batchedProduct(c, productAttrs{a, transpose, false}, in))
}

// batchedProduct is a product whose packed matrix may be a batch.
func batchedProduct(c *tensor.Ctx, a productAttrs, in []*tensor.Array) *tensor.Array {
	if in[1].NDim() <= 2 {
		return quantizedMatmul.One(c, a, in...)
	}
	row := in[0].NDim() == 1
	if row {
		in[0] = ops.ExpandDims(in[0], []int{0}, c)
	}
	a.InOrder = true
	y := gatherQMM.One(c, a, in[0], in[1], in[2], in[3], numberMatrices(c, in[1]), numberMatrices(c, in[0]))
	if row {
		y = ops.Squeeze(y, []int{-2}, c)
	}
	return y
}

// numberMatrices numbers the matrices of x, in the shape of its batch.
func numberMatrices(c *tensor.Ctx, x *tensor.Array) *tensor.Array { return ops.Iota(c, batchShape(x)) }

// batchShape is the dimensions of x before its matrices.
func batchShape(x *tensor.Array) tensor.ShapeArg {
	var dims []tensor.ShapeArg
	for i := range max(x.NDim()-2, 0) {
		dims = append(dims, tensor.DimOf(x, i))
	}
	return tensor.Concat(dims...)
}

// withFactor is a product of x with a packed matrix, times the global scale of q, or with rhs that of each matrix that
// rhs names. Products of half types are in float32 before: without the factor they may be larger than the type can
// hold.
func withFactor(c *tensor.Ctx, op string, x *tensor.Array, q Quantization, rhs *tensor.Array,
	product func(x *tensor.Array, q Quantization) *tensor.Array) *tensor.Array {
	a, err := q.resolve()
	if err != nil {
		return tensor.Fail(c, op, "%w", err)
	}
	f := kit.Unusable(c, op, x)
	if f == nil {
		f = checkGlobal(c, op, a, q.GlobalScale)
	}
	if f != nil {
		return f
	}
	d, factor := x.DType(), q.GlobalScale
	if rhs != nil {
		factor = ops.ExpandDims(ops.Take(factor, rhs, new(0), c), []int{-2, -1}, c)
	} else {
		factor = ops.Reshape(factor, tensor.Sizes(), c)
	}
	wide := kit.Accumulator(d)
	q.GlobalScale = nil
	y := product(ops.AsType(x, wide, c), q)
	factor = ops.Divide(factor, ops.Number(greatestProduct, tensor.Float32, c), c)
	return kit.FailedAs(c, op, ops.AsType(ops.Multiply(y, ops.AsType(factor, wide, c), c), d, c))
}

// greatestProduct is that of an element and a scale in nvfp4.
const greatestProduct = 6 * 448

// GatherQMMCall are the optional arguments of GatherQMM.
type GatherQMMCall struct {
	// LHS and RHS are integer indices of the matrices of x and of the packed ones, whose batch dimensions count as
	// one; nil: all of them, in order.
	LHS, RHS *tensor.Array
	// NoTranspose multiplies with the packed matrices themselves instead of their transposes.
	NoTranspose bool
	Quantization
}

var _ = sig.Def("gather_qmm", "x w scales:array? biases:array? lhs_indices:indices? rhs_indices:indices? "+
	"transpose:bool=true group_size:int? bits:int? mode:string=affine global_scale:array? sorted_indices:bool=false",
	func(a *sig.Args) any {
		q, err := quantization(a, 7, 10)
		if err != nil {
			return err
		}
		return GatherQMM(a.Array(0), a.Array(1), a.Array(2), a.Array(3), GatherQMMCall{LHS: a.Array(4), RHS: a.Array(5),
			NoTranspose: !a.Bool(6), Quantization: q}, a.Ctx)
	}, sig.Same("the default of sorted_indices", "each product is made alone: no kernel needs an order of them"))

// GatherQMM is a batch of products of matrices of x with packed matrices (see [QuantizedMatmul]), picked by indices:
// lhs_indices names the matrices of x and rhs_indices those of w, which count as one batch each; both are broadcast
// against each other and give the result its batch, and without one of them all matrices are taken in their order.
// Negative indices count from the end; one that is out of range is an error when the result is computed. With an index
// x and w need two dimensions or more; without one this is [QuantizedMatmul]. global_scale, in mode "nvfp4", holds a
// global scale (see [Quantize]) for each packed matrix. sorted_indices promises an order of rhs_indices, on which
// neither result nor speed depends, as in mx.gather_mm. Gradients flow to x, scales and biases; they add up where an
// index stands twice.
func GatherQMM(x, w, scales, biases *tensor.Array, call GatherQMMCall, ctx ...*tensor.Ctx) *tensor.Array {
	const op = "gather_qmm"
	c := tensor.Call(ctx)
	if call.GlobalScale != nil {
		rhs := call.RHS
		if f := kit.Unusable(c, op, w, call.GlobalScale); f != nil {
			return f
		}
		if call.GlobalScale.NDim() > 0 {
			if rhs == nil {
				rhs = numberMatrices(c, w)
			}
			perMatrix := tensor.Concat(batchShape(w), tensor.Sizes(1))
			call.GlobalScale = ops.Flatten(ops.Reshape(call.GlobalScale, perMatrix, c), 0, -1, c)
		} else {
			rhs = nil
		}
		return withFactor(c, op, x, call.Quantization, rhs, func(x *tensor.Array, q Quantization) *tensor.Array {
			without := call
			without.Quantization = q
			return GatherQMM(x, w, scales, biases, without, c)
		})
	}
	in, a, f := product(c, op, x, w, scales, biases, call.Quantization)
	if f != nil {
		return f
	}
	if call.LHS == nil && call.RHS == nil {
		return kit.FailedAs(c, op, batchedProduct(c, productAttrs{a, !call.NoTranspose, false}, in))
	}
	for i, index := range []*tensor.Array{call.RHS, call.LHS} {
		if index == nil {
			in = append(in, numberMatrices(c, in[1-i]))
			continue
		}
		if f := kit.Unusable(c, op, index); f != nil {
			return f
		}
		if err := kit.CheckIndex(index.DType()); err != nil {
			return tensor.Fail(c, op, "%w", err)
		}
		in = append(in, index)
	}
	return gatherQMM.One(c, productAttrs{a, !call.NoTranspose, call.LHS == nil}, in...)
}
