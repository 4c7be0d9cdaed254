package rooms_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/internal/brief"
	"github.com/mlxlua/mlxlua/tensor"
	_ "github.com/mlxlua/mlxlua/tensor/ops/rooms"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

func TestMain(m *testing.M) { os.Exit(m.Run()) }

// TestGolden makes every call that MLX answered, by position and by name, through the function's signature.
func TestGolden(t *testing.T) {
	brief.OnlyValues(t)
	optest.Open(t)
	families := map[string][]*optest.GoldenCall{}
	for _, c := range optest.GoldenCalls(t) {
		families[c.Family] = append(families[c.Family], c)
	}
	for family, calls := range families {
		t.Run(family, func(t *testing.T) {
			for _, c := range calls {
				checkCall(t, c)
			}
		})
	}
}

func checkCall(t *testing.T, c *optest.GoldenCall) {
	t.Helper()
	outs, errs := make([][]*tensor.Array, len(c.Cases)), make([]error, len(c.Cases))
	var all []*tensor.Array
	for i := range c.Cases {
		in := c.Inputs(t, i)
		outs[i], errs[i] = c.Make(sig.Lookup, in, false)
		named, err := c.Make(sig.Lookup, in, true)
		if i == 0 { // which parameter an argument is for does not depend on the inputs
			if diff := c.Compare(t, i, named, err); diff != nil {
				t.Errorf("%v of %v, by name: %v", c, c.Cases[i].In, diff)
			}
		}
		if errs[i] == nil {
			for _, y := range outs[i] {
				if y.Err() == nil {
					all = append(all, y)
				}
			}
		}
	}
	_ = tensor.Eval(t.Context(), all...) // together; each one's error comes up below
	for i := range c.Cases {
		if diff := c.Compare(t, i, outs[i], errs[i]); diff != nil {
			t.Errorf("%v of %v: %v", c, c.Cases[i].In, diff)
		}
	}
}

// Every function has golden data.
func TestGoldenCoverage(t *testing.T) {
	has := map[string]bool{}
	for _, c := range optest.GoldenCalls(t) {
		for _, name := range c.Functions() {
			has[name] = true
		}
	}
	for _, f := range sig.All() {
		require.True(t, has[f.Name] || f.Alias != "", fmt.Sprintf("%s has no golden data", f.Name))
	}
}
