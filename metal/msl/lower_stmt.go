package msl

import (
	"github.com/mlxlua/mlxlua/metal/kir"
)

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
	if ss.fr != nil {
		ss.fr.depth++
		defer func() { ss.fr.depth-- }()
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
	kp := ss.em.kp
	f1, f2 := fNext, fNext
	in.Body = ss.nested(func() { f1 = ss.scoped(s.Then, tail) })
	if s.Else != nil {
		in.Else = ss.nested(func() { f2 = ss.scoped(s.Else, tail) })
		if len(in.Else.Instrs) == 0 {
			in.Else = nil
		}
	}
	ss.em.kp = kp
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

type loopParts struct {
	cond Expr
	v    *VarDecl
	post Expr
	body Stmt
	do   bool
	wish uint8
}

func (ss *statements) forStmt(s *ForStmt) flow {
	defer ss.push()()
	if s.Init != nil {
		ss.stmt(s.Init, false)
	}
	return ss.loop(loopParts{cond: s.Cond, v: s.Var, post: s.Post, body: s.Body, wish: s.Unroll})
}

// loop emits a loop, or in a constant evaluation runs it.
func (ss *statements) loop(p loopParts) flow {
	if ss.em.exec {
		return ss.execLoop(p)
	}
	defer ss.push()()
	ss.em.loops++
	defer func() { ss.em.loops-- }()
	in := &kir.Instr{Op: kir.Loop}
	if p.wish != wishNone {
		ss.em.wishes[in] = p.wish
	}
	inner := &kir.Instr{Op: kir.BlockOp} // continue leaves it, to reach what follows the body
	js := &jumpScope{brk: in, cont: inner}
	if p.post == nil && !p.do {
		js.cont = in
	}
	endless := false
	kp := ss.em.kp
	test := func() {
		var c operand
		switch {
		case p.v != nil:
			c = ss.condVar(p.v)
		case p.cond != nil:
			c = ss.conv.condition(ss.exprs.expr(p.cond), p.cond.Pos())
		default:
			c = boolConst(true)
		}
		if c.isConst() && c.bits != 0 {
			endless = true
			return
		}
		if c.isConst() {
			ss.em.breakTo(in)
			return
		}
		out := ss.em.inBlock(func() { ss.em.breakTo(in) })
		ss.em.structured(&kir.Instr{Op: kir.If, Args: []*kir.Instr{ss.em.instr(ss.em.not(c))}, Body: out})
	}
	in.Body = ss.nested(func() {
		if !p.do {
			test()
		}
		ss.labels = append(ss.labels, js)
		body := ss.nested(func() { ss.scoped(p.body, false) })
		ss.labels = ss.labels[:len(ss.labels)-1]
		if js.contd && js.cont == inner {
			inner.Body = body
			ss.em.structured(inner)
		} else {
			ss.em.blk.Instrs = append(ss.em.blk.Instrs, body.Instrs...)
		}
		if p.post != nil {
			ss.exprs.expr(p.post)
		}
		if p.do {
			test()
		}
	})
	ss.em.kp = kp
	ss.em.structured(in)
	ss.em.pos = 0
	if endless && !js.broke {
		return fReturn
	}
	return fNext
}

func (ss *statements) execLoop(p loopParts) flow {
	js := &jumpScope{}
	ss.labels = append(ss.labels, js)
	defer func() { ss.labels = ss.labels[:len(ss.labels)-1] }()
	for first := true; ; first = false {
		ss.em.step()
		pop := ss.push()
		if !p.do || !first {
			ok := true
			if p.v != nil {
				ok = ss.condVar(p.v).bits != 0
			} else if p.cond != nil {
				ok = ss.conv.condition(ss.exprs.expr(p.cond), p.cond.Pos()).bits != 0
			}
			if !ok {
				pop()
				return fNext
			}
		}
		fl := ss.scoped(p.body, false)
		if fl == fBreak || fl == fReturn {
			pop()
			if fl == fReturn {
				return fReturn
			}
			return fNext
		}
		if p.post != nil {
			ss.exprs.expr(p.post)
		}
		pop()
		if ss.c.full() {
			panic(notConstant{reported: true})
		}
	}
}

func (ss *statements) jump(at Pos, brk bool) flow {
	low := 0
	if ss.fr != nil {
		low = ss.fr.labels
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
	fr := ss.fr
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

func (ss *statements) setResult(fr *inl, v value, s *ReturnStmt, tail bool) {
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
func (ss *statements) refResult(fr *inl, v value, s *ReturnStmt, tail bool) {
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

// switchStmt lowers a switch to nested blocks, one for each label: leaving block k goes on with what stands after
// label k, and falls through to the next.
func (ss *statements) switchStmt(s *SwitchStmt) flow {
	defer ss.push()()
	if s.Init != nil {
		ss.stmt(s.Init, false)
	}
	var v value
	if s.Var != nil {
		ss.vars.localDecl(s.Var)
		if ent := ss.res.env.own(s.Var.Name.Ident); ent != nil {
			v = ss.mem.rvalue(ent.val)
		}
	} else {
		v = ss.mem.rvalue(ss.exprs.expr(s.Cond))
	}
	if v.q.T != nil && v.q.T.kind == tStruct {
		v = ss.conv.toArith(v)
	}
	if v.bad() || v.q.T == nil {
		return fNext
	}
	if !v.q.T.intLike() && v.q.T.kind != tEnum {
		ss.c.errorf(TypeMismatch, s.Pos(), "switch needs an integer, not %s", v.q.T)
		return fNext
	}
	if v.q.T.kind != tEnum {
		v = ss.arith.promote(v)
	}
	cases, def, ok := ss.caseLabels(s, v.q.T)
	if !ok || len(cases) == 0 {
		return fNext
	}
	if ss.em.exec {
		return ss.execSwitch(s, v, cases, def)
	}
	return ss.emitSwitch(s, v, cases, def)
}

// caseLabel is a label and where its statements start.
type caseLabel struct {
	lo, hi operand
	start  int
	def    bool
}

func (ss *statements) caseLabels(s *SwitchStmt, t *ctype) (cases []caseLabel, def int, ok bool) {
	def, ok = -1, true
	seen := map[uint64]bool{}
	for i, st := range s.Body.List {
		cs, isCase := st.(*CaseStmt)
		if !isCase {
			continue
		}
		if cs.X == nil {
			if def >= 0 {
				ss.c.errorf(Redefinition, cs.Pos(), "the switch has two default labels")
				ok = false
			}
			def = len(cases)
			cases = append(cases, caseLabel{start: i + 1, def: true})
			continue
		}
		lo, good := ss.caseValue(cs.X, t)
		hi := lo
		if good && cs.Hi != nil {
			hi, good = ss.caseValue(cs.Hi, t)
		}
		if good && cs.Hi == nil && seen[lo.bits] {
			ss.c.errorf(Redefinition, cs.Pos(), "the switch has two labels of this value")
			good = false
		}
		seen[lo.bits] = true
		ok = ok && good
		cases = append(cases, caseLabel{lo: lo, hi: hi, start: i + 1})
	}
	if len(cases) > 1000 {
		ss.c.errorf(TooLarge, s.Pos(), "a switch with %d labels", len(cases))
		return nil, -1, false
	}
	return cases, def, ok
}

func (ss *statements) caseValue(x Expr, t *ctype) (operand, bool) {
	v, ok := ss.consts.constExpr(x, "a case label")
	if !ok || v.bad() {
		return operand{}, false
	}
	if !v.q.T.intLike() && v.q.T != t {
		ss.c.errorf(TypeMismatch, x.Pos(), "a case label of type %s in a switch over %s", v.q.T, t)
		return operand{}, false
	}
	return convertConst(v.comps[0], t.kt), true
}

func (ss *statements) execSwitch(s *SwitchStmt, v value, cases []caseLabel, def int) flow {
	at := -1
	x := v.comps[0]
	for i, c := range cases {
		if !c.def && x.int() >= c.lo.int() && x.int() <= c.hi.int() {
			at = i
			break
		}
	}
	if at < 0 {
		at = def
	}
	if at < 0 {
		return fNext
	}
	js := &jumpScope{isSwitch: true}
	ss.labels = append(ss.labels, js)
	defer func() { ss.labels = ss.labels[:len(ss.labels)-1] }()
	for _, st := range s.Body.List[cases[at].start:] {
		if _, isCase := st.(*CaseStmt); isCase {
			continue
		}
		switch fl := ss.stmt(st, false); fl {
		case fBreak:
			return fNext
		case fContinue, fReturn:
			return fl
		}
	}
	return fNext
}

func (ss *statements) emitSwitch(s *SwitchStmt, v value, cases []caseLabel, def int) flow {
	out := &kir.Instr{Op: kir.BlockOp}
	js := &jumpScope{isSwitch: true, brk: out}
	blocks := make([]*kir.Instr, len(cases))
	for i := range blocks {
		blocks[i] = &kir.Instr{Op: kir.BlockOp}
	}
	x := v.comps[0]
	kp := ss.em.kp
	cur := ss.nested(func() {
		for i, c := range cases {
			if c.def {
				continue
			}
			hit := ss.em.op(kir.Eq, kir.Bool, x, c.lo)
			if c.hi != c.lo {
				hit = ss.em.op(kir.And, kir.Bool, ss.em.op(kir.Ge, kir.Bool, x, c.lo), ss.em.op(kir.Le, kir.Bool, x, c.hi))
			}
			target := blocks[i]
			to := ss.em.inBlock(func() { ss.em.breakTo(target) })
			ss.em.structured(&kir.Instr{Op: kir.If, Args: []*kir.Instr{ss.em.instr(hit)}, Body: to})
		}
		if def >= 0 {
			ss.em.breakTo(blocks[def])
		} else {
			ss.em.breakTo(out)
		}
	})
	ss.labels = append(ss.labels, js)
	last := fNext
	for i := range cases {
		end := len(s.Body.List)
		if i+1 < len(cases) {
			end = cases[i+1].start - 1
		}
		blocks[i].Body = cur
		part := s.Body.List[cases[i].start:end]
		inner := blocks[i]
		cur = ss.nested(func() {
			ss.em.structured(inner)
			last = ss.stmts(part, false)
		})
	}
	ss.labels = ss.labels[:len(ss.labels)-1]
	out.Body = cur
	ss.em.kp = kp
	ss.em.structured(out)
	if def >= 0 && last == fReturn && !js.broke {
		return fReturn
	}
	return fNext
}
