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
func (g *gen) push() func() {
	saved, contract := g.res.env, g.arith.contract
	g.res.env = &env{kind: envBlock, up: saved}
	return func() { g.res.env, g.arith.contract = saved, contract }
}

// block runs the statements of a block in a scope of its own. tail says that nothing follows it in the function.
func (g *gen) block(b *BlockStmt, tail bool) flow {
	defer g.push()()
	return g.stmts(b.List, tail)
}

// stmts runs statements in the current scope. What cannot be reached is checked, but not kept.
func (g *gen) stmts(list []Stmt, tail bool) flow {
	fl := fNext
	for i, s := range list {
		if fl != fNext {
			if g.em.exec {
				return fl
			}
			rest := list[i:]
			g.em.discard(func() {
				for _, s := range rest {
					g.stmt(s, false)
				}
			})
			return fl
		}
		fl = g.stmt(s, tail && i == len(list)-1)
	}
	return fl
}

func (g *gen) stmt(s Stmt, tail bool) flow {
	if s == nil { // a syntax error has been reported
		return fNext
	}
	g.depth++
	defer func() { g.depth-- }()
	if g.depth > maxNesting {
		g.c.fatal(TooLarge, s.Pos(), "statements and calls are nested more than %d deep", maxNesting)
	}
	g.em.step()
	g.c.spend(s.Pos(), 1)
	g.em.at(s.Pos())
	switch s := s.(type) {
	case *BlockStmt:
		return g.block(s, tail)
	case *ExprStmt:
		if tail && g.tailCall(s.X) {
			return fReturn
		}
		if v := g.expr(s.X); v.k == vFuncs {
			g.c.errorf(NotCallable, s.Pos(), "the function '%s' is named, but not called", v.fn.name)
		}
	case *DeclStmt:
		for _, d := range s.Decls {
			g.localDecl(d)
		}
	case *IfStmt:
		return g.ifStmt(s, tail)
	case *ForStmt:
		return g.forStmt(s)
	case *RangeForStmt:
		return g.rangeForStmt(s)
	case *EmptyStmt:
	case *WhileStmt:
		return g.loop(loopParts{cond: s.Cond, v: s.Var, body: s.Body, wish: s.Unroll})
	case *DoStmt:
		return g.loop(loopParts{cond: s.Cond, body: s.Body, do: true, wish: s.Unroll})
	case *SwitchStmt:
		return g.switchStmt(s)
	case *CaseStmt:
		g.c.errorf(MisplacedStatement, s.Pos(), "a case label stands outside a switch")
	case *BreakStmt:
		return g.jump(s.Pos(), true)
	case *ContinueStmt:
		return g.jump(s.Pos(), false)
	case *ReturnStmt:
		return g.returnStmt(s, tail)
	case *PragmaStmt:
		g.pragma(s)
	default:
		g.c.errorf(Internal, s.Pos(), "the statement %T is not lowered", s)
	}
	return fNext
}

// pragma acts on the rest of the block.
func (g *gen) pragma(s *PragmaStmt) {
	switch s.Name {
	case "contract":
		g.arith.contract = s.Value != "off"
	}
}

// nested emits f into a block of its own, one level deeper than the function's body.
func (g *gen) nested(f func()) *kir.Block {
	if g.fr != nil {
		g.fr.depth++
		defer func() { g.fr.depth-- }()
	}
	return g.em.inBlock(f)
}

func (g *gen) ifStmt(s *IfStmt, tail bool) flow {
	defer g.push()()
	if s.Init != nil {
		g.stmt(s.Init, false)
	}
	var c operand
	switch {
	case s.Constexpr && s.Cond != nil:
		v, ok := g.constExpr(s.Cond, "the condition of if constexpr")
		if !ok {
			return fNext
		}
		c = g.condition(v, s.Cond.Pos())
	case s.Var != nil:
		c = g.condVar(s.Var)
	default:
		c = g.condition(g.expr(s.Cond), s.Cond.Pos())
	}
	if c.isConst() {
		take, skip := s.Then, s.Else
		if c.bits == 0 {
			take, skip = skip, take
		}
		if skip != nil && !s.Constexpr && !g.em.exec {
			g.em.discard(func() { g.scoped(skip, false) })
		}
		if take == nil {
			return fNext
		}
		return g.scoped(take, tail)
	}
	in := &kir.Instr{Op: kir.If, Args: []*kir.Instr{g.em.instr(c)}}
	kp := g.em.kp
	f1, f2 := fNext, fNext
	in.Body = g.nested(func() { f1 = g.scoped(s.Then, tail) })
	if s.Else != nil {
		in.Else = g.nested(func() { f2 = g.scoped(s.Else, tail) })
		if len(in.Else.Instrs) == 0 {
			in.Else = nil
		}
	}
	g.em.kp = kp
	g.em.structured(in)
	g.em.pos = 0
	if f1 != fNext && f2 != fNext {
		return fReturn
	}
	return fNext
}

// scoped runs a statement that is no block in a scope of its own, as C++ does for the bodies of if and loops.
func (g *gen) scoped(s Stmt, tail bool) flow {
	if b, ok := s.(*BlockStmt); ok {
		g.em.at(b.Pos())
		return g.block(b, tail)
	}
	defer g.push()()
	return g.stmt(s, tail)
}

// condVar declares the variable of if (T x = ...) and tests it.
func (g *gen) condVar(d *VarDecl) operand {
	g.localDecl(d)
	ent := g.res.env.own(d.Name.Ident)
	if ent == nil {
		return boolConst(false)
	}
	return g.condition(ent.val, d.Pos())
}

type loopParts struct {
	cond Expr
	v    *VarDecl
	post Expr
	body Stmt
	do   bool
	wish uint8
}

func (g *gen) forStmt(s *ForStmt) flow {
	defer g.push()()
	if s.Init != nil {
		g.stmt(s.Init, false)
	}
	return g.loop(loopParts{cond: s.Cond, v: s.Var, post: s.Post, body: s.Body, wish: s.Unroll})
}

// loop emits a loop, or in a constant evaluation runs it.
func (g *gen) loop(p loopParts) flow {
	if g.em.exec {
		return g.execLoop(p)
	}
	defer g.push()()
	g.em.loops++
	defer func() { g.em.loops-- }()
	in := &kir.Instr{Op: kir.Loop}
	if p.wish != wishNone {
		g.em.wishes[in] = p.wish
	}
	inner := &kir.Instr{Op: kir.BlockOp} // continue leaves it, to reach what follows the body
	js := &jumpScope{brk: in, cont: inner}
	if p.post == nil && !p.do {
		js.cont = in
	}
	endless := false
	kp := g.em.kp
	test := func() {
		var c operand
		switch {
		case p.v != nil:
			c = g.condVar(p.v)
		case p.cond != nil:
			c = g.condition(g.expr(p.cond), p.cond.Pos())
		default:
			c = boolConst(true)
		}
		if c.isConst() && c.bits != 0 {
			endless = true
			return
		}
		if c.isConst() {
			g.em.breakTo(in)
			return
		}
		out := g.em.inBlock(func() { g.em.breakTo(in) })
		g.em.structured(&kir.Instr{Op: kir.If, Args: []*kir.Instr{g.em.instr(g.em.not(c))}, Body: out})
	}
	in.Body = g.nested(func() {
		if !p.do {
			test()
		}
		g.labels = append(g.labels, js)
		body := g.nested(func() { g.scoped(p.body, false) })
		g.labels = g.labels[:len(g.labels)-1]
		if js.contd && js.cont == inner {
			inner.Body = body
			g.em.structured(inner)
		} else {
			g.em.blk.Instrs = append(g.em.blk.Instrs, body.Instrs...)
		}
		if p.post != nil {
			g.expr(p.post)
		}
		if p.do {
			test()
		}
	})
	g.em.kp = kp
	g.em.structured(in)
	g.em.pos = 0
	if endless && !js.broke {
		return fReturn
	}
	return fNext
}

func (g *gen) execLoop(p loopParts) flow {
	js := &jumpScope{}
	g.labels = append(g.labels, js)
	defer func() { g.labels = g.labels[:len(g.labels)-1] }()
	for first := true; ; first = false {
		g.em.step()
		pop := g.push()
		if !p.do || !first {
			ok := true
			if p.v != nil {
				ok = g.condVar(p.v).bits != 0
			} else if p.cond != nil {
				ok = g.condition(g.expr(p.cond), p.cond.Pos()).bits != 0
			}
			if !ok {
				pop()
				return fNext
			}
		}
		fl := g.scoped(p.body, false)
		if fl == fBreak || fl == fReturn {
			pop()
			if fl == fReturn {
				return fReturn
			}
			return fNext
		}
		if p.post != nil {
			g.expr(p.post)
		}
		pop()
		if g.c.full() {
			panic(notConstant{reported: true})
		}
	}
}

func (g *gen) jump(at Pos, brk bool) flow {
	low := 0
	if g.fr != nil {
		low = g.fr.labels
	}
	for i := len(g.labels) - 1; i >= low; i-- {
		js := g.labels[i]
		if brk {
			js.broke = true
			if !g.em.exec {
				g.em.breakTo(js.brk)
			}
			return fBreak
		}
		if js.isSwitch {
			continue
		}
		js.contd = true
		if !g.em.exec {
			if js.cont.Op == kir.Loop {
				g.em.emit(&kir.Instr{Op: kir.Continue, Target: js.cont})
			} else {
				g.em.breakTo(js.cont)
			}
		}
		return fContinue
	}
	if brk {
		g.c.errorf(MisplacedStatement, at, "break stands outside a loop or switch")
	} else {
		g.c.errorf(MisplacedStatement, at, "continue stands outside a loop")
	}
	return fNext
}

// returnStmt leaves the function. At its end a value is handed over directly; elsewhere through a variable and a
// Break.
func (g *gen) returnStmt(s *ReturnStmt, tail bool) flow {
	fr := g.fr
	if fr == nil {
		g.c.errorf(MisplacedStatement, s.Pos(), "return stands outside a function")
		return fReturn
	}
	if fr.kernel {
		if s.X != nil {
			if v := g.expr(s.X); v.k != vVoid && !v.bad() {
				g.c.errorf(BadReturn, s.Pos(), "a kernel returns no value: write it to an output, such as out[i] = ...")
			}
		}
		if !tail {
			g.em.emit(&kir.Instr{Op: kir.Return})
		}
		return fReturn
	}
	v := voidValue
	if s.X != nil {
		v = g.choose.functionObject(g.expr(s.X))
		g.em.at(s.Pos())
	}
	g.setResult(fr, v, s, tail)
	if !tail && !g.em.exec {
		fr.broke = true
		g.em.breakTo(fr.block)
	}
	return fReturn
}

func (g *gen) setResult(fr *inl, v value, s *ReturnStmt, tail bool) {
	if v.bad() && s.X != nil {
		fr.has, fr.direct = true, badValue
		return
	}
	if r := fr.ret.T; r.kind == tAuto || (r.kind == tRef || r.kind == tPtr) && r.elem.T.kind == tAuto {
		if v.k == vVoid {
			fr.ret = qt(typeVoid)
		} else if d := fr.inst.f.decl.Ret; d != nil && d.Kind == TypeDecltype && d.X == nil { // decltype(auto)
			fr.ret = g.decltype(s.X)
		} else {
			fr.ret = g.deduceAuto(fr.ret, &v, s.Pos())
		}
	}
	t := fr.ret
	if t.T.kind == tVoid {
		if v.k != vVoid {
			g.c.errorf(BadReturn, s.Pos(), "the function returns void, not %s", argText(&v))
		}
		return
	}
	if v.k == vVoid {
		g.c.errorf(BadReturn, s.Pos(), "the function must return a value of type %s", t)
		return
	}
	if t.T.kind == tRef {
		g.refResult(fr, v, s, tail)
		return
	}
	v = g.convertTo(v, t.bare(), s.Pos(), "the value returned")
	if v.bad() {
		fr.has, fr.direct = true, badValue
		return
	}
	v = g.mem.load(v)
	if g.em.exec || tail && fr.depth == 0 && fr.result == nil && !fr.broke {
		if v.k == vMem && !g.em.exec { // it may be a variable of the function, which another call reuses
			o := g.mem.newObject("result", t.bare())
			g.mem.store(objVal(o), v)
			v = objVal(o)
			v.tmp = true
		}
		fr.has, fr.direct = true, v
		return
	}
	if fr.result == nil {
		fr.result = g.mem.newObject("result", t.bare())
	}
	g.mem.store(objVal(fr.result), v)
}

// refResult returns a reference: the object itself at the function's end, else its address.
func (g *gen) refResult(fr *inl, v value, s *ReturnStmt, tail bool) {
	b := g.bindRef(fr.ret, v, s.Pos())
	if b.bad() {
		fr.has, fr.direct = true, badValue
		return
	}
	if g.em.exec || tail && fr.depth == 0 && !fr.broke && fr.ptr < 0 {
		fr.has, fr.direct = true, b
		return
	}
	p := g.mem.addressOf(b, s.Pos())
	if p.bad() {
		return
	}
	if fr.ptr < 0 {
		fr.ptr = g.em.newVar("result", p.comps[0].ty)
	}
	g.em.varSet(fr.ptr, p.comps[0])
}

// switchStmt lowers a switch to nested blocks, one for each label: leaving block k goes on with what stands after
// label k, and falls through to the next.
func (g *gen) switchStmt(s *SwitchStmt) flow {
	defer g.push()()
	if s.Init != nil {
		g.stmt(s.Init, false)
	}
	var v value
	if s.Var != nil {
		g.localDecl(s.Var)
		if ent := g.res.env.own(s.Var.Name.Ident); ent != nil {
			v = g.mem.rvalue(ent.val)
		}
	} else {
		v = g.mem.rvalue(g.expr(s.Cond))
	}
	if v.q.T != nil && v.q.T.kind == tStruct {
		v = g.toArith(v)
	}
	if v.bad() || v.q.T == nil {
		return fNext
	}
	if !v.q.T.intLike() && v.q.T.kind != tEnum {
		g.c.errorf(TypeMismatch, s.Pos(), "switch needs an integer, not %s", v.q.T)
		return fNext
	}
	if v.q.T.kind != tEnum {
		v = g.arith.promote(v)
	}
	cases, def, ok := g.caseLabels(s, v.q.T)
	if !ok || len(cases) == 0 {
		return fNext
	}
	if g.em.exec {
		return g.execSwitch(s, v, cases, def)
	}
	return g.emitSwitch(s, v, cases, def)
}

// caseLabel is a label and where its statements start.
type caseLabel struct {
	lo, hi operand
	start  int
	def    bool
}

func (g *gen) caseLabels(s *SwitchStmt, t *ctype) (cases []caseLabel, def int, ok bool) {
	def, ok = -1, true
	seen := map[uint64]bool{}
	for i, st := range s.Body.List {
		cs, isCase := st.(*CaseStmt)
		if !isCase {
			continue
		}
		if cs.X == nil {
			if def >= 0 {
				g.c.errorf(Redefinition, cs.Pos(), "the switch has two default labels")
				ok = false
			}
			def = len(cases)
			cases = append(cases, caseLabel{start: i + 1, def: true})
			continue
		}
		lo, good := g.caseValue(cs.X, t)
		hi := lo
		if good && cs.Hi != nil {
			hi, good = g.caseValue(cs.Hi, t)
		}
		if good && cs.Hi == nil && seen[lo.bits] {
			g.c.errorf(Redefinition, cs.Pos(), "the switch has two labels of this value")
			good = false
		}
		seen[lo.bits] = true
		ok = ok && good
		cases = append(cases, caseLabel{lo: lo, hi: hi, start: i + 1})
	}
	if len(cases) > 1000 {
		g.c.errorf(TooLarge, s.Pos(), "a switch with %d labels", len(cases))
		return nil, -1, false
	}
	return cases, def, ok
}

func (g *gen) caseValue(x Expr, t *ctype) (operand, bool) {
	v, ok := g.constExpr(x, "a case label")
	if !ok || v.bad() {
		return operand{}, false
	}
	if !v.q.T.intLike() && v.q.T != t {
		g.c.errorf(TypeMismatch, x.Pos(), "a case label of type %s in a switch over %s", v.q.T, t)
		return operand{}, false
	}
	return convertConst(v.comps[0], t.kt), true
}

func (g *gen) execSwitch(s *SwitchStmt, v value, cases []caseLabel, def int) flow {
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
	g.labels = append(g.labels, js)
	defer func() { g.labels = g.labels[:len(g.labels)-1] }()
	for _, st := range s.Body.List[cases[at].start:] {
		if _, isCase := st.(*CaseStmt); isCase {
			continue
		}
		switch fl := g.stmt(st, false); fl {
		case fBreak:
			return fNext
		case fContinue, fReturn:
			return fl
		}
	}
	return fNext
}

func (g *gen) emitSwitch(s *SwitchStmt, v value, cases []caseLabel, def int) flow {
	out := &kir.Instr{Op: kir.BlockOp}
	js := &jumpScope{isSwitch: true, brk: out}
	blocks := make([]*kir.Instr, len(cases))
	for i := range blocks {
		blocks[i] = &kir.Instr{Op: kir.BlockOp}
	}
	x := v.comps[0]
	kp := g.em.kp
	cur := g.nested(func() {
		for i, c := range cases {
			if c.def {
				continue
			}
			hit := g.em.op(kir.Eq, kir.Bool, x, c.lo)
			if c.hi != c.lo {
				hit = g.em.op(kir.And, kir.Bool, g.em.op(kir.Ge, kir.Bool, x, c.lo), g.em.op(kir.Le, kir.Bool, x, c.hi))
			}
			target := blocks[i]
			to := g.em.inBlock(func() { g.em.breakTo(target) })
			g.em.structured(&kir.Instr{Op: kir.If, Args: []*kir.Instr{g.em.instr(hit)}, Body: to})
		}
		if def >= 0 {
			g.em.breakTo(blocks[def])
		} else {
			g.em.breakTo(out)
		}
	})
	g.labels = append(g.labels, js)
	last := fNext
	for i := range cases {
		end := len(s.Body.List)
		if i+1 < len(cases) {
			end = cases[i+1].start - 1
		}
		blocks[i].Body = cur
		part := s.Body.List[cases[i].start:end]
		inner := blocks[i]
		cur = g.nested(func() {
			g.em.structured(inner)
			last = g.stmts(part, false)
		})
	}
	g.labels = g.labels[:len(g.labels)-1]
	out.Body = cur
	g.em.kp = kp
	g.em.structured(out)
	if def >= 0 && last == fReturn && !js.broke {
		return fReturn
	}
	return fNext
}
