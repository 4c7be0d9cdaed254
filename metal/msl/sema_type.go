package msl

import (
	"github.com/mlxlua/mlxlua/metal/kir"
)

var badType = qtype{T: typeBad}

// resolver finds what names mean in a scope, and makes types and template arguments of what is written there.
type resolver struct {
	c       *compiler
	env     *env
	at      *Pos       // the place at hand, for messages
	gen     *generator // made when it is needed, see eval
	depth   int        // of instantiations around, where there is no generator yet
	badQual bool       // resolveQuiet has reported a wrong qualifier
}

// resolverIn returns a resolver for a scope outside functions.
func (c *compiler) resolverIn(e *env) *resolver {
	return &resolver{c: c, env: e, at: new(Pos), depth: c.depth}
}

// eval returns the generator that evaluates the expressions of the scope.
func (rs *resolver) eval() *generator {
	if rs.gen == nil {
		connect(rs.c, rs, emitter{exec: true}).nest.depth = rs.depth * 8
	}
	return rs.gen
}

// typeOf resolves a type as written, in the current scope. Errors are reported and give badType.
func (rs *resolver) typeOf(x *TypeExpr) qtype {
	if x == nil { // a syntax error has been reported
		return badType
	}
	return rs.qualified(rs.typeNoQuals(x), x)
}

// qualified adds the qualifiers of a type as written.
func (rs *resolver) qualified(t qtype, x *TypeExpr) qtype {
	if x.Kind == TypeReference || t.T.kind == tRef { // qualifiers on a reference have no effect
		return t
	}
	t.Const = t.Const || x.Quals.Const
	t.Vol = t.Vol || x.Quals.Volatile
	if x.Quals.Space != SpaceNone {
		if t.Space != SpaceNone && t.Space != x.Quals.Space {
			rs.c.errorf(AddressSpace, x.Pos(), "the type %s is given a second address space, %s", t, x.Quals.Space)
		}
		t.Space = x.Quals.Space
	}
	switch t.Space {
	case SpaceConstant: // what lives there is const, written or not
		t.Const = true
	case SpaceThreadgroupImageblock, SpaceRayData, SpaceObjectData:
		rs.c.errorf(Unsupported, x.Pos(), "the address space %s has no meaning in compute kernels", t.Space)
		t.Space = SpaceNone
	}
	return t
}

func (rs *resolver) typeNoQuals(x *TypeExpr) qtype {
	switch x.Kind {
	case TypeBasic:
		return rs.basicType(x)
	case TypeNamed:
		return rs.namedType(x)
	case TypeAuto:
		return qt(typeAuto)
	case TypeDecltype:
		if x.X == nil {
			return qt(typeAuto)
		}
		return rs.eval().exprs.decltype(x.X)
	case TypePointer:
		return rs.pointerType(x)
	case TypeReference:
		e := rs.typeOf(x.Elem)
		if e.T.kind == tBad {
			return badType
		}
		if x.RValue && e.T.kind != tRef {
			return qt(rs.c.types.derived(tRef, e, 1))
		}
		return qt(rs.c.types.refTo(e))
	case TypeArray:
		return rs.arrayType(x)
	case TypeFunc:
		sig := funcSig{ret: rs.typeOf(x.Elem)}
		for _, p := range x.Params {
			sig.params = append(sig.params, qt(rs.c.types.paramType(rs.typeOf(p.Type)).T))
		}
		return qt(rs.c.types.funcOf(sig))
	case TypeStruct:
		return qt(rs.c.structFor(x.Struct, rs.env))
	case TypeEnum:
		return qt(rs.c.enumFor(x.Enum, rs.env))
	case TypeMemberPtr:
		rs.c.errorf(Unsupported, x.Pos(), "pointers to members do not exist in Metal")
	}
	return badType
}

func (rs *resolver) basicType(x *TypeExpr) qtype {
	if x.Basic == "double" && !rs.c.opt.Float64 && !rs.c.inPrelude(x.Pos()) {
		rs.c.errorf(Unsupported, x.Pos(), "Metal has no double: use float")
	}
	if t := builtinTypes[x.Basic]; t != nil {
		return qt(t)
	}
	rs.c.errorf(NotAType, x.Pos(), "there is no type '%s'", x.Basic)
	return badType
}

func (rs *resolver) pointerType(x *TypeExpr) qtype {
	e := rs.typeOf(x.Elem)
	switch {
	case e.T.kind == tBad:
		return badType
	case e.T.kind == tRef:
		rs.c.errorf(BadType, x.Pos(), "there are no pointers to references")
		return badType
	case e.T.kind == tAuto: // auto*: what it points to is deduced
		return qt(rs.c.types.derived(tPtr, e, 0))
	}
	return qt(rs.c.types.ptrTo(e))
}

func (rs *resolver) arrayType(x *TypeExpr) qtype {
	e := rs.typeOf(x.Elem)
	n := -1
	if x.X != nil {
		v, ok := rs.eval().consts.constInt(x.X, "the size of an array")
		if !ok {
			return badType
		}
		if v < 0 || v > maxBytes { // none is an extension of clang, of which Metal is one
			rs.c.errorf(BadArraySize, x.X.Pos(), "an array of %d elements", v)
			return badType
		}
		n = int(v)
	}
	switch {
	case e.T.kind == tBad:
		return badType
	case e.T.kind == tRef, e.T.kind == tVoid, e.T.kind == tFunc, e.T.kind == tAuto:
		rs.c.errorf(BadType, x.Pos(), "an array cannot have elements of type %s", e)
		return badType
	case !rs.c.isComplete(e.T):
		rs.c.errorf(Incomplete, x.Pos(), "an array of the incomplete type %s", e)
		return badType
	}
	if n > 0 && e.T.size > 0 && n > maxBytes/e.T.size {
		rs.c.errorf(TooLarge, x.Pos(), "an array of %d elements of %d bytes", n, e.T.size)
		return badType
	}
	// qualifiers of the elements are kept on the array: an array of const ints is the type of a const array of ints
	return qtype{T: rs.c.types.arrayOf(e.bare(), n), Const: e.Const, Vol: e.Vol, Space: e.Space}
}

// namedType resolves a name that must be a type.
func (rs *resolver) namedType(x *TypeExpr) qtype {
	// A class names itself inside its own text without arguments.
	ent := rs.resolveEntity(x.Name)
	if ent == nil {
		return badType
	}
	t, ok := rs.entityType(ent, x.Name)
	if !ok {
		rs.c.errorf(NotAType, x.Pos(), "'%s' is not a type", nameText(x.Name))
		return badType
	}
	return t
}

// entityType returns the type an entity stands for, instantiating a template by the arguments of the name's last
// part.
func (rs *resolver) entityType(x *entity, n *Name) (qtype, bool) {
	if x.hidden != nil {
		x = x.hidden
	}
	switch x.kind {
	case eType:
		return rs.c.typeEntity(x), true
	case eTemplate:
		if !n.HasArgs {
			if st := rs.enclosingInstance(x.tmpl); st != nil {
				return qt(st.typ), true
			}
			if x.tmpl.built == "" && !allDefaulted(x.tmpl.decl) {
				rs.c.errorf(BadTemplateArgs, n.Pos(), "the template '%s' needs its arguments here", x.name)
				return badType, true
			}
		}
		args, ok := rs.templateArgs(n.Args)
		if !ok {
			return badType, true
		}
		return rs.instantiateType(x.tmpl, args, n.Pos())
	}
	return badType, false
}

// enclosingInstance returns the innermost class in scope that is an instance of the template.
func (rs *resolver) enclosingInstance(tm *tmplInfo) *structInfo {
	for e := rs.env; e != nil; e = e.up {
		if e.kind == envClass && e.cls != nil && e.cls.name == tm.name && e.cls.args != nil {
			return e.cls
		}
	}
	return nil
}

func allDefaulted(d *TemplateDecl) bool {
	if d == nil {
		return false
	}
	for _, p := range d.Params {
		if !p.Pack && p.DefaultType == nil && p.Default == nil {
			return false
		}
	}
	return true
}

// typeEntity returns the type of an eType entity, resolving aliases, classes and enumerations on first use.
func (c *compiler) typeEntity(x *entity) qtype {
	if x.ty.T != nil {
		return x.ty
	}
	if t, ok := c.resolved[x]; ok {
		return t
	}
	if c.busy[x] {
		c.errorf(Incomplete, x.at, "the type '%s' is defined by itself", x.name)
		return badType
	}
	c.busy[x] = true
	defer delete(c.busy, x)
	var t qtype
	switch {
	case x.alias != nil:
		if !c.enter(x.at) {
			return badType
		}
		defer c.leave()
		t = c.resolverIn(x.env).typeOf(x.alias.Type)
	case x.strukt != nil:
		t = qt(c.structFor(x.strukt, x.env))
	case x.enum != nil:
		t = qt(c.enumFor(x.enum, x.env))
	default:
		t = badType
	}
	c.resolved[x] = t
	return t
}

// resolveEntity finds what a possibly qualified name stands for. It reports a name that does not exist and returns
// nil.
func (rs *resolver) resolveEntity(n *Name) *entity {
	x := rs.resolveQuiet(n)
	if x == nil {
		if rs.badQual {
			rs.badQual = false
			return nil
		}
		rs.undeclared(n)
	}
	return x
}

func (rs *resolver) undeclared(n *Name) {
	name := n.Ident
	if name == "" && n.Op != OpNone {
		name = operatorKey(n.Op)
	}
	if len(n.Quals) > 0 {
		text := ""
		if e := rs.qualEnv(n); e != nil {
			text = meant(suggestIn(e, name))
		}
		rs.c.errorf(Undeclared, n.Pos(), "'%s' does not exist in '%s'%s", name, qualText(n.Quals), text)
		return
	}
	rs.notDeclared(name, n.Pos())
}

// notDeclared reports a name, with what to write instead if that is known or can be guessed.
// Each name is reported once a kernel.
func (rs *resolver) notDeclared(name string, at Pos) {
	if c := rs.c; c.errs == &c.list {
		if c.missing[name] {
			c.hidden++
			return
		}
		c.missing[name] = true
	}
	if h := hintFor(name); h != "" {
		rs.c.errorf(Undeclared, at, "'%s' is not declared: %s", name, h)
		return
	}
	rs.c.errorf(Undeclared, at, "'%s' is not declared%s", name, meant(rs.suggest(name)))
}

// meant is the end of a message about a misspelt name.
func meant(near string) string {
	if near == "" {
		return ""
	}
	return ": did you mean '" + near + "'?"
}

// resolveQuiet is resolveEntity without a message for the last part; a wrong qualifier is reported, and sets badQual.
func (rs *resolver) resolveQuiet(n *Name) *entity {
	return withArgs(rs.resolveName(n), &n.NamePart)
}

// withArgs makes a class's own name the template again where template arguments follow it: they may be other ones.
func withArgs(x *entity, p *NamePart) *entity {
	if x != nil && x.kind == eType && p.HasArgs && x.tmpl != nil {
		return &entity{kind: eTemplate, name: x.name, tmpl: x.tmpl, env: x.env}
	}
	return x
}

func (rs *resolver) resolveName(n *Name) *entity {
	key := n.Ident
	if key == "" {
		switch {
		case n.Conv != nil:
			key = "(conversion)"
		case n.Op != OpNone:
			key = operatorKey(n.Op)
		}
	}
	if len(n.Quals) == 0 {
		if !n.Global {
			return rs.lookup(key)
		}
		e := rs.env
		for e.up != nil {
			e = e.up
		}
		return rs.c.find(e, key, 0)
	}
	e := rs.qualEnv(n)
	if e == nil {
		rs.badQual = true
		return nil
	}
	x := rs.c.find(e, key, 0)
	if x == nil && e.kind == envNamespace {
		if p := predeclared(key); p != nil && e.metal == 1 {
			return p
		}
		for f := e.frozen; f != nil; f = f.frozen {
			if p := predeclared(key); p != nil && f.metal == 1 {
				return p
			}
		}
	}
	return x
}

// qualEnv resolves the qualifiers of a name to a namespace or class; nil after an error.
func (rs *resolver) qualEnv(n *Name) *env {
	var e *env
	for i := range n.Quals {
		p := &n.Quals[i]
		var x *entity
		switch {
		case p.Decltype != nil:
			t := rs.eval().exprs.decltype(p.Decltype).noRef()
			if e = rs.classEnv(t.T, n); e == nil {
				return nil
			}
			continue
		case e == nil && n.Global:
			root := rs.env
			for root.up != nil {
				root = root.up
			}
			x = rs.c.find(root, p.Ident, 0)
		case e == nil:
			x = rs.lookup(p.Ident)
		default:
			x = rs.c.find(e, p.Ident, 0)
		}
		if x == nil {
			if i == 0 && p.Ident == "std" {
				rs.c.errorf(Undeclared, p.PartAt, "'std' is not declared: %s", rs.stdHint(n.Ident))
			} else {
				rs.notDeclared(p.Ident, p.PartAt)
			}
			return nil
		}
		if x.kind == eNamespace {
			e = x.ns
			continue
		}
		t, ok := rs.entityType(withArgs(x, p), &Name{Base: n.Base, NamePart: *p})
		if !ok {
			rs.c.errorf(NotAType, p.PartAt, "'%s' is neither a namespace nor a class", p.Ident)
			return nil
		}
		if t.T.kind == tBad {
			return nil
		}
		if e = rs.classEnv(t.noRef().T, n); e == nil {
			return nil
		}
	}
	return e
}

// classEnv returns the scope of a class or enumeration that is followed by ::.
func (rs *resolver) classEnv(t *ctype, n *Name) *env {
	switch t.kind {
	case tStruct:
		rs.c.declareMembers(t.st)
		rs.c.complete(t.st)
		return t.st.scope
	case tEnum:
		return t.en.scope
	case tBad:
		return nil
	}
	rs.c.errorf(NotAType, n.Pos(), "%s has no members that :: could name", t)
	return nil
}

func nameText(n *Name) string {
	s := ""
	if len(n.Quals) > 0 {
		s = qualText(n.Quals) + "::"
	}
	if n.Ident == "" && n.Op != OpNone {
		return s + operatorKey(n.Op)
	}
	return s + n.Ident
}

func qualText(parts []NamePart) string {
	s := ""
	for i, p := range parts {
		if i > 0 {
			s += "::"
		}
		s += p.Ident
	}
	return s
}

// templateArgs evaluates template arguments as written; packs are expanded.
func (rs *resolver) templateArgs(list []TemplateArg) ([]targ, bool) {
	out := make([]targ, 0, len(list))
	ok := true
	for i := range list {
		a := &list[i]
		if a.Pack {
			rs.expandPack(a, func() {
				t, k := rs.templateArg(a)
				ok = ok && k
				out = append(out, t)
			})
			continue
		}
		t, k := rs.templateArg(a)
		ok = ok && k
		out = append(out, t)
	}
	return out, ok
}

func (rs *resolver) templateArg(a *TemplateArg) (targ, bool) {
	if a.Type != nil {
		if a.Type.Kind == TypeNamed {
			ent := rs.resolveEntity(a.Type.Name)
			switch {
			case ent == nil:
				return targ{}, false
			case ent.kind == eTemplate && !a.Type.Name.HasArgs && rs.enclosingInstance(ent.tmpl) == nil:
				return targ{tmpl: ent}, true
			case ent.kind == eConst || ent.kind == eVar: // the parser took a value for a type
				return rs.valueArg(&NameExpr{exprNode{a.Type.Base}, a.Type.Name})
			}
		}
		t := rs.typeOf(a.Type)
		return targ{q: t}, t.T.kind != tBad
	}
	if ne, ok := a.X.(*NameExpr); ok { // a type may have been taken for a value
		if ent := rs.resolveQuiet(ne.Name); ent != nil {
			switch {
			case ent.kind == eType:
				t := rs.c.typeEntity(ent)
				return targ{q: t}, t.T.kind != tBad
			case ent.kind == eTemplate && !ne.Name.HasArgs:
				return targ{tmpl: ent}, true
			case ent.kind == eTemplate && ent.tmpl.decl != nil:
				if _, isVar := ent.tmpl.decl.Decl.(*VarDecl); !isVar {
					t, _ := rs.entityType(ent, ne.Name)
					return targ{q: t}, t.T.kind != tBad
				}
			}
		}
		rs.badQual = false
	}
	return rs.valueArg(a.X)
}

func (rs *resolver) valueArg(x Expr) (targ, bool) {
	if ne, ok := stripParens(x).(*NameExpr); ok {
		if ent := rs.resolveQuiet(ne.Name); ent != nil && (ent.kind == eFunc || ent.kind == eConst && ent.val.k == vFuncs) {
			v := rs.eval().exprs.entityValue(ent, ne)
			return targ{fn: v.fn}, !v.bad()
		}
		rs.badQual = false
	}
	if o, addr := rs.constObject(x); o != nil {
		return targ{obj: o, addr: addr}, true
	}
	if u, is := stripParens(x).(*UnaryExpr); is && u.Op == OpAddrOf {
		if o := rs.wholeOf(u.X); o != nil {
			rs.c.errorf(BadTemplateArgs, x.Pos(), "a template argument points to a part of '%s': C++ has none such before "+
				"C++20. Pass the whole and an index", o.name)
			return targ{}, false
		}
	}
	v, ok := rs.eval().consts.constExpr(x, "a template argument")
	if !ok || v.bad() {
		return targ{}, false
	}
	if len(v.comps) != 1 || !v.q.T.isScalar() {
		rs.c.errorf(BadTemplateArgs, x.Pos(), "a template argument of type %s is neither a type nor a number", v.q)
		return targ{}, false
	}
	return targ{isVal: true, val: v.comps[0], vt: v.q.T}, true
}

// wholeOf returns the constant that an expression names a part of, nil if it names none.
func (rs *resolver) wholeOf(x Expr) *object {
	for part := false; ; part = true {
		switch y := stripParens(x).(type) {
		case *IndexExpr:
			x = y.X
			continue
		case *MemberExpr:
			x = y.X
			continue
		case *NameExpr:
			if part {
				o, _ := rs.constObject(y)
				return o
			}
		}
		return nil
	}
}

// constObject returns the table or class in constant memory that a template argument names, or any constant whose
// address it takes; nil for other arguments.
func (rs *resolver) constObject(x Expr) (o *object, addr bool) {
	x = stripParens(x)
	if u, ok := x.(*UnaryExpr); ok && u.Op == OpAddrOf {
		x, addr = stripParens(u.X), true
	}
	ne, ok := x.(*NameExpr)
	if !ok {
		return nil, false
	}
	ent := rs.resolveQuiet(ne.Name)
	rs.badQual = false
	if ent == nil || ent.kind != eVar && ent.kind != eConst || ent.kind == eVar && ent.vdecl != nil && ent.vdecl.Field {
		return nil, false
	}
	var v value
	if !rs.c.trial(func() { v = rs.entityConst(ent, ne) }) || v.k != vSlot || !v.obj.fixed || v.q.T != v.obj.q.T {
		return nil, false
	}
	if addr = addr || ent.addr; !addr && v.q.T.kind != tArray &&
		(v.q.T.kind != tStruct || len(rs.c.methods(v.q.T, "(conversion)")) > 0) {
		return nil, false
	}
	return v.obj, addr
}

// entityConst is what a name stands for before its address is taken.
func (rs *resolver) entityConst(ent *entity, x *NameExpr) value {
	if ent.addr {
		return ent.val
	}
	return rs.eval().exprs.entityValue(ent, x)
}

// enumFor returns the type of an enumeration declared in e.
func (c *compiler) enumFor(d *EnumDecl, e *env) *ctype {
	if t := c.enums[enumKey{d, e}]; t != nil {
		return t
	}
	en := &enumInfo{decl: d, name: "(unnamed enum)", scoped: d.Scoped}
	if d.Name != nil {
		en.name = d.Name.Ident
	}
	t := &ctype{kind: tEnum, kt: kir.I32, en: en, comps: 1}
	c.enums[enumKey{d, e}] = t
	if d.Underlying != nil {
		u := c.resolverIn(e).typeOf(d.Underlying)
		if u.T.isInt() || u.T.isBool() {
			t.kt = u.T.kt
		} else if u.T.kind != tBad {
			c.errorf(BadType, d.Underlying.Pos(), "an enumeration cannot have the underlying type %s", u)
		}
	} else {
		c.chooseUnderlying(t, d, e)
	}
	t.size, t.align = t.kt.Size(), t.kt.Size()
	en.scope = &env{kind: envClass, up: e, name: en.name}
	for i := range d.Values {
		en.scope.put(&entity{kind: eConst, name: d.Values[i].Name, enum: d, at: d.Values[i].At})
	}
	return t
}

type enumKey struct {
	d *EnumDecl
	e *env
}

// chooseUnderlying gives an enumeration without an underlying type one that holds its values.
func (c *compiler) chooseUnderlying(t *ctype, d *EnumDecl, e *env) {
	if d.Scoped {
		return
	}
	for i := range d.Values {
		v := c.enumValue(t, d, e, i)
		if v.ty == kir.U64 && v.bits>>32 != 0 || v.ty == kir.I64 && v.int() != int64(int32(v.int())) {
			t.kt = v.ty
			return
		}
		if (v.ty == kir.U32 || v.ty == kir.U64) && v.bits > 1<<31-1 {
			t.kt = kir.U32
		}
	}
}

// enumValue evaluates an enumerator.
func (c *compiler) enumValue(t *ctype, d *EnumDecl, e *env, i int) operand {
	key := enumValKey{d, e, i}
	if v, ok := c.enumVals[key]; ok {
		return v
	}
	c.enumVals[key] = operand{ty: kir.I32}
	var v operand
	rs := c.resolverIn(e)
	switch {
	case d.Values[i].X != nil:
		// earlier enumerators are in scope
		rs.env = &env{kind: envBlock, up: e}
		for j := range i {
			rs.env.put(&entity{kind: eConst, name: d.Values[j].Name, local: true, val: rval(typeInt, c.enumValue(t, d, e, j))})
		}
		x, ok := rs.eval().consts.constExpr(d.Values[i].X, "the value of an enumerator")
		if ok && len(x.comps) == 1 && x.q.T.isScalar() && !x.q.T.isFloat() {
			v = x.comps[0]
		} else {
			v = operand{ty: kir.I32}
		}
	case i == 0:
		v = operand{ty: kir.I32}
	default:
		prev := c.enumValue(t, d, e, i-1)
		v, _ = fold(kir.Add, prev.ty, []operand{prev, {ty: prev.ty, bits: 1}})
	}
	c.enumVals[key] = v
	return v
}

type enumValKey struct {
	d *EnumDecl
	e *env
	i int
}
