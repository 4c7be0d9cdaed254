package msl

import (
	"github.com/mlxlua/mlxlua/metal/kir"
)

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
		return xs.incDec(x.X, x.Op, true, x.Pos())
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

// thisObject returns the object of the method being expanded.
func (rs *resolver) thisObject() (value, bool) {
	for e := rs.env; e != nil; e = e.up {
		if e.this != nil {
			return *e.this, true
		}
	}
	return badValue, false
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
		fn := &overload{name: ent.name, funcs: ent.funcs, bi: ent.bi, fast: ent.fast, env: ent.env}
		if x.Name.HasArgs {
			args, ok := xs.res.templateArgs(x.Name.Args)
			if !ok {
				return badValue
			}
			fn.targs, fn.hasArgs = args, true
		}
		if len(ent.funcs) > 0 && ent.funcs[0].cls != nil {
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
	path := this.q.T.st.fieldPath(ent.name, nil)
	if path == nil {
		xs.c.errorf(NoMember, x.Pos(), "the class %s has no field '%s'", this.q.T, ent.name)
		return badValue
	}
	return xs.mem.member(this, path)
}

func fieldType(ent *entity) qtype {
	if ent.env != nil && ent.env.cls != nil {
		if p := ent.env.cls.fieldPath(ent.name, nil); p != nil {
			return p[len(p)-1].q
		}
	}
	return qt(typeInt)
}

func (xs *expressions) enumerator(ent *entity) value {
	e := ent.env
	outer := e
	if e.kind == envClass && e.cls == nil { // the enumeration's own scope
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

// unary evaluates a prefix operator.
func (xs *expressions) unary(x *UnaryExpr) value {
	switch x.Op {
	case OpInc, OpDec:
		return xs.incDec(x.X, x.Op, false, x.Pos())
	case OpDeref:
		if _, ok := stripParens(x.X).(*ThisExpr); ok {
			if v, ok := xs.res.thisObject(); ok {
				return v
			}
		}
	}
	var v value
	if x.Op == OpAddrOf {
		v = xs.place(x.X)
	} else {
		v = xs.expr(x.X)
	}
	xs.em.at(x.Pos())
	if x.Op == OpDeref || x.Op == OpAddrOf {
		if v = xs.choose.functionObject(v); v.isFunction() {
			return v
		}
	}
	if v.bad() {
		return badValue
	}
	if v.q.T.kind == tStruct {
		if r, ok := xs.calls.operatorCall(x.Op, []value{v}, x.Pos(), x.Op == OpAddrOf); ok {
			return r
		}
	}
	switch x.Op {
	case OpAddrOf:
		return xs.mem.addressOf(v, x.Pos())
	case OpDeref:
		p := xs.conv.toPointer(xs.mem.rvalue(v))
		if p.bad() {
			return badValue
		}
		if p.q.T.kind != tPtr {
			hint := ""
			if t := xs.c.file.token(x.Pos() - 1); t != nil && t.kind == tMul {
				hint = ": there is no operator **: write pow(a, b), or a * a"
			}
			xs.c.errorf(BadOperands, x.Pos(), "* needs a pointer, not %s%s", p.q.T, hint)
			return badValue
		}
		return xs.mem.deref(p, operand{}, x.Pos())
	case OpLNot:
		if e, n := v.q.T.shape(); n > 1 {
			v = xs.mem.rvalue(v)
			r := value{k: vRight, q: qt(vecOf(typeBool, n))}
			for _, c := range v.comps {
				r.comps = append(r.comps, xs.em.op(kir.Eq, kir.Bool, c, operand{ty: e.kt}))
			}
			return r
		}
		return rval(typeBool, xs.em.not(xs.conv.condition(v, x.Pos())))
	}
	return xs.arith.arithUnary(x.Op, xs.conv.toArith(xs.mem.rvalue(v)), x.Pos())
}

func (ar *arithmetic) arithUnary(op Op, v value, at Pos) value {
	if v.bad() {
		return badValue
	}
	t := v.q.T
	if op == OpPlus && t.kind == tPtr {
		return v
	}
	e, n := t.shape()
	if n == 0 || op == OpNot && e.isFloat() {
		ar.c.errorf(BadOperands, at, "%s is not defined on %s", op, t)
		return badValue
	}
	if n == 1 {
		v = ar.promote(v)
		e = v.q.T
	}
	r := value{k: vRight, q: qt(v.q.T)}
	for _, c := range v.comps {
		switch op {
		case OpNeg:
			c = ar.em.op(kir.Neg, e.kt, c)
		case OpNot:
			c = ar.em.op(kir.Not, e.kt, c)
		}
		r.comps = append(r.comps, c)
	}
	return r
}

// promote applies the integer promotions to a scalar.
func (ar *arithmetic) promote(v value) value {
	v = ar.promoteBits(v)
	t := v.q.T
	if t.kind == tEnum && !t.en.scoped || t.isBool() || t.isInt() && t.size < 4 {
		to := typeInt
		if t.kind == tEnum && t.size >= 4 {
			to = scalarTypes[t.kt]
		}
		r := rval(to, ar.em.convert(v.comps[0], to.kt))
		r.lit = v.lit
		return r
	}
	return v
}

// toArith turns a class object into the number it converts to, and an enumerator into its integer.
func (cv *converter) toArith(v value) value {
	if v.bad() {
		return v
	}
	if v.q.T.kind == tStruct {
		var best *funcInst
		for _, f := range cv.c.methods(v.q.T, "(conversion)") {
			if f.tmpl != nil || f.decl.Specs.Explicit {
				continue
			}
			inst := cv.choose.instFor(f, nil)
			if inst == nil || !cv.choose.methodFits(inst, &v) {
				continue
			}
			if best == nil || cv.choose.thisRank(inst, &v) < cv.choose.thisRank(best, &v) {
				best = inst
			}
		}
		if best == nil {
			for _, f := range cv.c.methods(v.q.T, "(conversion)") { // a template converts to what it is asked for: float
				if f.tmpl == nil || f.decl.Specs.Explicit {
					continue
				}
				if inst := cv.choose.instConversion(f, &v, typeFloat); inst != nil && cv.choose.methodFits(inst, &v) {
					best = inst
					break
				}
			}
		}
		if best != nil {
			return cv.mem.rvalue(cv.calls.call(best, nil, &v, cv.em.pos))
		}
	}
	return v
}

func (cv *converter) toPointer(v value) value {
	if v.q.T.kind == tStruct {
		return cv.toArith(v)
	}
	return v
}

// addressOf returns a pointer to an lvalue.
func (mem *memory) addressOf(v value, at Pos) value {
	if v.bad() {
		return badValue
	}
	if v.k == vFuncs {
		mem.c.errorf(Unsupported, at, "pointers to functions do not exist here: every call is inlined")
		return badValue
	}
	v = mem.placed(v)
	if v.k == vSwz || v.k == vDyn {
		mem.c.errorf(NotLvalue, at, "the components of a vector have no address here")
		return badValue
	}
	if v.isBits() {
		mem.c.errorf(NotLvalue, at, "a bit-field has no address")
		return badValue
	}
	if !v.isLvalue() {
		mem.c.errorf(NotLvalue, at, "& needs an object, not a value of type %s", v.q)
		return badValue
	}
	t := qt(mem.c.types.ptrTo(v.q))
	if v.k == vSlot && v.q.Space == SpaceConstant {
		return rval(t.T, mem.em.ptrAdd(mem.constRegion(v.obj), operand{}, slotOffset(v)))
	}
	m := mem.toMemory(v)
	p := mem.addr(m)
	if p.ty != kir.PtrTo(v.q.Space.kir()) { // an element of a constant table: point to a copy
		m = mem.toMemory(mem.temp(mem.load(m)))
		p = mem.addr(m)
	}
	return rval(t.T, p)
}

// deref returns what a pointer moved by idx bytes points to.
func (mem *memory) deref(p value, idx operand, at Pos) value {
	e := p.q.T.elem
	if e.T.kind == tVoid || !mem.c.isComplete(e.T) && e.T.kind != tArray {
		mem.c.errorf(Incomplete, at, "a pointer to %s cannot be followed", e)
		return badValue
	}
	return value{k: vMem, q: e, ptr: p.comps[0], idx: idx}
}

// incDec evaluates ++ and --.
func (xs *expressions) incDec(x Expr, op Op, post bool, at Pos) value {
	v := xs.place(x)
	xs.em.at(at)
	if v.bad() {
		return badValue
	}
	if v.q.T.kind == tStruct {
		args := []value{v}
		if post {
			args = append(args, intVal(typeInt, 0))
		}
		if r, ok := xs.calls.operatorCall(op, args, at, false); ok {
			return r
		}
	}
	if !xs.mem.assignable(v, at) {
		return badValue
	}
	old := xs.mem.rvalue(v)
	if old.bad() {
		return badValue
	}
	one := intVal(typeInt, 1)
	bop := OpAdd
	if op == OpDec {
		bop = OpSub
	}
	if old.q.T.isBool() {
		xs.c.errorf(BadOperands, at, "%s is not defined on bool", op)
		return badValue
	}
	nv := xs.arith.arith(bop, old, one, at)
	nv = xs.conv.backTo(nv, v.q, at)
	if nv.bad() {
		return badValue
	}
	xs.mem.store(v, nv)
	if post {
		return old
	}
	return v
}

// backTo converts the result of a compound assignment to the type of its left side.
func (cv *converter) backTo(v value, to qtype, at Pos) value {
	if v.bad() {
		return badValue
	}
	if to.T.kind == tVec {
		e := to.T.elem.T
		if _, n := v.q.T.shape(); n == to.T.n && v.q.T != to.T {
			r := value{k: vRight, q: to.bare()}
			for _, c := range v.comps {
				r.comps = append(r.comps, cv.em.convert(c, e.kt))
			}
			return r
		}
	}
	if v.q.T.isFloat() && to.T.isFloat() { // as Clang, which asks here for two numbers, whatever their ranks
		return cv.arith.convStd(v, to.T)
	}
	return cv.convertTo(v, to.bare(), at, "the result of a compound assignment")
}

// assignable reports whether an lvalue may be written to, with an error if not.
func (mem *memory) assignable(v value, at Pos) bool {
	switch {
	case !v.isLvalue():
		mem.c.errorf(NotLvalue, at, "the left side of an assignment must be an object, not a value of type %s", v.q)
	case v.q.Space == SpaceConstant:
		mem.c.errorf(NotAssignable, at, "the constant address space is read-only")
	case v.q.Const:
		mem.c.errorf(NotAssignable, at, "an object of type %s cannot be assigned to", v.q)
	case v.q.T.kind == tArray:
		mem.c.errorf(NotAssignable, at, "an array cannot be assigned to as a whole")
	case v.k == vSlot && v.obj.fixed:
		mem.c.errorf(NotAssignable, at, "'%s' is constant", v.obj.name)
	case v.k == vSwz && repeats(v.sel):
		mem.c.errorf(BadSwizzle, at, "a component is named twice on the left side of an assignment")
	default:
		if why := mem.c.unassignable(v.q.T); why != "" {
			mem.c.errorf(NotAssignable, at, "an object of type %s cannot be assigned to: it has %s", v.q, why)
			return false
		}
		return true
	}
	return false
}

func repeats(sel []uint8) bool {
	var seen uint
	for _, s := range sel {
		if seen>>s&1 != 0 {
			return true
		}
		seen |= 1 << s
	}
	return false
}

// assign evaluates = and the compound assignments.
func (xs *expressions) assign(x *AssignExpr) value {
	l := xs.place(x.X)
	if l.bad() {
		xs.expr(x.Y)
		return badValue
	}
	if l.q.T.kind == tStruct {
		r := xs.expr(x.Y)
		xs.em.at(x.Pos())
		if r.bad() {
			return badValue
		}
		if v, ok := xs.calls.operatorCall(assignOps[x.Op], []value{l, r}, x.Pos(), x.Op == OpNone); ok {
			return v
		}
		if x.Op == OpNone {
			return xs.assignTo(l, r, x.Pos())
		}
		xs.c.errorf(BadOperands, x.Pos(), "%s= is not defined on %s and %s", x.Op, l.q.T, r.q.T)
		return badValue
	}
	if x.Op == OpNone {
		r := xs.expr(x.Y)
		xs.em.at(x.Pos())
		return xs.assignTo(l, r, x.Pos())
	}
	r := xs.expr(x.Y)
	xs.em.at(x.Pos())
	if r.bad() || !xs.mem.assignable(l, x.Pos()) {
		return badValue
	}
	if r.q.T.kind == tStruct {
		if v, ok := xs.calls.operatorCall(assignOps[x.Op], []value{l, r}, x.Pos(), true); ok {
			return v
		}
	}
	r = xs.conv.toArith(xs.mem.rvalue(r))
	old := xs.mem.rvalue(l)
	nv := xs.conv.backTo(xs.arith.arithC(x.Op, old, r, nil, x.Y, x.Pos()), l.q, x.Pos())
	if nv.bad() {
		return badValue
	}
	xs.mem.store(l, nv)
	return l
}

// assignOps maps the operation of a compound assignment to its operator function.
var assignOps = [...]Op{
	OpNone: OpAssign, OpAdd: OpAddAssign, OpSub: OpSubAssign, OpMul: OpMulAssign, OpDiv: OpDivAssign, OpRem: OpRemAssign,
	OpAnd: OpAndAssign, OpOr: OpOrAssign, OpXor: OpXorAssign, OpShl: OpShlAssign, OpShr: OpShrAssign,
}

func (xs *expressions) assignTo(l, r value, at Pos) value {
	if l.bad() || r.bad() || !xs.mem.assignable(l, at) {
		return badValue
	}
	nv := xs.conv.convertTo(r, l.q.bare(), at, "an assignment")
	if nv.bad() {
		return badValue
	}
	if nv.isLvalue() {
		nv = xs.mem.load(nv)
	}
	xs.mem.store(l, nv)
	return l
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
