package msl

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/mlxlua/mlxlua/metal/kir"
)

// FunctionConstant is a value for a function constant of a text.
type FunctionConstant struct {
	Name  string // as the text declares it, with its namespaces: "steel::align"; "": Index says which
	Index int
	// Values are bools for bool, float64s for numbers, or an integer's digits as a string where a float64 does not hold
	// them: one for a scalar, and one for each component of a vector.
	Values []any
}

// functionConstant is a variable with [[function_constant(n)]].
type functionConstant struct {
	name  string // with its namespaces
	index int
	given *FunctionConstant // nil: it has no value
}

// linkage is what a text declares and a kernel gets when it is made: the values of function constants, and the bodies
// of functions. What is not there is an error of the kernels that reach it, and of no others.
type linkage struct {
	c         *compiler
	vars      []*entity       // the function constants of the text, in order
	values    []ConstantValue // what they were given
	constants map[*entity]*functionConstant
	special   bool // a function constant had a part in what is evaluated: see watch
	active    bool // a kernel is being made
	missing   bool // something was not there: see whole
}

// maxConstantIndex is the greatest index of a function constant.
const maxConstantIndex = 65535

// ConstantValue is what a function constant of a text was given.
type ConstantValue struct {
	Index int
	Type  string // "float", "uint4"
	Value []byte // as in memory, little-endian
}

// bytesOf is a value as bytes.
func bytesOf(t *ctype, comps []operand) (b []byte) {
	e, _ := t.shape()
	for _, o := range comps {
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], o.bits)
		b = append(b, word[:e.size]...)
	}
	return append(b, make([]byte, max(0, t.size-len(b)))...)
}

// constantAttr returns the attribute that makes a variable a function constant.
func (d *VarDecl) constantAttr() (*Attr, bool) {
	for i := range d.Specs.Attrs {
		if d.Specs.Attrs[i].Name == "function_constant" {
			return &d.Specs.Attrs[i], true
		}
	}
	return nil, false
}

// find works out the indices of the text's function constants, and gives them the values of the
// options. What is given for none of them is an error: it is a misspelt name.
func (l *linkage) find() {
	c := l.c
	for _, ent := range l.vars {
		a, _ := ent.vdecl.constantAttr()
		fc := &functionConstant{name: ent.env.qualified(ent.name)}
		l.constants[ent] = fc
		if len(a.Args) != 1 {
			c.errorf(UnknownAttribute, a.At, "function_constant takes one index")
			continue
		}
		n, ok := c.evaluatorIn(ent.env).consts.constInt(a.Args[0], "the index of a function constant")
		if fc.index = int(n); ok && (n < 0 || n > maxConstantIndex) {
			c.errorf(UnknownAttribute, a.At, "function_constant(%d) is outside 0 to %d", n, maxConstantIndex)
		}
	}
	for i := range c.opt.FunctionConstants {
		g := &c.opt.FunctionConstants[i]
		found := false
		for _, ent := range l.vars {
			fc := l.constants[ent]
			if g.Name != "" && fc.name != g.Name || g.Name == "" && fc.index != g.Index {
				continue
			}
			found = true
			if fc.given != nil {
				c.errorf(WrongFunctionConstant, ent.at, "the function constant '%s' (index %d) is given two values", fc.name,
					fc.index)
			}
			fc.given = g
			t := c.resolverIn(ent.env).typeOf(ent.vdecl.Type)
			comps, why := constantBits(t.T, g.Values)
			if why != "" && t.T.kind != tBad {
				c.errorf(WrongFunctionConstant, ent.at, "the function constant '%s' (index %d) of type %s is given %s", fc.name,
					fc.index, t.T, why)
			}
			l.values = append(l.values, ConstantValue{fc.index, t.T.String(), bytesOf(t.T, comps)})
		}
		if !found {
			c.errorf(WrongFunctionConstant, 0, "a value is given for %s, which is no function constant of the text: %s", g,
				l.list())
		}
	}
}

// String names the constant in messages.
func (g *FunctionConstant) String() string {
	if g.Name != "" {
		return "'" + g.Name + "'"
	}
	return "the index " + strconv.Itoa(g.Index)
}

// list says which function constants a text has.
func (l *linkage) list() string {
	const most = 20
	var names []string
	for _, ent := range l.vars {
		fc := l.constants[ent]
		names = append(names, fmt.Sprintf("%s (%d)", fc.name, fc.index))
	}
	switch {
	case len(names) == 0:
		return "it has none"
	case len(names) > most:
		names = append(names[:most], "...")
	}
	return "it has " + strings.Join(names, ", ")
}

// qualified is a name of the namespace with those of the namespaces around it.
func (e *env) qualified(name string) string {
	for ; e != nil; e = e.up {
		if e.kind == envNamespace && e.name != "" {
			name = e.name + "::" + name
		}
	}
	return name
}

// constantBits makes the scalars of a function constant of what is given for it; why says what is wrong with that.
func constantBits(t *ctype, values []any) (comps []operand, why string) {
	e, n := t.shape()
	if e == nil {
		return nil, "a value: function constants are scalars and vectors"
	}
	if len(values) != n {
		return nil, fmt.Sprintf("%d of the %d values that it has", len(values), n)
	}
	for _, v := range values {
		o, why := constantScalar(e, v)
		if why != "" {
			return nil, why
		}
		comps = append(comps, o)
	}
	return comps, ""
}

// constantScalar is constantBits of one scalar.
func constantScalar(t *ctype, v any) (o operand, why string) {
	o.ty = t.kt
	switch v := v.(type) {
	case bool:
		if !t.isBool() {
			return o, fmt.Sprintf("%t, want a number", v)
		}
		return boolConst(v), ""
	case string:
		if !t.isInt() {
			return o, fmt.Sprintf("the text %q, want %s", v, t)
		}
		var err error
		if t.kt.IsSigned() {
			var x int64
			x, err = strconv.ParseInt(v, 10, 8*t.size)
			o.bits = uint64(x) & t.kt.Mask()
		} else {
			o.bits, err = strconv.ParseUint(v, 10, 8*t.size)
		}
		if err != nil {
			return o, fmt.Sprintf("the text %q, want the digits of an integer in its range", v)
		}
		return o, ""
	case float64:
		switch {
		case t.isBool():
			return o, fmt.Sprintf("the number %v, want true or false", v)
		case t.isFloat():
			o.bits = kir.FromFloat64(t.kt, v)
			return o, ""
		}
		low, high := 0.0, math.Ldexp(1, 8*t.size)
		if t.kt.IsSigned() {
			low, high = -high/2, high/2
		}
		if v != math.Trunc(v) || v < low || v >= high {
			return o, fmt.Sprintf("the number %v, want an integer in its range", v)
		}
		if v < 0 {
			o.bits = uint64(int64(v)) & t.kt.Mask()
		} else {
			o.bits = uint64(v)
		}
		return o, ""
	}
	return o, fmt.Sprintf("a %T", v)
}

// constantDefined evaluates is_function_constant_defined(name).
func (ks *constants) constantDefined(x *CallExpr) value {
	if len(x.Args) == 1 {
		if ne, ok := stripParens(x.Args[0]).(*NameExpr); ok {
			if fc := ks.c.link.constants[ks.res.resolveQuiet(ne.Name)]; fc != nil {
				ks.c.link.special = true
				return rval(typeBool, boolConst(fc.given != nil))
			}
		}
	}
	ks.c.errorf(NotConstant, x.Pos(), "is_function_constant_defined takes the name of a function constant")
	return badValue
}

// functionConstant gives a function constant its value. One that has none stands for zero where no kernel reaches it.
func (ks *constants) functionConstant(ent *entity, fc *functionConstant) value {
	c, d := ks.c, ent.vdecl
	t := c.resolverIn(ent.env).typeOf(d.Type)
	e, n := t.T.shape()
	switch {
	case t.T.kind == tBad:
		return badValue
	case e == nil:
		c.errorf(Unsupported, d.Pos(), "a function constant of type %s: they are scalars and vectors", t)
		return badValue
	}
	comps := slices.Repeat([]operand{{ty: e.kt}}, n)
	switch {
	case fc.given != nil:
		var why string
		if comps, why = constantBits(t.T, fc.given.Values); why != "" { // which has been reported
			return badValue
		}
	case c.link.fails(NoFunctionConstant, d.Pos(), "the function constant '%s' (index %d) has no value: a kernel takes "+
		"it by constants = {%s = ...}", fc.name, fc.index, fc.name):
		return badValue
	}
	t.Const = true
	o := &object{name: d.Name.Ident, q: t, fixed: true, special: true}
	for _, v := range comps {
		o.slots = append(o.slots, slot{-1, v})
	}
	return objVal(o)
}

// watch runs f and reports whether a function constant had a part in what it evaluated.
func (l *linkage) watch(f func()) (special bool) {
	before := l.special
	l.special = false
	defer func() { l.special = l.special || before }()
	f()
	return l.special
}

// fails reports an error of the kernel that is being made: it reaches something that is declared and not there. In what
// no kernel reaches that is no error, and fails is false.
func (l *linkage) fails(code Code, at Pos, format string, args ...any) bool {
	l.missing = true
	if l.active {
		l.c.errorf(code, at, format, args...)
	}
	return l.active
}

// unreached runs f for code that never runs, as behind is_function_constant_defined, if never is true.
func (l *linkage) unreached(never bool, f func()) {
	before := l.active
	l.active = before && !never
	defer func() { l.active = before }()
	f()
}

// whole runs f and reports whether all was there that it reached.
func (l *linkage) whole(f func()) bool {
	before := l.missing
	l.missing = false
	defer func() { l.missing = l.missing || before }()
	f()
	return !l.missing
}

// ofKernel reports whether an error is of the kernel alone that reaches it.
func (e *Error) ofKernel() bool { return e.Code == NoFunctionConstant || e.Code == NoBody }
