package msl

import "slices"

// constructor makes objects of classes: by constructors, from parts in parentheses, by default initialisers.
type constructor struct {
	c      *compiler
	arith  *arithmetic
	calls  *caller
	choose *chooser
	conv   *converter
	em     *emitter
	exprs  *expressions
	lists  *listInit
	mem    *memory
	res    *resolver
}

// constructExpr evaluates T(args) and T{args}.
func (xs *expressions) constructExpr(x *ConstructExpr) value {
	var t qtype
	if tm := xs.res.placeholder(x.Type); tm != nil {
		x, t = xs.vars.deduceConstruct(x, tm)
	} else {
		t = xs.res.typeOf(x.Type)
	}
	if t.T.kind == tBad {
		for _, a := range x.Args {
			xs.expr(a)
		}
		return badValue
	}
	t = t.bare()
	if t.T.kind == tAuto {
		xs.c.errorf(BadType, x.Pos(), "auto is no type to construct")
		return badValue
	}
	if x.Braced {
		return xs.lists.initList(&InitList{x.exprNode, x.Args}, t, x.Pos())
	}
	args, ok := xs.args(x.Args)
	xs.em.at(x.Pos())
	if !ok {
		return badValue
	}
	return xs.ctor.constructParen(t, args, x.Pos())
}

// constructParen makes a T from (args).
func (ct *constructor) constructParen(t qtype, args []value, at Pos) value {
	if t.T.kind == tVoid && len(args) <= 1 {
		return voidValue
	}
	if !ct.c.isComplete(t.T) {
		ct.c.errorf(Incomplete, at, "an object of the incomplete type %s", t)
		return badValue
	}
	switch t.T.kind {
	case tClass:
		return ct.constructFrom(t.T, args, at)
	case tVec:
		if len(args) == 1 && args[0].q.T.kind != tVec && args[0].q.T.kind != tClass && args[0].k != vList {
			return ct.conv.explicitConv(args[0], t, true, at)
		}
		return ct.makeVec(t.T, args, at)
	case tSimdMat:
		if len(args) == 1 {
			if args[0].q.T == t.T {
				return ct.mem.load(args[0])
			}
			x := ct.conv.convertTo(args[0], t.T.elem, at, "the diagonal of a matrix")
			if x.bad() {
				return badValue
			}
			return diagonalMatrix(ct.em, t.T, x.comps[0])
		}
	}
	switch len(args) {
	case 0:
		return ct.mem.zero(t.T)
	case 1:
		return ct.conv.explicitConv(args[0], t, true, at)
	}
	ct.c.errorf(ArgCount, at, "%s is made from one value, not %d", t, len(args))
	return badValue
}

// makeVec assembles a vector from scalars and vectors that have its number of components together.
func (ct *constructor) makeVec(t *ctype, args []value, at Pos) value {
	if len(args) == 0 {
		return ct.mem.zero(t)
	}
	r := value{k: vRight, q: qt(t)}
	for _, a := range args {
		if a.q.T.kind == tClass {
			a = ct.conv.toArith(a)
		}
		a = ct.mem.rvalue(a)
		if a.bad() {
			return badValue
		}
		if _, n := a.q.T.shape(); n == 0 && a.q.T.kind != tEnum {
			ct.c.errorf(TypeMismatch, at, "%s cannot be made from a value of type %s", t, a.q.T)
			return badValue
		}
		for _, c := range a.comps {
			r.comps = append(r.comps, ct.em.convert(c, t.elem.T.kt))
		}
	}
	if len(r.comps) == t.n {
		return r
	}
	if len(args) == 1 && len(r.comps) > 1 {
		ct.c.errorf(TypeMismatch, at, "%s cannot be made from a vector of %d components", t, len(r.comps))
		return badValue
	}
	ct.c.errorf(ArgCount, at, "%s has %d components, but %d are given", t, t.n, len(r.comps))
	return badValue
}

// construct calls a constructor for a new object and returns it.
func (ct *constructor) construct(t *ctype, inst *funcInst, args []value, at Pos) value {
	o := ct.mem.newObject(t.class.name, qt(t))
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
		if t.class.userCtor {
			if len(args) == 1 && args[0].q.T.kind == tClass {
				if ci := ct.choose.conversionFunc(&args[0], t); ci != nil {
					return ct.mem.rvalue(ct.calls.call(ci, nil, &args[0], at))
				}
			}
			ct.calls.noMatch(&overload{name: t.class.name, funcs: fs}, args, why, at)
			return badValue
		}
	}
	if len(args) == 0 {
		return ct.defaultValue(t, at)
	}
	if v, ok := ct.constructInherited(t, args, at); ok {
		return v
	}
	if len(args) == 1 && args[0].q.T.kind == tClass {
		if ci := ct.choose.conversionFunc(&args[0], t); ci != nil {
			return ct.mem.rvalue(ct.calls.call(ci, nil, &args[0], at))
		}
	}
	ct.c.errorf(NoMatch, at, "the class %s has no constructor for %d arguments: use {...}", t, len(args))
	return badValue
}

// constructInherited makes a class object by a constructor that it has from a base; ok is false if none fits.
func (ct *constructor) constructInherited(t *ctype, args []value, at Pos) (v value, ok bool) {
	for i := range t.class.fields {
		f := &t.class.fields[i]
		if !f.base || !slices.Contains(t.class.inherits, f.q.T.class.name) {
			continue
		}
		this := value{k: vSlot, q: f.q, obj: &object{q: f.q}}
		inst, _ := ct.choose.resolve(ct.c.methods(f.q.T, "(constructor)"), nil, args, &this, false)
		if inst == nil {
			continue
		}
		o := ct.mem.newObject(t.class.name, qt(t))
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
	cls := v.q.T.class
	for i := range cls.fields {
		f := &cls.fields[i]
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
				ct.c.errorf(Uninitialised, at, "the reference '%s' of %s is not bound to an object", f.name, cls)
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
	ct.res.env = &env{kind: envFunc, up: v.q.T.class.scope, this: &v}
	defer func() { ct.res.env = saved }()
	return ct.fieldInit(f, f.decl.Init, f.decl.Pos(), "a default member initialiser")
}

// defaultInit is the default value of any type.
func (ct *constructor) defaultInit(t *ctype, at Pos) value {
	switch {
	case t.kind == tClass && ct.c.needsInit(t):
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
	cls := t.q.T.class
	done := map[*field]bool{}
	for i := range d.Inits {
		m := &d.Inits[i]
		ct.em.at(m.At)
		path, ft := ct.initTarget(cls, m)
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
			if len(args) == 1 && ft.T.kind != tClass && ft.T.kind != tVec && ft.T.kind != tArray {
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
	if cls.union {
		return
	}
	ct.initFields(t, done, d.Pos())
}

// initTarget finds the field or base class that an entry of an initialiser list names.
func (ct *constructor) initTarget(cls *classInfo, m *MemberInit) ([]*field, qtype) {
	if !m.Name.HasArgs && len(m.Name.Quals) == 0 {
		if path := cls.fieldPath(m.Name.Ident, nil); path != nil {
			return path, path[len(path)-1].q
		}
	}
	ent := ct.res.resolveEntity(m.Name)
	if ent == nil {
		return nil, qtype{}
	}
	if bt, ok := ct.res.entityType(ent, m.Name); ok {
		if bt.T == cls.typ {
			return nil, bt
		}
		for i := range cls.fields {
			if cls.fields[i].base && cls.fields[i].q.T == bt.T {
				return []*field{&cls.fields[i]}, bt
			}
		}
	}
	ct.c.errorf(NoMember, m.At, "the class %s has no field or base class '%s'", cls, m.Name.Ident)
	return nil, qtype{}
}

// A field that is a reference is kept as the pointer to what it refers to; member follows it. It is bound once, where
// its object is made.

// bindField makes what a field that is a reference keeps of the object that it refers to.
func (ct *constructor) bindField(q qtype, v value, at Pos) value {
	if v.bad() {
		return badValue
	}
	if v.k == vList {
		if len(v.list.Elems) != 1 {
			ct.c.errorf(BadInit, at, "a reference is bound to one object, not to a list")
			return badValue
		}
		v = ct.exprs.place(v.list.Elems[0])
	}
	r := ct.conv.bindRef(qt(q.T), v, at)
	if r.bad() {
		return badValue
	}
	p := ct.mem.addressOf(r, at)
	if p.bad() {
		return badValue
	}
	return rval(q.T, p.comps...)
}

// fieldInit evaluates an initialiser of a field.
func (ct *constructor) fieldInit(f *field, x Expr, at Pos, what string) value {
	if f.q.T.kind != tRef {
		return ct.conv.convertTo(ct.exprs.expr(x), f.q.bare(), at, what)
	}
	if l, ok := x.(*InitList); ok {
		return ct.bindField(f.q, value{k: vList, q: qt(typeVoid), list: l}, at)
	}
	return ct.bindField(f.q, ct.exprs.place(x), at)
}

// unassignable names a field that keeps objects of a class from being assigned to as a whole, "" if none does.
func (c *compiler) unassignable(t *ctype) string {
	for t.kind == tArray {
		t = t.elem.T
	}
	if t.kind != tClass {
		return ""
	}
	for i := range t.class.fields {
		f := &t.class.fields[i]
		switch {
		case f.q.T.kind == tRef:
			return "the reference '" + f.name + "'"
		case f.q.Const:
			return "the constant '" + f.name + "'"
		}
		if s := c.unassignable(f.q.T); s != "" {
			return s
		}
	}
	return ""
}
