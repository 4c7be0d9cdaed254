package msl

import (
	"github.com/mlxlua/mlxlua/metal/kir"
)

// statements lowers statements to structured kir.
type statements struct {
	c      *compiler
	arith  *arithmetic
	calls  *caller
	choose *chooser
	consts *constants
	conv   *converter
	em     *emitter
	exprs  *expressions
	lists  *listInit
	mem    *memory
	nest   *nesting
	res    *resolver
	vars   *variables

	frame  *frame
	labels []*jumpScope
}

// flow says how a statement ends: what comes after it runs only after fNext.
type flow uint8

const (
	fNext flow = iota
	fBreak
	fContinue
	fReturn
)

// jumpScope is a loop or switch that break or continue may leave.
type jumpScope struct {
	isSwitch bool
	brk      *kir.Instr // what break leaves
	cont     *kir.Instr // what continue leaves, if it is a BlockOp, or restarts, if it is a Loop
	broke    bool
	contd    bool
}

// push opens a scope for declarations and returns what closes it.
func (ss *statements) push() func() {
	saved, contract := ss.res.env, ss.arith.contract
	ss.res.env = &env{kind: envBlock, up: saved}
	return func() { ss.res.env, ss.arith.contract = saved, contract }
}

// block runs the statements of a block in a scope of its own. tail says that nothing follows it in the function.
func (ss *statements) block(b *BlockStmt, tail bool) flow {
	defer ss.push()()
	return ss.stmts(b.List, tail)
}

// stmts runs statements in the current scope. What cannot be reached is checked, but not kept.
func (ss *statements) stmts(list []Stmt, tail bool) flow {
	fl := fNext
	for i, s := range list {
		if fl != fNext {
			if ss.em.exec {
				return fl
			}
			rest := list[i:]
			ss.em.discard(func() {
				for _, s := range rest {
					ss.stmt(s, false)
				}
			})
			return fl
		}
		fl = ss.stmt(s, tail && i == len(list)-1)
	}
	return fl
}

func (ss *statements) stmt(s Stmt, tail bool) flow {
	if s == nil { // a syntax error has been reported
		return fNext
	}
	ss.nest.enter(ss.c, "statements and calls", s.Pos())
	defer ss.nest.leave()
	ss.em.step()
	ss.c.spend(s.Pos(), 1)
	ss.em.at(s.Pos())
	switch s := s.(type) {
	case *BlockStmt:
		return ss.block(s, tail)
	case *ExprStmt:
		if tail && ss.calls.tailCall(s.X) {
			return fReturn
		}
		if v := ss.exprs.expr(s.X); v.k == vFuncs {
			ss.c.errorf(NotCallable, s.Pos(), "the function '%s' is named, but not called", v.fn.name)
		}
	case *DeclStmt:
		for _, d := range s.Decls {
			ss.vars.localDecl(d)
		}
	case *IfStmt:
		return ss.ifStmt(s, tail)
	case *ForStmt:
		return ss.forStmt(s)
	case *RangeForStmt:
		return ss.rangeForStmt(s)
	case *EmptyStmt:
	case *WhileStmt:
		return ss.loop(loopParts{cond: s.Cond, v: s.Var, body: s.Body, wish: s.Unroll})
	case *DoStmt:
		return ss.loop(loopParts{cond: s.Cond, body: s.Body, do: true, wish: s.Unroll})
	case *SwitchStmt:
		return ss.switchStmt(s)
	case *CaseStmt:
		ss.c.errorf(MisplacedStatement, s.Pos(), "a case label stands outside a switch")
	case *BreakStmt:
		return ss.jump(s.Pos(), true)
	case *ContinueStmt:
		return ss.jump(s.Pos(), false)
	case *ReturnStmt:
		return ss.returnStmt(s, tail)
	case *PragmaStmt:
		ss.pragma(s)
	default:
		ss.c.errorf(Internal, s.Pos(), "the statement %T is not lowered", s)
	}
	return fNext
}

// pragma acts on the rest of the block.
func (ss *statements) pragma(s *PragmaStmt) {
	switch s.Name {
	case "contract":
		ss.arith.contract = s.Value != "off"
	}
}

// nested emits f into a block of its own, one level deeper than the function's body.
func (ss *statements) nested(f func()) *kir.Block {
	if ss.frame != nil {
		ss.frame.depth++
		defer func() { ss.frame.depth-- }()
	}
	return ss.em.inBlock(f)
}

func (ss *statements) ifStmt(s *IfStmt, tail bool) flow {
	defer ss.push()()
	if s.Init != nil {
		ss.stmt(s.Init, false)
	}
	var c operand
	switch {
	case s.Constexpr && s.Cond != nil:
		v, ok := ss.consts.constExpr(s.Cond, "the condition of if constexpr")
		if !ok {
			return fNext
		}
		c = ss.conv.condition(v, s.Cond.Pos())
	case s.Var != nil:
		c = ss.condVar(s.Var)
	default:
		c = ss.conv.condition(ss.exprs.expr(s.Cond), s.Cond.Pos())
	}
	if c.isConst() {
		take, skip := s.Then, s.Else
		if c.bits == 0 {
			take, skip = skip, take
		}
		if skip != nil && !s.Constexpr && !ss.em.exec {
			ss.em.discard(func() { ss.scoped(skip, false) })
		}
		if take == nil {
			return fNext
		}
		return ss.scoped(take, tail)
	}
	in := &kir.Instr{Op: kir.If, Args: []*kir.Instr{ss.em.instr(c)}}
	kp := ss.em.kirPos
	f1, f2 := fNext, fNext
	in.Body = ss.nested(func() { f1 = ss.scoped(s.Then, tail) })
	if s.Else != nil {
		in.Else = ss.nested(func() { f2 = ss.scoped(s.Else, tail) })
		if len(in.Else.Instrs) == 0 {
			in.Else = nil
		}
	}
	ss.em.kirPos = kp
	ss.em.structured(in)
	ss.em.pos = 0
	if f1 != fNext && f2 != fNext {
		return fReturn
	}
	return fNext
}

// scoped runs a statement that is no block in a scope of its own, as C++ does for the bodies of if and loops.
func (ss *statements) scoped(s Stmt, tail bool) flow {
	if b, ok := s.(*BlockStmt); ok {
		ss.em.at(b.Pos())
		return ss.block(b, tail)
	}
	defer ss.push()()
	return ss.stmt(s, tail)
}

// condVar declares the variable of if (T x = ...) and tests it.
func (ss *statements) condVar(d *VarDecl) operand {
	ss.vars.localDecl(d)
	ent := ss.res.env.own(d.Name.Ident)
	if ent == nil {
		return boolConst(false)
	}
	return ss.conv.condition(ent.val, d.Pos())
}

func (ss *statements) jump(at Pos, brk bool) flow {
	low := 0
	if ss.frame != nil {
		low = ss.frame.labels
	}
	for i := len(ss.labels) - 1; i >= low; i-- {
		js := ss.labels[i]
		if brk {
			js.broke = true
			if !ss.em.exec {
				ss.em.breakTo(js.brk)
			}
			return fBreak
		}
		if js.isSwitch {
			continue
		}
		js.contd = true
		if !ss.em.exec {
			if js.cont.Op == kir.Loop {
				ss.em.emit(&kir.Instr{Op: kir.Continue, Target: js.cont})
			} else {
				ss.em.breakTo(js.cont)
			}
		}
		return fContinue
	}
	if brk {
		ss.c.errorf(MisplacedStatement, at, "break stands outside a loop or switch")
	} else {
		ss.c.errorf(MisplacedStatement, at, "continue stands outside a loop")
	}
	return fNext
}

// returnStmt leaves the function. At its end a value is handed over directly; elsewhere through a variable and a
// Break.
func (ss *statements) returnStmt(s *ReturnStmt, tail bool) flow {
	fr := ss.frame
	if fr == nil {
		ss.c.errorf(MisplacedStatement, s.Pos(), "return stands outside a function")
		return fReturn
	}
	if fr.kernel {
		if s.X != nil {
			if v := ss.exprs.expr(s.X); v.k != vVoid && !v.bad() {
				ss.c.errorf(BadReturn, s.Pos(), "a kernel returns no value: write it to an output, such as out[i] = ...")
			}
		}
		if !tail {
			ss.em.emit(&kir.Instr{Op: kir.Return})
		}
		return fReturn
	}
	v := voidValue
	if s.X != nil {
		v = ss.choose.functionObject(ss.exprs.expr(s.X))
		ss.em.at(s.Pos())
	}
	ss.setResult(fr, v, s, tail)
	if !tail && !ss.em.exec {
		fr.broke = true
		ss.em.breakTo(fr.block)
	}
	return fReturn
}

func (ss *statements) setResult(fr *frame, v value, s *ReturnStmt, tail bool) {
	if v.bad() && s.X != nil {
		fr.has, fr.direct = true, badValue
		return
	}
	if r := fr.ret.T; r.kind == tAuto || (r.kind == tRef || r.kind == tPtr) && r.elem.T.kind == tAuto {
		if v.k == vVoid {
			fr.ret = qt(typeVoid)
		} else if d := fr.inst.f.decl.Ret; d != nil && d.Kind == TypeDecltype && d.X == nil { // decltype(auto)
			fr.ret = ss.exprs.decltype(s.X)
		} else {
			fr.ret = ss.conv.deduceAuto(fr.ret, &v, s.Pos())
		}
	}
	t := fr.ret
	if t.T.kind == tVoid {
		if v.k != vVoid {
			ss.c.errorf(BadReturn, s.Pos(), "the function returns void, not %s", argText(&v))
		}
		return
	}
	if v.k == vVoid {
		ss.c.errorf(BadReturn, s.Pos(), "the function must return a value of type %s", t)
		return
	}
	if t.T.kind == tRef {
		ss.refResult(fr, v, s, tail)
		return
	}
	v = ss.conv.convertTo(v, t.bare(), s.Pos(), "the value returned")
	if v.bad() {
		fr.has, fr.direct = true, badValue
		return
	}
	v = ss.mem.load(v)
	if ss.em.exec || tail && fr.depth == 0 && fr.result == nil && !fr.broke {
		if v.k == vMem && !ss.em.exec { // it may be a variable of the function, which another call reuses
			o := ss.mem.newObject("result", t.bare())
			ss.mem.store(objVal(o), v)
			v = objVal(o)
			v.tmp = true
		}
		fr.has, fr.direct = true, v
		return
	}
	if fr.result == nil {
		fr.result = ss.mem.newObject("result", t.bare())
	}
	ss.mem.store(objVal(fr.result), v)
}

// refResult returns a reference: the object itself at the function's end, else its address.
func (ss *statements) refResult(fr *frame, v value, s *ReturnStmt, tail bool) {
	b := ss.conv.bindRef(fr.ret, v, s.Pos())
	if b.bad() {
		fr.has, fr.direct = true, badValue
		return
	}
	if ss.em.exec || tail && fr.depth == 0 && !fr.broke && fr.ptr < 0 {
		fr.has, fr.direct = true, b
		return
	}
	p := ss.mem.addressOf(b, s.Pos())
	if p.bad() {
		return
	}
	if fr.ptr < 0 {
		fr.ptr = ss.em.newVar("result", p.comps[0].ty)
	}
	ss.em.varSet(fr.ptr, p.comps[0])
}
