// Package ops is the rooms of the ops: one op, or one family of element-wise rows, per file. See README.md for how
// to add one.
package ops

import (
	"strings"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
)

// row describes an element-wise op of one or two operands of one dtype; that is all that an op of this kind is.
// Operands are promoted to a common dtype, converted to Arg's, and broadcast.
type row struct {
	// Arg is the dtype that operands are converted to, or an error; nil: they keep theirs.
	Arg kit.DTypeRule
	// Out is the output's dtype for operands of dtype d; nil: d.
	Out func(d tensor.DType) tensor.DType
	// Expr is the value.
	Expr exprs
	// Diff is one derivative for each operand; nil: the derivative is zero wherever there is one.
	Diff []diff
	// Gradient and Tangent stand in place of Diff, for functions of one operand that are not holomorphic.
	Gradient func(g *tensor.VJP[tensor.None]) *tensor.Array
	Tangent  func(g *tensor.JVP[tensor.None]) *tensor.Array
}

// diff is t times the derivative of an op by one of its operands, at a point. Jacobian-vector products call it with
// the operand's tangent. Vector-Jacobian products call it with the output's cotangent at the conjugated point: that
// is MLX's convention, and right because f'(conj z) = conj f'(z) for all rows here. It may not read t's size: t
// need not have the operand's shape.
type diff func(c *tensor.Ctx, t *tensor.Array, p point) *tensor.Array

// point is where a derivative is taken: the operands and the output.
type point struct{ A, B, Out *tensor.Array }

// exprs is an op's value in MSL by kind of dtype, in terms of $0 and $1. Any serves where the kind's own is empty.
// Float is computed in float for the half types, whose result is then rounded once; Any is computed in the type
// itself.
type exprs struct{ Any, Bool, Int, Unsigned, Float, Complex string }

// at is the expression for operands of dtype d, or "".
func (e exprs) at(d tensor.DType) string {
	s := ""
	switch {
	case d == tensor.Bool:
		s = e.Bool
	case d.IsUnsigned():
		if s = e.Unsigned; s == "" {
			s = e.Int
		}
	case d.IsSigned():
		s = e.Int
	case d.IsComplex():
		s = e.Complex
	case e.Float != "" && d.Size() == 2:
		return strings.NewReplacer("$0", "float($0)", "$1", "float($1)").Replace(e.Float)
	default:
		s = e.Float
	}
	if s == "" {
		s = e.Any
	}
	return s
}

// elementwise is a defined row.
type elementwise struct {
	op       *tensor.OpOf[tensor.None]
	operands int
	arg      kit.DTypeRule
}

func unaryOp(name string) *elementwise {
	return &elementwise{op: tensor.Declare[tensor.None](name), operands: 1}
}

func binaryOp(name string) *elementwise {
	return &elementwise{op: tensor.Declare[tensor.None](name), operands: 2}
}

func (e *elementwise) name() string { return e.op.Op().Name() }

// define turns a row into rules. Call it in an init function: derivatives call ops.
func (e *elementwise) define(r row) {
	e.arg = r.Arg
	if e.arg == nil {
		e.arg = kit.AnyDType
	}
	out := r.Out
	if out == nil {
		out = func(d tensor.DType) tensor.DType { return d }
	}
	rules := tensor.Rules[tensor.None]{
		Shape: broadcastRule,
		DType: func(in []tensor.Spec, _ tensor.None, outs []tensor.DType) ([]tensor.DType, error) {
			outs, err := kit.OneDTypeOf(outs, in...)
			if err == nil {
				outs[0] = out(outs[0])
			}
			return outs, err
		},
		Expr:     func(_ tensor.None, in []tensor.DType) string { return r.Expr.at(in[0]) },
		Gradient: r.Gradient,
		Tangent:  r.Tangent,
		Constant: r.Diff == nil && r.Gradient == nil,
	}
	if r.Diff != nil {
		rules.VJP = func(g *tensor.VJP[tensor.None]) []*tensor.Array { return diffVJP(g, r.Diff) }
		rules.JVP = func(g *tensor.JVP[tensor.None]) []*tensor.Array { return diffJVP(g, r.Diff) }
	}
	e.op.Define(rules)
}

// call converts the operands and makes the node.
func (e *elementwise) call(c *tensor.Ctx, in ...*tensor.Array) *tensor.Array {
	in, f := Convert(c, e.name(), e.arg, in...)
	if f != nil {
		return f
	}
	return e.op.One(c, tensor.None{}, in...)
}

// Convert converts operands, in the list that it is given, to the dtype that rule makes of their common one. It returns
// a failed array where an operand cannot be used or rule refuses the dtype.
//
//sig:none conversion of operands
func Convert(c *tensor.Ctx, op string, rule kit.DTypeRule, in ...*tensor.Array) ([]*tensor.Array, *tensor.Array) {
	if len(in) == 0 {
		return nil, tensor.Fail(c, op, "no arrays are given")
	}
	if f := kit.Unusable(c, op, in...); f != nil {
		return nil, f
	}
	d := in[0].DType()
	for _, x := range in[1:] {
		d = tensor.Promote(d, x.DType())
	}
	to, err := rule(d)
	if err != nil {
		return nil, tensor.Fail(c, op, "%w", err)
	}
	for i, x := range in {
		in[i] = AsType(x, to, c)
	}
	return in, nil
}

func broadcastRule(in []tensor.Spec, _ tensor.None, outs []tensor.Shape) ([]tensor.Shape, error) {
	s, err := broadcastSpecs(in)
	return append(outs, s), err
}

// broadcastSpecs is the common shape.
func broadcastSpecs(in []tensor.Spec) (tensor.Shape, error) {
	s := in[0].Shape
	for _, x := range in[1:] {
		var err error
		if s, err = tensor.Broadcast(s, x.Shape); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func diffVJP(g *tensor.VJP[tensor.None], by []diff) []*tensor.Array {
	grads := make([]*tensor.Array, len(g.In))
	p := point{A: conj(g.Ctx, g.In[0]), Out: conj(g.Ctx, g.Out[0])}
	if len(g.In) > 1 {
		p.B = conj(g.Ctx, g.In[1])
	}
	for i, want := range g.Want {
		if !want {
			continue
		}
		grads[i] = by[i](g.Ctx, g.Cot[0], p)
		if len(g.In) > 1 {
			grads[i] = SumTo(grads[i], tensor.ShapeOf(g.In[i]), g.Ctx)
		}
	}
	return grads
}

func diffJVP(g *tensor.JVP[tensor.None], by []diff) []*tensor.Array {
	var sum *tensor.Array
	p := point{A: g.In[0], Out: g.Out[0]}
	if len(g.In) > 1 {
		p.B = g.In[1]
	}
	terms := 0
	for i, t := range g.Tan {
		if t == nil {
			continue
		}
		terms++
		sum = AddTerm(g.Ctx, sum, by[i](g.Ctx, t, p))
	}
	if terms == 1 && len(g.In) > 1 { // the other operand may be the larger one
		sum = BroadcastTo(sum, tensor.ShapeOf(g.Out[0]), g.Ctx)
	}
	return []*tensor.Array{sum}
}

// conj is the conjugate of a complex array, and x itself otherwise.
func conj(c *tensor.Ctx, x *tensor.Array) *tensor.Array {
	if x.DType().IsComplex() {
		return Conjugate(x, c)
	}
	return x
}

// The output rules.

func toBool(tensor.DType) tensor.DType { return tensor.Bool }

// realPart is float32 for complex64.
func realPart(d tensor.DType) tensor.DType {
	if d.IsComplex() {
		return tensor.Float32
	}
	return d
}
