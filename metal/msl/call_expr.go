package msl

import (
	"slices"
	"strconv"
	"strings"
)

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
	case fv.q.T.kind == tClass:
		if fv.q.T.class.lambda != nil {
			return cs.callLambda(fv.q.T.class.lambda, args, x.Pos())
		}
		if r, ok := cs.operatorCall(OperatorCall, append([]value{fv}, args...), x.Pos(), false); ok {
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
		fn := &overload{name: ne.Name.Ident}
		cs.choose.addADL(fn, ne, args)
		if len(fn.funcs) > 0 {
			if ne.Name.HasArgs {
				if fn.args, ok = cs.res.templateArgs(ne.Name.Args); !ok {
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

// callOverload calls the best function of a set.
func (cs *caller) callOverload(fn *overload, args []value, at Pos) value {
	if slices.ContainsFunc(args, func(a value) bool { return a.q.T.isWide() }) {
		if fn = fn.forWide(); fn.builtin == nil && len(fn.funcs) == 0 {
			return cs.c.noWide(fn, args, at)
		}
	}
	var inst *funcInst
	var why string
	own := false
	c, set := cs.choose.chooseSet(fn, args)
	if !set && (len(fn.funcs) > 0 || fn.builtin == nil) || set && fn.ofUnit() {
		inst, why = cs.choose.resolve(fn.funcs, fn, args, fn.this, false)
		// A unit's own overload in namespace metal, as for a half type, is one among the library's.
		own = inst != nil && inst.f.ofUnit && !(inMetal(inst.f.env) && !cs.choose.exactCall(inst, args))
		if own && fn.builtin != nil && !set && len(args) > 0 && cs.choose.convRank(&args[0], inst.params[0].q) > rankQual &&
			fn.builtin.accepts(args, fn) {
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
		case inst == nil || !inst.f.ofUnit:
			cs.choose.ambiguousCall(c, fn, args, at)
			return badValue
		default:
			own = true
		}
	}
	if !own {
		cs.c.apple.call(fn, args, at)
	}
	if len(fn.funcs) == 0 && fn.builtin != nil {
		return cs.callBuiltin(fn, args, at)
	}
	if fn.builtin != nil && !own && (inst == nil || !cs.choose.exactCall(inst, args)) && fn.builtin.accepts(args, fn) {
		return cs.callBuiltin(fn, args, at)
	}
	if inst == nil || !inst.f.ofUnit {
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

// operatorCall calls the operator function for operands, if there is one; then ok is true. With quiet set,
// operands that fit none leave the operator to its builtin meaning.
func (cs *caller) operatorCall(op Operator, args []value, at Pos, quiet bool) (r value, ok bool) {
	key := operatorKey(op)
	if args[0].q.T.kind == tClass {
		ms := cs.c.methods(args[0].q.T, key)
		if len(ms) > 0 {
			inst, why := cs.choose.resolve(ms, nil, args[1:], &args[0], false)
			free := cs.choose.operatorCands(op, args)
			if inst == nil && len(free) > 0 {
				if inst, _ := cs.choose.resolve(free, nil, args, nil, true); inst != nil {
					return cs.call(inst, args, nil, at), true
				}
			}
			if inst != nil {
				return cs.call(inst, args[1:], &args[0], at), true
			}
			if op == OperatorAssign && len(args) == 2 && (args[1].q.T == args[0].q.T || args[1].k == vList) {
				return badValue, false // the implicit copy assignment
			}
			if quiet && cs.choose.convertsToArith(args) {
				return badValue, false
			}
			cs.noMatch(&overload{name: key, funcs: ms, this: &args[0]}, args[1:], why, at)
			return badValue, true
		}
	}
	if op == OperatorAssign || op == OperatorCall || op == OperatorIndex || op == OperatorArrow {
		return badValue, false
	}
	funcs := cs.choose.operatorCands(op, args)
	if len(funcs) == 0 {
		return badValue, false
	}
	inst, why := cs.choose.resolve(funcs, nil, args, nil, false)
	if inst != nil {
		return cs.call(inst, args, nil, at), true
	}
	if len(why) > 9 && why[:9] == "ambiguous" && !cs.choose.convertsToArith(args) {
		cs.noMatch(&overload{name: key, funcs: funcs}, args, why, at)
		return badValue, true
	}
	return badValue, false
}

func (cs *caller) tryOperator(op Operator, a value, y Expr, at Pos) (value, bool) {
	if len(cs.choose.operatorCands(op, []value{a})) == 0 {
		return badValue, false
	}
	b := cs.exprs.expr(y)
	return cs.operatorCall(op, []value{a, b}, at, true)
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

// inMetal reports whether a scope is namespace metal or one of its parts, the unit's additions to them too.
func inMetal(e *env) bool { return e.metal != 0 || e.frozen != nil && e.frozen.metal != 0 }

func itoa(n int) string { return strconv.Itoa(n) }
