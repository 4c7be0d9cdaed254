package msl

import (
	"slices"
	"strconv"
	"strings"

	"github.com/mlxlua/mlxlua/metal/kir"
)

func itoa(n int) string { return strconv.Itoa(n) }

// inl is a call that is being inlined.
type inl struct {
	up     *inl
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

// args evaluates the arguments of a call, expanding packs; lvalues stay lvalues.
func (xs *expressions) args(list []Expr) ([]value, bool) {
	out := make([]value, 0, len(list))
	ok := true
	for _, x := range list {
		if p, isPack := x.(*PackExpr); isPack {
			xs.res.expandPack(p.X, func() {
				v := xs.expr(p.X)
				ok = ok && !v.bad()
				out = append(out, v)
			})
			continue
		}
		v := xs.expr(x)
		if v.k == vType {
			xs.c.errorf(Undeclared, x.Pos(), "%s is a type, not a value", v.q)
			v = badValue
		}
		ok = ok && !v.bad()
		out = append(out, xs.choose.functionObject(v))
	}
	return out, ok
}

// functionObject turns the name of one function into a value that can be handed on and called: what a pointer to it is
// elsewhere.
func (ch *chooser) functionObject(v value) value {
	if v.k != vFuncs || v.fn.bi != nil || v.fn.this != nil {
		return v
	}
	switch {
	case len(v.fn.funcs) < 2:
	case v.fn.hasArgs:
		v.fn = ch.onlyInstance(v.fn)
	default:
		v.fn = ch.definition(v.fn)
	}
	if len(v.fn.funcs) != 1 {
		return v
	}
	f := v.fn.funcs[0]
	if f.cls != nil || f.tmpl != nil && !v.fn.hasArgs {
		return v
	}
	t := ch.c.funcTypes[f]
	if t == nil || v.fn.hasArgs {
		st := &structInfo{name: "function " + v.fn.name, lambda: &lambdaInfo{over: v.fn}, state: 2, declared: true}
		t = &ctype{kind: tStruct, st: st, size: 1, align: 1}
		st.typ = t
		if !v.fn.hasArgs {
			ch.c.funcTypes[f] = t
		}
	}
	return value{k: vRight, q: qt(t)}
}

// callExpr evaluates Fun(Args).
func (cs *caller) callExpr(x *CallExpr) value {
	fx := stripParens(x.Fun)
	var fv value
	if ne, ok := fx.(*NameExpr); ok {
		ent := cs.res.resolveQuiet(ne.Name)
		if ent == nil && ne.Name.Ident == "is_function_constant_defined" {
			return cs.consts.constantDefined(x)
		}
		if ent == nil {
			if cs.res.badQual {
				cs.res.badQual = false
				cs.exprs.args(x.Args)
				return badValue
			}
			return cs.adlCall(ne, x)
		}
		fv = cs.exprs.entityValue(ent, ne)
	} else {
		fv = cs.exprs.expr(fx)
	}
	args, ok := cs.exprs.args(x.Args)
	cs.em.at(x.Fun.Pos())
	if !ok || fv.bad() {
		return badValue
	}
	switch {
	case fv.k == vType:
		return cs.ctor.constructParen(fv.q.bare(), args, x.Pos())
	case fv.k == vFuncs:
		cp := *fv.fn
		fv.fn = &cp
		cs.choose.addADL(fv.fn, fx, args)
		return cs.callOverload(fv.fn, args, x.Fun.Pos())
	case fv.q.T.kind == tStruct:
		if fv.q.T.st.lambda != nil {
			return cs.callLambda(fv.q.T.st.lambda, args, x.Pos())
		}
		if r, ok := cs.operatorCall(OpCall, append([]value{fv}, args...), x.Pos(), false); ok {
			return r
		}
	}
	hint := ""
	if t := cs.c.types.decayed(&fv).T; t.kind == tPtr {
		hint = ": index it with [ ]"
	}
	cs.c.errorf(NotCallable, x.Fun.Pos(), "a value of type %s cannot be called%s", fv.q, hint)
	return badValue
}

// adlCall looks an undeclared function up in the namespaces of its arguments' classes.
func (cs *caller) adlCall(ne *NameExpr, x *CallExpr) value {
	args, ok := cs.exprs.args(x.Args)
	if ok && len(ne.Name.Quals) == 0 {
		fn := &overload{name: ne.Name.Ident, env: cs.res.env}
		cs.choose.addADL(fn, ne, args)
		if len(fn.funcs) > 0 {
			if ne.Name.HasArgs {
				if fn.targs, ok = cs.res.templateArgs(ne.Name.Args); !ok {
					return badValue
				}
				fn.hasArgs = true
			}
			return cs.callOverload(fn, args, x.Pos())
		}
	}
	cs.res.undeclared(ne.Name)
	return badValue
}

// addADL adds the functions that argument-dependent lookup finds.
func (ch *chooser) addADL(fn *overload, fx Expr, args []value) {
	ne, ok := fx.(*NameExpr)
	if !ok || len(ne.Name.Quals) > 0 || fn.this != nil {
		return
	}
	fn.funcs = ch.adl(fn.funcs, fn.name, args)
}

func (ch *chooser) adl(funcs []*funcEnt, name string, args []value) []*funcEnt {
	for i := range args {
		t := args[i].q.T
		if t.kind == tPtr {
			t = t.elem.T
		}
		if t.kind != tStruct || t.st.scope == nil || t.st.lambda != nil {
			continue
		}
		funcs = ch.addFriends(funcs, name, t.st)
		ns := t.st.scope.namespaceOf()
		if ns == nil {
			continue
		}
		ent := ch.c.find(ns, name, 0)
		if ent == nil || ent.kind != eFunc || len(funcs) > 0 && len(funcs) == len(ent.funcs) && funcs[0] == ent.funcs[0] {
			continue
		}
		ch.c.spend(*ch.res.at, len(ent.funcs)*len(funcs)/16)
	next:
		for _, f := range ent.funcs {
			for _, o := range funcs {
				if o == f {
					continue next
				}
			}
			funcs = append(funcs[:len(funcs):len(funcs)], f)
		}
	}
	return funcs
}

// addFriends adds the friends of a class and of its bases.
func (ch *chooser) addFriends(funcs []*funcEnt, name string, st *structInfo) []*funcEnt {
	ch.c.declareMembers(st)
next:
	for _, f := range st.friends[name] {
		for _, o := range funcs {
			if o == f {
				continue next
			}
		}
		funcs = append(funcs[:len(funcs):len(funcs)], f)
	}
	for _, b := range st.bases {
		if b.kind == tStruct {
			funcs = ch.addFriends(funcs, name, b.st)
		}
	}
	return funcs
}

// callOverload calls the best function of a set.
func (cs *caller) callOverload(fn *overload, args []value, at Pos) value {
	if slices.ContainsFunc(args, func(a value) bool { return a.q.T.isWide() }) {
		if fn = fn.forWide(); fn.bi == nil && len(fn.funcs) == 0 {
			return cs.c.noWide(fn, args, at)
		}
	}
	var inst *funcInst
	var why string
	own := false
	c, set := cs.choose.chooseSet(fn, args)
	if !set && (len(fn.funcs) > 0 || fn.bi == nil) || set && fn.ofUnit() {
		inst, why = cs.choose.resolve(fn.funcs, fn, args, fn.this, false)
		// A unit's own overload in namespace metal, as for a half type, is one among the library's.
		own = inst != nil && inst.f.usr && !(inMetal(inst.f.env) && !cs.choose.exactCall(inst, args))
		if own && fn.bi != nil && !set && len(args) > 0 && cs.choose.convRank(&args[0], inst.params[0].q) > rankQual &&
			fn.bi.accepts(args, fn) {
			own = false // the library's takes any type as it is
		}
	}
	if set && !own {
		switch {
		case c.elem != nil:
			if args, set = cs.asChosen(c, fn, args); !set {
				return badValue
			}
			if len(fn.funcs) > 0 {
				inst, why = cs.choose.resolve(fn.funcs, fn, args, fn.this, false)
			}
		case inst == nil || !inst.f.usr:
			cs.choose.ambiguousCall(c, fn, args, at)
			return badValue
		default:
			own = true
		}
	}
	if len(fn.funcs) == 0 && fn.bi != nil {
		return cs.callBuiltin(fn, args, at)
	}
	if fn.bi != nil && !own && (inst == nil || !cs.choose.exactCall(inst, args)) && fn.bi.accepts(args, fn) {
		return cs.callBuiltin(fn, args, at)
	}
	if inst == nil || !inst.f.usr {
		if r, ok := cs.liftCall(fn, inst, args, at); ok {
			return r
		}
	}
	if inst == nil {
		cs.noMatch(fn, args, why, at)
		return badValue
	}
	return cs.call(inst, args, fn.this, at)
}

// inMetal reports whether a scope is namespace metal or one of its parts, the unit's additions to them too.
func inMetal(e *env) bool { return e.metal != 0 || e.frozen != nil && e.frozen.metal != 0 }

// noWide reports a function of Metal's library that is given a vector of more than four components.
func (c *compiler) noWide(fn *overload, args []value, at Pos) value {
	types := make([]string, len(args))
	for i := range args {
		types[i] = argText(&args[i])
	}
	c.errorf(NoMatch, at, "no function %s takes (%s): Metal's library has vectors of at most %d components: "+
		"call it for each component", quoteName(fn.name), strings.Join(types, ", "), maxNamed)
	return badValue
}

func (cs *caller) noMatch(fn *overload, args []value, why string, at Pos) {
	var types string
	for i := range args {
		if i > 0 {
			types += ", "
		}
		types += argText(&args[i])
	}
	if len(why) > 9 && why[:9] == "ambiguous" {
		cs.c.errorf(Ambiguous, at, "the call %s(%s) is %s", fn.name, types, why)
		return
	}
	if len(fn.funcs) == 1 {
		f := fn.funcs[0]
		np := len(f.decl.Params)
		few := len(args) < np && f.decl.Params[len(args)].Default == nil
		if f.tmpl == nil && (len(args) > np || few) && !f.decl.hasPack() {
			cs.c.errorf(ArgCount, at, "%s takes %s, not %d", cs.c.signature(f), plural(np, "argument"), len(args))
			return
		}
		if f.tmpl == nil && cs.argError(f, args, at) {
			return
		}
		if fn.this != nil && fn.this.q.Const && !f.decl.Quals.Const && !f.decl.Specs.Static {
			cs.c.errorf(NotAssignable, at, "the method %s is not const, but its object is", cs.c.signature(f))
			return
		}
	}
	for i := range args {
		if t := cs.c.types.decayed(&args[i]).T; t.kind == tPtr && (t.elem.T.isScalar() || t.elem.T.kind == tVec) {
			why += "\n    argument " + itoa(i+1) + " is a pointer: index it for a value"
			break
		}
	}
	cs.c.errorf(NoMatch, at, "no function %s takes (%s):%s", quoteName(fn.name), types, why)
}

// argError reports the first argument that does not convert to the parameter of the only function there is.
func (cs *caller) argError(f *funcEnt, args []value, at Pos) bool {
	inst := cs.choose.instFor(f, nil)
	if inst == nil || len(args) > len(inst.params) {
		return false
	}
	for i := range args {
		p := inst.params[i].q
		if cs.choose.convRank(&args[i], p) != rankNone {
			continue
		}
		if args[i].k == vList {
			return false
		}
		if p.T.kind == tRef {
			cs.conv.refError(&args[i], p, at)
		} else {
			cs.conv.noConversion(&args[i], p, at, "argument "+itoa(i+1)+" of "+cs.c.signature(f))
		}
		return true
	}
	return false
}

// hasPack reports whether the function has a parameter pack.
func (d *FuncDecl) hasPack() bool {
	for _, p := range d.Params {
		if p.Type.Pack {
			return true
		}
	}
	return false
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
		if cs.em.unevaluated && inst.ret.T.kind != tAuto {
			return cs.unevaluatedCall(inst)
		}
		cs.c.errorf(Undeclared, at, "%s is declared, but has no body", cs.c.signature(f))
		return badValue
	}
	if isKernel(&decl.Specs) {
		cs.c.errorf(Unsupported, at, "the kernel %s cannot be called: put what both need in a function", cs.c.signature(f))
		return badValue
	}
	if cs.em.unevaluated && inst.ret.T.kind != tAuto && f.lam == nil {
		return cs.unevaluatedCall(inst)
	}
	cs.c.used[f] = true
	if decl.Specs.Constexpr && !cs.em.exec && len(args) > 0 && f.cls == nil {
		if v, ok := cs.constCall(inst, args, at); ok {
			return v
		}
	}
	if !cs.enterCall(inst, at) {
		return badValue
	}
	defer func() { cs.nest.calls-- }()

	blk, outer, up, contract, labels := cs.em.blk, cs.res.env, cs.stmts.fr, cs.arith.contract, cs.stmts.labels
	fr := &inl{up: up, inst: inst, ret: inst.ret, ptr: -1, labels: len(cs.stmts.labels)}
	e := &env{kind: envFunc, up: scope}
	if this != nil && f.cls != nil && !decl.Specs.Static {
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
	cs.res.env, cs.stmts.fr, cs.arith.contract = e, fr, contractOf(f)
	cs.stmts.labels = cs.stmts.labels[:len(cs.stmts.labels):len(cs.stmts.labels)]
	var fl flow
	inner := &kir.Block{}
	cs.em.blk = inner
	if decl.Kind == FuncConstructor {
		cs.ctor.memberInits(e.this, decl)
	}
	fl = cs.stmts.block(body, true)
	cs.em.blk, cs.res.env, cs.stmts.fr, cs.arith.contract, cs.stmts.labels = blk, outer, up, contract, labels
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

// enterCall refuses recursion and nesting without end.
func (cs *caller) enterCall(inst *funcInst, at Pos) bool {
	if !cs.em.exec {
		for fr := cs.stmts.fr; fr != nil; fr = fr.up {
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

// contractOf says whether products contract to fma in a function: by the pragmas at its place and the options.
func contractOf(f *funcEnt) bool {
	return !f.noContract
}

// result returns what an inlined call yields.
func (cs *caller) result(fr *inl, fl flow, f *funcEnt, at Pos) value {
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

// newLocal makes a variable with an initial value. A constant that never changes keeps its value without a variable.
func (mem *memory) newLocal(name string, t qtype, v value) value {
	if t.Const && v.k == vRight && allConst(v.comps) && !t.Vol {
		o := &object{name: name, q: t, fixed: true, slots: make([]slot, len(v.comps))}
		for i, c := range v.comps {
			o.slots[i] = slot{-1, c}
		}
		return objVal(o)
	}
	o := mem.newObject(name, t)
	lv := objVal(o)
	mem.store(lv, v)
	return lv
}

func allConst(comps []operand) bool {
	for _, c := range comps {
		if c.in != nil {
			return false
		}
	}
	return true
}

// bindRef binds a reference: to the object itself, or for const references to a temporary.
func (cv *converter) bindRef(t qtype, v value, at Pos) value {
	e := t.T.elem
	if e.T.kind == tAuto {
		if v.k == vList || v.k == vVoid || v.k == vFuncs {
			cv.noConversion(&v, t, at, "a reference")
			return badValue
		}
		e.T = v.q.T
		e.Const = e.Const || v.q.Const
		e.Vol = e.Vol || v.q.Vol
		if e.Space == SpaceNone || v.q.Space == SpaceConstant && e.Const {
			e.Space = v.q.Space
		}
		t = qt(cv.c.types.derived(tRef, e, t.T.n))
	}
	r := cv.choose.refRank(&v, t.T)
	if r == rankNone {
		cv.refError(&v, t, at)
		return badValue
	}
	same := v.q.T == e.T || v.q.T.kind == tArray && e.T.kind == tArray
	if v.isLvalue() && v.q.Space.normal() == e.Space.normal() && v.k != vSwz && !v.isBits() {
		if v = cv.mem.placed(v); same {
			v.q.Const, v.q.Vol = e.Const, e.Vol
			return v
		}
		if path, ok := derivesFrom(v.q.T, e.T); ok {
			b := cv.mem.member(v, path)
			b.q.Const = e.Const
			return b
		}
	}
	x := cv.convertTo(v, e.bare(), at, "a reference")
	if x.bad() {
		return badValue
	}
	b := cv.mem.temp(cv.mem.load(x))
	b.q.Const = e.Const
	if e.Space == SpaceConstant {
		b.q.Space = SpaceNone
	}
	return b
}

func (cv *converter) refError(v *value, t qtype, at Pos) {
	e := t.T.elem
	switch {
	case v.k == vFuncs || v.k == vVoid:
		cv.noConversion(v, t, at, "a reference")
	case v.isLvalue() && v.q.T == e.T && v.q.Space.normal() != e.Space.normal():
		cv.c.errorf(AddressSpace, at, "an object in %s memory cannot be bound to %s", spaceName(v.q.Space), t)
	case v.isBits() && v.q.T == e.T && !e.Const:
		cv.c.errorf(NotLvalue, at, "a bit-field has no address: it cannot be bound to %s", t)
	case v.k == vSwz && v.q.T == e.T && !e.Const:
		cv.c.errorf(NotLvalue, at, "several components of a vector have no address: they cannot be bound to %s", t)
	case v.isLvalue() && v.q.T == e.T:
		cv.c.errorf(TypeMismatch, at, "%s to %s would drop const", v.q, t)
	default:
		cv.c.errorf(TypeMismatch, at, "a value of type %s cannot be bound to %s", v.q, t)
	}
}

// callLambda calls a lambda: its body is expanded in the scope where the lambda stands.
func (cs *caller) callLambda(l *lambdaInfo, args []value, at Pos) value {
	if l.over != nil {
		return cs.callOverload(l.over, args, at)
	}
	if len(args) != len(l.x.Params) && !l.fn.decl.hasPack() {
		min := 0
		for _, p := range l.x.Params {
			if p.Default == nil {
				min++
			}
		}
		if len(args) < min || len(args) > len(l.x.Params) {
			cs.c.errorf(ArgCount, at, "the lambda takes %s, not %d", plural(len(l.x.Params), "argument"), len(args))
			return badValue
		}
	}
	inst := &funcInst{f: l.fn, env: l.env, ret: qt(typeAuto)}
	saved := cs.res.env
	cs.res.env = l.env
	for i, p := range l.x.Params {
		t := cs.res.typeOf(p.Type)
		if i < len(args) {
			t = cs.conv.deduceAuto(t, &args[i], p.Pos())
		}
		inst.params = append(inst.params, paramInst{decl: p, q: cs.c.types.paramType(t)})
	}
	if l.x.Ret != nil {
		inst.ret = cs.res.retType(inst, l.x.Ret)
	}
	cs.res.env = saved
	for i := range args {
		if inst.params[i].q.T.kind == tBad {
			return badValue
		}
		if cs.choose.convRank(&args[i], inst.params[i].q) == rankNone {
			if inst.params[i].q.T.kind == tRef {
				cs.conv.refError(&args[i], inst.params[i].q, at)
			} else {
				cs.conv.noConversion(&args[i], inst.params[i].q, at, "an argument")
			}
			return badValue
		}
	}
	return cs.call(inst, args, nil, at)
}

// deduceAuto replaces auto in a declared type by what the initialiser has.
func (cv *converter) deduceAuto(t qtype, v *value, at Pos) qtype {
	switch t.T.kind {
	case tAuto:
		if v.k == vList || v.k == vVoid || v.k == vFuncs || v.k == vType {
			if !v.bad() {
				cv.c.errorf(BadType, at, "auto cannot be deduced from %s", argText(v))
			}
			return badType
		}
		r := cv.c.types.decayed(v)
		if v.q.T.kind == tVec {
			r.T = v.q.T // a copy of a packed vector is packed
		}
		r.Const, r.Vol, r.Space = t.Const, t.Vol, t.Space
		return r
	case tPtr:
		if t.T.elem.T.kind == tAuto {
			p := cv.c.types.decayed(v)
			if p.T.kind != tPtr {
				cv.c.errorf(TypeMismatch, at, "auto* cannot be deduced from %s", p)
				return badType
			}
			e := p.T.elem
			e.Const = e.Const || t.T.elem.Const
			return qtype{T: cv.c.types.ptrTo(e), Const: t.Const}
		}
	case tRef:
		if t.T.elem.T.kind == tAuto {
			e := t.T.elem
			e.T = v.q.T
			if v.k == vList || v.k == vVoid || v.k == vFuncs {
				return badType
			}
			e.Const = e.Const || v.q.Const
			e.Vol = e.Vol || v.q.Vol
			if v.isLvalue() && (e.Space == SpaceNone || v.q.Space == SpaceConstant) {
				e.Space = v.q.Space
			}
			return qt(cv.c.types.derived(tRef, e, t.T.n))
		}
	}
	return t
}
