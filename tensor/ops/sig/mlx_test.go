package sig

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The list is MLX's: names of each sort, with what their docstrings say.
func TestMLXNames(t *testing.T) {
	require.Greater(t, len(MLXNames()), 400)
	require.Equal(t, &MLX{Name: "roll", Calls: [][]string{{"a", "shift", "axis=None"}}}, MLXName("roll"))
	require.Equal(t, [][]string{{"start", "stop", "step", "dtype=None"}, {"stop", "step=None", "dtype=None"}},
		MLXName("arange").Calls)
	require.Equal(t, "arccos", MLXName("acos").SecondOf)
	require.Equal(t, "linalg.norm", MLXName("matrix_norm").SecondOf)
	require.Equal(t, "Dtype", MLXName("bfloat16").What)
	require.Equal(t, "module", MLXName("fft").What)
	require.Equal(t, "property", MLXName("array.T").What)
	require.Equal(t, [][]string{{"axis=None", "keepdims=False"}}, MLXName("array.sum").Calls)
	require.Equal(t, [][]string{{"a", "n=None", "axis=-1", "norm='backward'"}}, MLXName("fft.fft").Calls)
	require.Equal(t, [][]string{{"subscripts", "*operands"}}, MLXName("einsum").Calls)
	require.Empty(t, MLXName("clear_cache").Calls[0])
	require.Nil(t, MLXName("softmx"))
}

// A signature is MLX's in names, order and defaults, or it is said how it differs.
func TestDiffers(t *testing.T) {
	for name, cases := range map[string]map[string]string{
		"roll": {
			"a shift:int|ints axis:axes?":          "",
			"a axis:axes? shift:int|ints":          "parameter 1 is axis, MLX's is shift",
			"a shift:int|ints":                     "MLX has the parameter axis=None too",
			"a shift:int|ints axis:axes=0":         `the default of axis is "0", MLX's is None`,
			"a shift:int|ints axis:axes":           `the default of axis is "", MLX's is None`,
			"a shift:int|ints axis:axes? more:int": "MLX has no parameter more",
		},
		"isclose": {
			"a b rtol:number=1e-5 atol:number=1e-8 equal_nan:bool=false": "",
			"a b rtol:number=1e-4 atol:number=1e-8 equal_nan:bool=false": `the default of rtol is "1e-4", MLX's is 1e-05`,
			"a b rtol:number=1e-5 atol:number=1e-8 equal_nan:bool=true":  `equal_nan is "true", MLX's is False`,
		},
		"eye":       {"n:int m:int? k:int=0 dtype:dtype=float32": "", "n:int m:int? k:int=0 dtype:dtype?": "is float32"},
		"quantize":  {"w group_size:int? bits:int? mode:string=affine global_scale:array?": ""},
		"arange":    {"start:number stop:number? step:number? dtype:dtype?": ""}, // which MLX demands, but may be None
		"einsum":    {"subscripts:string operands...": "", "subscripts:string operands:arrays": "any number of arguments"},
		"fft.rfft2": {"a s:ints? axes:ints=[-2,-1] norm:string=backward": ""},
		"addmm":     {"c a b alpha:number=1 beta:number=1": "", "c a b alpha:number=1 beta:number=2": `"2", MLX's is 1.0`},
	} {
		for text, want := range cases {
			diff := MLXName(name).Differs(MustParse(text))
			if want == "" {
				require.Empty(t, diff, "%s(%s)", name, text)
			} else {
				require.Contains(t, diff, want, "%s(%s)", name, text)
			}
		}
	}
}
