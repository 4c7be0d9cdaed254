package msl

import (
	"github.com/mlxlua/mlxlua/metal/kir"
)

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
	if v.q.T != nil && v.q.T.kind == tClass {
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
	if (!v.q.T.intLike() || t.kind == tEnum && t.enum.scoped) && v.q.T != t {
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
	kp := ss.em.kirPos
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
	ss.em.kirPos = kp
	ss.em.structured(out)
	if def >= 0 && last == fReturn && !js.broke {
		return fReturn
	}
	return fNext
}
