package msl

import (
	"github.com/mlxlua/mlxlua/metal/kir"
)

// atomicObject checks the pointer of an atomic function and returns it with the type of its value.
func (g *gen) atomicObject(c *bcall) (ptr operand, t *ctype, ok bool) {
	p := g.rvalue(c.args[0])
	if p.bad() {
		return operand{}, nil, false
	}
	if p.q.T.kind != tPtr || p.q.T.elem.T.kind != tAtomic {
		g.c.errorf(TypeMismatch, c.at, "'%s' needs a pointer to an atomic object, not %s: declare it atomic, in "+
			"metal_kernel by atomic_outputs = true", c.b.name, p.q.T)
		return operand{}, nil, false
	}
	e := p.q.T.elem
	if s := e.Space.normal(); s != SpaceDevice && s != SpaceThreadgroup {
		g.c.errorf(AddressSpace, c.at, "'%s' works on device and threadgroup memory, not %s memory", c.b.name, spaceName(s))
		return operand{}, nil, false
	}
	t = e.T.elem.T
	if e.Const && c.b.name != "atomic_load_explicit" {
		g.c.errorf(NotAssignable, c.at, "'%s' on a const object", c.b.name)
		return operand{}, nil, false
	}
	return p.comps[0], t, true
}

// atomicKind is how an atomic value is kept. A bool has one byte, which kir's atomics cannot update: it is refused.
func (g *gen) atomicKind(c *bcall, t *ctype) (kir.Type, bool) {
	if t.isBool() {
		g.c.errorf(Unsupported, c.at, "'%s' on atomic<bool>: use atomic<int>", c.b.name)
		return 0, false
	}
	return t.kt, true
}

func atomicRMW(name string, mode kir.Mode) {
	addBuiltin("atomic_"+name+"_explicit", 2, 3, func(g *gen, c *bcall) value {
		p, t, ok := g.atomicObject(c)
		if !ok {
			return badValue
		}
		k, ok := g.atomicKind(c, t)
		if !ok {
			return badValue
		}
		if t.isFloat() && (mode == kir.ModeAnd || mode == kir.ModeOr || mode == kir.ModeXor) {
			return g.mismatch(c)
		}
		x := g.convertTo(c.args[1], qt(t), c.at, "the operand of "+name)
		if x.bad() {
			return badValue
		}
		old := g.emit(&kir.Instr{Op: kir.AtomicRMW, Type: k, Mode: mode, Args: []*kir.Instr{g.instr(p), g.instr(x.comps[0])}})
		return rval(t, old)
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
		addBuiltin("atomic_"+name+"_explicit", 2, 3, func(g *gen, c *bcall) value {
			p, t, ok := g.atomicObject(c)
			if !ok || t.isBool() {
				return badValue
			}
			x := g.convertTo(c.args[1], qt(t), c.at, "the operand of "+name)
			if x.bad() {
				return badValue
			}
			g.emit(&kir.Instr{Op: kir.AtomicRMW, Type: t.kt, Mode: mode, Args: []*kir.Instr{g.instr(p), g.instr(x.comps[0])}})
			return voidValue
		}).accept = anyArgs
	}
	addBuiltin("atomic_load_explicit", 1, 2, func(g *gen, c *bcall) value {
		p, t, ok := g.atomicObject(c)
		if !ok {
			return badValue
		}
		k, ok := g.atomicKind(c, t)
		if !ok {
			return badValue
		}
		return rval(t, g.emit(&kir.Instr{Op: kir.AtomicLoad, Type: k, Args: []*kir.Instr{g.instr(p)}}))
	}).accept = anyArgs
	store := func(g *gen, c *bcall) value {
		p, t, ok := g.atomicObject(c)
		if !ok {
			return badValue
		}
		if _, ok := g.atomicKind(c, t); !ok {
			return badValue
		}
		x := g.convertTo(c.args[1], qt(t), c.at, "the value stored")
		if x.bad() {
			return badValue
		}
		g.emit(&kir.Instr{Op: kir.AtomicStore, Args: []*kir.Instr{g.instr(p), g.instr(x.comps[0])}})
		return voidValue
	}
	addBuiltin("atomic_store_explicit", 2, 3, store).accept = anyArgs
	addBuiltin("atomic_init", 2, 2, store).accept = anyArgs
	for _, name := range []string{"weak", "strong"} {
		addBuiltin("atomic_compare_exchange_"+name+"_explicit", 3, 5, compareExchange).accept = anyArgs
	}
}

// compareExchange stores the desired value if the object holds the expected one; else it updates the expected one.
func compareExchange(g *gen, c *bcall) value {
	p, t, ok := g.atomicObject(c)
	if !ok {
		return badValue
	}
	k, ok := g.atomicKind(c, t)
	if !ok {
		return badValue
	}
	e := g.rvalue(c.args[1])
	if e.bad() {
		return badValue
	}
	if e.q.T.kind != tPtr || e.q.T.elem.T != t || e.q.T.elem.Const {
		g.c.errorf(TypeMismatch, c.at, "'%s': the expected value is a pointer to %s, not %s", c.b.name, t, e.q.T)
		return badValue
	}
	d := g.convertTo(c.args[2], qt(t), c.at, "the desired value")
	if d.bad() {
		return badValue
	}
	exp := g.deref(e, operand{}, c.at)
	want := g.load(exp)
	cas := &kir.Instr{Op: kir.AtomicCAS, Type: k}
	cas.Args = []*kir.Instr{g.instr(p), g.instr(want.comps[0]), g.instr(d.comps[0])}
	old := g.emit(cas)
	u := uintOf(k.Size()) // compared by bits, as the exchange does
	same := g.op(kir.Eq, kir.Bool, g.bitcast(old, u), g.bitcast(want.comps[0], u))
	then := g.inBlock(func() { g.store(exp, rval(t, old)) })
	g.structured(&kir.Instr{Op: kir.If, Args: []*kir.Instr{g.instr(g.not(same))}, Body: then})
	return rval(typeBool, same)
}
