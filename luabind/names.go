package luabind

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// refuseUnknown makes a name that mx or a module inside of it does not have an error, as it is in Python: otherwise it
// is nil, which Lua reports as a call of something that is no function, and which says "no dtype" for a misspelled one.
// rawget asks without an error.
func (m *module) refuseUnknown() {
	m.refuseUnknownIn(m.LTable, "")
	for _, name := range m.modules {
		m.refuseUnknownIn(m.inner[name], name+".")
	}
	m.refusePython()
}

// pythonConstants are globals that scripts read out of habit, and what Lua calls them.
var pythonConstants = map[string]string{"True": "true", "False": "false", "None": "nil"}

// refusePython makes reading Python's constants an error: they would be nil, and {keepdims = True} nothing at all. A
// script that defines them, or gives its globals a metatable of its own, has its way.
func (m *module) refusePython() {
	s := m.s
	globals := s.L.Get(lua.GlobalsIndex).(*lua.LTable)
	mt := s.NewTable(0, 1)
	s.Method(mt, "__index", func(L *lua.LState) int {
		name, ok := L.Get(2).(lua.LString)
		if lua := pythonConstants[string(name)]; ok && lua != "" {
			s.raise(fmt.Errorf("%s is Python: write %s", name, lua))
		}
		return 0
	})
	s.L.SetMetatable(globals, mt)
}

// refuseUnknownIn is refuseUnknown for one module, whose names begin with prefix.
func (m *module) refuseUnknownIn(module *lua.LTable, prefix string) {
	s := m.s
	mt := s.NewTable(0, 1)
	s.Method(mt, "__index", func(L *lua.LState) int {
		name, ok := L.Get(2).(lua.LString)
		if !ok {
			return 0
		}
		s.Unfold(module)
		hint := m.hint(prefix, string(name), module)
		s.raise(s.call().Errorf("mx", "there is no mx.%s%s%s", prefix, string(name), hint))
		return 0
	})
	s.L.SetMetatable(module, mt)
}

// hint says what a name that a module does not have may have meant.
func (m *module) hint(prefix, name string, in *lua.LTable) string {
	loadLibrary(m.s)
	if hint := m.notYet(prefix, name); hint != "" {
		return hint
	}
	if slices.Contains([]string{"none", "None", "null", "nil"}, name) {
		return "; false stands for None in a list, as in in_axes = {0, false}, and nil elsewhere"
	}
	if here := elsewhere[name]; here != "" {
		return "; mx." + here + " does that"
	}
	if m.funcs[name] != nil {
		return "; there is mx." + name
	}
	if hint := suggest(name, keysOf(in)); hint != "" {
		return hint
	}
	return "; help(mx" + strings.TrimSuffix("."+prefix, ".") + ") lists what there is"
}

// elsewhere are names of functions in PyTorch, in NumPy and in MLX that mx has under another name. One that mx has too
// is not looked for here.
var elsewhere = map[string]string{
	"tensor": "array", "cat": "concatenate", "hstack": "concatenate", "vstack": "concatenate",
	"unsqueeze": "expand_dims", "permute": "transpose", "ravel": "flatten",
	"gather": "take_along_axis",
	"sub":    "subtract", "mul": "multiply", "div": "divide", "neg": "negative",
	"mm": "matmul", "bmm": "matmul", "dot": "matmul", "mod": "remainder", "fmod": "remainder",
	"eq": "equal", "ne": "not_equal", "gt": "greater", "ge": "greater_equal", "lt": "less", "le": "less_equal",
	"conj":  "conjugate",
	"clamp": "clip", "amax": "max", "amin": "min",
	"detach": "stop_gradient", "cast": "astype", "to": "astype", "numpy": "tolist",
	"rand": "random.uniform", "randn": "random.normal", "randint": "random.randint", "manual_seed": "random.seed",
	"backward": "grad", "no_grad": "stop_gradient", "silu": "nn.silu", "relu": "nn.relu", "gelu": "nn.gelu",
	"log_softmax": "nn.log_softmax", "softplus": "nn.softplus", "leaky_relu": "nn.leaky_relu",
	"rms_norm": "fast.rms_norm", "layer_norm": "fast.layer_norm", "rope": "fast.rope",
	"scaled_dot_product_attention": "fast.scaled_dot_product_attention", "metal_kernel": "fast.metal_kernel",
}

// keysOf is a table's keys that are strings, in no order.
func keysOf(t *lua.LTable) []string {
	var keys []string
	t.ForEach(func(k, _ lua.LValue) {
		if text, ok := k.(lua.LString); ok {
			keys = append(keys, string(text))
		}
	})
	return keys
}

// suggest proposes the known name that was probably meant, or returns "".
func suggest(name string, known []string) string {
	if best := Nearest(name, known); best != "" {
		return "; did you mean " + best + "?"
	}
	return ""
}

// Nearest is the known name that was probably meant by another one; "" if none is near.
func Nearest(name string, known []string) string {
	const most = 100 // bytes of a name: comparing longer ones takes long
	if len(name) > most {
		return ""
	}
	best, distance := "", 3 // of several as near, the one whose case fits better, else the first
	if len(name) < 6 {      // two of a few letters are another word
		distance = 2
	}
	for _, k := range known {
		if len(k) > most {
			continue
		}
		d := editDistance(strings.ToLower(name), strings.ToLower(k))
		if d < distance || d == distance && best != "" &&
			cmp.Or(cmp.Compare(editDistance(name, k), editDistance(name, best)), cmp.Compare(k, best)) < 0 {
			best, distance = k, d
		}
	}
	return best
}

// editDistance counts the letters to insert, delete, replace or swap with their neighbour to turn a into b.
func editDistance(a, b string) int {
	var before []int
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			row[j+1] = min(last[j+1], row[j]) + 1
			if a[i] == b[j] {
				row[j+1] = min(row[j+1], last[j])
			} else {
				row[j+1] = min(row[j+1], last[j]+1)
			}
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
