package mlxlua_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua"
)

// TestKernelsKeepSharedArrays: what a host gives to several users' states no user's kernel changes, whatever its text
// does with the pointer; where it is a mutable input the kernel has a copy.
func TestKernelsKeepSharedArrays(t *testing.T) {
	t.Parallel()
	shared := mlxlua.FromSlice(make([]float32, 1024), 1024)
	const call = `local cfg = {name = "k", input_names = {"x"}, output_names = {"out"}, source = source, header = header,
		mutable_inputs = mutable}
	local out, changed = mx.fast.metal_kernel(cfg){inputs = {w}, grid = {1024, 1, 1}, threadgroup = {256, 1, 1},
		output_shapes = {{1024}}, output_dtypes = {mx.float32}}
	mx.eval(out, changed)
	return (changed or out):sum():item()`
	for _, c := range []struct{ source, more, want string }{
		{"((device float*)x)[thread_position_in_grid.x] = 1;", "", "write to 'x', which is an input"},
		{"device float* p = thread_position_in_grid.y == 0 ? (device float*)x : out; p[3] = 1;", "",
			"write of x[3], which is an input"},
		{"ulong q = ulong(x) + 4 * thread_position_in_grid.x; *(device float*)q = 1;", "", "which is an input"},
		{"x[0] = 1;", `header = "#define const"`, "the header changes what const means"},
		{"x[thread_position_in_grid.x] = 1;", `mutable = {"x"}`, ""},
	} {
		for range 2 {
			s, err := mlxlua.Open(mlxlua.Options{Sandbox: true})
			require.NoError(t, err)
			require.NoError(t, s.Set("w", shared))
			require.NoError(t, s.Set("source", c.source))
			out, err := s.Run(t.Context(), "user", c.more+" "+call)
			if c.want == "" {
				require.NoError(t, err)
				require.EqualValues(t, 1024, out[0])
			} else {
				require.ErrorContains(t, err, c.want, c.source)
			}
			s.Close()
			got, err := mlxlua.ToSlice[float32](t.Context(), shared)
			require.NoError(t, err)
			require.Equal(t, make([]float32, 1024), got, c.source)
		}
	}
}
