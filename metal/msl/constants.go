package msl

import (
	"slices"

	"github.com/mlxlua/mlxlua/metal/kir"
)

// evalConst runs f in a generator that evaluates instead of emitting. If it meets something that is not constant
// it reports so, what saying what had to be constant, and returns false.
func (ks *constants) evalConst(f func(h *generator), at Pos, what string) (ok bool) {
	ok, nc := ks.runConst(f, at)
	if nc != nil && !nc.reported {
		ks.c.errorf(NotConstant, at, "%s is not constant: it needs %s", what, nc.why)
	}
	return ok
}

// runConst is evalConst that leaves it to the caller to report what is not constant.
func (ks *constants) runConst(f func(h *generator), at Pos) (ok bool, missing *notConstant) {
	h := generatorFor(ks.c, ks.res.env, emitter{exec: true, pos: at, unevaluated: ks.em.unevaluated})
	h.nest.depth, h.nest.calls = ks.nest.depth, ks.nest.calls
	if h.consts.around = ks.em.k; ks.em.k == nil {
		h.consts.around = ks.around
	}
	if ks.em.exec {
		h.em.steps = ks.em.steps
	}
	before := ks.c.errCount()
	defer func() {
		ks.em.steps = max(ks.em.steps, h.em.steps)
		r := recover()
		if r == nil {
			ok = ok && ks.c.errCount() == before
			return
		}
		nc, is := r.(notConstant)
		if !is {
			panic(r)
		}
		ok, missing = false, &nc
	}()
	f(h)
	return true, nil
}

// constExpr evaluates an expression that must be constant, for which function constants do not count.
func (ks *constants) constExpr(x Expr, what string) (v value, ok bool) {
	special := ks.c.link.watch(func() { v, ok = ks.specialExpr(x, what) })
	if ok && special {
		ks.c.errorf(NotConstant, x.Pos(), "%s is not constant: it needs a function constant, which has no value while "+
			"the text is compiled", what)
		return badValue, false
	}
	return v, ok
}

// specialExpr evaluates an expression that must be constant once the function constants have their values.
func (ks *constants) specialExpr(x Expr, what string) (value, bool) {
	v := badValue
	ok := ks.evalConst(func(h *generator) { v = h.mem.noAddress(h.mem.rvalue(h.exprs.expr(x))) }, x.Pos(), what)
	if !ok || v.bad() || v.k == vVoid || v.k == vFuncs {
		if ok && !v.bad() {
			ks.c.errorf(NotConstant, x.Pos(), "%s has no value", what)
		}
		return badValue, false
	}
	return v, true
}

// constInt evaluates an integer constant expression.
func (ks *constants) constInt(x Expr, what string) (int64, bool) {
	v, ok := ks.constExpr(x, what)
	if !ok {
		return 0, false
	}
	if v.q.T.kind == tClass {
		ok = ks.evalConst(func(h *generator) { v = h.conv.toArith(v) }, x.Pos(), what)
	}
	if !ok || !v.q.T.intLike() && v.q.T.kind != tEnum {
		ks.c.errorf(NotConstant, x.Pos(), "%s has type %s, not an integer type", what, v.q.T)
		return 0, false
	}
	return v.comps[0].int(), true
}

// globalVar returns the value of a variable at namespace or class scope: always a constant.
func (ks *constants) globalVar(ent *entity) value {
	c := ks.c
	if v, ok := c.globals[ent]; ok {
		return v
	}
	if c.busy[ent] {
		c.errorf(NotConstant, ent.at, "the value of '%s' is defined by itself", ent.name)
		return badValue
	}
	c.busy[ent] = true
	defer delete(c.busy, ent)
	if !c.enter(ent.at) {
		return badValue
	}
	defer c.leave()
	var v value
	whole := c.link.whole(func() { c.link.unreached(ks.em.unevaluated, func() { v = ks.globalDecl(ent) }) })
	if whole && (!v.bad() || c.trials == 0) { // what a trial finds wrong is reported when it counts
		c.globals[ent] = v
	}
	return v
}

// globalDecl evaluates the declaration of a variable at namespace or class scope.
func (ks *constants) globalDecl(ent *entity) (v value) {
	h := ks.c.evaluatorIn(ent.env)
	if fc := ks.c.link.constants[ent]; fc != nil {
		return h.consts.functionConstant(ent, fc)
	}
	special := ks.c.link.watch(func() { v = h.consts.constantDecl(ent.vdecl, ent.env.class != nil) })
	if v.k == vSlot {
		v.obj.special = special
	}
	return v
}

// globalPointer returns the value of a variable at namespace or class scope that points into a constant: it is what its
// initialiser says, wherever it is used, as each kernel has its own constants.
func (ks *constants) globalPointer(ent *entity) (value, bool) {
	d := ent.vdecl
	if d == nil || d.Type == nil || d.Type.Kind != TypePointer || ks.c.busy[ent] {
		return badValue, false
	}
	if _, known := ks.c.globals[ent]; known {
		return badValue, false
	}
	h := ks.c.evaluatorIn(ent.env)
	_, t := h.vars.varType(d)
	if t.T.kind != tPtr || t.Space != SpaceConstant && !d.Specs.Constexpr {
		return badValue, false
	}
	_, missing := h.consts.runConst(func(h *generator) { v, _ := h.vars.initValue(d, t); h.mem.load(v) }, d.Pos())
	switch {
	case missing == nil || !missing.table:
		return badValue, false
	case ks.em.exec:
		panic(*missing)
	}
	ks.c.busy[ent] = true
	defer delete(ks.c.busy, ent)
	saved, at := ks.res.env, ks.em.pos
	ks.res.env = ent.env
	v, _ := ks.vars.initValue(d, t)
	ks.res.env = saved
	ks.em.at(at)
	return ks.mem.load(v), true
}

// constantDecl evaluates the declaration of a constant outside functions.
func (ks *constants) constantDecl(d *VarDecl, member bool) value {
	name := d.Name.Ident
	d, t := ks.vars.varType(d)
	if t.T.kind == tBad {
		return badValue
	}
	if !d.Specs.Constexpr && t.Space != SpaceConstant && !member && !ks.c.inPrelude(d.Pos()) {
		ks.c.errorf(AddressSpace, d.Pos(), "the variable '%s' outside functions must be in the constant address space", name)
		return badValue
	}
	t.Const = true
	v, _ := ks.vars.constVar(d, name, t)
	return v
}

// varTemplate returns an instance of a variable template; ok is false for templates of other things.
func (ks *constants) varTemplate(ent *entity, x *NameExpr) (value, bool) {
	tm := ent.tmpl
	if tm.built != "" || tm.decl == nil {
		return badValue, false
	}
	if _, isVar := tm.decl.Decl.(*VarDecl); !isVar {
		return badValue, false
	}
	args, ok := ks.res.templateArgs(x.Name.Args)
	if !ok {
		return badValue, true
	}
	if args, ok = ks.res.completeArgs(tm, args, x.Pos()); !ok {
		return badValue, true
	}
	for _, in := range ks.c.varInsts[tm] {
		if sameArgs(in.args, args) {
			return in.val, true
		}
	}
	if !ks.c.enter(x.Pos()) {
		return badValue, true
	}
	defer ks.c.leave()
	spec, bind := ks.res.chooseSpec(tm, args)
	d, isVar := spec.Decl.(*VarDecl)
	if !isVar {
		return badValue, true
	}
	var v value
	if ks.c.link.whole(func() { v = ks.c.evaluatorIn(bind).consts.constantDecl(d, true) }) {
		ks.c.varInsts[tm] = append(ks.c.varInsts[tm], varInst{args, v})
	}
	return v, true
}

type varInst struct {
	args []boundArg
	val  value
}

// staticAssert checks a static_assert outside functions.
func (c *compiler) staticAssert(d *StaticAssertDecl, e *env) {
	c.evaluatorIn(e).consts.staticAssert(d)
}

// staticAssert checks a static_assert.
func (ks *constants) staticAssert(d *StaticAssertDecl) {
	v, ok := ks.constExpr(d.Cond, "the condition of static_assert")
	if !ok {
		return
	}
	hold := false
	test := func(h *generator) { hold = h.conv.condition(v, d.Pos()).bits != 0 }
	if !ks.evalConst(test, d.Pos(), "the condition of static_assert") || hold {
		return
	}
	if d.Msg != "" {
		ks.c.errorf(StaticAssert, d.Pos(), "static_assert failed: %s", d.Msg)
	} else {
		ks.c.errorf(StaticAssert, d.Pos(), "static_assert failed")
	}
}

// constants evaluates what must be constant, and the variables outside functions, which all are.
type constants struct {
	c     *compiler
	em    *emitter
	mem   *memory
	nest  *nesting
	res   *resolver
	stmts *statements
	vars  *variables

	// around is the kernel in which a constant is evaluated: sizeof may name its variables.
	around *kir.Kernel
}

// notConstant ends a constant evaluation.
type notConstant struct {
	why      string
	reported bool
	table    bool // the address of a constant is what is missing: kernels have it
}

// notConst ends the constant evaluation that is under way: why names what is not constant.
func (em *emitter) notConst(why string) { panic(notConstant{why: why}) }

// unevaluated runs f where nothing it emits is kept: for sizeof, decltype and types of what is not evaluated.
func (ks *constants) unevaluated(f func(h *generator)) {
	h := newGenerator(ks.c, "unevaluated", ks.res.env)
	h.stmts.frame, h.em.pos, h.nest.depth, h.nest.calls = ks.stmts.frame, ks.em.pos, ks.nest.depth, ks.nest.calls
	h.em.unevaluated = true
	h.arith.contract = false
	// Names in f mean g's variables: their numbers have to mean the same in h, and h's own come after them.
	k := ks.em.k
	if k == nil {
		k = ks.around
	}
	if k != nil {
		h.em.k.Vars, h.em.k.Regions = slices.Clip(k.Vars), slices.Clip(k.Regions)
	}
	f(h)
}

// evaluatorIn returns a generator for constants in a scope outside functions.
func (c *compiler) evaluatorIn(e *env) *generator {
	g := generatorFor(c, e, emitter{exec: true})
	g.nest.depth = c.depth * 8
	return g
}
