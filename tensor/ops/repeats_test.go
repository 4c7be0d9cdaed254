package ops_test

import (
	"testing"

	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

func TestRepeats(t *testing.T) {
	t.Parallel()
	run := func(name string, cases []optest.Case, args ...any) {
		optest.Run(t, optest.Subject{
			Name: name, Ops: []string{"broadcast_to"}, Cases: cases, Second: true, Fn: optest.Call(name, args...),
		})
	}
	all := inputs(uniform, "n,m", "", "0,n")
	run("repeat", all, "repeats", 3)
	run("repeat", inputs(uniform, "n,m,2", "n,0"), "repeats", 2, "axis", 1)
	run("repeat", inputs(uniform, "n,m"), "repeats", 0, "axis", -1)
	run("tile", all, "reps", []any{2, 1, 3})
	run("tile", all, "reps", []any{2, 3})
	run("tile", inputs(uniform, "n,m,2"), "reps", []any{0})
}

func TestUnstack(t *testing.T) {
	t.Parallel()
	optest.Run(t, optest.Subject{
		Name: "unstack", Ops: []string{"split"}, Cases: inputs(uniform, "n,3", "m,3,2"), Second: true,
		Fn:  func(in []*array) []*array { return ops.Unstack(in[0], 1) },
		Bad: []optest.Bad{bad("[unstack] an input is nil", func() *array { return ops.Unstack(nil, 0)[0] })},
	})
}
