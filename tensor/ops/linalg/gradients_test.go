package linalg_test

import (
	"testing"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/linalg"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

type array = tensor.Array

var real64 = []tensor.DType{tensor.Float32, tensor.Float64}

// eyeLike is 1 on the diagonal of x's matrices, 0 elsewhere, whatever their sizes are.
func eyeLike(x *array) *array {
	rows := ops.ExpandDims(ops.Iota(tensor.Call(nil), tensor.DimOf(x, -2)), []int{1})
	return ops.AsType(ops.Equal(rows, ops.Iota(tensor.Call(nil), tensor.DimOf(x, -1))), x.DType())
}

// regular moves x's matrices away from singular ones, by elements on the diagonal that differ.
func regular(x *array) *array {
	count := ops.AsType(ops.Iota(tensor.Call(nil), tensor.DimOf(x, -1)), x.DType())
	return ops.Add(x, ops.Multiply(eyeLike(x), ops.Add(ops.Multiply(count, ops.Number(1.5, x.DType())),
		ops.Number(3, x.DType()))))
}

func mul(a ...*array) *array {
	p := a[0]
	for _, x := range a[1:] {
		p = ops.Matmul(p, x)
	}
	return p
}

func transpose(a *array) *array { return ops.SwapAxes(a, -1, -2) }

func inputs(dims ...string) []optest.Case {
	var out []optest.Case
	for _, d := range dims {
		out = append(out, optest.Case{Inputs: []optest.Input{optest.In(d, optest.Uniform(-1, 1))}})
	}
	return out
}

// TestSolutions: inverses, solutions and determinants, by layouts, derivatives, batches and replays.
func TestSolutions(t *testing.T) {
	square := inputs("m,m", "b,m,m")
	sides := func(a, b string) optest.Case {
		return optest.Case{Inputs: []optest.Input{optest.In(a, optest.Uniform(-1, 1)), optest.In(b, optest.Uniform(-1, 1))}}
	}
	systems := []optest.Case{sides("m,m", "m,k"), sides("b,m,m", "m,2"), sides("2,1,3,3", "n,3,2"), sides("m,m", "m")}
	for _, s := range []optest.Subject{
		{Name: "inv", Cases: square, Second: true,
			Fn: optest.One(func(in []*array) *array { return linalg.Inv(regular(in[0])) })},
		{Name: "cholesky_inv", Ops: []string{"tri_inv"}, Cases: square,
			Fn: optest.One(func(in []*array) *array { return linalg.CholeskyInv(regular(in[0]), true) })},
		{Name: "pinv", Cases: inputs("m,m", "5,3", "b,2,4"), Second: true, Fn: optest.One(func(in []*array) *array {
			return linalg.PInv(regular(in[0]))
		})},
		{Name: "pinv of few ranks", Ops: []string{"pinv"}, Cases: inputs("5,2", "b,4,1"),
			Fn: optest.One(func(in []*array) *array { return linalg.PInv(mul(in[0], transpose(in[0]))) })},
		{Name: "solve", Cases: systems, Second: true,
			Fn: optest.One(func(in []*array) *array { return linalg.Solve(regular(in[0]), in[1]) })},
		{Name: "solve lower", Ops: []string{"solve_triangular"}, Cases: systems,
			Fn: optest.One(func(in []*array) *array { return linalg.SolveTriangular(regular(in[0]), in[1], false) })},
		{Name: "solve upper", Ops: []string{"solve_triangular"}, Cases: systems[:2],
			Fn: optest.One(func(in []*array) *array { return linalg.SolveTriangular(regular(in[0]), in[1], true) })},
		{Name: "det", Ops: []string{"det", "cofactors"}, Cases: square, Second: true,
			Fn: optest.One(func(in []*array) *array { return linalg.Det(in[0]) })},
		{Name: "det of regular ones", Ops: []string{"det"}, Cases: square, Second: true,
			Fn: optest.One(func(in []*array) *array { return linalg.Det(regular(in[0])) })},
		{Name: "slogdet", Cases: square, Second: true,
			Fn: func(in []*array) []*array { return linalg.SLogDet(regular(in[0])) }},
	} {
		s.DTypes, s.Tol = real64, optest.Tol{Rel: 1e-5, Abs: 1e-5}
		optest.Run(t, s)
	}
}

// TestFactors: what decompositions give, by layouts, derivatives, batches and replays. Where signs, phases or bases
// are open the functions are of what does not depend on them.
func TestFactors(t *testing.T) {
	any := inputs("m,m", "5,3", "b,2,4")
	square := inputs("m,m", "b,m,m")
	symmetric := func(x *array) *array { x = regular(x); return ops.Add(x, transpose(x)) }
	for _, s := range []optest.Subject{
		{Name: "lu", Cases: any, Second: true, Fn: func(in []*array) []*array { return linalg.LU(regular(in[0])) }},
		{Name: "lu of exchanged rows", Ops: []string{"lu"}, Cases: any, Fn: func(in []*array) []*array {
			return linalg.LU(ops.Roll(regular(in[0]), []int{1}, []int{-2}))
		}},
		{Name: "lu_factor", Cases: any, Fn: func(in []*array) []*array { return linalg.LUFactor(regular(in[0])) }},
		{Name: "qr", Cases: any, Second: true, Fn: func(in []*array) []*array { return linalg.QR(regular(in[0])) }},
		{Name: "svd", Cases: any, Second: true, Fn: func(in []*array) []*array {
			f := linalg.SVD(regular(in[0]))
			k := ops.Iota(tensor.Call(nil), tensor.DimOf(f[1], -1))
			first := func(x *array, axis int) *array { return ops.Take(x, k, &axis) }
			u, vt := first(f[0], -1), first(f[2], -2)
			return []*array{f[1], mul(u, transpose(u)), ops.Square(u), ops.Square(vt), mul(u, vt)}
		}},
		{Name: "singular vectors beyond", Ops: []string{"svd"}, Cases: inputs("5,3", "b,2,4"),
			Fn: func(in []*array) []*array {
				// The projections into what the first three, or two, singular vectors leave.
				f := linalg.SVD(regular(in[0]))
				last := func(x *array, from int, axis int) *array { return ops.SplitAt(x, []int{from}, axis)[1] }
				if in[0].NDim() == 2 {
					u := last(f[0], 3, -1)
					return []*array{mul(u, transpose(u))}
				}
				v := last(f[2], 2, -2)
				return []*array{mul(transpose(v), v)}
			}},
		{Name: "singular values", Ops: []string{"svd"}, Cases: any,
			Fn: optest.One(func(in []*array) *array { return linalg.SingularValues(regular(in[0])) })},
		{Name: "eigh", Cases: square, Second: true, Fn: func(in []*array) []*array {
			f := linalg.EigH(symmetric(in[0]), false)
			return []*array{f[0], ops.Square(f[1])}
		}},
		{Name: "eigh of a triangle", Ops: []string{"eigh"}, Cases: square, Fn: func(in []*array) []*array {
			f := linalg.EigH(regular(in[0]), true)
			return []*array{f[0], ops.Square(f[1])}
		}},
		{Name: "eigvalsh", Ops: []string{"eigh"}, Cases: square,
			Fn: optest.One(func(in []*array) *array { return linalg.EigValsH(regular(in[0]), false) })},
		{Name: "eig", Cases: square, FD: tensor.Float32, Fn: func(in []*array) []*array {
			f := linalg.Eig(regular(in[0]))
			return []*array{f[0], ops.Abs(f[1])}
		}},
		{Name: "eigvals", Ops: []string{"eig"}, Cases: square, FD: tensor.Float32,
			Fn: optest.One(func(in []*array) *array { return linalg.EigVals(regular(in[0])) })},
	} {
		s.DTypes, s.Tol = real64, optest.Tol{Rel: 1e-5, Abs: 1e-5}
		optest.Run(t, s)
	}
	complexes := []tensor.DType{tensor.Complex64}
	for _, s := range []optest.Subject{
		{Name: "complex svd", Ops: []string{"svd"}, Cases: any,
			Fn: optest.One(func(in []*array) *array { return linalg.SingularValues(regular(in[0])) })},
		{Name: "complex eigh", Ops: []string{"eigh"}, Cases: square, Fn: func(in []*array) []*array {
			f := linalg.EigH(regular(in[0]), false)
			return []*array{f[0], ops.Abs(f[1])}
		}},
		{Name: "complex eig", Ops: []string{"eig"}, Cases: square, Fn: func(in []*array) []*array {
			f := linalg.Eig(regular(in[0]))
			return []*array{f[0], ops.Abs(f[1])}
		}},
	} {
		s.DTypes, s.FD, s.Tol = complexes, tensor.Complex64, optest.Tol{Rel: 1e-4, Abs: 1e-4}
		optest.Run(t, s)
	}
}

// TestProductsAndNorms: the functions that are formulas of other ops.
func TestProductsAndNorms(t *testing.T) {
	u := optest.Uniform(-2, 2)
	for _, s := range []optest.Subject{
		{Name: "cross", Fn: optest.Call("linalg.cross"), DTypes: optest.FloatTypes, Cases: []optest.Case{
			{Inputs: []optest.Input{optest.In("n,3", u), optest.In("3", u)}},
			{Inputs: []optest.Input{optest.In("n,2", u), optest.In("2,n,3", u)}},
		}},
		{Name: "norm", Fn: optest.Call("linalg.norm"), Cases: inputs("n,m"), DTypes: optest.FloatTypes},
		{Name: "norm 1", Fn: optest.Call("linalg.norm", "ord", 1.0, "axis", []any{0, -1}), Cases: inputs("n,2,m"),
			DTypes: optest.FloatTypes},
		{Name: "norm 3", Fn: optest.Call("linalg.norm", "ord", 3.0, "axis", 1), Cases: inputs("n,m"),
			DTypes: optest.FloatTypes[:2]},
		{Name: "nuclear norm", Fn: optest.Call("linalg.norm", "ord", "nuc", "axis", []any{-1, 0}), Cases: inputs("n,2,3"),
			DTypes: real64},
		{Name: "norm 2", Fn: optest.Call("linalg.norm", "ord", 2.0, "keepdims", true), Cases: inputs("n,3"), DTypes: real64},
	} {
		s.Ops = []string{"svd", "multiply"}
		optest.Run(t, s)
	}
}
