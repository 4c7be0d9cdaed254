package msl

var badType = qtype{T: typeBad}

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
	switch {
	case x.Quals.Twice:
		rs.c.apple.refuse(x.Pos(), "two address spaces: thread is one too")
	case x.Quals.Coherent:
		rs.c.apple.refuse(x.Pos(), "coherent is Metal 3.2's, and texts are Metal 3.1")
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
	case TypeClass:
		return qt(rs.c.classFor(x.Class, rs.env))
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
			if cls := rs.enclosingInstance(x.tmpl); cls != nil {
				return qt(cls.typ), true
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
	case x.class != nil:
		t = qt(c.classFor(x.class, x.env))
	case x.enum != nil:
		t = qt(c.enumFor(x.enum, x.env))
	default:
		t = badType
	}
	c.resolved[x] = t
	return t
}

// placeholder returns the class template that a type names without its arguments where they are deduced from an
// initialiser; nil for other types.
func (rs *resolver) placeholder(x *TypeExpr) *tmplInfo {
	if x == nil || x.Kind != TypeNamed || x.Name == nil || x.Name.HasArgs || x.Name.Typename {
		return nil
	}
	ent := rs.resolveQuiet(x.Name)
	if ent == nil || ent.kind != eTemplate || ent.tmpl.decl == nil || rs.enclosingInstance(ent.tmpl) != nil {
		rs.badQual = false
		return nil
	}
	if _, isClass := ent.tmpl.decl.Decl.(*ClassDecl); !isClass {
		return nil
	}
	return ent.tmpl
}

// retType resolves a result type. One that trails may name the parameters, in operands of decltype and sizeof.
func (rs *resolver) retType(inst *funcInst, x *TypeExpr) qtype {
	if x.Trailing && x.Kind != TypeBasic {
		e := &env{kind: envFunc, up: rs.env}
		for _, d := range inst.f.decl.Params {
			if d.Name != "" && (d.Type.Pack || d.Type.Kind == TypeReference && d.Type.Elem.Pack) {
				e.put(&entity{kind: ePack, name: d.Name, vals: []value{}})
			}
		}
		for i := range inst.params {
			p := &inst.params[i]
			t := p.q.noRef()
			switch {
			case p.decl.Name == "" || p.q.T.kind == tBad || p.q.T.kind != tRef && !rs.c.isComplete(t.T):
			case p.pack:
				pack := e.own(p.decl.Name)
				pack.vals = append(pack.vals, rs.c.types.dummy(t))
			default:
				e.put(&entity{
					kind: eVar, name: p.decl.Name, local: true, val: rs.c.types.dummy(t), isRef: p.q.T.kind == tRef,
				})
			}
		}
		saved := rs.env
		rs.env = e
		defer func() { rs.env = saved }()
	}
	return rs.typeOf(x)
}

// alignment is what alignas or GNU's aligned asks for, 0 for other attributes.
func (rs *resolver) alignment(a *Attr) int {
	if a.Name != "alignas" && a.Name != "aligned" && a.Name != "__aligned__" || len(a.Args) != 1 {
		return 0
	}
	n, ok := rs.eval().consts.constInt(a.Args[0], "an alignment")
	if ok && (n <= 0 || n > 256 || n&(n-1) != 0) {
		rs.c.errorf(BadType, a.At, "an alignment of %d: it must be a power of two up to 256", n)
		return 0
	}
	return int(n)
}
