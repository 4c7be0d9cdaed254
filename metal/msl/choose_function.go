package msl

// Functions as template arguments and as operands of decltype: their types.

// instances returns the functions that an overloaded name with its template arguments may mean where a function of the
// type sig is wanted, which may be nil; all is false if there may be more, whose types are known at a call only.
func (ch *chooser) instances(fn *overload, sig *funcSig) (list []*funcInst, all bool) {
	all = fn.builtin == nil
	for _, f := range fn.funcs {
		if f.tmpl == nil {
			if inst := ch.instFor(f, nil); inst != nil && !fn.hasArgs {
				list = append(list, inst)
			}
			continue
		}
		d := newDeduction(ch.c, f.tmpl.Params, f.env)
		if !ch.res.explicitArgs(d, fn.args) || sig != nil && len(sig.params) != len(f.decl.Params) && !f.decl.hasPack() {
			continue
		}
		for i := range f.decl.Params {
			if sig != nil && len(sig.params) == len(f.decl.Params) {
				d.typ(f.decl.Params[i].Type, sig.params[i], false)
			}
		}
		if _, full := ch.res.fill(d, f.decl.Pos()); !full {
			all = false
			continue
		}
		if inst := ch.instFor(f, d.got); inst != nil {
			list = append(list, inst)
		}
	}
	return list, all
}

// isFunctionFor reports whether a value is a function that a parameter of the type to, a pointer or reference to
// functions, can be.
func (ch *chooser) isFunctionFor(v *value, to qtype) bool {
	if to.T.kind != tPtr && to.T.kind != tRef || to.T.elem.T.kind != tFunc || v.q.T.kind != tClass {
		return false
	}
	l, sig := v.q.T.class.lambda, to.T.elem.T.sig
	if l == nil || l.over == nil {
		return false
	}
	list, _ := ch.instances(l.over, sig)
	for _, inst := range list {
		if ch.hasSig(inst, sig) && inst.ret.T == sig.ret.T {
			return true
		}
	}
	return false
}

// isFunction reports whether a value is a function: then it is what a pointer to it points to, too.
func (v *value) isFunction() bool {
	return v.q.T != nil && v.q.T.kind == tClass && v.q.T.class.lambda != nil && v.q.T.class.lambda.over != nil
}

// takesFunction reports whether a parameter is a pointer or reference to functions.
func (inst *funcInst) takesFunction() bool {
	for i := range inst.params {
		if t := inst.params[i].q.T; (t.kind == tPtr || t.kind == tRef) && t.elem.T.kind == tFunc {
			return true
		}
	}
	return false
}

// definition narrows an overloaded name to the function's definition where the others only declare that function.
func (ch *chooser) definition(fn *overload) *overload {
	var first *funcInst
	def := fn.funcs[0]
	for _, f := range fn.funcs {
		if f.tmpl != nil {
			return fn
		}
		inst := ch.instFor(f, nil)
		if inst == nil || first != nil && !sameParams(first, inst) {
			return fn
		}
		if first = inst; f.decl.Body != nil {
			def = f
		}
	}
	one := *fn
	one.funcs = []*funcEnt{def}
	return &one
}

// onlyInstance narrows an overloaded name to the one template that can be made with its template arguments, where the
// others' conditions (enable_if) refuse them.
func (ch *chooser) onlyInstance(fn *overload) *overload {
	var only []*funcEnt
	for _, f := range fn.funcs {
		made := false
		ok := ch.c.trial(func() {
			if f.tmpl == nil || f.tmpl.Spec {
				return
			}
			d := newDeduction(ch.c, f.tmpl.Params, f.env)
			if !ch.res.explicitArgs(d, fn.args) {
				return
			}
			_, full := ch.res.fill(d, f.decl.Pos())
			made = full && ch.instFor(f, d.got) != nil
		})
		if ok && made {
			only = append(only, f)
		}
	}
	if len(only) != 1 {
		return fn
	}
	one := *fn
	one.funcs = only
	return &one
}

// fitsFunction reports whether one of the functions that a template argument names has the type of the parameter.
func (ch *chooser) fitsFunction(fn *overload, t qtype) bool {
	sig := t.noRef().T.sig
	if t.T.kind == tPtr {
		sig = t.T.elem.T.sig
	}
	if sig == nil || sig.unknown {
		return true
	}
	list, all := ch.instances(fn, sig)
	for _, inst := range list {
		if ch.hasSig(inst, sig) {
			return true
		}
	}
	return !all
}

func (ch *chooser) hasSig(inst *funcInst, sig *funcSig) bool {
	if len(inst.params) != len(sig.params) {
		return false
	}
	for i := range sig.params {
		if inst.params[i].q.T != sig.params[i].T {
			return false
		}
	}
	return true
}

// functionType is the type that decltype finds for a function's name.
func (ch *chooser) functionType(fn *overload) qtype {
	sig := funcSig{ret: qt(typeVoid), unknown: true}
	if list, all := ch.instances(fn, nil); all && len(list) == 1 {
		sig = funcSig{ret: list[0].ret}
		for i := range list[0].params {
			sig.params = append(sig.params, qt(list[0].params[i].q.T))
		}
	}
	return qt(ch.c.types.funcOf(sig))
}
