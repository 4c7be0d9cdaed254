package tensor

import "github.com/mlxlua/mlxlua/tensor/kernelgen"

// None is the attributes of an op that has none.
type None struct{}

// Rules is everything the engine knows of an op with attributes A. Shape, DType and exactly one executor (Expr,
// Reduce, View, Run or Host) are mandatory. Attributes hold what the user wrote, never what was derived from a
// shape; A must be comparable without interfaces that could hold slices: scalars, DType, Ints, F64, Dims, strings
// and pointers.
type Rules[A comparable] struct {
	// Shape appends the output shapes to outs, which is empty. It serves building a graph and shapeless replay alike. No
	// rule keeps in or outs.
	Shape func(in []Spec, a A, outs []Shape) ([]Shape, error)
	// DType appends the output dtypes to outs, which is empty.
	DType func(in []Spec, a A, outs []DType) ([]DType, error)
	// SpecFrom says from which of n inputs on only shape and dtype are read: the engine does not compute those for
	// this op. Nil: all inputs are read.
	SpecFrom func(a A, n int) int
	// IndicesFrom says from which of n inputs on those that are read are indices: they choose elements, and have no
	// derivative. Transforms refuse to differentiate by an integer argument of a function that is one of them. Nil:
	// none is.
	IndicesFrom func(a A, n int) int
	// Bounds appends to bounds, which is empty, for each of the inputs from IndicesFrom on the numbers that decide which
	// of its values are right: of how many elements it has indices, for example. A call of an op with this rule fails when
	// it is computed only if one is wrong: two calls that have the same indices and numbers fail alike. Nil: calls with
	// indices fail in a way of their own.
	Bounds func(in []Spec, a A, bounds []Ints) []Ints
	// CheckIndices, for an op with Bounds, records what checks the indices and no more, with Run's message: before other
	// calls write over what is needed if this one fails. Of the inputs it has the indices alone, and the specs of others.
	// Nil: only Run checks them.
	CheckIndices func(r *Run, a A) error
	// NoMerge marks an impure op: two calls with equal attributes and inputs are not one.
	NoMerge bool

	// Expr executes an element-wise op of one output: an MSL expression of its operands $0, $1, ..., which have the
	// MSL types of in and are broadcast against each other; its value is converted to the output's type. Operands
	// appear at most once each or are cheap to repeat: the printer binds each to a variable.
	Expr func(a A, in []DType) string
	// Reduce executes a reduction of input 0 over axes (counted from 0, sorted) into output 0. A reduction over no
	// axes is element-wise: Finish of Load.
	Reduce func(a A, in []Spec) (axes []int, r kernelgen.Reducer, err error)
	// Same marks a Reduce op whose output is input 0 where it has its shape and dtype: then there is nothing to execute.
	Same bool
	// View executes without a kernel: it makes each output a view of input 0's bytes, which lie as v says, or gives
	// false where that needs a contiguous input; then it is called again with a contiguous copy, and must succeed. It
	// finds in out each output's Spec, v's OffsetBytes and as many Strides, all 0, as the output has dimensions: it
	// changes these.
	View func(in []Spec, v View, a A, out []Operand) bool
	// Fills marks a View op that makes an array of one value: of an input of one element. Its output costs no memory,
	// and neither do views of it; Run.Expanded gives all its elements.
	Fills bool
	// Run records kernels. It is called where an output has elements, and of a Partial op in any case.
	Run func(r *Run, a A) error
	// Host computes on the host, in Go, on contiguous bytes.
	Host func(h *HostCall, a A) error
	// Sure says that the Host rule fails for no inputs that the Shape rule takes. Others are taken to be able to fail,
	// also those that read no input: a file may not be there any more.
	Sure bool

	// Flops says for profiles, and for the pace of looks, how many operations on numbers a call takes. Nil: one for each
	// element of the output of an Expr and of the input of a Reduce, and an unknown number for others.
	Flops func(in, out []Spec, a A) float64

	// Prepare runs where a Node is made, on the caller's goroutine (in a replay too); Run finds its result in
	// Prepared. It is for what must not run on a stream: a user's shape functions.
	Prepare func(in []Spec, a A) (any, error)
	// Fixed says that a call's attributes hold numbers that fit its inputs' present shapes only: a shapeless replay
	// at other shapes must trace again.
	Fixed func(a A) bool

	// Updates, for an op with Run, says of output out which input it is a copy of, for Run to change it in place when it
	// has got it from Run.Updated: an input of its shape and dtype; -1: of none. Where that input's buffer has no other
	// reader left, it is taken over and nothing is copied. All that may fail is checked before that: a call that fails
	// leaves alone what a Change keeps. But the outputs of a Partial op are there from the start. Nil: all start with any
	// contents.
	Updates func(a A, out int) int

	// Partial says that the op's kernels may leave elements of its outputs unwritten, or read them first: a user's
	// kernel. Those of other ops write all of their outputs, which may lie in memory that held somebody else's.
	Partial bool
	// Covers says of a call of a Partial op that commands before its kernels write all of its outputs. Nil: never.
	Covers func(a A) bool

	// VJP gives for each input the gradient, nil where there is none (or g.Want is false). It is called where an output
	// has a cotangent.
	VJP func(g *VJP[A]) []*Array
	// JVP gives the tangents of the outputs. It is called where an input has a tangent. Nil: derived from VJP by
	// transposition.
	JVP func(g *JVP[A]) []*Array
	// Gradient and Tangent stand in place of VJP and JVP where input 0 alone has a derivative: they give its gradient,
	// where it is wanted, and the tangent of output 0, where the input has one.
	Gradient func(g *VJP[A]) *Array
	Tangent  func(g *JVP[A]) *Array
	// Constant says, in place of VJP and JVP, that all derivatives are zero.
	Constant bool
	// Formula gives the outputs as other ops compute them: an op that is a fused form of these needs no rules of its own
	// for derivatives and batches, which are then the formula's.
	Formula func(c *Ctx, a A, in []*Array) []*Array
	// VMap gives the outputs of the op over a batch, and each output's batch axis. Element-wise ops need none.
	VMap func(g *VMap[A]) (out []*Array, axes []int)
}

// UpdatesFirst is the Updates rule of an op whose output 0 starts as a copy of input 0.
func UpdatesFirst[A comparable](_ A, out int) int {
	if out == 0 {
		return 0
	}
	return -1
}

// VJP is a call of a vector-Jacobian rule.
type VJP[A comparable] struct {
	Ctx   *Ctx
	Attrs A
	In    []*Array // the op's inputs
	Out   []*Array // its outputs
	Cot   []*Array // cotangents of the outputs; nil where nothing depends on that output, but not all are
	Want  []bool   // which inputs' gradients are wanted
}

// JVP is a call of a Jacobian-vector rule.
type JVP[A comparable] struct {
	Ctx   *Ctx
	Attrs A
	In    []*Array
	Out   []*Array
	Tan   []*Array // tangents of the inputs; nil for zero, but not all are
}

// VMap is a call of a batching rule.
type VMap[A comparable] struct {
	Ctx   *Ctx
	Attrs A
	In    []*Array
	Axes  []int // each input's batch axis, -1 for an input that has none
	Size  int   // the batch's size, for the trace at hand only: use inputs' shapes (ShapeOf, DimOf) in attributes
}
