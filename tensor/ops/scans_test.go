package ops_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/internal/brief"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

func TestScans(t *testing.T) {
	t.Parallel()
	table := map[string]func(a *array, axis *int, reverse, inclusive bool, c ...*ctx) *array{
		"cumsum": ops.CumSum, "cumprod": ops.CumProd, "cummax": ops.CumMax, "cummin": ops.CumMin,
		"logcumsumexp": ops.LogCumSumExp,
	}
	forms := []struct {
		name               string
		reverse, inclusive bool
	}{{"", false, true}, {" reverse", true, true}, {" exclusive", false, false}, {" reverse exclusive", true, false}}
	for name, f := range table {
		gen := uniform
		tol := optest.Tol{}
		switch name {
		case "cumprod":
			gen = optest.Uniform(0.5, 2)
		case "cummax", "cummin":
			gen = optest.Distinct(0.5)
		case "logcumsumexp":
			tol = optest.Tol{Rel: 1e-5}
		}
		prims := []string{name}
		if name == "logcumsumexp" {
			prims = append(prims, "linear_scan")
		}
		for _, form := range forms {
			for _, along := range []struct {
				name string
				axis int
			}{{"", -1}, {" first", 0}} {
				op := optest.Subject{
					Name: name + along.name + form.name, Ops: prims, Tol: tol,
					Fn: optest.One(func(in []*array) *array { return f(in[0], axis(along.axis), form.reverse, form.inclusive) }),
					// All that differs between forms is seen on one case each.
					Cases: inputs(gen, "n,m"), Second: form.name == "",
				}
				if form.name == "" {
					op.Cases = inputs(gen, "n,m", "2,40", "k")
				}
				optest.Run(t, op)
			}
		}
		optest.Run(t, optest.Subject{
			Name: name + " flat", Ops: prims, Tol: tol, Cases: inputs(gen, "n,m", ""),
			Fn: optest.One(func(in []*array) *array { return f(in[0], nil, false, true) }),
			Bad: []optest.Bad{
				bad("["+name+"] axis 2 is out of range", func() *array { return f(optest.Zeros(2, 3), new(2), false, true) }),
				bad("["+name+"] an input is nil", func() *array { return f(nil, new(2), false, true) }),
			},
		})
	}
}

// TestCumProdZeros: the gradient beside zeros, by the products without the element.
func TestCumProdZeros(t *testing.T) {
	t.Parallel()
	gen := optest.Ints(0, 2)
	for _, reverse := range []bool{false, true} {
		for _, inclusive := range []bool{false, true} {
			optest.Run(t, optest.Subject{
				Name: "cumprod with zeros", Ops: []string{"cumprod"}, Cases: inputs(gen, "3,8", "4,4,2"),
				NoReplay: "see cumprod", NoVMap: "see cumprod",
				Fn: optest.One(func(in []*array) *array { return ops.CumProd(in[0], new(1), reverse, inclusive) }),
			})
		}
	}
}

// TestShortScans: many short rows, which threads scan one by one, give what columns give.
func TestShortScans(t *testing.T) {
	t.Parallel()
	brief.OnlyValues(t)
	optest.Open(t)
	for _, d := range []tensor.DType{tensor.Float32, tensor.Float16, tensor.Int8, tensor.Int64} {
		for _, n := range []int{1, 3, 7, 16} {
			x := optest.Noise(d, 1100, n)
			turned := ops.Contiguous(ops.Transpose(x, nil), false)
			for _, reverse := range []bool{false, true} {
				for _, inclusive := range []bool{false, true} {
					rows := ops.CumSum(x, axis(1), reverse, inclusive)
					columns := ops.Contiguous(ops.Transpose(ops.CumSum(turned, axis(0), reverse, inclusive), nil), false)
					require.Equal(t, optest.Bytes(t, columns), optest.Bytes(t, rows), "%v, %d, %v, %v", d, n, reverse, inclusive)
				}
			}
		}
	}
}
