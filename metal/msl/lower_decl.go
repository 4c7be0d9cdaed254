package msl

import (
	"github.com/mlxlua/mlxlua/metal/kir"
)

// maxThreadgroupBytes is Metal's limit on the threadgroup memory of a kernel.
const maxThreadgroupBytes = 32768

// localDecl declares something inside a function.
func (g *gen) localDecl(d Decl) {
	switch d := d.(type) {
	case *VarDecl:
		g.em.at(d.Pos())
		g.localVar(d)
	case *BindingDecl:
		g.em.at(d.Pos())
		g.bindings(d)
	case *AliasDecl:
		g.res.env.put(&entity{kind: eType, name: d.Name, ty: g.res.typeOf(d.Type), at: d.Pos()})
	case *StructDecl:
		if d.Name != nil {
			g.res.env.put(&entity{kind: eType, name: d.Name.Ident, strukt: d, at: d.Pos()})
			if d.Complete {
				g.c.isComplete(g.c.structFor(d, g.res.env))
			}
		}
	case *EnumDecl:
		t := g.c.enumFor(d, g.res.env)
		if d.Name != nil {
			g.res.env.put(&entity{kind: eType, name: d.Name.Ident, ty: qt(t), at: d.Pos()})
		}
		if !d.Scoped {
			for i := range d.Values {
				v := convertConst(g.c.enumValue(t, d, g.res.env, i), t.kt)
				g.res.env.put(&entity{kind: eConst, name: d.Values[i].Name, local: true, val: rval(t, v), at: d.Values[i].At})
			}
		}
	case *StaticAssertDecl:
		g.c.staticAssertIn(g, d)
	case *UsingDirectiveDecl:
		if ns := g.c.findNamespace(g.res.env, d.Name); ns != nil {
			g.res.env.using = append(g.res.env.using, ns)
		}
	case *UsingDecl:
		if x := g.res.resolveEntity(d.Name); x != nil {
			y := *x
			g.res.env.put(&y)
		}
	case *NamespaceAliasDecl:
		if ns := g.c.findNamespace(g.res.env, d.Target); ns != nil {
			g.res.env.put(&entity{kind: eNamespace, name: d.Name, ns: ns, at: d.Pos()})
		}
	case *FuncDecl:
		// a declaration of a function inside a function: the definition is found by name
		if d.Body != nil {
			g.c.errorf(Unsupported, d.Pos(), "a function is defined inside another one")
		}
	case *PragmaStmt:
		g.pragma(d)
	case *TemplateDecl:
		g.c.errorf(Unsupported, d.Pos(), "a template is declared inside a function")
	}
}

// localVar declares a variable of a function.
func (g *gen) localVar(d *VarDecl) {
	name := ""
	if d.Name != nil {
		name = d.Name.Ident
	}
	ent := &entity{kind: eVar, name: name, local: true, at: d.Pos(), val: badValue}
	if old := g.res.env.own(name); old != nil && name != "" {
		g.c.redefined(name, d.Pos(), old)
	}
	d, t := g.varType(d)
	if t.T.kind == tBad {
		g.evalInit(d)
		g.res.env.put(ent)
		return
	}
	if d.Specs.Constexpr {
		t.Const = true
	}
	switch t.Space {
	case SpaceThreadgroup:
		if t.T.kind != tPtr && t.T.kind != tRef {
			ent.val = g.threadgroupVar(d, name, t)
			g.res.env.put(ent)
			return
		}
	case SpaceDevice:
		g.c.errorf(AddressSpace, d.Pos(), "the variable '%s' cannot live in device memory", name)
		t.Space = SpaceNone
	case SpaceConstant:
		t.Const = true
	case SpaceThread:
		t.Space = SpaceNone
	}
	if d.Specs.Static && !d.Specs.Constexpr && !(t.Const && t.Space == SpaceConstant) && !t.Const {
		g.c.errorf(Unsupported, d.Pos(), "the static variable '%s' is not constant: kernels keep nothing", name)
	}
	ent.val, ent.isRef = g.initVar(d, name, t)
	g.res.env.put(ent)
}

// evalInit checks an initialiser whose variable has no type.
func (g *gen) evalInit(d *VarDecl) {
	if d.Init != nil {
		if _, list := d.Init.(*InitList); !list {
			g.expr(d.Init)
		}
	}
	for _, a := range d.Args {
		g.expr(a)
	}
}

// initVar makes a variable's object with its initial value.
func (g *gen) initVar(d *VarDecl, name string, t qtype) (value, bool) {
	if d.Specs.Constexpr || t.Space == SpaceConstant {
		return g.constVar(d, name, t)
	}
	if d.Style == InitNone {
		return g.defaultVar(d, name, t), false
	}
	v, t := g.initValue(d, t)
	if v.bad() || t.T.kind == tBad {
		return badValue, false
	}
	if t.T.kind == tRef {
		b := g.bindRef(t, v, d.Pos())
		return g.mem.stableRef(b), true
	}
	if v.isLvalue() {
		v = g.mem.load(v)
	}
	return g.mem.newLocal(name, t, v), false
}

// stableRef computes the address of a referenced object once, so that later changes of an index do not move it.
func (mem *memory) stableRef(v value) value {
	if v.k == vMem && v.idx.in != nil {
		v.ptr = mem.addr(v)
		v.idx, v.imm = operand{}, 0
	}
	return v
}

// defaultVar makes a variable without an initialiser.
func (g *gen) defaultVar(d *VarDecl, name string, t qtype) value {
	switch {
	case t.T.kind == tRef:
		g.c.errorf(BadType, d.Pos(), "the reference '%s' is not bound to an object", name)
		return badValue
	case t.T.kind == tAuto, t.T.kind == tPtr && t.T.elem.T.kind == tAuto:
		g.c.errorf(BadType, d.Pos(), "auto needs an initialiser to deduce the type of '%s' from", name)
		return badValue
	case t.T.kind == tVoid, t.T.kind == tFunc:
		g.c.errorf(BadType, d.Pos(), "the variable '%s' has the type %s", name, t)
		return badValue
	case t.T.kind == tArray && t.T.n < 0:
		g.c.errorf(BadArraySize, d.Pos(), "the array '%s' has neither a size nor values", name)
		return badValue
	case !g.c.isComplete(t.T):
		g.c.errorf(Incomplete, d.Pos(), "the variable '%s' has the incomplete type %s", name, t)
		return badValue
	case t.Const && !g.c.needsInit(t.T) && t.T.kind != tStruct:
		g.c.errorf(Uninitialised, d.Pos(), "the constant '%s' has no value", name)
		return badValue
	}
	if g.c.needsInit(t.T) {
		v := g.defaultInit(t.T, d.Pos())
		if v.bad() {
			return badValue
		}
		return g.mem.newLocal(name, t, g.mem.load(v))
	}
	o := g.mem.newObject(name, t)
	g.mem.unset(o)
	return objVal(o)
}

// unset takes the value of the last round from a variable that is declared in a loop: it is set to that of a variable
// which nothing ever sets, so that validation finds what depends on it and no value lives on from round to round.
func (mem *memory) unset(o *object) {
	if mem.em.loops == 0 || mem.em.exec || o.mem {
		return
	}
	never := map[kir.Type]int{}
	for _, s := range o.slots {
		like := mem.em.k.Vars[s.v]
		v, ok := never[like.Type]
		if !ok {
			v = mem.em.newVar(like.Name, like.Type)
			mem.em.k.Vars[v] = like
			never[like.Type], mem.never[uint64(v)] = v, true
		}
		mem.em.varSet(s.v, mem.em.varGet(v))
	}
}

// initValue evaluates an initialiser and converts it to the variable's type, which it may complete: auto, an
// array's size.
func (g *gen) initValue(d *VarDecl, t qtype) (value, qtype) {
	at := d.Pos()
	var v value
	list, _ := d.Init.(*InitList)
	switch {
	case d.Style == InitDirect:
		args, ok := g.args(d.Args)
		if !ok {
			return badValue, t
		}
		if len(args) == 1 && (t.T.kind == tAuto || t.T.kind == tRef || t.T.kind == tPtr) {
			v = args[0]
			break
		}
		return g.constructParen(t.bare(), args, at), t
	case list != nil:
		if t.T.kind == tAuto && len(list.Elems) == 1 {
			v = g.expr(list.Elems[0])
			break
		}
		if t.T.kind == tAuto || t.T.kind == tRef && !t.T.elem.Const {
			g.c.errorf(BadType, at, "a braced list does not say what type '%s' has", d.Name.Ident)
			return badValue, t
		}
		if t.T.kind == tRef {
			return g.initList(list, t.T.elem.bare(), list.Pos()), t
		}
		r := g.initList(list, t.bare(), list.Pos())
		if t.T.kind == tArray && t.T.n < 0 && !r.bad() {
			t.T = r.q.T
		}
		return r, t
	case t.T.kind == tRef:
		v = g.place(d.Init)
	default:
		v = g.expr(d.Init)
	}
	g.em.at(at)
	if v = g.choose.functionObject(v); v.bad() {
		return badValue, t
	}
	if t.T.kind == tAuto || (t.T.kind == tPtr || t.T.kind == tRef) && t.T.elem.T.kind == tAuto {
		if v.k == vFuncs || v.k == vVoid {
			g.noConversion(&v, t, at, "the initialiser of '"+d.Name.Ident+"'")
			return badValue, t
		}
		t = g.deduceAuto(t, &v, at)
		if t.T.kind == tBad {
			return badValue, t
		}
	}
	if t.T.kind == tRef {
		return v, t
	}
	if t.T.kind == tArray && v.q.T.kind == tArray {
		g.c.errorf(TypeMismatch, at, "an array cannot be initialised by another one")
		return badValue, t
	}
	if !g.c.isComplete(t.T) {
		g.c.errorf(Incomplete, at, "the variable '%s' has the incomplete type %s", d.Name.Ident, t)
		return badValue, t
	}
	return g.convertTo(v, t.bare(), at, "the initialiser of '"+d.Name.Ident+"'"), t
}

// constVar makes a constexpr variable or one in the constant address space: its value must be constant.
func (g *gen) constVar(d *VarDecl, name string, t qtype) (value, bool) {
	if t.T.kind == tRef { // a reference to something else: an ordinary alias
		v, t := g.initValue(d, t)
		if v.bad() {
			return badValue, true
		}
		return g.mem.stableRef(g.bindRef(t, v, d.Pos())), true
	}
	if d.Style == InitNone && !g.c.needsInit(t.T) && t.T.kind != tStruct {
		g.c.errorf(Uninitialised, d.Pos(), "the constant '%s' has no value", name)
		return badValue, false
	}
	var o *object
	ok, missing := g.runConst(func(h *gen) {
		var v value
		if d.Style == InitNone {
			v = h.defaultInit(t.T, d.Pos())
		} else {
			v, t = h.initValue(d, t)
		}
		if t.Const = true; !v.bad() {
			o = h.mem.finishConst(name, t, h.mem.load(v))
		}
	}, d.Pos())
	switch {
	case missing != nil && missing.table && !g.em.exec && (t.T.kind == tPtr || t.T.kind == tAuto):
		// A place in a table: kernels know where it is.
		v, t := g.initValue(d, t)
		if v.bad() || t.T.kind == tBad {
			return badValue, false
		}
		if t.T.kind == tPtr {
			return g.mem.newLocal(name, t, g.mem.load(v)), false
		}
		g.c.errorf(NotConstant, d.Pos(), "the value of '%s' is not constant: it needs %s", name, missing.why)
	case missing != nil && !missing.reported:
		g.c.errorf(NotConstant, d.Pos(), "the value of '%s' is not constant: it needs %s", name, missing.why)
	case ok && o != nil:
		return objVal(o), false
	}
	return badValue, false
}

// threadgroupVar declares a variable in threadgroup memory: in the body of a kernel only.
func (g *gen) threadgroupVar(d *VarDecl, name string, t qtype) value {
	if g.fr == nil || !g.fr.kernel {
		g.c.errorf(ThreadgroupScope, d.Pos(), "the threadgroup variable '%s' must be declared in the body of a kernel", name)
		return badValue
	}
	if d.Style != InitNone && !g.zeroInit(d, t) {
		g.c.errorf(BadInit, d.Pos(), "the threadgroup variable '%s' cannot have an initial value other than zero", name)
	}
	if t.T.kind == tArray && t.T.n < 0 || !g.c.isComplete(t.T) {
		g.c.errorf(BadArraySize, d.Pos(), "the threadgroup variable '%s' has no size", name)
		return badValue
	}
	g.tgBytes = alignUp(g.tgBytes, max(t.T.align, 1)) + t.T.size
	if g.tgBytes > maxThreadgroupBytes {
		g.refused.Add(g.c.file.Errorf(ThreadgroupMemory, d.Pos(),
			"with '%s' the kernel needs %d bytes of threadgroup memory: Metal has %d", name, g.tgBytes, maxThreadgroupBytes))
	}
	_, p := g.em.newRegion(kir.Region{
		Name: name, Space: kir.Threadgroup, Size: t.T.size, Align: max(t.T.align, 1), Elem: t.T.firstScalar(),
		Part: hasParts(t.T),
	})
	return value{k: vMem, q: t, ptr: p}
}

// zeroInit reports whether an initialiser is all zeros, which is what threadgroup memory starts as.
func (g *gen) zeroInit(d *VarDecl, t qtype) bool {
	zero := false
	ok := g.c.trial(func() {
		g.evalConst(func(h *gen) {
			v, _ := h.initValue(d, t.bare())
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
