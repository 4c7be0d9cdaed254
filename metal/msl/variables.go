package msl

import (
	"github.com/mlxlua/mlxlua/metal/kir"
)

// variables declares what stands in functions and initialises it.
type variables struct {
	c      *compiler
	choose *chooser
	consts *constants
	conv   *converter
	ctor   *constructor
	em     *emitter
	exprs  *expressions
	lists  *listInit
	mem    *memory
	res    *resolver
	stmts  *statements

	tgBytes int       // threadgroup memory that is declared
	refused ErrorList // what keeps the kernel from becoming a pipeline
}

// localDecl declares something inside a function.
func (vs *variables) localDecl(d Decl) {
	switch d := d.(type) {
	case *VarDecl:
		vs.em.at(d.Pos())
		vs.localVar(d)
	case *BindingDecl:
		vs.em.at(d.Pos())
		vs.bindings(d)
	case *AliasDecl:
		vs.res.env.put(&entity{kind: eType, name: d.Name, ty: vs.res.typeOf(d.Type), at: d.Pos()})
	case *ClassDecl:
		if d.Name != nil {
			vs.res.env.put(&entity{kind: eType, name: d.Name.Ident, class: d, at: d.Pos()})
			if d.Complete {
				vs.c.isComplete(vs.c.classFor(d, vs.res.env))
			}
		}
	case *EnumDecl:
		t := vs.c.enumFor(d, vs.res.env)
		if d.Name != nil {
			vs.res.env.put(&entity{kind: eType, name: d.Name.Ident, ty: qt(t), at: d.Pos()})
		}
		if !d.Scoped {
			for i := range d.Values {
				v := convertConst(vs.c.enumValue(t, d, vs.res.env, i), t.kt)
				vs.res.env.put(&entity{kind: eConst, name: d.Values[i].Name, local: true, val: rval(t, v), at: d.Values[i].At})
			}
		}
	case *StaticAssertDecl:
		vs.consts.staticAssert(d)
	case *UsingDirectiveDecl:
		if ns := vs.c.findNamespace(vs.res.env, d.Name); ns != nil {
			vs.res.env.using = append(vs.res.env.using, ns)
		}
	case *UsingDecl:
		if x := vs.res.resolveEntity(d.Name); x != nil {
			y := *x
			vs.res.env.put(&y)
		}
	case *NamespaceAliasDecl:
		if ns := vs.c.findNamespace(vs.res.env, d.Target); ns != nil {
			vs.res.env.put(&entity{kind: eNamespace, name: d.Name, ns: ns, at: d.Pos()})
		}
	case *FuncDecl:
		// a declaration of a function inside a function: the definition is found by name
		if d.Body != nil {
			vs.c.errorf(Unsupported, d.Pos(), "a function is defined inside another one")
		}
	case *PragmaStmt:
		vs.stmts.pragma(d)
	case *TemplateDecl:
		vs.c.errorf(Unsupported, d.Pos(), "a template is declared inside a function")
	}
}

// localVar declares a variable of a function.
func (vs *variables) localVar(d *VarDecl) {
	name := ""
	if d.Name != nil {
		name = d.Name.Ident
	}
	ent := &entity{kind: eVar, name: name, local: true, at: d.Pos(), val: badValue}
	if old := vs.res.env.own(name); old != nil && name != "" {
		vs.c.redefined(name, d.Pos(), old)
	}
	d, t := vs.varType(d)
	if t.T.kind == tBad {
		vs.evalInit(d)
		vs.res.env.put(ent)
		return
	}
	if d.Specs.Constexpr {
		t.Const = true
	}
	switch t.Space {
	case SpaceThreadgroup:
		if t.T.kind != tPtr && t.T.kind != tRef {
			ent.val = vs.threadgroupVar(d, name, t)
			vs.res.env.put(ent)
			return
		}
	case SpaceDevice:
		vs.c.errorf(AddressSpace, d.Pos(), "the variable '%s' cannot live in device memory", name)
		t.Space = SpaceNone
	case SpaceConstant:
		t.Const = true
	case SpaceThread:
		t.Space = SpaceNone
	}
	if d.Specs.Static && !d.Specs.Constexpr && !(t.Const && t.Space == SpaceConstant) && !t.Const {
		vs.c.errorf(Unsupported, d.Pos(), "the static variable '%s' is not constant: kernels keep nothing", name)
	}
	ent.val, ent.isRef = vs.initVar(d, name, t)
	vs.res.env.put(ent)
}

// evalInit checks an initialiser whose variable has no type.
func (vs *variables) evalInit(d *VarDecl) {
	if d.Init != nil {
		if _, list := d.Init.(*InitList); !list {
			vs.exprs.expr(d.Init)
		}
	}
	for _, a := range d.Args {
		vs.exprs.expr(a)
	}
}

// initVar makes a variable's object with its initial value.
func (vs *variables) initVar(d *VarDecl, name string, t qtype) (value, bool) {
	if d.Specs.Constexpr || t.Space == SpaceConstant {
		return vs.constVar(d, name, t)
	}
	if d.Style == InitNone {
		return vs.defaultVar(d, name, t), false
	}
	var v value
	special := vs.c.link.watch(func() {
		if v, t = vs.initValue(d, t); !v.bad() && t.T.kind != tRef && v.isLvalue() {
			v = vs.mem.load(v)
		}
	})
	if v.bad() || t.T.kind == tBad {
		return badValue, false
	}
	if t.T.kind == tRef {
		b := vs.conv.bindRef(t, v, d.Pos())
		return vs.mem.stableRef(b), true
	}
	lv := vs.mem.newLocal(name, t, v)
	if lv.k == vSlot && lv.obj.fixed {
		lv.obj.special = special
	}
	return lv, false
}

// defaultVar makes a variable without an initialiser.
func (vs *variables) defaultVar(d *VarDecl, name string, t qtype) value {
	switch {
	case t.T.kind == tRef:
		vs.c.errorf(BadType, d.Pos(), "the reference '%s' is not bound to an object", name)
		return badValue
	case t.T.kind == tAuto, t.T.kind == tPtr && t.T.elem.T.kind == tAuto:
		vs.c.errorf(BadType, d.Pos(), "auto needs an initialiser to deduce the type of '%s' from", name)
		return badValue
	case t.T.kind == tVoid, t.T.kind == tFunc:
		vs.c.errorf(BadType, d.Pos(), "the variable '%s' has the type %s", name, t)
		return badValue
	case t.T.kind == tArray && t.T.n < 0:
		vs.c.errorf(BadArraySize, d.Pos(), "the array '%s' has neither a size nor values", name)
		return badValue
	case !vs.c.isComplete(t.T):
		vs.c.errorf(Incomplete, d.Pos(), "the variable '%s' has the incomplete type %s", name, t)
		return badValue
	case t.Const && !vs.c.needsInit(t.T) && t.T.kind != tClass:
		vs.c.errorf(Uninitialised, d.Pos(), "the constant '%s' has no value", name)
		return badValue
	}
	if vs.c.needsInit(t.T) {
		v := vs.ctor.defaultInit(t.T, d.Pos())
		if v.bad() {
			return badValue
		}
		return vs.mem.newLocal(name, t, vs.mem.load(v))
	}
	o := vs.mem.newObject(name, t)
	vs.mem.unset(o)
	return objVal(o)
}

// initValue evaluates an initialiser and converts it to the variable's type, which it may complete: auto, an
// array's size.
func (vs *variables) initValue(d *VarDecl, t qtype) (value, qtype) {
	at := d.Pos()
	var v value
	list, _ := d.Init.(*InitList)
	switch {
	case d.Style == InitDirect:
		args, ok := vs.exprs.args(d.Args)
		if !ok {
			return badValue, t
		}
		kind := t.T.kind
		switch {
		case len(args) == 1 && (kind == tScalar || kind == tEnum):
			return vs.conv.directInit(args[0], t.bare(), at, "the initialiser of '"+d.Name.Ident+"'"), t
		case len(args) != 1 || kind != tAuto && kind != tRef && kind != tPtr:
			return vs.ctor.constructParen(t.bare(), args, at), t
		}
		v = args[0]
	case list != nil:
		if t.T.kind == tAuto && len(list.Elems) == 1 {
			v = vs.exprs.expr(list.Elems[0])
			break
		}
		if t.T.kind == tAuto || t.T.kind == tRef && !t.T.elem.Const {
			vs.c.errorf(BadType, at, "a braced list does not say what type '%s' has", d.Name.Ident)
			return badValue, t
		}
		if t.T.kind == tRef {
			return vs.lists.initList(list, t.T.elem.bare(), list.Pos()), t
		}
		r := vs.lists.initList(list, t.bare(), list.Pos())
		if t.T.kind == tArray && t.T.n < 0 && !r.bad() {
			t.T = r.q.T
		}
		return r, t
	case t.T.kind == tRef:
		v = vs.exprs.place(d.Init)
	default:
		v = vs.exprs.expr(d.Init)
	}
	vs.em.at(at)
	if v = vs.choose.functionObject(v); v.bad() {
		return badValue, t
	}
	if t.T.kind == tAuto || (t.T.kind == tPtr || t.T.kind == tRef) && t.T.elem.T.kind == tAuto {
		if v.k == vFuncs || v.k == vVoid {
			vs.conv.noConversion(&v, t, at, "the initialiser of '"+d.Name.Ident+"'")
			return badValue, t
		}
		t = vs.conv.deduceAuto(t, &v, at)
		if t.T.kind == tBad {
			return badValue, t
		}
	}
	if t.T.kind == tRef {
		return v, t
	}
	if t.T.kind == tArray && v.q.T.kind == tArray {
		vs.c.errorf(TypeMismatch, at, "an array cannot be initialised by another one")
		return badValue, t
	}
	if !vs.c.isComplete(t.T) {
		vs.c.errorf(Incomplete, at, "the variable '%s' has the incomplete type %s", d.Name.Ident, t)
		return badValue, t
	}
	return vs.conv.convertTo(v, t.bare(), at, "the initialiser of '"+d.Name.Ident+"'"), t
}

// constVar makes a constexpr variable or one in the constant address space: its value must be constant.
func (vs *variables) constVar(d *VarDecl, name string, t qtype) (value, bool) {
	if t.T.kind == tRef { // a reference to something else: an ordinary alias
		v, t := vs.initValue(d, t)
		if v.bad() {
			return badValue, true
		}
		return vs.mem.stableRef(vs.conv.bindRef(t, v, d.Pos())), true
	}
	if d.Style == InitNone && !vs.c.needsInit(t.T) && t.T.kind != tClass {
		vs.c.errorf(Uninitialised, d.Pos(), "the constant '%s' has no value", name)
		return badValue, false
	}
	var o *object
	var ok bool
	var missing *notConstant
	special := vs.c.link.watch(func() {
		ok, missing = vs.consts.runConst(func(h *generator) {
			var v value
			if d.Style == InitNone {
				v = h.ctor.defaultInit(t.T, d.Pos())
			} else {
				v, t = h.vars.initValue(d, t)
			}
			if t.Const = true; !v.bad() {
				o = h.mem.finishConst(name, t, h.mem.load(v))
			}
		}, d.Pos())
	})
	if special && d.Specs.Constexpr {
		vs.c.errorf(NotConstant, d.Pos(), "the value of the constexpr '%s' is not constant: it needs a function constant",
			name)
		return badValue, false
	}
	switch {
	case missing != nil && missing.table && !vs.em.exec && (t.T.kind == tPtr || t.T.kind == tAuto):
		// A place in a table: kernels know where it is.
		v, t := vs.initValue(d, t)
		if v.bad() || t.T.kind == tBad {
			return badValue, false
		}
		if t.T.kind == tPtr {
			return vs.mem.newLocal(name, t, vs.mem.load(v)), false
		}
		vs.c.errorf(NotConstant, d.Pos(), "the value of '%s' is not constant: it needs %s", name, missing.why)
	case missing != nil && !missing.reported:
		vs.c.errorf(NotConstant, d.Pos(), "the value of '%s' is not constant: it needs %s", name, missing.why)
	case ok && o != nil:
		o.special = special
		return objVal(o), false
	}
	return badValue, false
}

// threadgroupVar declares a variable in threadgroup memory: in the body of a kernel only.
func (vs *variables) threadgroupVar(d *VarDecl, name string, t qtype) value {
	if vs.stmts.frame == nil || !vs.stmts.frame.kernel {
		vs.c.errorf(ThreadgroupScope, d.Pos(), "the threadgroup variable '%s' must be declared in the body of a kernel", name)
		return badValue
	}
	if d.Style != InitNone && !vs.zeroInit(d, t) {
		vs.c.errorf(BadInit, d.Pos(), "the threadgroup variable '%s' cannot have an initial value other than zero", name)
	}
	if t.T.kind == tArray && t.T.n < 0 || !vs.c.isComplete(t.T) {
		vs.c.errorf(BadArraySize, d.Pos(), "the threadgroup variable '%s' has no size", name)
		return badValue
	}
	vs.tgBytes = alignUp(vs.tgBytes, max(t.T.align, 1)) + t.T.size
	if vs.tgBytes > maxThreadgroupBytes {
		vs.refused.Add(vs.c.file.Errorf(ThreadgroupMemory, d.Pos(),
			"with '%s' the kernel needs %d bytes of threadgroup memory: Metal has %d", name, vs.tgBytes, maxThreadgroupBytes))
	}
	_, p := vs.em.newRegion(kir.Region{
		Name: name, Space: kir.Threadgroup, Size: t.T.size, Align: max(t.T.align, 1), Elem: t.T.firstScalar(),
		ElemSize: t.T.counted(), Part: hasParts(t.T),
	})
	return value{k: vMem, q: t, ptr: p}
}

// zeroInit reports whether an initialiser is all zeros, which is what threadgroup memory starts as.
func (vs *variables) zeroInit(d *VarDecl, t qtype) bool {
	zero := false
	ok := vs.c.trial(func() {
		vs.consts.evalConst(func(h *generator) {
			v, _ := h.vars.initValue(d, t.bare())
			if v = h.mem.load(v); v.k == vRight {
				zero = true
				for _, c := range v.comps {
					zero = zero && isZero(c)
				}
			}
		}, d.Pos(), "an initial value")
	})
	return ok && zero
}

// varType returns the type of a variable, whose template arguments may have to be deduced from its initialiser. What is
// evaluated for that is not evaluated again: the declaration returned holds the values.
func (vs *variables) varType(d *VarDecl) (*VarDecl, qtype) {
	tm := vs.res.placeholder(d.Type)
	if tm == nil {
		return d, vs.res.typeOf(d.Type)
	}
	list := d.Args
	braces, _ := d.Init.(*InitList)
	switch {
	case braces != nil:
		list = braces.Elems
	case d.Init != nil:
		list = []Expr{d.Init}
	}
	if len(list) == 0 && allDefaulted(tm.decl) {
		return d, vs.res.typeOf(d.Type)
	}
	var args []value
	ok := false
	if d.Specs.Constexpr || d.Type.Quals.Space == SpaceConstant || vs.em.exec { // its value is evaluated as a constant
		vs.consts.unevaluated(func(h *generator) { args, ok = h.exprs.args(list) })
	} else if args, ok = vs.exprs.args(list); ok {
		list = heldExprs(list, args, d.Pos())
		held := *d
		switch {
		case braces != nil:
			held.Init = &InitList{braces.exprNode, list}
		case d.Init != nil:
			held.Init = list[0]
		default:
			held.Args = list
		}
		d = &held
	}
	t := badType
	if ok {
		t = vs.choose.deduceClass(tm, args, d.Type.Pos())
	}
	if t.T.kind == tBad {
		return &VarDecl{declNode: d.declNode, Specs: d.Specs, Type: d.Type, Name: d.Name}, badType
	}
	return d, vs.res.qualified(t, d.Type)
}

// deduceConstruct is varType for T(args) and T{args}.
func (vs *variables) deduceConstruct(x *ConstructExpr, tm *tmplInfo) (*ConstructExpr, qtype) {
	if len(x.Args) == 0 && allDefaulted(tm.decl) {
		return x, vs.res.typeOf(x.Type)
	}
	args, ok := vs.exprs.args(x.Args)
	if !ok {
		return &ConstructExpr{exprNode: x.exprNode, Type: x.Type}, badType
	}
	held := &ConstructExpr{exprNode: x.exprNode, Type: x.Type, Braced: x.Braced}
	held.Args = heldExprs(x.Args, args, x.Pos())
	return held, vs.choose.deduceClass(tm, args, x.Pos())
}

// maxThreadgroupBytes is Metal's limit on the threadgroup memory of a kernel.
const maxThreadgroupBytes = 32768

// heldExpr stands for one element of an expanded pack in a braced list: it is evaluated already.
type heldExpr struct {
	exprNode
	v value
}

// heldExprs returns expressions that yield values which have been evaluated; a list in braces stays one.
func heldExprs(list []Expr, vals []value, at Pos) []Expr {
	out := make([]Expr, len(vals))
	for i := range vals {
		p := at
		if len(vals) == len(list) { // no pack was expanded
			p = list[i].Pos()
		}
		if vals[i].k == vList {
			out[i] = vals[i].list
		} else {
			out[i] = &heldExpr{exprNode{Base{p}}, vals[i]}
		}
	}
	return out
}
