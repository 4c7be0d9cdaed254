package msl

import (
	"github.com/mlxlua/mlxlua/metal/kir"
)

// tailCall runs a function's call of itself as the last thing it does, where it returns nothing: its parameters get
// new values and the body starts again. Metal has no other recursion. It reports whether the call was one.
func (cs *caller) tailCall(x Expr) bool {
	fr := cs.stmts.frame
	call, ok := stripParens(x).(*CallExpr)
	if !ok || fr == nil || fr.kernel || cs.em.exec || cs.em.unevaluated || fr.scope == nil || fr.ret.T.kind != tVoid {
		return false
	}
	ne, ok := stripParens(call.Fun).(*NameExpr)
	f := fr.inst.f
	if !ok || len(ne.Name.Quals) > 0 || f.lambda != nil || ne.Name.Ident != f.decl.Name.Ident || f.decl.Kind != FuncPlain {
		return false
	}
	same := false
	good := cs.c.trial(func() {
		cs.consts.unevaluated(func(h *generator) { same = h.calls.callee(ne, call) == fr.inst })
	})
	if !good || !same {
		return false
	}
	params := fr.variables()
	if params == nil {
		return false
	}
	args, ok := cs.exprs.args(call.Args)
	if !ok {
		return true
	}
	for i := range args {
		args[i] = cs.conv.convertTo(args[i], params[i].q.bare(), call.Args[i].Pos(), "an argument")
		if args[i].bad() {
			return true
		}
		args[i] = cs.mem.load(args[i])
	}
	for i := range args {
		cs.mem.store(params[i], args[i])
	}
	if fr.again == nil {
		fr.again = &kir.Instr{Op: kir.BlockOp}
	}
	cs.em.breakTo(fr.again)
	return true
}

// callee returns the function that a call by a plain name calls, nil if that is not known.
func (cs *caller) callee(ne *NameExpr, call *CallExpr) *funcInst {
	ent := cs.res.resolveQuiet(ne.Name)
	if ent == nil || ent.kind != eFunc {
		return nil
	}
	fv := cs.exprs.entityValue(ent, ne)
	args, ok := cs.exprs.args(call.Args)
	if !ok || fv.k != vFuncs || fv.fn.builtin != nil {
		return nil
	}
	inst, _ := cs.choose.resolve(fv.fn.funcs, fv.fn, args, fv.fn.this, false)
	return inst
}

// variables returns the parameters of a call if each is a variable of its own, nil if not.
func (fr *frame) variables() []value {
	vals := make([]value, 0, len(fr.inst.params))
	for i := range fr.inst.params {
		p := &fr.inst.params[i]
		x := fr.scope.own(p.decl.Name)
		if p.pack || x == nil || x.isRef {
			return nil
		}
		v := x.val
		if v.k != vMem && (v.k != vSlot || v.obj.fixed || anyFixed(v.obj)) {
			return nil
		}
		vals = append(vals, v)
	}
	return vals
}

// repeat puts the body of a function that a tail call starts again into a loop.
func (fr *frame) repeat(body *kir.Block) *kir.Block {
	loop := &kir.Instr{Op: kir.Loop}
	if n := len(body.Instrs); n == 0 || body.Instrs[n-1].Op != kir.Break {
		body.Instrs = append(body.Instrs, &kir.Instr{Op: kir.Break, Target: loop})
	}
	fr.again.Body = body
	loop.Body = &kir.Block{Instrs: []*kir.Instr{fr.again}}
	return &kir.Block{Instrs: []*kir.Instr{loop}}
}
