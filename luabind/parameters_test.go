package luabind

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// otherwise are the functions whose parameters differ from those of MLX's function of that name, and why.
var otherwise = map[string]string{
	"compile":           "check is beside MLX's parameters",
	"export_function":   "the keyword arguments are a table among args",
	"export_to_dot":     "the keyword arguments are a table among args",
	"fast.metal_kernel": "mutable_inputs is beside MLX's parameters, whose kernels may write to any input",
	"load":              "blocks is beside MLX's parameters, which knows no blocks of llama.cpp's",
	"printoptions":      "the function that runs with the options stands for what Python puts into a with statement",
	"save_gguf":         "blocks is beside MLX's parameters, which knows no blocks of llama.cpp's",
	"savez":             "the keyword arguments are a table among args",
	"savez_compressed":  "the keyword arguments are a table among args",
	"stream":            "the function that runs with the stream stands for what Python puts into a with statement",
}

// Every function that MLX has takes MLX's parameters, in their order and with their defaults.
func TestParameters(t *testing.T) {
	t.Parallel()
	compared := 0
	for _, f := range allFunctions() {
		m := sig.MLXName(f.name)
		if m == nil || len(m.Calls) == 0 {
			continue
		}
		var params []sig.Param
		for _, p := range f.params {
			params = append(params, p.Param)
		}
		diff := m.Differs(params)
		if otherwise[f.name] != "" {
			require.NotEmpty(t, diff, "%s does not differ from MLX's: %s", f.name, otherwise[f.name])
			continue
		}
		if diff != "" {
			t.Errorf("%s: %s", f.name, diff)
		}
		compared++
	}
	require.Greater(t, compared, 100)
}

// The constructors of mx.nn and mx.optimizers take the arguments of MLX's, in their order and with their defaults.
func TestConstructors(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/nn/constructors.txt")
	require.NoError(t, err)
	ours := map[string]*function{}
	s := newTestState(t)
	loadLibrary(s)
	for _, f := range s.mx.classes {
		ours[f.name] = f
	}
	for name, f := range s.mx.funcs {
		ours[name] = f
	}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		name, params := words[0], words[1:]
		if name == "#" || name == "nn.FullyShardedModule" { // missing: see docs/differences.md
			continue
		}
		require.NotNil(t, ours[name], name)
		var got []string
		for _, p := range ours[name].params {
			word := p.Name
			switch v := p.value.(type) {
			case nil:
				if p.optional && !p.Many {
					word += "=nil"
				}
			case int:
				word += fmt.Sprintf("=%g", float64(v))
			case []int:
				word += fmt.Sprintf("=%g", float64(v[0]))
			default:
				word += fmt.Sprintf("=%v", v)
			}
			if p.Many {
				word += "..."
			}
			got = append(got, word)
		}
		require.Len(t, got, len(params), "%s: %v, want %v", name, got, params)
		for i, want := range params {
			key, value, has := strings.Cut(want, "=")
			if n, err := strconv.ParseFloat(value, 64); has && err == nil {
				want = fmt.Sprintf("%s=%g", key, n)
			}
			if value == "*" { // a table or a function, which a call makes where none is given
				want = key + "=nil"
			}
			require.Equal(t, want, got[i], name)
		}
	}
}
