package luabind

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/luabind/lua51"
	"github.com/mlxlua/mlxlua/tensor"
	_ "github.com/mlxlua/mlxlua/tensor/ops/rooms" // declares the functions of mx
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

const (
	dtypeKind  = "dtype"
	deviceKind = "device"
	streamKind = "stream"
)

// allRows are the rows of the functions that are no ops.
func allRows() []row {
	all := slices.Concat(coreRows, fileRows, dataRows, imageRows, trainRows, dtypeRows, distributedRows)
	for _, rows := range [][]row{transformRows, kernelRows, evalRows, streamRows, memoryRows, compileRows, scopeRows,
		exportRows, deviceRows, printRows, plotRows, metalMemory()} {
		for _, r := range rows {
			r.host, r.keeps = true, true
			all = append(all, r)
		}
	}
	return all
}

// allFunctions are the functions of mx but those written in Lua, as they are for every state: nobody may change them.
var allFunctions = sync.OnceValue(func() []*function {
	var all []*function
	for _, f := range sig.All() {
		all = append(all, opFunction(f))
	}
	for _, r := range allRows() {
		all = append(all, newFunction(r))
	}
	return all
})

// openMX makes the module mx and its metatables, and enters it as a global and for require.
func (s *State) openMX() {
	s.openErrors()
	s.openShapes()
	s.openCustom()
	s.openKernels()
	s.openCompiled()
	openGroups(s)
	openExported(s)
	s.openNames()
	s.ownMethods = ownMethods(s)
	mx := s.NewTable(0, 512)
	s.mx = &module{LTable: mx, s: s, methods: s.NewTable(0, 256), funcs: map[string]*function{},
		help: map[*lua.LFunction]*function{}, classes: map[*lua.LTable]*function{}, modules: libraryModules(),
		inner: map[string]*lua.LTable{}}
	s.arrays = &arrayType{s: s, meta: s.meta(arrayKind), methods: s.mx.methods}
	s.mx.open()
	loaded := s.L.GetField(s.L.GetGlobal("package"), "loaded").(*lua.LTable)
	loaded.RawSetString("mx", mx)
	s.L.SetGlobal("mx", mx)
	openPackages(s)
}

// module is the module mx of a state. It knows what mx holds, for help, completion and hints.
type module struct {
	*lua.LTable
	s       *State
	methods *lua.LTable                  // of arrays
	modules []string                     // the modules inside of mx: those of its functions, and those written in Lua
	inner   map[string]*lua.LTable       // their tables
	funcs   map[string]*function         // by full name: "softmax", "random.uniform"
	help    map[*lua.LFunction]*function // by what a script has
	classes map[*lua.LTable]*function    // of modules written in Lua: what makes their objects

	defining *defined // by the module that is being loaded; nil: none is
}

// open makes what the module holds.
func (m *module) open() {
	s := m.s
	for _, f := range allFunctions() {
		if inner, _, ok := strings.Cut(f.name, "."); ok && !slices.Contains(m.modules, inner) {
			m.modules = append(m.modules, inner)
		}
	}
	slices.Sort(m.modules)
	for _, name := range m.modules {
		m.inner[name] = s.NewTable(0, 32)
		m.RawSetString(name, m.inner[name])
	}
	for _, f := range allFunctions() {
		s.define(m.within(f.name), f)
	}
	s.arrays.open()
	m.addMethods()
	m.addConstants()
	m.openRandomState()
	s.Method(m.LTable, "dims", s.dims)
	m.addHelp()
	m.refuseUnknown()
	s.openLibrary()
}

// within is the table that a function's full name puts it into: mx, or a module inside of it.
func (m *module) within(name string) *lua.LTable {
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		return m.inner[name[:i]]
	}
	return m.LTable
}

// addInner makes a module inside of another one, nn.losses, which is not entered there yet.
func (m *module) addInner(name string) {
	t := m.s.NewTable(0, 1)
	m.inner[name] = t
	m.modules = append(m.modules, name)
	slices.Sort(m.modules)
	m.refuseUnknownIn(t, name+".")
}

// addMethods makes the functions whose first parameter is an array methods.
func (m *module) addMethods() {
	for name, f := range m.funcs {
		if strings.Contains(name, ".") || len(f.params) == 0 {
			continue
		}
		if k := f.params[0].kind; !f.params[0].Many && (k == sig.KindArray || k == sig.KindOperand) {
			m.s.arrays.method(f)
		}
	}
}

// setToString makes tostring of a kind of values their own text, or the kind.
func (s *State) setToString(mt *lua.LTable, kind string) {
	s.Method(mt, "__tostring", func(L *lua.LState) int {
		if t, ok := L.CheckUserData(1).Value.(interface{ String() string }); ok {
			L.Push(lua.LString(t.String()))
		} else {
			L.Push(lua.LString(kind))
		}
		return 1
	})
}

// openNames makes the metatables of values that print as their name: dtypes, devices, streams, complex numbers. Kernels
// and other functions that are values get their text too.
func (s *State) openNames() {
	for _, kind := range []string{dtypeKind, deviceKind, streamKind, complexKind, categoryKind} {
		mt := s.meta(kind)
		s.setToString(mt, kind)
		s.Method(mt, "__concat", func(L *lua.LState) int {
			L.Push(lua.LString(lua51.Text(L, L.Get(1)) + lua51.Text(L, L.Get(2))))
			return 1
		})
		s.Method(mt, "__eq", func(L *lua.LState) int {
			L.Push(lua.LBool(L.CheckUserData(1).Value == L.CheckUserData(2).Value))
			return 1
		})
	}
	for _, kind := range []string{kernelKind, compiledKind, customKind, atKind} {
		s.setToString(s.meta(kind), kind)
	}
	s.Method(s.meta(dtypeKind), "__index", func(L *lua.LState) int {
		d, _ := unwrap[tensor.DType](L.Get(1))
		if L.Get(2).String() == "size" {
			L.Push(lua.LNumber(d.Size()))
			return 1
		}
		return 0
	})
	s.Method(s.meta(deviceKind), "__index", func(L *lua.LState) int {
		d, _ := unwrap[tensor.DeviceID](L.Get(1))
		switch L.Get(2).String() {
		case "type":
			L.Push(s.userdata(deviceKind, tensor.DeviceID{Kind: d.Kind}))
			return 1
		case "index":
			L.Push(lua.LNumber(d.Index))
			return 1
		}
		return 0
	})
	s.Method(s.meta(streamKind), "__tostring", func(L *lua.LState) int {
		st, ok := unwrap[*tensor.Stream](L.Get(1))
		if !ok {
			L.ArgError(1, "a stream expected")
		}
		L.Push(lua.LString(fmt.Sprintf("Stream(%v, %d)", st.Device(), streamIndex(s, st))))
		return 1
	})
	s.Method(s.meta(streamKind), "__index", func(L *lua.LState) int {
		st, _ := unwrap[*tensor.Stream](L.Get(1))
		switch L.Get(2).String() {
		case "device":
			L.Push(s.userdata(deviceKind, st.Device()))
			return 1
		case "index":
			L.Push(lua.LNumber(streamIndex(s, st)))
			return 1
		}
		return 0
	})
	s.Method(s.meta(complexKind), "__index", func(L *lua.LState) int {
		z, _ := unwrap[complexNumber](L.Get(1))
		switch L.Get(2).String() {
		case "re":
			L.Push(lua.LNumber(real(complex64(z))))
			return 1
		case "im":
			L.Push(lua.LNumber(imag(complex64(z))))
			return 1
		}
		return 0
	})
}

// dtype is the Lua value of a dtype: one for each.
func (s *State) dtype(d tensor.DType) *lua.LUserData {
	if s.dtypes[d] == nil {
		s.dtypes[d] = s.userdata(dtypeKind, d)
	}
	return s.dtypes[d]
}

// addConstants enters the dtypes, numbers and devices.
func (m *module) addConstants() {
	s := m.s
	for _, d := range tensor.DTypes() {
		m.RawSetString(d.String(), s.dtype(d))
	}
	m.RawSetString("bool_", s.dtype(tensor.Bool))
	for name, v := range map[string]float64{"inf": math.Inf(1), "nan": math.NaN(), "pi": math.Pi, "e": math.E,
		"euler_gamma": 0.57721566490153286060651209008240243} {
		m.RawSetString(name, lua.LNumber(v))
	}
	for c := range above {
		m.RawSetString(string(c), s.userdata(categoryKind, c))
	}
	m.RawSetString("newaxis", lua.LFalse)
	m.inner["distributed"].RawSetString("Group", lua.LString(groupKind))
	m.RawSetString("cpu", s.userdata(deviceKind, tensor.DeviceID{Kind: tensor.CPU}))
	m.RawSetString("gpu", s.userdata(deviceKind, tensor.DeviceID{Kind: tensor.GPU}))
}

// toWorkStream is toStream for work: where no GPU is open, what a script sends to mx.gpu runs on the default device,
// whose kernels are the same. Questions about mx.gpu are answered truly.
func toWorkStream(s *State, v lua.LValue) (*tensor.Stream, error) {
	gpu := tensor.DeviceID{Kind: tensor.GPU}
	if d, ok := unwrap[tensor.DeviceID](v); ok && d == gpu && !isOpen(gpu) {
		return deviceStream(s, tensor.DefaultDevice())
	}
	return toStream(s, v)
}

// deviceStream is the default stream of a device: in a sandbox the state's own, where that is the device's.
func deviceStream(s *State, d tensor.DeviceID) (*tensor.Stream, error) {
	if s.own != nil && s.own.Device() == d {
		return s.own, nil
	}
	st, err := tensor.DefaultStream(d)
	if err == nil && s.own != nil && !slices.Contains(s.others, st) {
		s.others = append(s.others, st)
	}
	return st, err
}

// ownStreams are the streams that a state in a sandbox uses. Without a device there are none.
func ownStreams(s *State) []*tensor.Stream {
	if s.own == nil {
		return nil
	}
	return append([]*tensor.Stream{s.own}, s.others...)
}

// streamIndex is a stream's number: the program's, but in a sandbox one of the state's, since the program's says how
// many states there have been.
func streamIndex(s *State, st *tensor.Stream) int {
	if s.own == nil {
		return st.Index()
	}
	return slices.Index(s.others, st) + 1
}

// toStream turns a stream into itself, and a device into its default stream.
func toStream(s *State, v lua.LValue) (*tensor.Stream, error) {
	if st, ok := unwrap[*tensor.Stream](v); ok {
		return st, nil
	}
	if d, ok := unwrap[tensor.DeviceID](v); ok {
		st, err := deviceStream(s, d)
		if err != nil {
			return nil, fmt.Errorf("is %v: %w", d, err)
		}
		return st, nil
	}
	return nil, wrong(v, "a stream or a device such as mx.cpu")
}
