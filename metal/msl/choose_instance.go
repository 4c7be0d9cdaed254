package msl

// funcInst is a function with all types known: an instance, if it comes from a template.
type funcInst struct {
	f      *funcEnt
	env    *env // the template's parameters, or what encloses the function
	params []paramInst
	ret    qtype // its T is typeAuto while it is to be deduced
	args   []boundArg
	min    int // parameters without default
}

// paramInst is a parameter of an instance. A pack gives several.
type paramInst struct {
	decl *ParamDecl
	q    qtype
	pack bool // one element of the function's parameter pack
}

// instFor returns the instance of a function for template arguments, making it on first use. It reports what is
// wrong with its signature and returns nil.
func (ch *chooser) instFor(f *funcEnt, args []boundArg) *funcInst {
	known := ch.c.funcInsts[f]
	if known == nil {
		known = &instances[*funcInst]{}
		ch.c.funcInsts[f] = known
	}
	if in, ok := known.find(args, funcArgs); ok {
		return in
	}
	if f.tmpl != nil {
		ch.c.countInstance(f.decl.Pos())
	}
	if !ch.c.enter(f.decl.Pos()) {
		return nil
	}
	defer ch.c.leave()
	e := f.env
	if f.tmpl != nil {
		e = bindEnv(f.env, f.tmpl.Params, args)
		if spec := ch.explicitSpec(f, args); spec != nil {
			f = spec
		}
	}
	inst := &funcInst{f: f, env: e, args: args}
	rs := ch.c.resolverIn(e)
	n := ch.c.errCount()
	for _, p := range f.decl.Params {
		if p.Type.Pack || p.Type.Kind == TypeReference && p.Type.Elem.Pack {
			before := len(inst.params)
			packs, _ := rs.packsIn(p.Type)
			if len(packs) > 0 {
				rs.expandPack(p.Type, func() {
					inst.params = append(inst.params, paramInst{decl: p, q: ch.c.types.paramType(rs.typeOf(p.Type)), pack: true})
				})
			}
			inst.min += len(inst.params) - before
			continue
		}
		t := ch.c.types.paramType(rs.typeOf(p.Type))
		inst.params = append(inst.params, paramInst{decl: p, q: t})
		if p.Default == nil && f.paramDefault(len(inst.params)-1) == nil {
			inst.min = len(inst.params)
		}
	}
	switch {
	case f.decl.Kind == FuncConversion:
		inst.ret = rs.typeOf(f.decl.Name.Conv)
	case f.decl.Ret == nil:
		inst.ret = qt(typeVoid)
		if f.lambda != nil {
			inst.ret = qt(typeAuto)
		}
	default:
		inst.ret = rs.retType(inst, f.decl.Ret)
	}
	if ch.c.errCount() != n {
		return nil
	}
	known.add(inst, funcArgs)
	return inst
}

// paramDefault returns the default argument of a parameter.
func (f *funcEnt) paramDefault(i int) Expr {
	if i < len(f.decl.Params) {
		return f.decl.Params[i].Default
	}
	return nil
}

// explicitSpec returns the full specialisation of a function template for arguments.
func (ch *chooser) explicitSpec(f *funcEnt, args []boundArg) *funcEnt {
	for _, list := range [][]*funcEnt{f.specs, ch.c.extraSpecs[f]} {
		for _, s := range list {
			if ch.specMatches(f, s, args) {
				return s
			}
		}
	}
	return nil
}

func (ch *chooser) specMatches(f, s *funcEnt, args []boundArg) bool {
	match := false
	ok := ch.c.trial(func() {
		h := ch.c.resolverIn(s.env)
		if s.decl.Name.HasArgs {
			got, good := h.templateArgs(s.decl.Name.Args)
			if !good || len(got) > len(args) {
				return
			}
			for i := range got {
				if got[i].isVal && args[i].isVal {
					got[i].vt, got[i].val = args[i].vt, convertConst(got[i].val, args[i].val.ty)
				}
			}
			if !sameArgs(got, args[:len(got)]) {
				return
			}
		}
		b := ch.c.resolverIn(bindEnv(f.env, f.tmpl.Params, args))
		if len(f.decl.Params) != len(s.decl.Params) {
			return
		}
		for i := range f.decl.Params {
			x, y := b.typeOf(f.decl.Params[i].Type), h.typeOf(s.decl.Params[i].Type)
			if x.T != y.T {
				return
			}
		}
		match = true
	})
	return ok && match
}

// deduceCall finds a function template's arguments from those of a call.
func (ch *chooser) deduceCall(f *funcEnt, ov *overload, args []value) (*funcInst, string) {
	d := newDeduction(ch.c, f.tmpl.Params, f.env)
	if ov != nil && ov.hasArgs {
		var fits bool
		if !ch.c.trial(func() { fits = ch.res.explicitArgs(d, ov.args) }) || !fits {
			return nil, "the template arguments " + argsString(ov.args) + " do not fit"
		}
	}
	ai := 0
	for pi, p := range f.decl.Params {
		if p.Type.Pack || p.Type.Kind == TypeReference && p.Type.Elem.Pack {
			d.resetPack(p.Type, args[ai:])
			for d.elem = 0; ai < len(args); ai, d.elem = ai+1, d.elem+1 {
				if !ch.deduceArg(d, p.Type, &args[ai], true) {
					return nil, "argument " + itoa(ai+1) + " of type " + argText(&args[ai]) + " does not fit"
				}
			}
			break
		}
		if ai >= len(args) {
			if p.Default == nil {
				return nil, argCount(f, len(args))
			}
			continue
		}
		if !ch.deduceArg(d, p.Type, &args[ai], false) {
			return nil, "argument " + itoa(ai+1) + " of type " + argText(&args[ai]) + " does not fit parameter " + itoa(pi+1)
		}
		ai++
	}
	var inst *funcInst
	missing, ok := "", true
	var errs ErrorList
	good := ch.c.trialErrs(&errs, func() {
		if missing, ok = ch.res.fill(d, f.decl.Pos()); ok {
			inst = ch.instFor(f, d.got)
		}
	})
	switch {
	case !ok && missing != "" && len(errs) == 0:
		return nil, "the template parameter '" + missing + "' cannot be deduced: write " + f.decl.Name.Ident + "<...>(...)"
	case !good || inst == nil:
		if len(errs) > 0 {
			return nil, errs[0].Msg
		}
		return nil, "its types do not exist for these arguments"
	}
	return inst, ""
}

// deduceArg matches a parameter's type with an argument.
func (ch *chooser) deduceArg(d *deduction, p *TypeExpr, a *value, inPack bool) bool {
	if a.k == vList || a.k == vFuncs || a.bad() {
		return true
	}
	if a.k == vVoid || a.k == vType {
		return false
	}
	if fits, ok := d.function(p, a.q.T); ok {
		return fits
	}
	if p.Kind == TypeReference {
		t := a.q
		if !a.isLvalue() {
			t = t.bare()
		}
		if p.RValue && a.isLvalue() && p.Elem.Kind == TypeNamed && d.param(p.Elem.Name) >= 0 && !p.Elem.Quals.Const {
			return d.typ(p.Elem, qt(ch.c.types.refTo(t)), inPack) // a forwarding reference
		}
		if p.Elem.Kind != TypeArray && t.T.kind == tArray && p.Elem.Kind == TypePointer {
			return false
		}
		if t.T.kind == tVec && p.Elem.Kind == TypeNamed && p.Elem.Name.HasArgs {
			t.T = t.T.unpacked()
		}
		return d.typ(p.Elem, t, inPack)
	}
	t := ch.c.types.decayed(a)
	if p.Kind == TypeArray {
		if t.T.kind != tPtr {
			return false
		}
		return d.typ(p.Elem, t.T.elem, inPack)
	}
	if p.Kind == TypeNamed && p.Quals.Const {
		t.Const = true
	}
	return d.typ(p, t, inPack)
}

// instantiates ranks a function as what an explicit instantiation means: first those with its parameters, for templates
// may be overloaded, and of these the definition rather than a declaration before it.
func (ch *chooser) instantiates(d Decl, inst *funcInst) int {
	rank := 0
	if inst.f.decl.Body != nil {
		rank = 1
	}
	fd, isFunc := d.(*FuncDecl)
	if !isFunc || len(fd.Params) != len(inst.params) {
		return rank
	}
	for i, p := range fd.Params {
		if ch.c.types.paramType(ch.res.typeOf(p.Type)).T != inst.params[i].q.T {
			return rank
		}
	}
	return rank + 2
}

// explicitConversion finds a conversion function to that very type, explicit ones included.
func (ch *chooser) explicitConversion(v *value, to *ctype) *funcInst {
	for _, f := range ch.c.methods(v.q.T, "(conversion)") {
		inst := ch.instConversion(f, v, to)
		if inst == nil || !ch.methodFits(inst, v) {
			continue
		}
		if inst.ret.noRef().T == to {
			return inst
		}
	}
	return nil
}
