package msl

import (
	"github.com/mlxlua/mlxlua/metal/kir"
)

// liftCall calls a function of the library that is written for float with other arguments: half and bfloat are
// converted and the result is rounded once; vectors are taken component by component. ok is false if the function
// is not of that kind.
func (cs *caller) liftCall(fn *overload, inst *funcInst, args []value, at Pos) (r value, ok bool) {
	if fn.this != nil || fn.hasArgs || len(args) == 0 || inst != nil && cs.choose.exactCall(inst, args) {
		return badValue, false
	}
	f := cs.choose.liftable(fn, args)
	if f == nil {
		return badValue, false
	}
	// the number of components and the float type of the result
	n := 1
	var elem *ctype
	for i := range args {
		if args[i].q.T.kind == tClass || args[i].k == vList {
			return badValue, false
		}
		e, m := args[i].q.T.shape()
		if m == 0 {
			if args[i].q.T.isUnscopedEnum() {
				continue
			}
			return badValue, false
		}
		if m > 1 && n > 1 && m != n {
			return badValue, false
		}
		n = max(n, m)
		if e.isFloat() && f.params[i].q.noRef().T.isFloat() && (m > 1 || elem == nil || n == 1 && elem != e) {
			switch {
			case elem == nil || m > 1:
				elem = e
			default:
				elem = usualType(elem, e)
			}
		}
	}
	if elem == nil {
		elem = typeFloat
	}
	if elem.kt == kir.F64 && f.params[0].q.noRef().T != elem {
		if d := cs.choose.liftableTo(fn, args, elem); d != nil {
			f = d
		}
	}
	vals := make([]value, len(args))
	for i := range args {
		vals[i] = args[i]
		if f.params[i].q.T.kind != tRef || f.params[i].q.T.elem.Const {
			vals[i] = cs.mem.rvalue(args[i])
		}
		if vals[i].bad() {
			return badValue, true
		}
	}
	var out value
	for c := range n {
		one := make([]value, len(args))
		for i := range args {
			one[i] = cs.liftArg(vals[i], f.params[i].q, c)
		}
		x := cs.mem.rvalue(cs.call(f, one, nil, at))
		if x.bad() {
			return badValue, true
		}
		cs.liftBack(vals, one, f, c)
		if x.k == vVoid {
			out = voidValue
			continue
		}
		et := x.q.T
		if et.isFloat() {
			et = elem
		}
		if c == 0 {
			out = value{k: vRight, q: qt(vecOf(et, n))}
		}
		out.comps = append(out.comps, cs.em.convert(x.comps[0], et.kt))
	}
	return out, true
}

// liftable finds the function of a set that takes only scalars: float, int or bool, or references to them, and
// belongs to the prelude.
func (ch *chooser) liftable(fn *overload, args []value) *funcInst {
	return ch.liftableTo(fn, args, typeFloat)
}

func (ch *chooser) liftableTo(fn *overload, args []value, elem *ctype) *funcInst {
	for _, f := range fn.funcs {
		if f.ofUnit || f.tmpl != nil || f.class != nil || len(f.decl.Params) != len(args) || f.decl.Ret == nil {
			continue
		}
		inst := ch.instFor(f, nil)
		if inst == nil || !inst.ret.T.isArith() && inst.ret.T.kind != tVoid {
			continue
		}
		ok := false
		for i := range inst.params {
			t := inst.params[i].q.noRef().T
			if !t.isArith() {
				ok = false
				break
			}
			if t == elem {
				ok = true
			} else if t.isFloat() {
				ok = false
				break
			}
		}
		if ok {
			return inst
		}
	}
	return nil
}

// liftArg is component c of an argument, converted for a parameter; for a reference a variable of its own.
func (cs *caller) liftArg(v value, p qtype, c int) value {
	if p.T.kind == tRef && !p.T.elem.Const {
		return objVal(cs.mem.newObject("out", p.T.elem.bare()))
	}
	t := p.noRef().T
	x := v
	if v.q.T.kind == tVec {
		x = rval(v.q.T.elem.T, v.comps[c])
	}
	return rval(t, cs.em.convert(x.comps[0], t.kt))
}

// liftBack stores what a function returned through references.
func (cs *caller) liftBack(vals, one []value, f *funcInst, c int) {
	for i := range vals {
		p := f.params[i].q
		if p.T.kind != tRef || p.T.elem.Const {
			continue
		}
		dst := vals[i]
		if dst.q.T.kind == tVec {
			dst = cs.mem.component(dst, c)
		}
		if !cs.mem.assignable(dst, cs.em.pos) {
			continue
		}
		x := cs.mem.load(one[i])
		cs.mem.store(dst, rval(dst.q.T, cs.em.convert(x.comps[0], dst.q.T.kt)))
	}
}
