package luabind

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// otherwise are the functions whose parameters differ from those of MLX's function of that name, and why.
var otherwise = map[string]string{
	"compile":          "check is beside MLX's parameters",
	"export_function":  "the keyword arguments are a table among args",
	"export_to_dot":    "the keyword arguments are a table among args",
	"printoptions":     "the function that runs with the options stands for what Python puts into a with statement",
	"savez":            "the keyword arguments are a table among args",
	"savez_compressed": "the keyword arguments are a table among args",
	"stream":           "the function that runs with the stream stands for what Python puts into a with statement",
}

// Every function that MLX has takes MLX's parameters, in their order and with their defaults.
func TestParameters(t *testing.T) {
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
