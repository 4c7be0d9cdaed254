package ops_test

import (
	"testing"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

func TestSpecialValues(t *testing.T) {
	t.Parallel()
	optest.Flat(t, "isnan isinf isfinite isposinf isneginf", uniform)
}

func TestNaNToNum(t *testing.T) {
	t.Parallel()
	cases := inputs(uniform, "n,m", "", "0,n")
	optest.Run(t, optest.Subject{Name: "nan_to_num", Ops: []string{"where"}, Cases: cases, Second: true,
		Fn: optest.Call("nan_to_num", "nan", 1, "posinf", 2, "neginf", -3)})
	optest.Run(t, optest.Subject{Name: "nan_to_num limits", Ops: []string{"where"}, Cases: cases, FD: tensor.Float32,
		Refuse: []tensor.DType{tensor.Float64, tensor.Complex64}, DTypes: except(tensor.Complex64),
		Fn: optest.One(func(in []*array) *array { return ops.NaNToNum(in[0], 0, nil, nil) })})
}
