package luabind

import (
	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/luabind/lua51"
	"github.com/mlxlua/mlxlua/tensor"
)

const (
	shapeKind = "shape"
	dimsKind  = "dims"
)

// openShapes makes the metatable of shapes: plain tables that print and compare, and refuse indices below 1.
func (s *State) openShapes() {
	mt := s.meta(shapeKind)
	mt.RawSetString("__metatable", lua.LNil)
	s.Method(mt, "__tostring", func(L *lua.LState) int {
		t := L.CheckTable(1)
		n, err := intList(t)
		if err != nil {
			L.Push(lua.LString("(?)"))
		} else {
			L.Push(lua.LString(tensor.Shape(n).String()))
		}
		return 1
	})
	s.Method(mt, "__eq", func(L *lua.LState) int {
		a, b := L.CheckTable(1), L.CheckTable(2)
		same := a.Len() == b.Len()
		for i := 1; same && i <= a.Len(); i++ {
			same = a.RawGetInt(i) == b.RawGetInt(i)
		}
		L.Push(lua.LBool(same))
		return 1
	})
	s.Method(mt, "__index", func(L *lua.LState) int { // of keys that the table does not have: Python's first and last
		if n, ok := L.Get(2).(lua.LNumber); ok && n < 1 {
			s.raise(s.call().Errorf("shape", "there is no dimension %v: Lua's tables count from 1, "+
				"x.shape[1] is the first, and x:dim(%v) counts as Python does", n, n))
		}
		L.Push(lua.LNil)
		return 1
	})
	s.Method(mt, "__concat", func(L *lua.LState) int {
		L.Push(lua.LString(lua51.Text(L, L.Get(1)) + lua51.Text(L, L.Get(2))))
		return 1
	})
	dims := s.meta(dimsKind)
	s.Method(dims, "__tostring", func(L *lua.LState) int {
		d, _ := unwrap[dimsOf](L.Get(1))
		bound, _ := d.Bind(nil)
		L.Push(lua.LString("dims" + bound.String()))
		return 1
	})
}

// shapeTable is a shape as Lua sees it.
func (s *State) shapeTable(shape tensor.Shape) *lua.LTable {
	t := s.NewTable(len(shape), 0)
	for _, n := range shape {
		t.Append(lua.LNumber(n))
	}
	t.Metatable = s.meta(shapeKind)
	return t
}

// dimsOf is what mx.dims gives.
type dimsOf struct{ tensor.ShapeArg }

func (d dimsOf) reached(h hearer) { d.Arrays(h.array) }

// dims is mx.dims(...): a shape of numbers, whole shapes of arrays, and single dimensions {array, axis}, none of
// which is read; "array, axis" as two arguments is a dimension too.
func (s *State) dims(L *lua.LState) int {
	c := s.call()
	var parts []tensor.ShapeArg
	fail := func(i int, v lua.LValue) {
		s.raise(c.Errorf("dims", "argument %d is %s, want a size, an array, or {array, axis}", i, describe(v)))
	}
	dim := func(x *tensor.Array, axis lua.LNumber) tensor.ShapeArg {
		n, err := toInt(axis)
		if err == nil {
			_, err = tensor.Axis(n, x.NDim())
		}
		if err != nil {
			s.raise(c.Errorf("dims", "%w", err))
		}
		return tensor.DimOf(x, n)
	}
	for i := 1; i <= L.GetTop(); i++ {
		v := L.Get(i)
		if x, ok := array(v); ok {
			if n, isAxis := L.Get(i + 1).(lua.LNumber); isAxis && len(parts) == 0 && i == 1 {
				parts = append(parts, dim(x, n))
				i++
				continue
			}
			parts = append(parts, tensor.ShapeOf(x))
			continue
		}
		if d, ok := unwrap[dimsOf](v); ok {
			parts = append(parts, d.ShapeArg)
			continue
		}
		switch v := v.(type) {
		case lua.LNumber:
			n, err := toInt(v)
			if err != nil {
				fail(i, v)
			}
			parts = append(parts, tensor.Sizes(n))
		case *lua.LTable:
			x, ok := array(v.RawGetInt(1))
			axis, isNumber := v.RawGetInt(2).(lua.LNumber)
			if !ok || !isNumber || v.Len() != 2 {
				fail(i, v)
			}
			parts = append(parts, dim(x, axis))
		default:
			fail(i, v)
		}
	}
	d := dimsOf{tensor.Concat(parts...)}
	d.Arrays((*tensor.Array).Share)
	L.Push(s.userdata(dimsKind, d))
	return 1
}
