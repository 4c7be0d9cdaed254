package msl

// notConstant ends a constant evaluation.
type notConstant struct {
	why      string
	at       Pos
	reported bool
	table    bool // the address of a constant is what is missing: kernels have it
}

// notConst ends the constant evaluation that is under way: why names what is not constant.
func (em *emitter) notConst(why string) { panic(notConstant{why: why, at: em.pos}) }

// evalConst runs f in a generator that evaluates instead of emitting. If it meets something that is not constant
// it reports so, what saying what had to be constant, and returns false.
func (g *gen) evalConst(f func(h *gen), at Pos, what string) (ok bool) {
	ok, nc := g.runConst(f, at)
	if nc != nil && !nc.reported {
		g.c.errorf(NotConstant, at, "%s is not constant: it needs %s", what, nc.why)
	}
	return ok
}

// runConst is evalConst that leaves it to the caller to report what is not constant.
func (g *gen) runConst(f func(h *gen), at Pos) (ok bool, missing *notConstant) {
	h := genFor(g.c, g.res.env, emitter{exec: true, pos: at, unevaluated: g.em.unevaluated})
	h.depth, h.calls = g.depth, g.calls
	if h.around = g.em.k; g.em.k == nil {
		h.around = g.around
	}
	if g.em.exec {
		h.em.steps = g.em.steps
	}
	before := g.c.errCount()
	defer func() {
		g.em.steps = max(g.em.steps, h.em.steps)
		r := recover()
		if r == nil {
			ok = ok && g.c.errCount() == before
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

// constExpr evaluates an expression that must be constant.
func (g *gen) constExpr(x Expr, what string) (value, bool) {
	v := badValue
	ok := g.evalConst(func(h *gen) { v = h.mem.noAddress(h.mem.rvalue(h.expr(x))) }, x.Pos(), what)
	if !ok || v.bad() || v.k == vVoid || v.k == vFuncs {
		if ok && !v.bad() {
			g.c.errorf(NotConstant, x.Pos(), "%s has no value", what)
		}
		return badValue, false
	}
	return v, true
}

// constInt evaluates an integer constant expression.
func (g *gen) constInt(x Expr, what string) (int64, bool) {
	v, ok := g.constExpr(x, what)
	if !ok {
		return 0, false
	}
	if v.q.T.kind == tStruct {
		ok = g.evalConst(func(h *gen) { v = h.toArith(v) }, x.Pos(), what)
	}
	if !ok || !v.q.T.intLike() && v.q.T.kind != tEnum {
		g.c.errorf(NotConstant, x.Pos(), "%s has type %s, not an integer type", what, v.q.T)
		return 0, false
	}
	return v.comps[0].int(), true
}

// evaluatorIn returns a generator for constants in a scope outside functions.
func (c *compiler) evaluatorIn(e *env) *gen {
	g := genFor(c, e, emitter{exec: true})
	g.depth = c.depth * 8
	return g
}

// globalVar returns the value of a variable at namespace or class scope: always a constant.
func (g *gen) globalVar(ent *entity) value {
	c := g.c
	if v, ok := c.globals[ent]; ok {
		return v
	}
	if g.em.unevaluated && g.missing(ent) { // in code that never runs, as behind is_function_constant_defined
		return g.mem.zero(c.resolverIn(ent.env).typeOf(ent.vdecl.Type).T)
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
	v := c.evaluatorIn(ent.env).constantDecl(ent.vdecl, ent.env.cls != nil)
	if !v.bad() || c.trials == 0 { // what a trial finds wrong is reported when it counts
		c.globals[ent] = v
	}
	return v
}

// globalPointer returns the value of a variable at namespace or class scope that points into a constant: it is what its
// initialiser says, wherever it is used, as each kernel has its own constants.
func (g *gen) globalPointer(ent *entity) (value, bool) {
	d := ent.vdecl
	if d == nil || d.Type == nil || d.Type.Kind != TypePointer || g.c.busy[ent] {
		return badValue, false
	}
	if _, known := g.c.globals[ent]; known {
		return badValue, false
	}
	h := g.c.evaluatorIn(ent.env)
	_, t := h.varType(d)
	if t.T.kind != tPtr || t.Space != SpaceConstant && !d.Specs.Constexpr {
		return badValue, false
	}
	_, missing := h.runConst(func(h *gen) { v, _ := h.initValue(d, t); h.mem.load(v) }, d.Pos())
	switch {
	case missing == nil || !missing.table:
		return badValue, false
	case g.em.exec:
		missing.at = g.em.pos
		panic(*missing)
	}
	g.c.busy[ent] = true
	defer delete(g.c.busy, ent)
	saved, at := g.res.env, g.em.pos
	g.res.env = ent.env
	v, _ := g.initValue(d, t)
	g.res.env = saved
	g.em.at(at)
	return g.mem.load(v), true
}

// constantDecl evaluates the declaration of a constant outside functions.
func (g *gen) constantDecl(d *VarDecl, member bool) value {
	name := d.Name.Ident
	if a, is := d.constantAttr(); is {
		return g.functionConstant(d, a)
	}
	d, t := g.varType(d)
	if t.T.kind == tBad {
		return badValue
	}
	if !d.Specs.Constexpr && t.Space != SpaceConstant && !member && !g.c.inPrelude(d.Pos()) {
		g.c.errorf(AddressSpace, d.Pos(), "the variable '%s' outside functions must be in the constant address space", name)
		return badValue
	}
	t.Const = true
	v, _ := g.constVar(d, name, t)
	return v
}

// constantDefined evaluates is_function_constant_defined(name).
func (g *gen) constantDefined(x *CallExpr) value {
	if len(x.Args) == 1 {
		if ne, ok := stripParens(x.Args[0]).(*NameExpr); ok {
			if ent := g.res.resolveQuiet(ne.Name); ent != nil && ent.vdecl != nil {
				if _, is := ent.vdecl.constantAttr(); is {
					return rval(typeBool, boolConst(!g.missing(ent)))
				}
			}
		}
	}
	g.c.errorf(NotConstant, x.Pos(), "is_function_constant_defined takes the name of a function constant")
	return badValue
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

// missing reports whether a variable is a function constant for which the options hold no value.
func (g *gen) missing(ent *entity) bool {
	if ent.vdecl == nil {
		return false
	}
	a, is := ent.vdecl.constantAttr()
	if !is || len(a.Args) != 1 {
		return false
	}
	i, ok := g.c.evaluatorIn(ent.env).constInt(a.Args[0], "the index of a function constant")
	_, given := g.c.opt.FunctionConstants[int(i)]
	return ok && !given
}

// functionConstant gives a function constant the value that the options have for its index.
func (g *gen) functionConstant(d *VarDecl, a *Attr) value {
	t := g.res.typeOf(d.Type)
	if len(a.Args) != 1 {
		g.c.errorf(UnknownAttribute, a.At, "function_constant takes one index")
		return badValue
	}
	i, ok := g.constInt(a.Args[0], "the index of a function constant")
	if !ok || t.T.kind == tBad {
		return badValue
	}
	val, given := g.c.opt.FunctionConstants[int(i)]
	if !given {
		g.c.errorf(NoFunctionConstant, d.Pos(), "the function constant '%s' (index %d) has no value", d.Name.Ident, i)
		return badValue
	}
	if !t.T.isScalar() {
		g.c.errorf(Unsupported, d.Pos(), "a function constant of type %s", t)
		return badValue
	}
	t.Const = true
	o := &object{name: d.Name.Ident, q: t, fixed: true}
	o.slots = []slot{{-1, operand{ty: t.T.kt, bits: val & t.T.kt.Mask()}}}
	return objVal(o)
}

// varTemplate returns an instance of a variable template; ok is false for templates of other things.
func (g *gen) varTemplate(ent *entity, x *NameExpr) (value, bool) {
	tm := ent.tmpl
	if tm.built != "" || tm.decl == nil {
		return badValue, false
	}
	if _, isVar := tm.decl.Decl.(*VarDecl); !isVar {
		return badValue, false
	}
	args, ok := g.res.templateArgs(x.Name.Args)
	if !ok {
		return badValue, true
	}
	if args, ok = g.res.completeArgs(tm, args, x.Pos()); !ok {
		return badValue, true
	}
	for _, in := range g.c.varInsts[tm] {
		if sameTargs(in.args, args) {
			return in.val, true
		}
	}
	if !g.c.enter(x.Pos()) {
		return badValue, true
	}
	defer g.c.leave()
	spec, bind := g.res.chooseSpec(tm, args)
	d, isVar := spec.Decl.(*VarDecl)
	if !isVar {
		return badValue, true
	}
	v := g.c.evaluatorIn(bind).constantDecl(d, true)
	g.c.varInsts[tm] = append(g.c.varInsts[tm], varInst{args, v})
	return v, true
}

type varInst struct {
	args []targ
	val  value
}

// staticAssert checks a static_assert outside functions.
func (c *compiler) staticAssert(d *StaticAssertDecl, e *env) { c.staticAssertIn(c.evaluatorIn(e), d) }

func (c *compiler) staticAssertIn(g *gen, d *StaticAssertDecl) {
	v, ok := g.constExpr(d.Cond, "the condition of static_assert")
	if !ok {
		return
	}
	hold := false
	test := func(h *gen) { hold = h.condition(v, d.Pos()).bits != 0 }
	if !g.evalConst(test, d.Pos(), "the condition of static_assert") || hold {
		return
	}
	if d.Msg != "" {
		c.errorf(StaticAssert, d.Pos(), "static_assert failed: %s", d.Msg)
	} else {
		c.errorf(StaticAssert, d.Pos(), "static_assert failed")
	}
}
