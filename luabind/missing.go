package luabind

import (
	"strings"

	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// notYet says of a name of MLX that mx does not have what to write in its place; of other names it is "".
func (m *module) notYet(prefix, name string) string {
	known := sig.MLXName(prefix + name)
	if prefix == "" && known == nil {
		known = sig.MLXName("array." + name)
	}
	switch {
	case known != nil && m.funcs[known.SecondOf] != nil:
		return "; mx." + known.SecondOf + " does that"
	case known != nil && m.funcs[elsewhere[name]] != nil:
		return "; mx." + elsewhere[name] + " does that"
	case prefix == "" && name == "core":
		return "; mx itself is MLX's mlx.core"
	case known != nil && never[strings.TrimSuffix(prefix, ".")] == "" && never[prefix+name] == "":
		return " yet; docs/manual/missing.md lists what MLX has and mx has not"
	case known != nil:
		return ": " + never[prefix+name]
	}
	return ""
}
