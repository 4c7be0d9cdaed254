package luabind

import (
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// instead holds MLX's names that mx does not have so far, and an expression to write until it has them, or "".
// docs/lua.md lists the same names.
var instead = map[string]string{
	"addmm": "mx.matmul(a, b) + c", "array_equal": "mx.all(mx.equal(a, b))", "atleast_1d": "a:reshape(-1)",
	"broadcast_arrays": "", "count_nonzero": "mx.not_equal(a, 0):sum()",
	"degrees": "a * (180 / math.pi)", "diag": "mx.where(mx.equal(mx.eye(#a), 1), a, 0)", "diff": `a["1:"] - a[":-1"]`,
	"divmod": "mx.floor_divide(a, b), mx.remainder(a, b)", "flip": `a["::-1"]`,
	"gather_mm": "mx.matmul(a, w[index])", "inner": "(a * b):sum(-1)", "isneginf": "mx.equal(a, -math.huge)",
	"isposinf": "mx.equal(a, math.huge)", "left_shift": "a * 2 ^ n", "linspace": "mx.arange(n) / (n - 1)",
	"logical_xor": "mx.not_equal(mx.not_equal(a, 0), mx.not_equal(b, 0))",
	"nan_to_num":  "mx.where(mx.isnan(a), 0, a)", "outer": "mx.expand_dims(a, 1) * b",
	"pad":     "mx.concatenate({mx.zeros({1}), a}, 0)",
	"radians": "a * (math.pi / 180)", "repeat": "mx.broadcast_to(mx.expand_dims(a, 1), {#a, n}):flatten()",
	"right_shift": "mx.floor_divide(a, 2 ^ n)", "roll": `mx.concatenate({a["-1:"], a[":-1"]}, 0)`,
	"tile": "mx.concatenate({a, a}, 0)", "tri": "mx.tril(mx.ones({n, n}))", "unflatten": "a:reshape(-1, n)",
	"vecdot": "(a * b):sum(-1)", "trace": "mx.where(mx.equal(mx.eye(#a), 1), a, 0):sum()",
	"trunc": "mx.sign(a) * mx.floor(mx.abs(a))",

	"random.categorical": "mx.argmax(a - mx.log(-mx.log(mx.random.uniform(0, 1, a.shape))), -1)",
	"random.gumbel":      "-mx.log(-mx.log(mx.random.uniform(0, 1, a.shape)))",
	"random.permutation": "mx.argsort(mx.random.bits({n}))",
	"linalg.norm":        "mx.sqrt(mx.square(a):sum())",

	"as_strided": "", "atleast_2d": "", "atleast_3d": "", "bitwise_and": "", "bitwise_invert": "", "bitwise_or": "",
	"bitwise_xor": "", "block_masked_mm": "", "conv1d": "", "conv2d": "", "conv3d": "", "conv_general": "",
	"conv_transpose1d": "", "conv_transpose2d": "", "conv_transpose3d": "", "convolve": "", "diagonal": "",
	"einsum": "", "hadamard_transform": "", "kron": "", "median": "", "meshgrid": "", "round": "", "save_gguf": "",
	"save_safetensors": "", "savez": "", "searchsorted": "", "segmented_mm": "", "tensordot": "", "unique": "", "view": "",
	"bartlett": "", "bitwise_left_shift": "", "bitwise_right_shift": "", "blackman": "", "broadcast_shapes": "",
	"can_cast": "", "clear_streams": "", "contiguous": "", "depends": "", "device_count": "", "distributed": "",
	"einsum_path": "", "export_function": "", "export_to_dot": "", "exporter": "", "from_dlpack": "",
	"from_fp8": "", "gather_qqmm": "", "hamming": "", "hanning": "", "import_function": "", "isdtype": "",
	"issubdtype": "", "minmax": "", "positive": "", "qqmm": "", "result_type": "", "savez_compressed": "",
	"set_printoptions": "", "set_wired_limit": "", "slice": "", "slice_update": "", "to_fp8": "", "unstack": "",
	"random.laplace": "", "random.multivariate_normal": "", "random.truncated_normal": "",
	"fast.cross_entropy": "", "fast.gated_delta_update": "",
}

// notYet says of a name of MLX that mx does not have what to write in its place; of other names it is "".
func (m *module) notYet(prefix, name string) string {
	text, known := instead[prefix+name]
	switch {
	case text != "":
		return " yet; write " + text
	case prefix == "nn." && name != "" && name[0] >= 'A' && name[0] <= 'Z': // a layer
		return " yet; mx.nn has functions only: write layers out, as in matmul(x, w.T) + b"
	case prefix == "" && name == "optimizers":
		return " yet; write the step out: docs/lua.md has one, in section 7"
	case prefix == "" && name == "core":
		return "; mx itself is MLX's mlx.core"
	case known, prefix != "" && keysOf(m.RawGetString(strings.TrimSuffix(prefix, ".")).(*lua.LTable)) == nil:
		return " yet; docs/lua.md says in section 10 what MLX has and mx has not"
	}
	return ""
}
