package msl

import (
	"slices"
	"strings"

	"github.com/mlxlua/mlxlua/metal/kir"
)

// atomicSet is what Metal has for atomic objects of a type in an address space: names without atomic_ and _explicit.
type atomicSet struct {
	t     kir.Type
	space Space
	ops   string
}

// The operations of 32-bit integers, and those of all types but 64-bit ones.
const (
	atomicAny      = "load store exchange compare_exchange_weak"
	atomicIntegers = atomicAny + " fetch_add fetch_sub fetch_min fetch_max fetch_and fetch_or fetch_xor"
)

// atomicTable is all that Metal has (specification 3.2, 2.6 and 6.15): floats in device memory only, and without min
// and max; of 64 bits nothing but min and max, which give no result.
var atomicTable = []atomicSet{
	{kir.I32, SpaceDevice, atomicIntegers}, {kir.I32, SpaceThreadgroup, atomicIntegers},
	{kir.U32, SpaceDevice, atomicIntegers}, {kir.U32, SpaceThreadgroup, atomicIntegers},
	{kir.Bool, SpaceDevice, atomicAny}, {kir.Bool, SpaceThreadgroup, atomicAny},
	{kir.F32, SpaceDevice, atomicAny + " fetch_add fetch_sub"},
	{kir.U64, SpaceDevice, "min max"},
}

// hasAtomic reports whether Metal has an operation on objects of a type and space, and else what it has there.
func hasAtomic(t kir.Type, space Space, op string) (has bool, others string) {
	for _, s := range atomicTable {
		if s.t == t && s.space == space {
			return slices.Contains(strings.Fields(s.ops), op), s.ops
		}
	}
	return false, ""
}

// atomicObject checks the pointer of an atomic function and returns it with the type of its value.
func (c *builtinCall) atomicObject() (ptr operand, t *ctype, ok bool) {
	p := c.mem.rvalue(c.args[0])
	if p.bad() {
		return operand{}, nil, false
	}
	if p.q.T.kind != tPtr || p.q.T.elem.T.kind != tAtomic {
		c.c.errorf(TypeMismatch, c.at, "'%s' needs a pointer to an atomic object, not %s: declare it atomic, in "+
			"metal_kernel by atomic_outputs = true", c.b.name, p.q.T)
		return operand{}, nil, false
	}
	e := p.q.T.elem
	space := e.Space.normal()
	if space != SpaceDevice && space != SpaceThreadgroup {
		c.c.errorf(AddressSpace, c.at, "'%s' works on device and threadgroup memory, not %s memory", c.b.name,
			spaceName(space))
		return operand{}, nil, false
	}
	t = e.T.elem.T
	op := strings.TrimSuffix(strings.TrimPrefix(c.b.name, "atomic_"), "_explicit")
	if has, others := hasAtomic(t.kt, space, op); !has {
		hint := "no atomic function of it"
		if others != "" {
			hint = "of it " + strings.ReplaceAll(others, " ", ", ")
		} else if t.isFloat() {
			hint = "atomic floats in device memory only"
		}
		c.c.errorf(NoMatch, c.at, "there is no '%s' of %s in %s memory: Metal has %s", c.b.name, e.T, spaceName(space), hint)
		return operand{}, nil, false
	}
	if e.Const && op != "load" {
		c.c.errorf(NotAssignable, c.at, "'%s' on a const object", c.b.name)
		return operand{}, nil, false
	}
	return p.comps[0], t, true
}

// atomicKind is what kir's atomics work on: a bool is a byte.
func atomicKind(t *ctype) kir.Type {
	if t.isBool() {
		return kir.U8
	}
	return t.kt
}

// atomicArg returns a value as the operand of an atomic operation on an object of type t.
func (c *builtinCall) atomicArg(v value, t *ctype) *kir.Instr {
	return c.em.instr(c.em.convert(v.comps[0], atomicKind(t)))
}

// atomicResult returns what an atomic operation on an object of type t has found there.
func (c *builtinCall) atomicResult(t *ctype, old operand) value {
	return rval(t, c.em.convert(old, t.kt))
}

func atomicRMW(name string, mode kir.Mode) {
	addBuiltin("atomic_"+name+"_explicit", 2, 3, func(c *builtinCall) value {
		p, t, ok := c.atomicObject()
		if !ok {
			return badValue
		}
		x := c.conv.convertTo(c.args[1], qt(t), c.at, "the operand of "+name)
		if x.bad() {
			return badValue
		}
		old := c.em.emit(&kir.Instr{Op: kir.AtomicRMW, Type: atomicKind(t), Mode: mode,
			Args: []*kir.Instr{c.em.instr(p), c.atomicArg(x, t)}})
		return c.atomicResult(t, old)
	}).accept = anyArgs
}

func atomicBuiltins() {
	for name, mode := range map[string]kir.Mode{
		"fetch_add": kir.ModeAdd, "fetch_sub": kir.ModeSub, "fetch_min": kir.ModeMin, "fetch_max": kir.ModeMax,
		"fetch_and": kir.ModeAnd, "fetch_or": kir.ModeOr, "fetch_xor": kir.ModeXor, "exchange": kir.ModeExchange,
	} {
		atomicRMW(name, mode)
	}
	for name, mode := range map[string]kir.Mode{"min": kir.ModeMin, "max": kir.ModeMax} { // without a result
		addBuiltin("atomic_"+name+"_explicit", 2, 3, func(c *builtinCall) value {
			p, t, ok := c.atomicObject()
			if !ok {
				return badValue
			}
			x := c.conv.convertTo(c.args[1], qt(t), c.at, "the operand of "+name)
			if x.bad() {
				return badValue
			}
			args := []*kir.Instr{c.em.instr(p), c.em.instr(x.comps[0])}
			c.em.emit(&kir.Instr{Op: kir.AtomicRMW, Type: t.kt, Mode: mode, Args: args})
			return voidValue
		}).accept = anyArgs
	}
	addBuiltin("atomic_load_explicit", 1, 2, func(c *builtinCall) value {
		p, t, ok := c.atomicObject()
		if !ok {
			return badValue
		}
		args := []*kir.Instr{c.em.instr(p)}
		return c.atomicResult(t, c.em.emit(&kir.Instr{Op: kir.AtomicLoad, Type: atomicKind(t), Args: args}))
	}).accept = anyArgs
	addBuiltin("atomic_store_explicit", 2, 3, func(c *builtinCall) value {
		p, t, ok := c.atomicObject()
		if !ok {
			return badValue
		}
		x := c.conv.convertTo(c.args[1], qt(t), c.at, "the value stored")
		if x.bad() {
			return badValue
		}
		c.em.emit(&kir.Instr{Op: kir.AtomicStore, Args: []*kir.Instr{c.em.instr(p), c.atomicArg(x, t)}})
		return voidValue
	}).accept = anyArgs
	addBuiltin("atomic_compare_exchange_weak_explicit", 3, 5, compareExchange).accept = anyArgs
}

// compareExchange stores the desired value if the object holds the expected one; else it updates the expected one.
func compareExchange(c *builtinCall) value {
	p, t, ok := c.atomicObject()
	if !ok {
		return badValue
	}
	e := c.mem.rvalue(c.args[1])
	if e.bad() {
		return badValue
	}
	if e.q.T.kind != tPtr || e.q.T.elem.T != t || e.q.T.elem.Const {
		c.c.errorf(TypeMismatch, c.at, "'%s': the expected value is a pointer to %s, not %s", c.b.name, t, e.q.T)
		return badValue
	}
	d := c.conv.convertTo(c.args[2], qt(t), c.at, "the desired value")
	if d.bad() {
		return badValue
	}
	exp := c.mem.deref(e, operand{}, c.at)
	want := c.mem.load(exp)
	k := atomicKind(t)
	expected := c.em.convert(want.comps[0], k)
	cas := &kir.Instr{Op: kir.AtomicCAS, Type: k}
	cas.Args = []*kir.Instr{c.em.instr(p), c.em.instr(expected), c.atomicArg(d, t)}
	old := c.em.emit(cas)
	u := uintOf(k.Size()) // compared by bits, as the exchange does
	same := c.em.op(kir.Eq, kir.Bool, c.em.bitcast(old, u), c.em.bitcast(expected, u))
	then := c.em.inBlock(func() { c.mem.store(exp, c.atomicResult(t, old)) })
	c.em.structured(&kir.Instr{Op: kir.If, Args: []*kir.Instr{c.em.instr(c.em.not(same))}, Body: then})
	return rval(typeBool, same)
}
