package msl

// chooser chooses functions: it ranks conversions, makes instances of templates and resolves overloads.
type chooser struct {
	c          *compiler
	res        *resolver
	inUserConv bool // no second user-defined conversion
}

// chooserIn returns a chooser for a scope outside functions.
func (c *compiler) chooserIn(e *env) *chooser { return &chooser{c: c, res: c.resolverIn(e)} }

// overload is a set of functions that one name stands for where it is used.
type overload struct {
	name    string
	funcs   []*funcEnt
	builtin *builtin
	fast    uint8 // 1: metal::fast, 2: metal::precise
	this    *value
	args    []boundArg
	hasArgs bool
}

// lambdaInfo is a lambda expression where it was evaluated, or a function that was handed on by its name.
type lambdaInfo struct {
	over *overload // the function; then the rest is not set
	x    *LambdaExpr
	fn   *funcEnt
	env  *env
}

// candidate is a function that overload resolution considers.
type candidate struct {
	inst  *funcInst
	ranks []rank
	this  rank
	spec  int // how specialised its template is; plain functions are most
}

// resolve picks the best function for arguments. If there is none it returns nil and says why, one line a candidate.
func (ch *chooser) resolve(funcs []*funcEnt, ov *overload, args []value, this *value, quiet bool) (*funcInst, string) {
	var best *candidate
	var tied *candidate
	var why string
	tie := false
	if n := len(funcs); n > 16 {
		ch.c.spend(*ch.res.at, n/2)
	}
	for _, f := range funcs {
		if !f.ofUnit && !ch.c.opt.Float64 && f.decl.takesDouble() {
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

func sameParams(a, b *funcInst) bool {
	if len(a.params) != len(b.params) || a.f.class != b.f.class {
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
func compare(a, b *candidate) int {
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
	case a.inst.f.ofUnit && !b.inst.f.ofUnit: // a kernel's own function hides one of the prelude
		return -1
	case b.inst.f.ofUnit && !a.inst.f.ofUnit:
		return 1
	}
	return 0
}

// candidate checks one function against arguments; reason says why it does not fit.
func (ch *chooser) candidate(f *funcEnt, ov *overload, args []value, this *value) (*candidate, string) {
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
	cd := &candidate{inst: inst, spec: spec, ranks: make([]rank, len(args))}
	if f.class != nil && !f.decl.Specs.Static && f.decl.Kind != FuncConstructor && f.lambda == nil {
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

// takesDouble reports whether a function of the library is for double only.
func (d *FuncDecl) takesDouble() bool {
	for _, p := range d.Params {
		if p.Type.Basic == "double" {
			return true
		}
	}
	return false
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
