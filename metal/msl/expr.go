package msl

import (
	"github.com/mlxlua/mlxlua/metal/kir"
)

// expressions evaluates expressions: it checks their types and emits their code in one walk.
type expressions struct {
	c      *compiler
	arith  *arithmetic
	calls  *caller
	choose *chooser
	consts *constants
	conv   *converter
	ctor   *constructor
	em     *emitter
	lists  *listInit
	mem    *memory
	nest   *nesting
	res    *resolver
	stmts  *statements
	vars   *variables
}

// expr evaluates an expression: names and what selects a part of an object stay lvalues.
func (xs *expressions) expr(x Expr) value {
	if x == nil { // a syntax error has been reported
		return badValue
	}
	xs.nest.enter(xs.c, "expressions and calls", x.Pos())
	defer xs.nest.leave()
	xs.em.step()
	xs.c.spend(x.Pos(), 1)
	xs.em.at(x.Pos())
	switch x := x.(type) {
	case *IntLit:
		return xs.intLit(x)
	case *FloatLit:
		return xs.floatLit(x)
	case *CharLit:
		if x.Multi {
			return intVal(typeInt, x.Value)
		}
		return intVal(scalarTypes[kir.I8], x.Value)
	case *BoolLit:
		return rval(typeBool, boolConst(x.Value))
	case *NullptrLit:
		return rval(typeNull, operand{ty: kir.U64})
	case *StringLit:
		return xs.stringLit(x)
	case *ThisExpr:
		return xs.thisExpr(x)
	case *NameExpr:
		return xs.nameExpr(x)
	case *ParenExpr:
		v := xs.expr(x.X)
		return v
	case *UnaryExpr:
		return xs.unary(x)
	case *PostfixExpr:
		return xs.incDec(x.X, x.Operator, true, x.Pos())
	case *BinaryExpr:
		return xs.binary(x)
	case *AssignExpr:
		return xs.assign(x)
	case *CondExpr:
		return xs.condExpr(x)
	case *CallExpr:
		return xs.calls.callExpr(x)
	case *IndexExpr:
		return xs.indexExpr(x)
	case *MemberExpr:
		return xs.memberExpr(x)
	case *CastExpr:
		return xs.castExpr(x)
	case *ConstructExpr:
		return xs.constructExpr(x)
	case *InitList:
		return value{k: vList, q: badTypeList, list: x}
	case *SizeofExpr:
		return xs.sizeofExpr(x)
	case *LambdaExpr:
		return xs.lambdaExpr(x)
	case *StmtExpr:
		return xs.stmtExpr(x)
	case *FoldExpr:
		return xs.foldExpr(x)
	case *heldExpr:
		return x.v
	case *PackExpr:
		xs.c.errorf(BadTemplateArgs, x.Pos(), "a pack is expanded where only one expression can stand")
	}
	return badValue
}

// badTypeList is the placeholder type of a braced list: it has none until it is converted.
var badTypeList = qtype{T: &ctype{kind: tVoid}}

func (xs *expressions) intLit(x *IntLit) value {
	t := typeInt
	v := x.Value
	switch {
	case x.Long && x.Unsigned:
		t = typeUlong
	case x.Long:
		t = typeLong
		if v>>63 != 0 {
			t = typeUlong
		}
	case x.Unsigned:
		t = typeUint
		if v>>32 != 0 {
			t = typeUlong
		}
	case v>>31 == 0:
	case v>>32 == 0 && !x.Decimal:
		t = typeUint
	case v>>63 == 0:
		t = typeLong
	default:
		t = typeUlong
	}
	r := rval(t, constant(t.kt, v))
	r.lit = v == 0
	return r
}

// stringLit is a constant array of chars, which kernels pass to logging functions.
func (xs *expressions) stringLit(x *StringLit) value {
	char := scalarTypes[kir.I8]
	n := len(x.Value) + 1
	if n > 4096 {
		xs.c.errorf(TooLarge, x.Pos(), "a string of %d characters", n)
		return badValue
	}
	o := &object{name: stringName, fixed: true, slots: make([]slot, n)}
	o.q = qtype{T: xs.c.types.arrayOf(qt(char), n), Const: true, Space: SpaceConstant}
	for i := range n {
		o.slots[i] = slot{-1, operand{ty: kir.I8}}
		if i < n-1 {
			o.slots[i].val.bits = uint64(x.Value[i])
		}
	}
	return objVal(o)
}

func (xs *expressions) floatLit(x *FloatLit) value {
	t := typeFloat
	switch x.Suffix {
	case "h":
		t = typeHalf
	case "bf":
		t = typeBF
	case "l":
		if xs.c.opt.Float64 {
			t = scalarTypes[kir.F64]
		}
	}
	return rval(t, operand{ty: t.kt, bits: floatBits(t.kt, x)})
}

// thisExpr is a pointer to the object. Members are reached without taking its address: see memberExpr and unary.
func (xs *expressions) thisExpr(x *ThisExpr) value {
	v, ok := xs.res.thisObject()
	if !ok {
		xs.c.errorf(Undeclared, x.Pos(), "there is no 'this' outside a method")
		return badValue
	}
	return xs.mem.addressOf(v, x.Pos())
}

func (xs *expressions) nameExpr(x *NameExpr) value {
	ent := xs.res.resolveEntity(x.Name)
	if ent == nil {
		return badValue
	}
	return xs.entityValue(ent, x)
}

// entityValue returns what a name stands for as a value.
func (xs *expressions) entityValue(ent *entity, x *NameExpr) value {
	switch ent.kind {
	case eVar:
		if ent.local {
			return ent.val
		}
		if ent.vdecl != nil && ent.vdecl.Field {
			return xs.fieldOfThis(ent, x)
		}
		if v, is := xs.consts.globalPointer(ent); is {
			return v
		}
		return xs.consts.globalVar(ent)
	case eConst:
		if ent.addr {
			return xs.mem.addressOf(ent.val, x.Pos())
		}
		if ent.local {
			return ent.val
		}
		return xs.enumerator(ent)
	case eFunc:
		fn := &overload{name: ent.name, funcs: ent.funcs, builtin: ent.builtin, fast: ent.fast}
		if x.Name.HasArgs {
			args, ok := xs.res.templateArgs(x.Name.Args)
			if !ok {
				return badValue
			}
			fn.args, fn.hasArgs = args, true
		}
		if len(ent.funcs) > 0 && ent.funcs[0].class != nil {
			if this, ok := xs.res.thisObject(); ok {
				fn.this = &this
			}
		}
		return value{k: vFuncs, q: qt(typeVoid), fn: fn}
	case eTemplate:
		if v, ok := xs.consts.varTemplate(ent, x); ok {
			return v
		}
		if t, ok := xs.res.entityType(ent, x.Name); ok {
			return value{k: vType, q: t}
		}
	case eType:
		return value{k: vType, q: xs.c.typeEntity(ent)}
	case ePack:
		xs.c.errorf(BadTemplateArgs, x.Pos(), "the pack '%s' is not expanded: write ... after it", ent.name)
		return badValue
	case eNamespace:
		xs.c.errorf(Undeclared, x.Pos(), "'%s' is a namespace", ent.name)
		return badValue
	}
	return badValue
}

func (xs *expressions) fieldOfThis(ent *entity, x *NameExpr) value {
	this, ok := xs.res.thisObject()
	if !ok {
		if xs.em.unevaluated { // sizeof and decltype may name a field without an object
			return xs.c.types.dummy(fieldType(ent).noRef())
		}
		xs.c.errorf(Undeclared, x.Pos(), "the field '%s' needs an object", ent.name)
		return badValue
	}
	path := this.q.T.class.fieldPath(ent.name, nil)
	if path == nil {
		xs.c.errorf(NoMember, x.Pos(), "the class %s has no field '%s'", this.q.T, ent.name)
		return badValue
	}
	return xs.mem.member(this, path)
}

func fieldType(ent *entity) qtype {
	if ent.env != nil && ent.env.class != nil {
		if p := ent.env.class.fieldPath(ent.name, nil); p != nil {
			return p[len(p)-1].q
		}
	}
	return qt(typeInt)
}

func (xs *expressions) enumerator(ent *entity) value {
	e := ent.env
	outer := e
	if e.kind == envClass && e.class == nil { // the enumeration's own scope
		outer = e.up
	}
	t := xs.c.enumFor(ent.enum, outer)
	for i := range ent.enum.Values {
		if ent.enum.Values[i].Name == ent.name {
			o := xs.c.enumValue(t, ent.enum, outer, i)
			return rval(t, convertConst(o, t.kt))
		}
	}
	return badValue
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

func stripParens(x Expr) Expr {
	for {
		p, ok := x.(*ParenExpr)
		if !ok {
			return x
		}
		x = p.X
	}
}
