package luabind

import (
	"fmt"
	"slices"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/fast"
)

const kernelKind = "metal_kernel"

// luaKernel is a declared kernel; calling it launches it.
type luaKernel struct {
	k    *fast.MetalKernel
	text int  // bytes of source and header
	room bool // there is room to compile it
}

// What the compiler makes of a kernel's text while it runs: so much of each byte at most, of which so much is free.
const (
	compilingBytes = 400
	freeCompiling  = 32 << 20
)

// compiles charges for what the compiler will make of the text. It runs when the first launch is computed, and asks
// nobody then.
func (k *luaKernel) compiles(s *State) {
	if more := compilingBytes*int64(k.text) - freeCompiling; more > 0 && !k.room {
		s.Charge(more)
	}
	k.room = true
}

func (k *luaKernel) String() string { return k.k.String() }

// kernelRows declare kernels.
var kernelRows = []row{{
	name: "fast.metal_kernel",
	sig: "name:string input_names:any output_names:any source:string header:string? ensure_row_contiguous:bool=true " +
		"atomic_outputs:bool=false compile_options:table? mutable_inputs:any?",
	help: "Declares a kernel; calling the result launches it: k{inputs = {x}, template = {{\"T\", x.dtype}, {\"N\", " +
		"4}}, grid = {n, 1, 1}, threadgroup = {256, 1, 1}, output_shapes = {x}, output_dtypes = {x.dtype}, " +
		"init_value = nil, verbose = false, constants = {causal = true, [3] = 16}}. The source is the body of a Metal " +
		"function, between [==[ and ]==]; " +
		"it may name Metal's attributes such as thread_position_in_grid, and of an input a a_shape, a_strides " +
		"and a_ndim. The header stands before the function. The grid counts threads. Shapes, grid and " +
		"threadgroup may be arrays, which stand for their shapes, or functions of the inputs' shapes. Inputs are " +
		"made row-contiguous unless ensure_row_contiguous = false. atomic_outputs makes outputs atomic<T>. " +
		"A kernel only reads its inputs, and a write to one is an error, but for those of mutable_inputs = {\"a\"}: of " +
		"such a one it gets a copy, or its memory where nobody else holds it, as device T*, and what the kernel leaves " +
		"there is a further result, after the outputs. " +
		"constants are values for what the header declares with [[function_constant(n)]], by name or by n: true or false " +
		"for bool, numbers, a table for a vector; a kernel that reaches one without a value fails. " +
		"compile_options = {math_mode = \"safe\", \"relaxed\" or \"fast\"}. One output is a value, several are " +
		"several. mx.custom_function gives a kernel a gradient.",
	call: func(a *args) any {
		cfg := fast.KernelConfig{Name: a.Text(0), InputNames: a.nameList(1), OutputNames: a.nameList(2), Source: a.Text(3),
			Header: a.Text(4), Strided: !a.Bool(5), AtomicOutputs: a.Bool(6), MathMode: a.mathMode(7)}
		if a.Given(8) {
			cfg.MutableInputs = a.nameList(8)
		}
		k, err := fast.NewMetalKernel(cfg)
		if err != nil {
			a.s.raise(err)
		}
		return a.s.userdata(kernelKind, &luaKernel{k: k, text: len(cfg.Source) + len(cfg.Header)})
	},
}}

// kernelCallRow describes the call of a kernel.
var kernelCallRow = row{
	name: "metal_kernel",
	sig: "inputs:list template:list? grid:list threadgroup:list output_shapes:list output_dtypes:list " +
		"init_value:number? verbose:bool=false constants:table?",
}

// openKernels makes the metatable of kernels.
func (s *State) openKernels() {
	f := newFunction(kernelCallRow)
	s.Method(s.meta(kernelKind), "__call", func(L *lua.LState) int {
		k, _ := unwrap[*luaKernel](L.Get(1))
		L.Remove(1)
		a := s.newArgs(f)
		a.collect()
		a.convert()
		call := a.kernelCall()
		k.compiles(s)
		n := a.push(k.k.Call(call, a.Ctx))
		a.done()
		return n
	})
}

// nameList is a list of names.
func (a *args) nameList(i int) []string {
	t, ok := a.raw[i].(*lua.LTable)
	if !ok {
		a.fail("%s is %s, want a table of names", a.f.params[i].Name, describe(a.raw[i]))
	}
	var out []string
	for j := 1; j <= t.Len(); j++ {
		name, ok := t.RawGetInt(j).(lua.LString)
		if !ok {
			a.fail("%s[%d] is %s, want a name", a.f.params[i].Name, j, describe(t.RawGetInt(j)))
		}
		out = append(out, string(name))
	}
	return out
}

// mathMode reads compile_options: {math_mode = "safe" | "relaxed" | "fast"}.
func (a *args) mathMode(i int) metal.MathMode {
	mode := metal.MathSafe
	t := a.table(i)
	if t == nil {
		return mode
	}
	t.ForEach(func(k, v lua.LValue) {
		if k.String() != "math_mode" {
			a.fail("compile_options has the unknown key %q; it takes math_mode", k.String())
		}
		switch v.String() {
		case "safe":
		case "relaxed":
			mode = metal.MathRelaxed
		case "fast":
			mode = metal.MathFast
		default:
			a.fail("math_mode is %s, want \"safe\", \"relaxed\" or \"fast\"", describe(v))
		}
	})
	return mode
}

// kernelCall turns a call's arguments into those of the op.
func (a *args) kernelCall() fast.KernelCall {
	call := fast.KernelCall{Inputs: a.kernelInputs(0), Template: a.template(1), Grid: a.extent(2),
		Threadgroup: a.extent(3)}
	shapes := a.sequence(4)
	for i, v := range shapes {
		call.OutputShapes = append(call.OutputShapes, a.outputShape(i, v))
	}
	for i, v := range a.sequence(5) {
		d, ok := unwrap[tensor.DType](v)
		if !ok {
			a.fail("output_dtypes[%d] is %s, want a dtype", i+1, describe(v))
		}
		call.OutputDTypes = append(call.OutputDTypes, d)
	}
	if a.Given(6) {
		v := a.Number(6)
		call.InitValue = &v
	}
	call.Constants = a.functionConstants(8)
	if a.Bool(7) {
		s := a.s // the call outlives its arguments
		call.Verbose = func(source string) { s.Write("Generated source code:\n```\n" + source + "\n```\n") }
	}
	return call
}

// functionConstants is {causal = true, [3] = 16, scale = {1, 2}}.
func (a *args) functionConstants(i int) []metal.Constant {
	t := a.table(i)
	if t == nil {
		return nil
	}
	var out []metal.Constant
	t.ForEach(func(k, v lua.LValue) {
		var c metal.Constant
		if name, ok := k.(lua.LString); ok {
			c.Name = string(name)
		} else {
			n, err := toInt(k)
			if err != nil {
				a.fail("constants has the key %s, want a name or the number of a function_constant", describe(k))
			}
			c.Index = n
		}
		list := []lua.LValue{v}
		if vector, ok := v.(*lua.LTable); ok {
			list = nil
			for j := range vector.Len() {
				list = append(list, vector.RawGetInt(j+1))
			}
		}
		for _, v := range list {
			switch v := v.(type) {
			case lua.LBool:
				c.Values = append(c.Values, bool(v))
			case lua.LNumber:
				c.Values = append(c.Values, float64(v))
			case lua.LString:
				c.Values = append(c.Values, string(v))
			default:
				a.fail("constants: %s is %s, want true, false, a number or a table of these", c, describe(v))
			}
		}
		out = append(out, c)
	})
	return out
}

// sequence is an argument that must be a table, as a list.
func (a *args) sequence(i int) []lua.LValue {
	t, ok := a.raw[i].(*lua.LTable)
	if !ok {
		a.fail("%s is %s, want a table", a.f.params[i].Name, describe(a.raw[i]))
	}
	if keys := keysOf(t); len(keys) > 0 {
		a.fail("%s has the key %q, want a list without names", a.f.params[i].Name, slices.Min(keys))
	}
	out := make([]lua.LValue, t.Len())
	for j := range out {
		out[j] = t.RawGetInt(j + 1)
	}
	return out
}

// kernelInputs are arrays or numbers; a number is float32.
func (a *args) kernelInputs(i int) []*tensor.Array {
	var out []*tensor.Array
	for j, v := range a.sequence(i) {
		if n, ok := v.(lua.LNumber); ok {
			out = append(out, ops.Number(float64(n), tensor.Float32, a.Ctx))
			continue
		}
		x, err := toArray(a, v)
		if err != nil {
			a.fail("inputs[%d] %v", j+1, err)
		}
		out = append(out, x.(*tensor.Array))
	}
	return out
}

// template is {{"T", mx.float32}, {"N", 4}, {"B", true}}.
func (a *args) template(i int) []fast.TemplateArg {
	if a.raw[i] == lua.LNil {
		return nil
	}
	if t, ok := a.raw[i].(*lua.LTable); ok && len(keysOf(t)) > 0 { // as in a Python dict
		name := slices.Min(keysOf(t))
		a.fail("template has the key %q, want a list of pairs: {{%q, value}}", name, name)
	}
	var out []fast.TemplateArg
	for j, v := range a.sequence(i) {
		pair, ok := v.(*lua.LTable)
		if !ok || pair.Len() != 2 {
			a.fail("template[%d] is %s, want a pair {name, value}", j+1, describe(v))
		}
		name, ok := pair.RawGetInt(1).(lua.LString)
		if !ok {
			a.fail("template[%d] has the name %s, want a string", j+1, describe(pair.RawGetInt(1)))
		}
		t := fast.TemplateArg{Name: string(name)}
		switch v := pair.RawGetInt(2).(type) {
		case lua.LNumber:
			n, err := toInt(v)
			if err != nil {
				a.fail("template argument %s %v", name, err)
			}
			t.Value = n
		case lua.LBool:
			t.Value = bool(v)
		default:
			d, ok := unwrap[tensor.DType](v)
			if !ok {
				a.fail("template argument %s is %s, want a dtype, an integer or a bool", name, describe(v))
			}
			t.Value = d
		}
		out = append(out, t)
	}
	return out
}

// extent is a grid or threadgroup: sizes, an array to cover, dims, or a function of the inputs' shapes.
func (a *args) extent(i int) fast.Extent {
	v, name := a.raw[i], a.f.params[i].Name
	if x, ok := array(v); ok {
		return fast.Extent{Cover: x}
	}
	if fn, ok := v.(*lua.LFunction); ok {
		return fast.Extent{Func: a.s.shapeFunc(fn)}
	}
	shape, err := shapeOf(v)
	if err != nil {
		a.fail("%s %v", name, err)
	}
	return fast.Extent{Dims: shape}
}

func (a *args) outputShape(i int, v lua.LValue) fast.OutputShape {
	name := fmt.Sprintf("output_shapes[%d]", i+1)
	if fn, ok := v.(*lua.LFunction); ok {
		return fast.OutputShape{Func: a.s.shapeFunc(fn)}
	}
	shape, err := shapeOf(v)
	if err != nil {
		a.fail("%s %v", name, err)
	}
	return fast.OutputShape{Dims: shape}
}

// shapeCall is a Lua function of shapes that nodes refer to.
type shapeCall struct{ fn *lua.LFunction }

func (c *shapeCall) reached(h hearer) { h.value(c.fn) }

// shapeFunc wraps a Lua function of the inputs' shapes. It runs on the goroutine of the state, when the kernel is
// called or a call is replayed.
func (s *State) shapeFunc(fn *lua.LFunction) *tensor.ShapeFunc {
	call := &shapeCall{fn}
	s.looks.shapes.add(call)
	return &tensor.ShapeFunc{F: func(in []tensor.Shape) ([]int, error) {
		shapes := s.NewTable(len(in), 0)
		for _, shape := range in {
			shapes.Append(s.shapeTable(shape))
		}
		out, err := s.looks.protect(call.fn, shapes)
		if err != nil {
			return nil, fmt.Errorf("the function failed: %w", s.scriptError(err))
		}
		v := lua.LValue(lua.LNil)
		if len(out) > 0 {
			v = out[0]
		}
		t, ok := v.(*lua.LTable)
		if !ok {
			return nil, fmt.Errorf("the function returned %s, want a table of sizes", describe(v))
		}
		n, err := intList(t)
		if err != nil {
			return nil, fmt.Errorf("the function's result%w", err)
		}
		return n, nil
	}}
}
