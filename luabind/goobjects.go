package luabind

import (
	"fmt"
	"reflect"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/luabind/lua51"
)

// goObject is a Go struct with methods, of which a table has the fields. Its methods are the table's, and act on the
// struct: it gets the fields that the script has set before, and the table gets its fields afterwards.
type goObject struct {
	p     reflect.Value         // a pointer to the struct
	given reflect.Type          // what Lua was given: the pointer or the struct
	had   map[string]lua.LValue // the fields as the table got them last
	was   map[string]any        // what they were in Go, of those that can be compared
}

// reached tells h of the fields, which are compared with the table's.
func (o *goObject) reached(h hearer) {
	for _, v := range o.had {
		h.value(v)
	}
}

// goObjectKey is where the metatable of such a table has the object.
const goObjectKey = "go"

// objectOf is the object that a value is the table of.
func objectOf(v lua.LValue) (*goObject, *lua.LTable) {
	t, ok := v.(*lua.LTable)
	if !ok {
		return nil, nil
	}
	mt, ok := t.Metatable.(*lua.LTable)
	if !ok {
		return nil, nil
	}
	o, _ := unwrap[*goObject](mt.RawGetString(goObjectKey))
	return o, t
}

// object makes a table of fields an object with the methods of a struct, if it has any; p points at it.
func (c *inward) object(t *lua.LTable, p reflect.Value, given reflect.Type) {
	if p.NumMethod() == 0 {
		return
	}
	methods := methodsOf(c.s, p.Type())
	o := &goObject{p: p, given: given, had: map[string]lua.LValue{}, was: map[string]any{}}
	for _, f := range luaFields(p.Type().Elem()) {
		o.had[f.name] = t.RawGetString(f.name)
		if field, err := p.Elem().FieldByIndexErr(f.Index); err == nil {
			o.note(f.name, field)
		}
	}
	mt := c.s.NewTable(0, 4)
	mt.RawSetString(goObjectKey, c.s.NewUserData(o, lua.LNil, 0))
	mt.RawSetString("__index", methods)
	mt.RawSetString("__metatable", lua.LString(typeText(given)))
	if text := methods.RawGetString("String"); text != lua.LNil && p.Type().Implements(reflect.TypeFor[fmt.Stringer]()) {
		mt.RawSetString("__tostring", text)
	}
	t.Metatable = mt
}

// methodsOf are the methods of a type as functions of Lua, made once.
func methodsOf(s *State, t reflect.Type) *lua.LTable {
	if made := s.goMethods[t]; made != nil {
		return made
	}
	methods := s.NewTable(0, t.NumMethod())
	for i := range t.NumMethod() {
		m := t.Method(i)
		s.Method(methods, m.Name, func(L *lua.LState) int { return callMethod(s, t, m, lua51.Args(L)) })
	}
	if s.goMethods == nil {
		s.goMethods = map[reflect.Type]*lua.LTable{}
	}
	s.goMethods[t] = methods
	return methods
}

// callMethod calls a method of the object that is the first argument.
func callMethod(s *State, t reflect.Type, m reflect.Method, args []lua.LValue) int {
	var o *goObject
	var table *lua.LTable
	what := "nothing"
	if len(args) > 0 {
		o, table = objectOf(args[0])
		what = describe(args[0])
	}
	if o == nil || o.p.Type() != t {
		s.raise(fmt.Errorf("%s is a method of %s: call it as object:%s(...), it got %s", m.Name, typeText(t), m.Name, what))
	}
	if err := o.set(s, table); err != nil {
		s.raise(err)
	}
	g := &goCall{s: s, name: m.Name, code: m.Func.Pointer(), f: o.p.Method(m.Index)}
	n := g.run(args[1:])
	c := inward{s: s, ctx: s.Context()}
	for _, f := range luaFields(t.Elem()) {
		if err := c.refresh(o, table, f); err != nil {
			s.raise(err)
		}
	}
	return n
}

// set gives the struct the fields that a script has set.
func (o *goObject) set(s *State, t *lua.LTable) error {
	for _, f := range luaFields(o.p.Type().Elem()) {
		now := t.RawGetString(f.name)
		if now == o.had[f.name] {
			continue
		}
		field, err := o.p.Elem().FieldByIndexErr(f.Index)
		if err != nil {
			continue // of an embedded pointer that is nil
		}
		v, err := s.ToGo(s.Context(), now)
		if err == nil {
			var x reflect.Value
			if x, err = into(s, s.Context(), v, f.Type); err == nil {
				field.Set(x)
				o.had[f.name] = now
				o.note(f.name, field)
				continue
			}
		}
		return under("the field "+f.name, err)
	}
	return nil
}

// note keeps what a field is in Go, if that can be compared.
func (o *goObject) note(name string, field reflect.Value) {
	delete(o.was, name)
	if field.Comparable() {
		o.was[name] = field.Interface()
	}
}

// refresh gives the table a field of the struct, unless it is what it was.
func (c *inward) refresh(o *goObject, t *lua.LTable, f luaField) error {
	field, err := o.p.Elem().FieldByIndexErr(f.Index)
	if err != nil || missing(field) {
		t.RawSetString(f.name, lua.LNil)
		o.had[f.name] = lua.LNil
		return nil
	}
	if was, ok := o.was[f.name]; ok && field.Comparable() && was == field.Interface() {
		return nil
	}
	o.note(f.name, field)
	v, err := c.element(field)
	if err != nil {
		return under("the field "+f.name, err)
	}
	t.RawSetString(f.name, v)
	o.had[f.name] = v
	return nil
}

// value is what Go gets back for the object's table: what it gave, with the fields that the script has set.
func (o *goObject) value(s *State, t *lua.LTable) (any, error) {
	if err := o.set(s, t); err != nil {
		return nil, err
	}
	if o.given.Kind() == reflect.Pointer {
		return o.p.Interface(), nil
	}
	return o.p.Elem().Interface(), nil
}
