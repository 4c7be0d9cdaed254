package msl

import (
	"reflect"

	"github.com/mlxlua/mlxlua/metal/kir"
)

// deduction collects the arguments of a template's parameters.
type deduction struct {
	c      *compiler
	params []*TemplateParam
	got    []targ
	set    []bool
	fixed  []bool // given explicitly: nothing is deduced for it
	env    *env   // where the template is declared, for names that are no parameters
	elem   int    // the element of a pack that is matched
}

func newDeduction(c *compiler, params []*TemplateParam, e *env) *deduction {
	d := &deduction{c: c, params: params, got: make([]targ, len(params)), set: make([]bool, len(params)), env: e}
	for i, p := range params {
		d.got[i].isPack = p.Pack
	}
	return d
}

// param returns the index of the parameter a plain name stands for, -1 if it is none.
func (d *deduction) param(n *Name) int {
	if n == nil || len(n.Quals) > 0 || n.Global {
		return -1
	}
	for i, p := range d.params {
		if p.Name == n.Ident && p.Name != "" {
			return i
		}
	}
	return -1
}

// bindAt records an argument; inPack appends it to a pack. It reports whether it agrees with what was found before.
func (d *deduction) bindAt(i int, a targ, inPack bool) bool {
	if d.params[i].Pack {
		if !inPack {
			return true
		}
		if pack := d.got[i].pack; d.elem < len(pack) { // named twice in what is expanded
			return sameTargs(pack[d.elem:d.elem+1], []targ{a})
		}
		d.got[i].pack = append(d.got[i].pack, a)
		return true
	}
	if a.isVal {
		if vt := d.params[i].ValueType; vt != nil && vt.Kind == TypeBasic {
			if t := builtinTypes[vt.Basic]; t != nil && t.kind == tScalar {
				a.val, a.vt = convertConst(a.val, t.kt), t
			}
		}
	}
	if d.fixed != nil && d.fixed[i] {
		return true
	}
	if d.set[i] {
		return sameTargs([]targ{d.got[i]}, []targ{a})
	}
	d.got[i], d.set[i] = a, true
	return true
}

func convertConst(o operand, t kir.Type) operand {
	if o.ty == t {
		return o
	}
	if r, ok := fold(kir.Convert, t, []operand{o}); ok {
		return r
	}
	return o
}

// typ matches a type pattern with a type. Parts that name no parameter match anything here: whether they fit is
// checked when the template is instantiated and the argument converted.
func (d *deduction) typ(p *TypeExpr, a qtype, inPack bool) bool {
	switch p.Kind {
	case TypeNamed:
		return d.named(p, a, inPack)
	case TypePointer:
		if a.T.kind != tPtr {
			return !d.dependent(p)
		}
		return d.typ(p.Elem, a.T.elem, inPack)
	case TypeReference:
		if a.T.kind == tRef {
			a = a.T.elem
		}
		return d.typ(p.Elem, a, inPack)
	case TypeArray:
		if a.T.kind != tArray {
			return !d.dependent(p)
		}
		if ne, ok := p.X.(*NameExpr); ok {
			if i := d.param(ne.Name); i >= 0 {
				n := targ{isVal: true, val: operand{ty: kir.I32, bits: uint64(a.T.n)}, vt: typeInt}
				if !d.bindAt(i, n, inPack) {
					return false
				}
			}
		}
		e := a.T.elem
		e.Space, e.Const, e.Vol = a.Space, e.Const || a.Const, e.Vol || a.Vol
		return d.typ(p.Elem, e, inPack)
	}
	return true
}

// dependent reports whether a pattern mentions a parameter.
func (d *deduction) dependent(p *TypeExpr) bool {
	found := false
	walkNames(reflect.ValueOf(p), func(n string) {
		for _, q := range d.params {
			found = found || q.Name == n && n != ""
		}
	})
	return found
}

func (d *deduction) named(p *TypeExpr, a qtype, inPack bool) bool {
	n := p.Name
	if i := d.param(n); i >= 0 && !n.HasArgs {
		if d.params[i].Templ != nil {
			return true
		}
		if p.Quals.Space != SpaceNone {
			if p.Quals.Space.normal() != a.Space.normal() {
				return false
			}
			a.Space = SpaceNone
		}
		if p.Quals.Const || p.Quals.Space == SpaceConstant {
			a.Const = false
		}
		if p.Quals.Volatile {
			a.Vol = false
		}
		a.Space = a.Space.normal()
		return d.bindAt(i, targ{q: a}, inPack)
	}
	if !n.HasArgs || len(n.Quals) > 0 && d.qualDependent(n) {
		return true // no parameter can be deduced from it
	}
	if i := d.param(n); i >= 0 && d.params[i].Templ != nil {
		if a.T.kind != tStruct || a.T.st.tmpl == nil {
			return false
		}
		ent := &entity{kind: eTemplate, name: a.T.st.name, tmpl: a.T.st.tmpl}
		return d.bindAt(i, targ{tmpl: ent}, inPack) && d.args(n.Args, a.T.st.args, inPack)
	}
	ent := d.c.resolverIn(d.env).resolveQuiet(n)
	if ent == nil || ent.kind != eTemplate {
		return true
	}
	if ent.tmpl.built != "" {
		return d.builtinArgs(ent.tmpl.built, n, a.T, inPack)
	}
	if ent.tmpl.decl != nil {
		if al, isAlias := ent.tmpl.decl.Decl.(*AliasDecl); isAlias {
			return d.alias(al, ent.tmpl, n, a, inPack)
		}
	}
	if a.T.kind != tStruct {
		return false
	}
	for st := a.T.st; ; { // the class or one of its bases
		if st.tmpl == ent.tmpl {
			return d.args(n.Args, st.args, inPack)
		}
		if len(st.bases) == 0 || st.bases[0].kind != tStruct {
			return false
		}
		st = st.bases[0].st
	}
}

// alias matches an alias template with arguments by way of what it stands for. Where that says nothing, anything
// fits.
func (d *deduction) alias(al *AliasDecl, tm *tmplInfo, n *Name, a qtype, inPack bool) bool {
	in := newDeduction(d.c, tm.decl.Params, tm.env)
	if !in.typ(al.Type, a, inPack) {
		return false
	}
	for i := range n.Args {
		if i >= len(in.got) || !in.set[i] {
			break
		}
		if n.Args[i].Pack {
			return d.args(n.Args[i:], in.got[i:], inPack)
		}
		if !d.arg(&n.Args[i], in.got[i], inPack) {
			return false
		}
	}
	return true
}

func (d *deduction) qualDependent(n *Name) bool {
	for i := range n.Quals {
		if n.Quals[i].HasArgs || d.param(&Name{NamePart: NamePart{Ident: n.Quals[i].Ident}}) >= 0 {
			return true
		}
	}
	return false
}

// builtinArgs matches vec<T, N> and its like.
func (d *deduction) builtinArgs(built string, n *Name, t *ctype, inPack bool) bool {
	num := func(v int) targ { return targ{isVal: true, val: operand{ty: kir.I32, bits: uint64(v)}, vt: typeInt} }
	switch {
	case (built == "vec" && !t.packed || built == "packed_vec" && t.packed) && t.kind == tVec:
		return d.args(n.Args, []targ{{q: t.elem}, num(t.n)}, inPack)
	case built == "atomic" && t.kind == tAtomic:
		return d.args(n.Args, []targ{{q: t.elem}}, inPack)
	case built == "simdgroup_matrix" && t.kind == tSimdMat:
		return d.args(n.Args, []targ{{q: t.elem}, num(8), num(8)}, inPack)
	}
	return false
}

// args matches a list of argument patterns with arguments.
func (d *deduction) args(pats []TemplateArg, args []targ, inPack bool) bool {
	flat := flattenPacks(args)
	for i := range pats {
		p := &pats[i]
		if p.Pack {
			outer := d.elem
			for d.elem = 0; i < len(flat); i++ {
				if !d.arg(p, flat[i], true) {
					return false
				}
				d.elem++
			}
			d.elem = outer
			d.markPacks(p)
			return true
		}
		if i >= len(flat) || !d.arg(p, flat[i], inPack) {
			return false
		}
	}
	return len(pats) == len(flat) || len(pats) < len(flat) // trailing defaults
}

func flattenPacks(args []targ) []targ {
	var out []targ
	for _, a := range args {
		if a.isPack {
			out = append(out, a.pack...)
		} else {
			out = append(out, a)
		}
	}
	return out
}

func (d *deduction) markPacks(p *TemplateArg) {
	walkNames(reflect.ValueOf(p), func(n string) {
		for i, q := range d.params {
			if q.Pack && q.Name == n {
				d.set[i] = true
			}
		}
	})
}

func (d *deduction) arg(p *TemplateArg, a targ, inPack bool) bool {
	if p.Type != nil {
		if i := d.param(p.Type.Name); i >= 0 && p.Type.Kind == TypeNamed && !p.Type.Name.HasArgs {
			switch {
			case d.params[i].Templ != nil && a.tmpl != nil, d.params[i].ValueType != nil && (a.isVal || a.obj != nil):
				return d.bindAt(i, a, inPack)
			}
		}
		if a.q.T == nil {
			return !d.dependent(p.Type)
		}
		if !patternHead(p.Type, a.q) {
			return !d.dependent(p.Type)
		}
		return d.typ(p.Type, a.q, inPack)
	}
	if ne, ok := p.X.(*NameExpr); ok {
		if i := d.param(ne.Name); i >= 0 {
			return d.bindAt(i, a, inPack)
		}
	}
	return true
}

// patternHead reports whether the outermost level of a pattern can fit: const T does not fit int.
func patternHead(p *TypeExpr, a qtype) bool {
	switch p.Kind {
	case TypePointer:
		return a.T.kind == tPtr
	case TypeReference:
		return a.T.kind == tRef
	case TypeArray:
		return a.T.kind == tArray
	}
	if p.Quals.Space != SpaceNone && p.Quals.Space.normal() != a.Space.normal() {
		return false
	}
	return (!p.Quals.Const || a.Const) && (!p.Quals.Volatile || a.Vol)
}

// bindEnv makes the scope in which a template's parameters stand for their arguments.
func bindEnv(up *env, params []*TemplateParam, args []targ) *env {
	e := &env{kind: envTemplate, up: up}
	for i, p := range params {
		if i >= len(args) {
			break
		}
		if p.Name == "" {
			continue
		}
		e.put(targEntity(p.Name, args[i]))
	}
	return e
}

func targEntity(name string, a targ) *entity {
	switch {
	case a.isPack:
		return &entity{kind: ePack, name: name, targs: a.pack}
	case a.fn != nil:
		return &entity{kind: eConst, name: name, local: true, val: value{k: vFuncs, q: qt(typeVoid), fn: a.fn}}
	case a.isVal:
		return &entity{kind: eConst, name: name, local: true, val: rval(a.vt, a.val)}
	case a.obj != nil:
		return &entity{kind: eConst, name: name, local: true, addr: a.addr, val: value{k: vSlot, q: a.obj.q, obj: a.obj}}
	case a.tmpl != nil:
		return &entity{kind: eTemplate, name: name, tmpl: a.tmpl.tmpl}
	}
	return &entity{kind: eType, name: name, ty: a.q}
}

// fill completes arguments with defaults and packs: given explicit ones and what was deduced. It reports the first
// parameter that has no argument.
func (rs *resolver) fill(d *deduction, at Pos) (missing string, ok bool) {
	if !rs.c.enter(at) { // a default argument may need the template itself
		return "", false
	}
	defer rs.c.leave()
	for i, p := range d.params {
		if p.Pack || d.set[i] {
			continue
		}
		if p.DefaultType == nil && p.Default == nil {
			name := p.Name
			if name == "" {
				name = "(unnamed)"
			}
			return name, false
		}
		h := rs.c.resolverIn(bindEnv(d.env, d.params[:i], d.got))
		if p.DefaultType != nil {
			if p.Templ != nil {
				if p.DefaultType.Kind == TypeNamed {
					if ent := h.resolveEntity(p.DefaultType.Name); ent != nil && ent.kind == eTemplate {
						d.got[i] = targ{tmpl: ent}
						d.set[i] = true
						continue
					}
				}
				return p.Name, false
			}
			d.got[i].q = h.typeOf(p.DefaultType)
			if d.got[i].q.T.kind == tBad {
				return p.Name, false
			}
		} else {
			a, ok := h.valueArg(p.Default)
			if !ok {
				return p.Name, false
			}
			d.got[i] = h.convertValueArg(a, p)
		}
		d.set[i] = true
	}
	return "", true
}

// fitsParam reports whether an object can be the argument of a pointer or reference parameter; no number can.
func (rs *resolver) fitsParam(a *targ, p *TemplateParam) bool {
	if a.tmpl != nil || a.isPack {
		return false
	}
	t := rs.typeOf(p.ValueType)
	if a.fn != nil {
		return rs.c.chooserIn(rs.env).fitsFunction(a.fn, t)
	}
	if t.T.kind == tAuto {
		return true
	}
	if a.obj == nil {
		return t.T.kind != tPtr || a.vt != nil && a.vt.kind == tNull
	}
	if t.T.kind != tPtr && t.T.kind != tRef || t.T.elem.Space != SpaceConstant {
		return false
	}
	want, o := t.T.elem.T, a.obj.q.T
	switch {
	case want.kind == tAuto:
		return true
	case t.T.kind == tPtr && !a.addr:
		return o.kind == tArray && o.elem.T == want
	}
	return o == want && a.addr == (t.T.kind == tPtr)
}

// convertValueArg converts a value argument to its parameter's type.
func (rs *resolver) convertValueArg(a targ, p *TemplateParam) targ {
	if p.ValueType == nil || !a.isVal {
		return a
	}
	t := rs.typeOf(p.ValueType).noRef()
	if t.T.kind == tAuto || !t.T.isScalar() {
		return a
	}
	a.val, a.vt = convertConst(a.val, t.T.kt), t.T
	return a
}

// explicitArgs assigns arguments given in angle brackets to parameters.
func (rs *resolver) explicitArgs(d *deduction, args []targ) bool {
	for i := 0; i < len(args); i++ {
		if i >= len(d.params) {
			return false
		}
		p := d.params[i]
		if p.Pack {
			d.got[i].pack = append(d.got[i].pack, args[i:]...)
			d.set[i] = true
			return true
		}
		a := args[i]
		switch {
		case p.TypeParam && a.q.T == nil, p.ValueType != nil && a.q.T != nil, p.Templ != nil && a.tmpl == nil:
			return false
		}
		if p.ValueType != nil {
			h := rs.c.resolverIn(bindEnv(d.env, d.params[:i], d.got))
			if !h.fitsParam(&a, p) {
				return false
			}
			a = h.convertValueArg(a, p)
		}
		d.got[i], d.set[i] = a, true
		if d.fixed == nil {
			d.fixed = make([]bool, len(d.params))
		}
		d.fixed[i] = true
	}
	return true
}

// instantiateType returns the type that a class or alias template gives for arguments; ok is false for a variable
// template.
func (rs *resolver) instantiateType(tm *tmplInfo, args []targ, at Pos) (qtype, bool) {
	if tm.built != "" {
		if isTexture(tm.built) {
			rs.c.errorf(Unsupported, at, "textures are not supported: '%s'; pass a buffer and index it", tm.built)
			return badType, true
		}
		t, msg := builtinTemplate(tm.built, flattenPacks(args))
		if t == nil {
			rs.c.errorf(BadTemplateArgs, at, "%s", msg)
			return badType, true
		}
		return qt(t), true
	}
	if tm.decl == nil {
		return badType, false
	}
	if _, isVar := tm.decl.Decl.(*VarDecl); isVar {
		return badType, false
	}
	args, ok := rs.completeArgs(tm, args, at)
	if !ok {
		return badType, true
	}
	if al, isAlias := tm.decl.Decl.(*AliasDecl); isAlias {
		if !rs.c.enter(at) {
			return badType, true
		}
		defer rs.c.leave()
		h := rs.c.resolverIn(bindEnv(tm.env, tm.decl.Params, args))
		return h.typeOf(al.Type), true
	}
	known := rs.c.insts[tm]
	if known == nil {
		known = &instances[*structInfo]{}
		rs.c.insts[tm] = known
	}
	if st, ok := known.find(args, structArgs); ok {
		return qt(st.typ), true
	}
	rs.c.countInstance(at)
	spec, bind := rs.chooseSpec(tm, args)
	decl, _ := spec.Decl.(*StructDecl)
	st := &structInfo{name: tm.name, decl: decl, args: args, tmpl: tm, union: decl.Key == "union"}
	st.typ = &ctype{kind: tStruct, st: st}
	st.scope = &env{kind: envClass, up: bind, name: tm.name, cls: st}
	known.add(st, structArgs)
	return qt(st.typ), true
}

// completeArgs checks the number and kinds of a template's arguments and adds defaults.
func (rs *resolver) completeArgs(tm *tmplInfo, args []targ, at Pos) ([]targ, bool) {
	d := newDeduction(rs.c, tm.decl.Params, tm.env)
	if !rs.explicitArgs(d, flattenPacks(args)) {
		rs.c.errorf(BadTemplateArgs, at, "the arguments %s do not fit the template '%s'", argsString(args), tm.name)
		return nil, false
	}
	if missing, ok := rs.fill(d, at); !ok {
		rs.c.errorf(BadTemplateArgs, at, "the template '%s' has no argument for its parameter '%s'", tm.name, missing)
		return nil, false
	}
	return d.got, true
}

// chooseSpec picks the most specialised declaration of a template that fits, and the scope with its parameters.
func (rs *resolver) chooseSpec(tm *tmplInfo, args []targ) (*TemplateDecl, *env) {
	best, bestEnv, bestScore := tm.decl, bindEnv(tm.env, tm.decl.Params, args), -1
	flat := flattenPacks(args)
	for _, list := range [][]*TemplateDecl{tm.specs, rs.c.extraTmpl[tm]} {
		for _, s := range list {
			pats := specArgs(s)
			d := newDeduction(rs.c, s.Params, tm.env)
			if !d.args(pats, flat, false) {
				continue
			}
			bind := bindEnv(tm.env, s.Params, d.got)
			if !rs.specFits(tm, pats, flat, bind) {
				continue
			}
			score := 1
			for i := range pats {
				score += specificity(d, &pats[i])
			}
			if len(s.Params) == 0 {
				score += 1 << 20
			}
			if score > bestScore {
				best, bestEnv, bestScore = s, bind, score
			}
		}
	}
	return best, bestEnv
}

func specArgs(s *TemplateDecl) []TemplateArg {
	switch x := s.Decl.(type) {
	case *StructDecl:
		return x.Name.Args
	case *VarDecl:
		return x.Name.Args
	}
	return nil
}

// specFits substitutes what was deduced into the patterns, adds the default arguments of the template that they leave
// out, and compares.
func (rs *resolver) specFits(tm *tmplInfo, pats []TemplateArg, args []targ, bind *env) bool {
	fits := false
	ok := rs.c.trial(func() {
		h := rs.c.resolverIn(bind)
		got, good := h.templateArgs(pats)
		if !good {
			return
		}
		if got = flattenPacks(got); len(got) < len(args) {
			got, good = rs.completeArgs(tm, got, tm.decl.Pos())
			got = flattenPacks(got)
		}
		if !good || len(got) != len(args) {
			return
		}
		for i := range got {
			if got[i].isVal && args[i].isVal {
				got[i].vt, got[i].val = args[i].vt, convertConst(got[i].val, args[i].val.ty)
			}
		}
		fits = sameTargs(got, args)
	})
	return ok && fits
}

// specificity counts what a pattern fixes.
func specificity(d *deduction, p *TemplateArg) int {
	if p.Type == nil {
		if ne, ok := p.X.(*NameExpr); ok && d.param(ne.Name) >= 0 {
			return 0
		}
		return 2
	}
	return typeSpecificity(d, p.Type)
}

func typeSpecificity(d *deduction, t *TypeExpr) int {
	n := 0
	if t.Quals.Const || t.Quals.Volatile {
		n++
	}
	if t.Quals.Space != SpaceNone {
		n++
	}
	switch t.Kind {
	case TypeNamed:
		if d.param(t.Name) >= 0 && !t.Name.HasArgs {
			return n
		}
		n++
		for i := range t.Name.Args {
			n += specificity(d, &t.Name.Args[i])
		}
		return n
	case TypePointer, TypeReference, TypeArray:
		return n + 1 + typeSpecificity(d, t.Elem)
	}
	return n + 2
}

// walkNames calls f for the identifiers of every Name below an AST value. It is used on packs and patterns only.
func walkNames(v reflect.Value, f func(string)) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			walkNames(v.Elem(), f)
		}
	case reflect.Slice:
		for i := range v.Len() {
			walkNames(v.Index(i), f)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[NamePart]() {
			f(v.FieldByName("Ident").String())
		}
		for i := range v.NumField() {
			walkNames(v.Field(i), f)
		}
	}
}

// packsIn returns the packs that an AST value names in the current scope, and their common length (-1 if they
// differ).
func (rs *resolver) packsIn(x any) (packs []*entity, n int) {
	n = -1
	bad := false
	walkNames(reflect.ValueOf(x), func(name string) {
		ent := rs.lookup(name)
		if ent == nil || ent.kind != ePack {
			return
		}
		for _, p := range packs {
			if p == ent {
				return
			}
		}
		packs = append(packs, ent)
		l := len(ent.targs) + len(ent.vals)
		bad = bad || n >= 0 && l != n
		n = l
	})
	if bad {
		n = -1
	}
	return packs, n
}

// expandPack calls f once for each element of the packs that x names, with the names standing for that element
// in g.env.
func (rs *resolver) expandPack(x any, f func()) {
	packs, n := rs.packsIn(x)
	if len(packs) == 0 || n < 0 {
		at := *rs.at
		if nd, ok := x.(Node); ok {
			at = nd.Pos()
		}
		rs.c.errorf(BadTemplateArgs, at, "what is expanded by ... holds no parameter pack, or packs of different lengths")
		return
	}
	if n > maxPack {
		rs.c.fatal(TooLarge, *rs.at, "a parameter pack of %d elements is expanded: the limit is %d", n, maxPack)
	}
	rs.c.spend(*rs.at, n)
	saved := rs.env
	for i := range n {
		e := &env{kind: envBlock, up: saved}
		for _, p := range packs {
			if p.targs != nil {
				e.put(targEntity(p.name, p.targs[i]))
			} else {
				e.put(&entity{kind: eVar, name: p.name, local: true, val: p.vals[i]})
			}
		}
		rs.env = e
		f()
	}
	rs.env = saved
}
