package msl

import (
	"reflect"

	"github.com/mlxlua/mlxlua/metal/kir"
)

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
func (d *deduction) bindAt(i int, a boundArg, inPack bool) bool {
	if d.params[i].Pack {
		if !inPack {
			return true
		}
		if pack := d.got[i].pack; d.elem < len(pack) { // named twice in what is expanded
			return sameArgs(pack[d.elem:d.elem+1], []boundArg{a})
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
		return sameArgs([]boundArg{d.got[i]}, []boundArg{a})
	}
	d.got[i], d.set[i] = a, true
	return true
}

// typ matches a type pattern with a type. Parts that name no parameter match anything here: whether they fit is
// checked when the template is instantiated and the argument converted.
func (d *deduction) typ(p *TypeExpr, a qtype, inPack bool) bool {
	switch p.Kind {
	case TypeNamed:
		return d.namedType(p, a, inPack)
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
				n := boundArg{isVal: true, val: operand{ty: kir.I32, bits: uint64(a.T.n)}, vt: typeInt}
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

func (d *deduction) namedType(p *TypeExpr, a qtype, inPack bool) bool {
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
		return d.bindAt(i, boundArg{q: a}, inPack)
	}
	if !n.HasArgs || len(n.Quals) > 0 && d.qualDependent(n) {
		return true // no parameter can be deduced from it
	}
	if i := d.param(n); i >= 0 && d.params[i].Templ != nil {
		if a.T.kind != tClass || a.T.class.tmpl == nil {
			return false
		}
		ent := &entity{kind: eTemplate, name: a.T.class.name, tmpl: a.T.class.tmpl}
		return d.bindAt(i, boundArg{tmpl: ent}, inPack) && d.args(n.Args, a.T.class.args, inPack)
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
	if a.T.kind != tClass {
		return false
	}
	for cls := a.T.class; ; { // the class or one of its bases
		if cls.tmpl == ent.tmpl {
			return d.args(n.Args, cls.args, inPack)
		}
		if len(cls.bases) == 0 || cls.bases[0].kind != tClass {
			return false
		}
		cls = cls.bases[0].class
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
	num := func(v int) boundArg {
		return boundArg{isVal: true, val: operand{ty: kir.I32, bits: uint64(v)}, vt: typeInt}
	}
	switch {
	case (built == "vec" && !t.packed || built == "packed_vec" && t.packed) && t.kind == tVec:
		return d.args(n.Args, []boundArg{{q: t.elem}, num(t.n)}, inPack)
	case built == "atomic" && t.kind == tAtomic:
		return d.args(n.Args, []boundArg{{q: t.elem}}, inPack)
	case built == "simdgroup_matrix" && t.kind == tSimdMat:
		return d.args(n.Args, []boundArg{{q: t.elem}, num(8), num(8)}, inPack)
	}
	return false
}

// args matches a list of argument patterns with arguments.
func (d *deduction) args(pats []TemplateArg, args []boundArg, inPack bool) bool {
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

func (d *deduction) markPacks(p *TemplateArg) {
	walkNames(reflect.ValueOf(p), func(n string) {
		for i, q := range d.params {
			if q.Pack && q.Name == n {
				d.set[i] = true
			}
		}
	})
}

func (d *deduction) arg(p *TemplateArg, a boundArg, inPack bool) bool {
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

// deduction collects the arguments of a template's parameters.
type deduction struct {
	c      *compiler
	params []*TemplateParam
	got    []boundArg
	set    []bool
	fixed  []bool // given explicitly: nothing is deduced for it
	env    *env   // where the template is declared, for names that are no parameters
	elem   int    // the element of a pack that is matched
}

func newDeduction(c *compiler, params []*TemplateParam, e *env) *deduction {
	d := &deduction{c: c, params: params, got: make([]boundArg, len(params)), set: make([]bool, len(params)), env: e}
	for i, p := range params {
		d.got[i].isPack = p.Pack
	}
	return d
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

// function matches the type of a parameter, a pointer or reference to functions, with that of a function. ok is false
// if they are something else.
func (d *deduction) function(p *TypeExpr, t *ctype) (fits, ok bool) {
	if p.Kind != TypePointer && p.Kind != TypeReference || p.Elem.Kind != TypeFunc || t.kind != tClass {
		return false, false
	}
	l := t.class.lambda
	if l == nil || l.over == nil {
		return false, false
	}
	list, all := d.c.chooserIn(d.env).instances(l.over, nil)
	if !all || len(list) != 1 {
		return true, true // the other arguments say what is meant
	}
	inst, f := list[0], p.Elem
	if len(f.Params) != len(inst.params) {
		return false, true
	}
	for i := range f.Params {
		if !d.typ(f.Params[i].Type, qt(inst.params[i].q.T), false) {
			return false, true
		}
	}
	return d.typ(f.Elem, inst.ret, false), true
}

func flattenPacks(args []boundArg) []boundArg {
	var out []boundArg
	for _, a := range args {
		if a.isPack {
			out = append(out, a.pack...)
		} else {
			out = append(out, a)
		}
	}
	return out
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
