package msl

import (
	"github.com/mlxlua/mlxlua/metal/kir"
)

// tailCall runs a function's call of itself as the last thing it does, where it returns nothing: its parameters get
// new values and the body starts again. Metal has no other recursion. It reports whether the call was one.
func (g *gen) tailCall(x Expr) bool {
	fr := g.fr
	call, ok := stripParens(x).(*CallExpr)
	if !ok || fr == nil || fr.kernel || g.em.exec || g.em.unevaluated || fr.scope == nil || fr.ret.T.kind != tVoid {
		return false
	}
	ne, ok := stripParens(call.Fun).(*NameExpr)
	f := fr.inst.f
	if !ok || len(ne.Name.Quals) > 0 || f.lam != nil || ne.Name.Ident != f.decl.Name.Ident || f.decl.Kind != FuncPlain {
		return false
	}
	same := false
	good := g.c.trial(func() {
		g.evalOff(func(h *gen) { same = h.callee(ne, call) == fr.inst })
	})
	if !good || !same {
		return false
	}
	params := fr.variables()
	if params == nil {
		return false
	}
	args, ok := g.args(call.Args)
	if !ok {
		return true
	}
	for i := range args {
		args[i] = g.convertTo(args[i], params[i].q.bare(), call.Args[i].Pos(), "an argument")
		if args[i].bad() {
			return true
		}
		args[i] = g.mem.load(args[i])
	}
	for i := range args {
		g.mem.store(params[i], args[i])
	}
	if fr.again == nil {
		fr.again = &kir.Instr{Op: kir.BlockOp}
	}
	g.em.breakTo(fr.again)
	return true
}

// callee returns the function that a call by a plain name calls, nil if that is not known.
func (g *gen) callee(ne *NameExpr, call *CallExpr) *funcInst {
	ent := g.res.resolveQuiet(ne.Name)
	if ent == nil || ent.kind != eFunc {
		return nil
	}
	fv := g.entityValue(ent, ne)
	args, ok := g.args(call.Args)
	if !ok || fv.k != vFuncs || fv.fn.bi != nil {
		return nil
	}
	inst, _ := g.choose.resolve(fv.fn.funcs, fv.fn, args, fv.fn.this, false)
	return inst
}

// variables returns the parameters of a call if each is a variable of its own, nil if not.
func (fr *inl) variables() []value {
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
func (fr *inl) repeat(body *kir.Block) *kir.Block {
	loop := &kir.Instr{Op: kir.Loop}
	if n := len(body.Instrs); n == 0 || body.Instrs[n-1].Op != kir.Break {
		body.Instrs = append(body.Instrs, &kir.Instr{Op: kir.Break, Target: loop})
	}
	fr.again.Body = body
	loop.Body = &kir.Block{Instrs: []*kir.Instr{fr.again}}
	return &kir.Block{Instrs: []*kir.Instr{loop}}
}
