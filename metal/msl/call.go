package msl

import (
	"github.com/mlxlua/mlxlua/metal/kir"
)

// caller calls functions: it inlines their bodies, since kir has none, and hands builtins their arguments.
type caller struct {
	c      *compiler
	arith  *arithmetic
	choose *chooser
	consts *constants
	conv   *converter
	ctor   *constructor
	em     *emitter
	exprs  *expressions
	mem    *memory
	nest   *nesting
	res    *resolver
	stmts  *statements
}

// frame is a call that is being inlined.
type frame struct {
	up     *frame
	inst   *funcInst
	block  *kir.Instr // the block that a return leaves
	broke  bool       // some return leaves it
	ret    qtype      // the result's type; typeAuto until the first return
	result *object    // holds the result if returns stand at several places
	direct value      // the result if one return ends the body
	has    bool       // direct is set
	scope  *env       // of the parameters
	again  *kir.Instr // the block that a tail call leaves to start the body again
	ptr    int        // variable of the address returned, for references
	depth  int        // nesting of structured statements inside the body
	kernel bool
	labels int // how many enclosing loops and switches belong to callers
}

// call inlines a function.
func (cs *caller) call(inst *funcInst, args []value, this *value, at Pos) value {
	f := inst.f
	decl := f.decl
	body := decl.Body
	scope := inst.env
	if d := cs.c.memberSpec(inst); d != nil {
		body, decl, scope = d.decl.Body, d.decl, d.env
	} else if body == nil {
		if d := cs.c.definition(inst); d != nil {
			body, decl, scope = d.decl.Body, d.decl, d.env
		}
	}
	if body == nil {
		if decl.Default && decl.Kind == FuncConstructor {
			return voidValue
		}
		never := cs.em.unevaluated && inst.ret.T.kind != tAuto
		if !never && cs.c.link.fails(NoBody, at, "%s is declared, but has no body", cs.c.signature(f)) ||
			inst.ret.T.kind == tAuto {
			return badValue
		}
		return cs.unevaluatedCall(inst)
	}
	if isKernel(&decl.Specs) {
		cs.c.errorf(Unsupported, at, "the kernel %s cannot be called: put what both need in a function", cs.c.signature(f))
		return badValue
	}
	if cs.em.unevaluated && inst.ret.T.kind != tAuto && f.lambda == nil {
		return cs.unevaluatedCall(inst)
	}
	cs.c.used[f] = true
	if decl.Specs.Constexpr && !cs.em.exec && len(args) > 0 && f.class == nil {
		if v, ok := cs.constCall(inst, args, at); ok {
			return v
		}
	}
	if !cs.enterCall(inst, at) {
		return badValue
	}
	defer func() { cs.nest.calls-- }()

	blk, outer, up, contract, labels := cs.em.blk, cs.res.env, cs.stmts.frame, cs.arith.contract, cs.stmts.labels
	fr := &frame{up: up, inst: inst, ret: inst.ret, ptr: -1, labels: len(cs.stmts.labels)}
	e := &env{kind: envFunc, up: scope}
	if this != nil && f.class != nil && !decl.Specs.Static {
		t := *this
		if t = cs.mem.placed(t); !t.isLvalue() {
			t = cs.mem.temp(t)
		}
		if decl.Quals.Const {
			t.q.Const = true
		}
		e.this = &t
	}
	if !cs.bindParams(e, inst, decl, args, at) {
		return badValue
	}
	fr.block, fr.scope = &kir.Instr{Op: kir.BlockOp}, e
	cs.res.env, cs.stmts.frame, cs.arith.contract = e, fr, contractOf(f)
	cs.stmts.labels = cs.stmts.labels[:len(cs.stmts.labels):len(cs.stmts.labels)]
	var fl flow
	inner := &kir.Block{}
	cs.em.blk = inner
	if decl.Kind == FuncConstructor {
		cs.ctor.memberInits(e.this, decl)
	}
	fl = cs.stmts.block(body, true)
	cs.em.blk, cs.res.env, cs.stmts.frame, cs.arith.contract, cs.stmts.labels = blk, outer, up, contract, labels
	if !cs.em.exec {
		if fr.again != nil {
			inner = fr.repeat(inner)
		}
		if fr.broke {
			fr.block.Body = inner
			cs.em.at(at)
			cs.em.structured(fr.block)
		} else {
			cs.em.blk.Instrs = append(cs.em.blk.Instrs, inner.Instrs...)
		}
	}
	cs.em.at(at)
	return cs.result(fr, fl, f, at)
}

// enterCall refuses recursion and nesting without end.
func (cs *caller) enterCall(inst *funcInst, at Pos) bool {
	if !cs.em.exec {
		for fr := cs.stmts.frame; fr != nil; fr = fr.up {
			if fr.inst == inst {
				cs.c.errorf(Recursion, at, "%s calls itself: Metal has no recursion", cs.c.signature(inst.f))
				return false
			}
		}
	}
	cs.nest.calls++
	if cs.nest.calls > maxInline {
		cs.c.fatal(Recursion, at, "calls are nested more than %d deep", maxInline)
	}
	return true
}

// bindParams makes the parameters of a call: references stand for their arguments, others are variables.
func (cs *caller) bindParams(e *env, inst *funcInst, decl *FuncDecl, args []value, at Pos) bool {
	ok := true
	var pack *entity
	for i := range inst.params {
		p := &inst.params[i]
		var v value
		pd := p.decl
		if i < len(decl.Params) && !p.pack {
			pd = decl.Params[i]
		}
		if i < len(args) {
			v = args[i]
		} else {
			x := p.decl.Default
			if x == nil {
				x = pd.Default
			}
			if x == nil {
				cs.c.errorf(ArgCount, at, "the parameter '%s' has no argument", pd.Name)
				return false
			}
			saved := cs.res.env
			cs.res.env = e
			v = cs.exprs.expr(x)
			cs.res.env = saved
			cs.em.at(at)
		}
		b, isRef := cs.bindParam(p.q, v, pd.Name, at)
		if b.bad() {
			ok = false
			continue
		}
		switch {
		case p.pack:
			if pack == nil || pack.name != pd.Name {
				pack = &entity{kind: ePack, name: pd.Name}
				e.put(pack)
			}
			pack.vals = append(pack.vals, b)
		case pd.Name != "":
			if old := e.put(&entity{kind: eVar, name: pd.Name, local: true, val: b, isRef: isRef, at: pd.Pos()}); old != nil {
				cs.c.redefined(pd.Name, pd.Pos(), old)
			}
			cs.c.hides(e.up, pd.Name, pd.Pos())
		}
	}
	for _, p := range decl.Params { // an empty pack
		if p.Type.Pack && p.Name != "" && e.own(p.Name) == nil {
			e.put(&entity{kind: ePack, name: p.Name})
		}
	}
	return ok
}

// bindParam binds one parameter of type t to an argument.
func (cs *caller) bindParam(t qtype, v value, name string, at Pos) (value, bool) {
	if cs.choose.isFunctionFor(&v, t) { // known at each call, which is inlined
		return v, false
	}
	if t.T.kind == tRef {
		return cs.conv.bindRef(t, v, at), true
	}
	v = cs.conv.convertTo(v, t.bare(), at, "an argument")
	if v.bad() {
		return badValue, false
	}
	return cs.mem.newLocal(name, t, v), false
}

// result returns what an inlined call yields.
func (cs *caller) result(fr *frame, fl flow, f *funcEnt, at Pos) value {
	switch {
	case fr.has:
		return fr.direct
	case fr.ptr >= 0:
		return value{k: vMem, q: fr.ret.T.elem, ptr: cs.em.varGet(fr.ptr)}
	case fr.result != nil:
		v := objVal(fr.result)
		if v.k == vMem {
			v.tmp = true
			return v
		}
		return cs.mem.load(v)
	case fr.ret.T.kind == tAuto || fr.ret.T.kind == tVoid:
		return voidValue
	}
	if fl == fNext {
		cs.c.errorf(MissingReturn, f.decl.Pos(), "%s returns no value", cs.c.signature(f))
		return badValue
	}
	t := fr.ret.noRef()
	if !cs.c.isComplete(t.T) {
		return badValue
	}
	return cs.mem.zero(t.T)
}

// unevaluatedCall is a call of which only the type matters.
func (cs *caller) unevaluatedCall(inst *funcInst) value {
	t := inst.ret
	switch {
	case t.T.kind == tVoid:
		return voidValue
	case t.T.kind == tRef:
		return cs.c.types.dummy(t.T.elem)
	case !cs.c.isComplete(t.T):
		return badValue
	}
	if t.T.comps < 0 || t.T.comps > maxSlots {
		v := cs.c.types.dummy(t.bare())
		v.tmp = true
		return v
	}
	return cs.mem.zero(t.T)
}

// constCall evaluates the call of a constexpr function whose arguments are all constant; ok is false if it is not
// constant.
func (cs *caller) constCall(inst *funcInst, args []value, at Pos) (v value, ok bool) {
	for i := range args {
		a := &args[i]
		if a.k == vSlot && a.obj.fixed || a.k == vRight && allConst(a.comps) {
			continue
		}
		return badValue, false
	}
	if inst.ret.T.kind == tVoid || inst.ret.T.kind == tRef {
		return badValue, false
	}
	ok = cs.c.trial(func() {
		good := cs.consts.evalConst(func(h *generator) {
			v = h.mem.noAddress(h.mem.load(h.calls.call(inst, args, nil, at)))
		}, at, "the call")
		if !good || v.k != vRight {
			v = badValue
		}
	})
	return v, ok && !v.bad()
}

// contractOf says whether products contract to fma in a function: by the pragmas at its place and the options.
func contractOf(f *funcEnt) bool {
	return !f.noContract
}
