package luabind

import (
	"maps"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// Manual is what the manual of mx is made of.
type Manual struct {
	// Functions are sorted by module, then by name.
	Functions []ManualEntry
	// Packages are the functions of the packages that come with the program, sorted: those of lm, then of its objects.
	Packages []ManualEntry
	// Missing are MLX's names that mx has not, sorted.
	Missing []string
	// Never are MLX's names that mx will not have, and why.
	Never map[string]string
}

// ManualEntry is a function of mx, or of a package.
type ManualEntry struct {
	Name  string // below mx: "softmax", "random.normal"; of a package with its name: "lm.load", "lm.Session.answer"
	Usage string // "mx.softmax(a, axis=nil)"
	Help  string // "" if it is an op, whose help is its Go function's comment
}

// NewManual lists what a Lua state has.
func NewManual() Manual {
	s := New(Options{Libraries: true})
	defer s.Close()
	loadLibrary(s)
	var m Manual
	for _, f := range slices.AppendSeq(slices.Clone(plain), maps.Values(s.mx.funcs)) {
		m.Functions = append(m.Functions, ManualEntry{f.name, f.usage(), wrapped(f.help)})
	}
	m.Packages = packageEntries(s)
	slices.SortFunc(m.Functions, byModule)
	slices.SortFunc(m.Packages, byModule)
	m.Missing, m.Never = s.mx.missing(s.mx.LTable), maps.Clone(never)
	return m
}

// byModule orders entries by module, then by name.
func byModule(a, b ManualEntry) int {
	i, j := strings.LastIndexByte(a.Name, '.'), strings.LastIndexByte(b.Name, '.')
	if c := strings.Compare(a.Name[:i+1], b.Name[:j+1]); c != 0 {
		return c
	}
	return strings.Compare(a.Name, b.Name)
}

// never are MLX's names that mx will not have, and why.
var never = map[string]string{
	"cuda": "kernels are Metal's", "fast.cuda_kernel": "kernels are Metal's, on NVIDIA's GPUs too",
	"fast.precompiled_cuda_kernel": "kernels are Metal's", "from_dlpack": "Python's protocol of sharing memory",

	// Types of Python's.
	"ArrayAt": "x:at(i) makes one", "ArrayIterator": "x:rows() iterates", "ArrayLike": "a name for Python's type checkers",
	"DeviceType": "mx.cpu and mx.gpu are devices", "Dtype": "mx.float32 is one, of mx.type \"dtype\"",
	"DtypeCategory": "mx.floating is one", "FunctionExporter": "mx.exporter makes one",
	"PrintOptions": "mx.get_printoptions() is a table", "Stream": "mx.new_stream makes one",
	"StreamContext":     "mx.stream(s, f) runs f with a stream",
	"ThreadLocalStream": "mx.new_thread_local_stream makes a stream",
	"distributed.Group": "mx.distributed.init makes one; it is what mx.type says of one",
}

// missing are the names of MLX's that mx has not: with those of its modules if t is mx, else those of the module t.
func (m *module) missing(t *lua.LTable) []string {
	var out []string
	for _, name := range sig.MLXNames() {
		module, last, qualified := strings.Cut(name, ".")
		if !qualified {
			module, last = "", name
		}
		if never[name] != "" || never[module] != "" {
			continue
		}
		var in *lua.LTable
		switch {
		case !qualified:
			in = m.LTable
		case module == "array":
			if slices.Contains(properties, last) {
				continue
			}
			in = m.methods
		default:
			in = m.inner[module]
		}
		if in != nil && m.s.Entry(in, last) != lua.LNil || t != m.LTable && t != in {
			continue
		}
		out = append(out, name)
	}
	return out
}
