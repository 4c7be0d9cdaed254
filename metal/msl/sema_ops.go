package msl

import (
	"reflect"
	"slices"
)

// operatorCands collects the operator functions that may apply: methods of the first operand, functions in scope
// and in the namespaces of the operands' classes.
func (ch *chooser) operatorCands(op Op, args []value) []*funcEnt {
	key := operatorKey(op)
	var funcs []*funcEnt
	if ent := ch.lookupOperator(key); ent != nil {
		for _, f := range ent.funcs {
			if f.cls == nil {
				funcs = append(funcs, f)
			}
		}
	}
	return ch.adl(funcs, key, args)
}

func (ch *chooser) lookupOperator(key string) *entity {
	var all *entity
	for e := ch.res.env; e != nil; e = e.up {
		if e.kind != envNamespace {
			continue
		}
		if x := ch.c.find(e, key, 0); x != nil && x.kind == eFunc {
			all = mergeEnts(all, x)
		}
	}
	return all
}

// operatorCall calls the operator function for operands, if there is one; then ok is true. With quiet set,
// operands that fit none leave the operator to its builtin meaning.
func (cs *caller) operatorCall(op Op, args []value, at Pos, quiet bool) (r value, ok bool) {
	key := operatorKey(op)
	if args[0].q.T.kind == tStruct {
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
			if op == OpAssign && len(args) == 2 && (args[1].q.T == args[0].q.T || args[1].k == vList) {
				return badValue, false // the implicit copy assignment
			}
			if quiet && cs.choose.convertsToArith(args) {
				return badValue, false
			}
			cs.noMatch(&overload{name: key, funcs: ms, this: &args[0]}, args[1:], why, at)
			return badValue, true
		}
	}
	if op == OpAssign || op == OpCall || op == OpIndex || op == OpArrow {
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

// convertsToArith reports whether every operand is a number or converts to one.
func (ch *chooser) convertsToArith(args []value) bool {
	for i := range args {
		t := args[i].q.T
		if t.kind == tStruct && len(ch.c.methods(t, "(conversion)")) == 0 {
			return false
		}
	}
	return true
}

// construct calls a constructor for a new object and returns it.
func (ct *constructor) construct(t *ctype, inst *funcInst, args []value, at Pos) value {
	o := ct.mem.newObject(t.st.name, qt(t))
	this := objVal(o)
	if r := ct.calls.call(inst, args, &this, at); r.k == vBad {
		return badValue
	}
	if o.mem {
		v := objVal(o)
		v.tmp = true
		return v
	}
	return ct.mem.load(objVal(o))
}

// constructFrom makes a class object from (args): by a constructor, a copy, a default or, as Metal's compiler
// allows, an aggregate.
func (ct *constructor) constructFrom(t *ctype, args []value, at Pos) value {
	if !ct.c.isComplete(t) {
		ct.c.errorf(Incomplete, at, "an object of the incomplete class %s", t)
		return badValue
	}
	if len(args) == 1 {
		if args[0].q.T == t {
			return ct.mem.load(args[0])
		}
		if _, ok := derivesFrom(args[0].q.T, t); ok {
			return ct.arith.convStd(args[0], t)
		}
		if args[0].k == vList {
			return ct.lists.initList(args[0].list, qt(t), at)
		}
	}
	if fs := ct.c.methods(t, "(constructor)"); len(fs) > 0 {
		this := value{k: vSlot, q: qt(t), obj: &object{q: qt(t)}}
		inst, why := ct.choose.resolve(fs, nil, args, &this, false)
		if inst != nil {
			if inst.f.decl.Default && inst.f.decl.Body == nil {
				return ct.defaultValue(t, at)
			}
			return ct.construct(t, inst, args, at)
		}
		if v, ok := ct.constructInherited(t, args, at); ok {
			return v
		}
		if t.st.userCtor {
			if len(args) == 1 && args[0].q.T.kind == tStruct {
				if ci := ct.choose.conversionFunc(&args[0], t); ci != nil {
					return ct.mem.rvalue(ct.calls.call(ci, nil, &args[0], at))
				}
			}
			ct.calls.noMatch(&overload{name: t.st.name, funcs: fs}, args, why, at)
			return badValue
		}
	}
	if len(args) == 0 {
		return ct.defaultValue(t, at)
	}
	if v, ok := ct.constructInherited(t, args, at); ok {
		return v
	}
	if len(args) == 1 && args[0].q.T.kind == tStruct {
		if ci := ct.choose.conversionFunc(&args[0], t); ci != nil {
			return ct.mem.rvalue(ct.calls.call(ci, nil, &args[0], at))
		}
	}
	ct.c.errorf(NoMatch, at, "the class %s has no constructor for %d arguments: use {...}", t, len(args))
	return badValue
}

// constructInherited makes a class object by a constructor that it has from a base; ok is false if none fits.
func (ct *constructor) constructInherited(t *ctype, args []value, at Pos) (v value, ok bool) {
	for i := range t.st.fields {
		f := &t.st.fields[i]
		if !f.base || !slices.Contains(t.st.inherits, f.q.T.st.name) {
			continue
		}
		this := value{k: vSlot, q: f.q, obj: &object{q: f.q}}
		inst, _ := ct.choose.resolve(ct.c.methods(f.q.T, "(constructor)"), nil, args, &this, false)
		if inst == nil {
			continue
		}
		o := ct.mem.newObject(t.st.name, qt(t))
		lv := objVal(o)
		base := ct.mem.member(lv, []*field{f})
		if r := ct.calls.call(inst, args, &base, at); r.k == vBad {
			return badValue, true
		}
		ct.initFields(lv, map[*field]bool{f: true}, at)
		if o.mem {
			lv.tmp = true
			return lv, true
		}
		return ct.mem.load(lv), true
	}
	return badValue, false
}

// defaultValue is the value of T{} for a class without a constructor that takes no arguments: zeros and the
// default member initialisers.
func (ct *constructor) defaultValue(t *ctype, at Pos) value {
	if !ct.c.needsInit(t) {
		return ct.mem.zero(t)
	}
	o := ct.mem.newObject(t.String(), qt(t))
	lv := objVal(o)
	ct.initFields(lv, nil, at)
	if lv.k == vMem {
		lv.tmp = true
		return lv
	}
	return ct.mem.load(lv)
}

// initFields initialises the fields of an object by their default initialisers, zero for others, except those in
// done.
func (ct *constructor) initFields(v value, done map[*field]bool, at Pos) {
	st := v.q.T.st
	for i := range st.fields {
		f := &st.fields[i]
		if done[f] {
			continue
		}
		fv := ct.mem.fieldOf(v, []*field{f})
		fv.q.Const = false
		switch {
		case f.decl != nil && f.decl.Init != nil:
			x := ct.defaultMember(v, f)
			if !x.bad() {
				ct.mem.store(fv, ct.mem.load(x))
			}
		case done != nil && !ct.c.needsInit(f.q.T) && !ct.em.exec: // a constructor leaves it uninitialised
		default:
			if f.q.T.kind == tRef {
				ct.c.errorf(Uninitialised, at, "the reference '%s' of %s is not bound to an object", f.name, st)
				continue
			}
			x := ct.defaultInit(f.q.T, at)
			if !x.bad() {
				ct.mem.store(fv, x)
			}
		}
	}
}

// defaultMember evaluates the default initialiser of a field of the object v, whose other members it may name.
func (ct *constructor) defaultMember(v value, f *field) value {
	saved := ct.res.env
	ct.res.env = &env{kind: envFunc, up: v.q.T.st.scope, this: &v}
	defer func() { ct.res.env = saved }()
	return ct.fieldInit(f, f.decl.Init, f.decl.Pos(), "a default member initialiser")
}

// defaultInit is the default value of any type.
func (ct *constructor) defaultInit(t *ctype, at Pos) value {
	switch {
	case t.kind == tStruct && ct.c.needsInit(t):
		return ct.constructFrom(t, nil, at)
	case t.kind == tArray && ct.c.needsInit(t) && t.comps >= 0 && !ct.mem.inMemory(t):
		r := value{k: vRight, q: qt(t)}
		for range t.n {
			e := ct.defaultInit(t.elem.T, at)
			if e.bad() {
				return badValue
			}
			r.comps = append(r.comps, ct.mem.load(e).comps...)
		}
		return r
	}
	return ct.mem.zero(t)
}

// memberInits runs a constructor's initialiser list and the default initialisers of the fields it leaves out.
func (ct *constructor) memberInits(this *value, d *FuncDecl) {
	if this == nil {
		return
	}
	t := *this
	t.q.Const = false
	st := t.q.T.st
	done := map[*field]bool{}
	for i := range d.Inits {
		m := &d.Inits[i]
		ct.em.at(m.At)
		path, ft := ct.initTarget(st, m)
		if ft.T == nil {
			continue
		}
		var x value
		if ft.T == t.q.T && path == nil { // delegation
			args, ok := ct.exprs.args(m.Args)
			if ok {
				if x = ct.constructFrom(ft.T, args, m.At); !x.bad() {
					ct.mem.store(t, x)
				}
			}
			return
		}
		if ft.T.kind == tRef {
			if args, ok := ct.exprs.args(m.Args); !ok {
				continue
			} else if len(args) != 1 {
				ct.c.errorf(BadInit, m.At, "a reference is bound to one object, not to %d", len(args))
				continue
			} else {
				x = ct.bindField(ft, args[0], m.At)
			}
		} else if m.Braced {
			x = ct.lists.initList(&InitList{exprNode{Base{m.At}}, m.Args}, ft.bare(), m.At)
		} else {
			args, ok := ct.exprs.args(m.Args)
			if !ok {
				continue
			}
			if len(args) == 1 && ft.T.kind != tStruct && ft.T.kind != tVec && ft.T.kind != tArray {
				x = ct.conv.convertTo(args[0], ft.bare(), m.At, "a member initialiser")
			} else {
				x = ct.constructParen(ft.bare(), args, m.At)
			}
		}
		done[path[0]] = len(path) == 1 || path[0].anon
		if x.bad() {
			continue
		}
		fv := ct.mem.fieldOf(t, path)
		fv.q.Const = false
		ct.mem.store(fv, ct.mem.load(x))
	}
	if st.union {
		return
	}
	ct.initFields(t, done, d.Pos())
}

// initTarget finds the field or base class that an entry of an initialiser list names.
func (ct *constructor) initTarget(st *structInfo, m *MemberInit) ([]*field, qtype) {
	if !m.Name.HasArgs && len(m.Name.Quals) == 0 {
		if path := st.fieldPath(m.Name.Ident, nil); path != nil {
			return path, path[len(path)-1].q
		}
	}
	ent := ct.res.resolveEntity(m.Name)
	if ent == nil {
		return nil, qtype{}
	}
	if bt, ok := ct.res.entityType(ent, m.Name); ok {
		if bt.T == st.typ {
			return nil, bt
		}
		for i := range st.fields {
			if st.fields[i].base && st.fields[i].q.T == bt.T {
				return []*field{&st.fields[i]}, bt
			}
		}
	}
	ct.c.errorf(NoMember, m.At, "the class %s has no field or base class '%s'", st, m.Name.Ident)
	return nil, qtype{}
}

// lambdaExpr makes a lambda's object. Captures by reference see the enclosing scope itself; by value, copies.
func (xs *expressions) lambdaExpr(x *LambdaExpr) value {
	e := &env{kind: envBlock, up: xs.res.env}
	for i := range x.Captures {
		c := &x.Captures[i]
		if c.Name == "this" {
			continue
		}
		var v value
		if c.Init != nil {
			v = xs.expr(c.Init)
		} else {
			ent := xs.res.lookup(c.Name)
			if ent == nil {
				xs.c.errorf(Undeclared, c.At, "'%s' is not declared", c.Name)
				continue
			}
			v = xs.entityValue(ent, &NameExpr{exprNode{Base{c.At}}, &Name{Base: Base{c.At}, NamePart: NamePart{Ident: c.Name}}})
			if c.ByRef {
				continue
			}
		}
		if v.bad() || c.ByRef {
			if !v.bad() {
				e.put(&entity{kind: eVar, name: c.Name, local: true, val: xs.mem.placed(v), isRef: true})
			}
			continue
		}
		xs.captureCopy(e, c.Name, v, !x.Mutable)
	}
	if x.ByValue {
		xs.captureUsed(e, x)
	}
	li := &lambdaInfo{x: x, env: e}
	decl := &FuncDecl{declNode: declNode{x.Base}, Name: &Name{Base: x.Base, NamePart: NamePart{Ident: "lambda"}}}
	decl.Params, decl.Body, decl.Ret = x.Params, x.Body, x.Ret
	li.fn = &funcEnt{decl: decl, env: e, lam: li, usr: true}
	st := &structInfo{name: "lambda", lambda: li, state: 2, declared: true}
	st.typ = &ctype{kind: tStruct, st: st, size: 1, align: 1}
	return value{k: vRight, q: qt(st.typ)}
}

func (xs *expressions) captureCopy(e *env, name string, v value, fixed bool) {
	x := xs.mem.load(v)
	if x.k == vVoid || x.k == vFuncs {
		return
	}
	t := x.q.bare()
	t.Const = fixed
	e.put(&entity{kind: eVar, name: name, local: true, val: xs.mem.newLocal(name, t, x)})
}

// captureUsed copies the local variables that the body of a [=] lambda names.
func (xs *expressions) captureUsed(e *env, x *LambdaExpr) {
	seen := map[string]bool{}
	walkNames(reflect.ValueOf(x.Body), func(n string) {
		if seen[n] || e.own(n) != nil {
			return
		}
		seen[n] = true
		ent := xs.res.lookup(n)
		if ent == nil || ent.kind != eVar || !ent.local || !ent.val.isLvalue() || ent.val.q.Space.normal() != SpaceNone {
			return
		}
		if ent.val.k == vSlot && ent.val.obj.fixed || ent.val.q.T.kind == tArray {
			return
		}
		xs.captureCopy(e, n, ent.val, !x.Mutable)
	})
}
