package msl

// overload is a set of functions that one name stands for where it is used.
type overload struct {
	name    string
	funcs   []*funcEnt
	bi      *builtin
	fast    uint8 // 1: metal::fast, 2: metal::precise
	this    *value
	targs   []targ
	hasArgs bool
	env     *env
}

// funcInst is a function with all types known: an instance, if it comes from a template.
type funcInst struct {
	f      *funcEnt
	env    *env // the template's parameters, or what encloses the function
	params []paramInst
	ret    qtype // its T is typeAuto while it is to be deduced
	args   []targ
	min    int // parameters without default
}

// paramInst is a parameter of an instance. A pack gives several.
type paramInst struct {
	decl *ParamDecl
	q    qtype
	pack bool // one element of the function's parameter pack
}

// lambdaInfo is a lambda expression where it was evaluated, or a function that was handed on by its name.
type lambdaInfo struct {
	over *overload // the function; then the rest is not set
	x    *LambdaExpr
	fn   *funcEnt
	env  *env
}

// chooser chooses functions: it ranks conversions, makes instances of templates and resolves overloads.
type chooser struct {
	c          *compiler
	res        *resolver
	inUserConv bool // no second user-defined conversion
}

// chooserIn returns a chooser for a scope outside functions.
func (c *compiler) chooserIn(e *env) *chooser { return &chooser{c: c, res: c.resolverIn(e)} }

// instFor returns the instance of a function for template arguments, making it on first use. It reports what is
// wrong with its signature and returns nil.
func (ch *chooser) instFor(f *funcEnt, args []targ) *funcInst {
	known := ch.c.finsts[f]
	if known == nil {
		known = &instances[*funcInst]{}
		ch.c.finsts[f] = known
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
		if f.lam != nil {
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

// retType resolves a result type. One that trails may name the parameters, in operands of decltype and sizeof.
func (rs *resolver) retType(inst *funcInst, x *TypeExpr) qtype {
	if x.Trailing && x.Kind != TypeBasic {
		e := &env{kind: envFunc, up: rs.env}
		for _, d := range inst.f.decl.Params {
			if d.Name != "" && (d.Type.Pack || d.Type.Kind == TypeReference && d.Type.Elem.Pack) {
				e.put(&entity{kind: ePack, name: d.Name, vals: []value{}})
			}
		}
		for i := range inst.params {
			p := &inst.params[i]
			t := p.q.noRef()
			switch {
			case p.decl.Name == "" || p.q.T.kind == tBad || p.q.T.kind != tRef && !rs.c.isComplete(t.T):
			case p.pack:
				pack := e.own(p.decl.Name)
				pack.vals = append(pack.vals, rs.c.types.dummy(t))
			default:
				e.put(&entity{
					kind: eVar, name: p.decl.Name, local: true, val: rs.c.types.dummy(t), isRef: p.q.T.kind == tRef,
				})
			}
		}
		saved := rs.env
		rs.env = e
		defer func() { rs.env = saved }()
	}
	return rs.typeOf(x)
}

// explicitSpec returns the full specialisation of a function template for arguments.
func (ch *chooser) explicitSpec(f *funcEnt, args []targ) *funcEnt {
	for _, list := range [][]*funcEnt{f.specs, ch.c.extraSpecs[f]} {
		for _, s := range list {
			if ch.specMatches(f, s, args) {
				return s
			}
		}
	}
	return nil
}

func (ch *chooser) specMatches(f, s *funcEnt, args []targ) bool {
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
			if !sameTargs(got, args[:len(got)]) {
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

// cand is a function that overload resolution considers.
type cand struct {
	inst  *funcInst
	ranks []rank
	this  rank
	spec  int // how specialised its template is; plain functions are most
}

// resolve picks the best function for arguments. If there is none it returns nil and says why, one line a candidate.
func (ch *chooser) resolve(funcs []*funcEnt, ov *overload, args []value, this *value, quiet bool) (*funcInst, string) {
	var best *cand
	var tied *cand
	var why string
	tie := false
	if n := len(funcs); n > 16 {
		ch.c.spend(*ch.res.at, n/2)
	}
	for _, f := range funcs {
		if !f.usr && !ch.c.opt.Float64 && f.decl.takesDouble() {
			continue
		}
		cd, reason := ch.candidate(f, ov, args, this)
		if cd == nil {
			if !quiet && len(why) < 2000 {
				why += "\n    " + ch.c.signature(f) + ": " + reason
			}
			continue
		}
		switch c := compare(cd, best); {
		case best == nil || c < 0:
			best, tie = cd, tie && best != nil && c == 0
			if best != nil && tied != nil && compare(best, tied) < 0 {
				tie = false
			}
		case c == 0:
			if sameParams(cd.inst, best.inst) { // a declaration and its definition
				if best.inst.f.decl.Body == nil {
					best = cd
				}
				continue
			}
			tied, tie = cd, true
		}
	}
	if best == nil {
		return nil, why
	}
	if tie {
		return nil, "ambiguous:\n    " + ch.c.signature(best.inst.f) + "\n    " + ch.c.signature(tied.inst.f)
	}
	if best.inst.f.decl.Delete { // which takes part until here: a specialisation of a deleted template need not be
		return nil, "\n    " + ch.c.signature(best.inst.f) + ": it is deleted"
	}
	return best.inst, ""
}

// takesDouble reports whether a function of the library is for double only.
func (d *FuncDecl) takesDouble() bool {
	for _, p := range d.Params {
		if p.Type.Basic == "double" {
			return true
		}
	}
	return false
}

func sameParams(a, b *funcInst) bool {
	if len(a.params) != len(b.params) || a.f.cls != b.f.cls {
		return false
	}
	for i := range a.params {
		x, y := a.params[i].q, b.params[i].q
		if x.T != y.T {
			return false
		}
	}
	return true
}

// compare returns -1 if a is the better candidate, 1 if b is, 0 if neither.
func compare(a, b *cand) int {
	if b == nil {
		return -1
	}
	better, worse := false, false
	note := func(x, y rank) {
		better = better || x < y
		worse = worse || x > y
	}
	note(a.this, b.this)
	for i := range a.ranks {
		note(a.ranks[i], b.ranks[i])
	}
	switch {
	case better && !worse:
		return -1
	case worse && !better:
		return 1
	case better || worse:
		return 0
	}
	switch {
	case a.spec > b.spec:
		return -1
	case a.spec < b.spec:
		return 1
	case a.inst.f.usr && !b.inst.f.usr: // a kernel's own function hides one of the prelude
		return -1
	case b.inst.f.usr && !a.inst.f.usr:
		return 1
	}
	return 0
}

// candidate checks one function against arguments; reason says why it does not fit.
func (ch *chooser) candidate(f *funcEnt, ov *overload, args []value, this *value) (*cand, string) {
	np := len(f.decl.Params)
	variadic := false
	for _, p := range f.decl.Params {
		variadic = variadic || p.Type.Pack || p.Type.Kind == TypeReference && p.Type.Elem.Pack
	}
	if len(args) > np && !variadic {
		return nil, argCount(f, len(args))
	}
	var inst *funcInst
	spec := 1 << 20
	if f.tmpl != nil {
		if f.tmpl.Spec {
			return nil, "it is a specialisation of no template"
		}
		var reason string
		inst, reason = ch.deduceCall(f, ov, args)
		if inst == nil {
			return nil, reason
		}
		spec = templateScore(f)
	} else {
		if ov != nil && ov.hasArgs {
			return nil, "it is no template"
		}
		if inst = ch.instFor(f, nil); inst == nil {
			return nil, "its declaration has errors"
		}
	}
	if len(args) > len(inst.params) || len(args) < inst.min {
		return nil, argCount(f, len(args))
	}
	cd := &cand{inst: inst, spec: spec, ranks: make([]rank, len(args))}
	if f.cls != nil && !f.decl.Specs.Static && f.decl.Kind != FuncConstructor && f.lam == nil {
		if this == nil {
			return nil, "it needs an object"
		}
		if !ch.methodFits(inst, this) {
			if this.q.Const && !f.decl.Quals.Const && this.q.Space.normal() == f.decl.Quals.Space.normal() {
				return nil, "it is not const, but the object is"
			}
			return nil, "the object is in " + spaceName(this.q.Space) + " memory"
		}
		cd.this = ch.thisRank(inst, this)
	}
	if f.decl.Kind == FuncConstructor && this != nil && f.decl.Quals.Space.normal() != this.q.Space.normal() {
		cd.this = rankConversion // objects are made in thread memory and copied: a constructor for it is the better one
	}
	for i := range args {
		r := ch.convRank(&args[i], inst.params[i].q)
		if r == rankNone {
			return nil, "argument " + itoa(i+1) + " of type " + argText(&args[i]) + " does not convert to " +
				inst.params[i].q.String()
		}
		cd.ranks[i] = r
	}
	return cd, ""
}

func argText(v *value) string {
	switch v.k {
	case vList:
		return "{...}"
	case vFuncs:
		return "function"
	case vVoid:
		return "void"
	}
	return v.q.String()
}

func argCount(f *funcEnt, n int) string {
	return "it takes " + plural(len(f.decl.Params), "argument") + ", not " + itoa(n)
}

// templateScore orders function templates by how much their parameters fix.
func templateScore(f *funcEnt) int {
	d := &deduction{params: f.tmpl.Params}
	n := 0
	for _, p := range f.decl.Params {
		if p.Type.Kind == TypeReference { // a reference is not more specialised than a value
			n += typeSpecificity(d, p.Type.Elem)
		} else {
			n += typeSpecificity(d, p.Type)
		}
		if p.Type.Pack {
			n--
		}
	}
	for _, p := range f.tmpl.Params {
		if p.Pack {
			n--
		}
	}
	return n
}

// deduceCall finds a function template's arguments from those of a call.
func (ch *chooser) deduceCall(f *funcEnt, ov *overload, args []value) (*funcInst, string) {
	d := newDeduction(ch.c, f.tmpl.Params, f.env)
	if ov != nil && ov.hasArgs {
		var fits bool
		if !ch.c.trial(func() { fits = ch.res.explicitArgs(d, ov.targs) }) || !fits {
			return nil, "the template arguments " + argsString(ov.targs) + " do not fit"
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

// resetPack forgets the explicit elements of a pack that a call's arguments give again.
func (d *deduction) resetPack(p *TypeExpr, args []value) {
	for i, q := range d.params {
		if q.Pack && len(args) > 0 {
			uses := false
			arg := TemplateArg{Type: p}
			before := d.set[i]
			d.set[i] = false
			d.markPacks(&arg)
			uses = d.set[i]
			d.set[i] = before || uses
			if uses {
				d.got[i].pack = nil
			}
		}
	}
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

// methodFits reports whether a method can be called on an object: const and address space.
func (ch *chooser) methodFits(inst *funcInst, this *value) bool {
	d := inst.f.decl
	if d.Specs.Static {
		return true
	}
	if this.q.Const && !d.Quals.Const && d.Quals.Space != SpaceConstant { // constant memory is never written
		return false
	}
	sp := this.q.Space.normal()
	want := d.Quals.Space.normal()
	if sp == want {
		return true
	}
	// A method without an address space acts on thread memory: an object elsewhere is read for it if nothing changes it.
	return want == SpaceNone && d.Quals.Const && d.Quals.Space == SpaceNone
}

func (ch *chooser) thisRank(inst *funcInst, this *value) rank {
	d := inst.f.decl
	r := rankExact
	if d.Quals.Const && !this.q.Const {
		r = rankQual
	}
	if d.Quals.Space.normal() != this.q.Space.normal() {
		r = rankConversion
	}
	return r
}

// exactCall reports whether an instance takes the arguments without conversion.
func (ch *chooser) exactCall(inst *funcInst, args []value) bool {
	for i := range args {
		if ch.convRank(&args[i], inst.params[i].q) > rankQual {
			return false
		}
	}
	return true
}
