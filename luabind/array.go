package luabind

import (
	"math"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/luabind/lua51"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
)

const arrayKind = "array"

// arrayType holds what Lua knows of arrays: their metatable and their methods.
type arrayType struct {
	s       *State
	meta    *lua.LTable
	methods *lua.LTable // the functions of mx whose first parameter is an array, and a few that are no functions of mx
}

// box is a userdata of an array.
func (t *arrayType) box(x *tensor.Array) lua.LValue {
	return t.s.NewUserData(x, t.meta, arrayBytes)
}

// open fills the metatable and enters the methods that are no functions of mx.
func (t *arrayType) open() {
	s, mt := t.s, t.meta
	s.Method(mt, "__index", t.index)
	s.Method(mt, "__newindex", t.setIndex)
	s.method(t.methods, arrayObject, "rows", t.rows)
	s.method(t.methods, arrayObject, "index", func(L *lua.LState) int {
		x, _ := array(L.Get(1))
		L.Push(s.wrap(ops.Index(x, t.parts(lua51.Args(L)[1:]), s.call())))
		return 1
	})
	t.openAt()
	for event, name := range map[string]string{"__add": "add", "__sub": "subtract", "__mul": "multiply",
		"__div": "divide", "__mod": "remainder", "__pow": "power"} {
		f := s.mx.funcs[name]
		s.Method(mt, event, func(*lua.LState) int { return s.invoke(f) })
	}
	negative := s.mx.funcs["negative"]
	s.Method(mt, "__unm", func(L *lua.LState) int {
		L.SetTop(1) // Lua passes the operand twice
		return s.invoke(negative)
	})
	for event, name := range map[string]string{"__lt": "less", "__le": "less_equal", "__eq": ""} {
		s.Method(mt, event, func(L *lua.LState) int {
			if name == "" { // == is identity, as for all objects; element by element it is mx.equal
				a, _ := array(L.Get(1))
				b, _ := array(L.Get(2))
				L.Push(lua.LBool(a == b))
				return 1
			}
			s.raise(s.call().Errorf(name, "arrays are compared element by element by name: mx.%s(a, b), because Lua makes "+
				"one true or false of < and <=; a:item() < b:item() compares arrays of one element", name))
			return 0
		})
	}
	s.Method(mt, "__len", func(L *lua.LState) int {
		x, _ := array(L.Get(1))
		if x.NDim() == 0 {
			s.raise(s.call().Errorf("len", "an array without dimensions has no length"))
		}
		n, _ := x.Dim(0) // there is a dimension 0
		L.Push(lua.LNumber(n))
		return 1
	})
	s.Method(mt, "__tostring", func(L *lua.LState) int {
		x, _ := array(L.Get(1))
		s.looks.ifDue(x)
		text, err := printed(s, x)
		if err != nil {
			s.raise(err)
		}
		L.Push(lua.LString(text))
		return 1
	})
	s.Method(mt, "__concat", func(L *lua.LState) int {
		L.Push(lua.LString(lua51.Text(L, L.Get(1)) + lua51.Text(L, L.Get(2))))
		return 1
	})
}

// method makes a function of mx, whose first parameter is an array, a method.
func (t *arrayType) method(f *function) {
	fn := t.s.method(t.methods, arrayObject, f.name, func(*lua.LState) int { return t.s.invoke(f) })
	t.s.mx.help[fn] = f
}

// properties are the names that property knows.
var properties = []string{"shape", "dtype", "ndim", "size", "nbytes", "itemsize", "T", "mT", "real", "imag"}

// receiver is the array whose method op is called.
func (t *arrayType) receiver(op string, v lua.LValue) *tensor.Array {
	x, ok := array(v)
	if !ok {
		t.s.raise(t.s.call().Errorf(op, "%s is not an array", describe(v)))
	}
	return x
}

// property is x.name for a property, or nil.
func (t *arrayType) property(x *tensor.Array, name string) lua.LValue {
	s := t.s
	spec := x.Spec()
	switch name {
	case "shape":
		return s.shapeTable(x.Shape())
	case "dtype":
		return s.dtype(spec.DType)
	case "ndim":
		return lua.LNumber(x.NDim())
	case "size":
		return lua.LNumber(x.Size())
	case "nbytes":
		return lua.LNumber(x.Size() * spec.DType.Size())
	case "itemsize":
		return lua.LNumber(spec.DType.Size())
	case "T":
		return t.run("transpose", x)
	case "mT":
		return s.wrap(ops.SwapAxes(x, -2, -1, s.call()))
	case "real":
		return t.run("real", x)
	case "imag":
		return t.run("imag", x)
	}
	return nil
}

// run calls a function of mx on arrays from Go.
func (t *arrayType) run(name string, in ...*tensor.Array) lua.LValue {
	s := t.s
	f := s.mx.funcs[name]
	if f == nil {
		s.raise(s.call().Errorf(name, "there is no such function"))
	}
	a := s.newArgs(f)
	for i := range f.params {
		if a.V[i] = f.params[i].value; i < len(in) {
			a.V[i] = in[i]
		}
	}
	x := f.run(a).(*tensor.Array)
	a.done()
	return s.wrap(x)
}

// index is x[key]: a property, a method, or an index.
func (t *arrayType) index(L *lua.LState) int {
	s, x := t.s, t.receiver("index", L.Get(1))
	key := L.Get(2)
	name, isText := key.(lua.LString)
	if !isText || isSliceText(string(name)) {
		L.Push(s.wrap(ops.Index(x, t.parts([]lua.LValue{key}), s.call())))
		return 1
	}
	if v := t.property(x, string(name)); v != nil {
		L.Push(v)
		return 1
	}
	m := t.methods.RawGetString(string(name))
	if m == lua.LNil {
		hint := s.mx.notYet("", string(name))
		if here := elsewhere[string(name)]; hint == "" && here != "" {
			hint = "; mx." + here + " does that"
		}
		if hint == "" {
			hint = suggest(string(name), append(keysOf(t.methods), properties...))
		}
		if _, variable := lua51.Indexed(L); variable == "self" {
			hint = "; " + colonHint
		}
		s.raise(s.call().Errorf("array", "array has no method or property %s%s", quote(string(name)), hint))
	}
	L.Push(m)
	return 1
}

// isSliceText reports whether a string key is a slice: it starts with a digit, '-', ':', '.' or "None".
func isSliceText(s string) bool {
	return s != "" && strings.IndexByte("0123456789-:.", s[0]) >= 0 || strings.HasPrefix(s, "None")
}

// setIndex does x[key] = value: it makes the variable's userdata wrap the updated array, as Python does.
func (t *arrayType) setIndex(L *lua.LState) int {
	s, ud := t.s, L.CheckUserData(1)
	x := t.receiver("index", ud)
	key := L.Get(2)
	if name, isText := key.(lua.LString); isText && !isSliceText(string(name)) {
		s.raise(s.call().Errorf("array", "array has no property %s that can be set", quote(string(name))))
	}
	y := ops.IndexUpdate(x, t.parts([]lua.LValue{key}), "set", t.operand(x, L.Get(3)), s.call())
	if err := y.Err(); err != nil {
		s.raise(err)
	}
	ud.Value = y.Own()
	if x.Sole() && s.looks.tracing == 0 { // nobody can reach the old array any more: its memory may be y's
		tensor.Drop(x)
	}
	return 0
}

// operand converts a value that is put into x: an array, a number, or a nested table of numbers. NaN and infinities
// become the integers that astype makes of them, as those in an array do.
func (t *arrayType) operand(x *tensor.Array, v lua.LValue) *tensor.Array {
	if y, ok := array(v); ok {
		return y
	}
	c := t.s.call()
	if n, ok := v.(lua.LNumber); ok && x.DType().IsInteger() && (n != n || math.IsInf(float64(n), 0)) {
		return ops.AsType(ops.Number(float64(n), tensor.Float32, c), x.DType(), c)
	}
	y, err := arrayOf(t.s.Context(), c, v, x.DType(), false)
	if err != nil {
		t.s.raise(c.Errorf("array", "the value %v", err))
	}
	return y
}
