package msl

import "strings"

// declaration parses a declaration and appends what it declares, several VarDecls for `int a, *b;`.
func (p *parser) declaration(w where, out *[]Decl) {
	if !p.enter() {
		return
	}
	defer p.leave()
	switch p.kind() {
	case tSemi:
		p.advance()
		return
	case tPragma:
		*out = append(*out, p.pragmaStmt())
		return
	case kTemplate:
		p.template(w, out)
		return
	case kExtern:
		if p.peek(1) == kTemplate {
			at := p.base()
			p.i += 2
			p.instantiation(at, true, w, out)
			return
		}
		if p.peek(1) == tString && p.block == 0 && w == inNamespace {
			p.linkage(out)
			return
		}
	case kInline:
		if p.peek(1) == kNamespace {
			p.advance()
			p.namespace(true, out)
			return
		}
	case kNamespace:
		p.namespace(false, out)
		return
	case kUsing:
		p.using(w, false, out)
		return
	case kStaticAssert:
		*out = append(*out, p.staticAssert())
		return
	case kAsm, kAsmGNU:
		p.errorf(NotInMetal, "inline assembly is not part of the Metal Shading Language")
		return
	case tIdent:
		if p.tok().text == "_Static_assert" {
			*out = append(*out, p.staticAssert())
			return
		}
		if (p.tok().text == "concept" || p.tok().text == "requires") && p.lookup(p.tok().sym).kind == nkNone {
			p.errorf(NotInMetal, "concepts are not part of the Metal Shading Language")
			return
		}
	}
	p.simpleDeclaration(w, tmplNone, out)
}

// staticAssert parses static_assert(cond, "text");
func (p *parser) staticAssert() Decl {
	d := &StaticAssertDecl{declNode: declNode{p.base()}}
	p.advance()
	p.expect(tLParen, "after static_assert")
	d.Cond = p.condExpr()
	if p.accept(tComma) {
		if p.kind() != tString {
			p.errorf(UnexpectedToken, "the message of static_assert is not a string")
			return d
		}
		d.Msg = p.stringLit().Value
	}
	p.expect(tRParen, "after static_assert's operands")
	p.expect(tSemi, "after static_assert")
	return d
}

// namespace parses a namespace or a namespace alias.
func (p *parser) namespace(inline bool, out *[]Decl) {
	d := &NamespaceDecl{declNode: declNode{p.base()}, Inline: inline}
	p.advance()
	p.attributes(nil)
	sym := int32(0)
	if p.kind() == tIdent {
		d.Name, sym = p.tok().text, p.tok().sym
		p.advance()
	}
	if sym != 0 && p.accept(tAssign) {
		a := &NamespaceAliasDecl{declNode: d.declNode, Name: d.Name}
		n, info := p.name(false)
		if info.kind != nkNamespace && !p.bad {
			p.errorAt(n.n.At, UnknownNamespace, "'%s' is no namespace", n.n.Ident)
		}
		a.Target = &n.n
		p.declare(sym, info.entry)
		p.expect(tSemi, "after a namespace alias")
		*out = append(*out, a)
		return
	}
	if p.block > 0 {
		p.errorf(UnexpectedToken, "a namespace cannot be defined in a function")
		return
	}
	m := p.mark()
	p.openNamespace(sym, inline)
	defer p.pop(m)
	if sym != 0 && p.kind() == tColonColon { // namespace a::b {} or a::inline b
		inner := p.peek(1) == kInline
		if inner {
			p.advance()
		}
		p.namespace(inner, &d.Decls)
		*out = append(*out, d)
		return
	}
	if !p.expect(tLBrace, "after the name of a namespace") {
		return
	}
	*out = append(*out, d)
	p.declarations(&d.Decls)
	p.expect(tRBrace, "at the end of a namespace")
}

// linkage parses extern "C" before a declaration or several in braces. It says how the linker calls them, which is no
// part of what they mean, and opens no scope.
func (p *parser) linkage(out *[]Decl) {
	p.advance()
	if s := p.stringLit().Value; s != "C" && s != "C++" {
		p.errorf(BadSpecifiers, "there is extern \"C\" and extern \"C++\", and no extern %q", clip(s))
		return
	}
	if p.accept(tLBrace) {
		p.declarations(out)
		p.expect(tRBrace, "at the end of extern \"C\"")
		return
	}
	p.declaration(inNamespace, out)
}

// declarations parses declarations up to the brace that ends a namespace.
func (p *parser) declarations(out *[]Decl) {
	for p.kind() != tRBrace && p.kind() != tEOF && !p.over {
		at, inner := p.i, p.mark()
		p.declaration(inNamespace, out)
		p.pop(inner)
		if p.bad {
			depth := p.depth
			p.reset()
			p.depth = depth
			p.recover(at, false)
		}
	}
}

// reset forgets the state of function bodies and classes, after an error.
func (p *parser) reset() {
	p.block, p.noGT, p.loops, p.switches, p.lateDepth, p.late, p.class = 0, false, 0, 0, 0, nil, classCtx{}
}

// using parses a using directive, a using declaration or an alias; tmpl is set after template <...>.
func (p *parser) using(w where, tmpl bool, out *[]Decl) {
	at := p.base()
	p.advance()
	if p.accept(kNamespace) {
		n, info := p.name(false)
		if !p.bad && (info.kind != nkNamespace || info.scope == nil) {
			p.errorAt(n.n.At, UnknownNamespace, "'%s' is no namespace", n.n.Ident)
			return
		}
		if p.block > 0 {
			p.blockUsings = append(p.blockUsings, info.scope)
		} else if p.scope.owner == p.f && info.scope != p.scope {
			p.scope.usings = append(p.scope.usings, info.scope)
		}
		p.attributes(nil)
		p.expect(tSemi, "after using namespace")
		*out = append(*out, &UsingDirectiveDecl{declNode: declNode{at}, Name: &n.n})
		return
	}
	if p.kind() == tIdent && (p.peek(1) == tAssign || p.peek(1) == tLBrack) {
		d := &AliasDecl{declNode: declNode{at}, Name: p.tok().text}
		sym := p.tok().sym
		p.advance()
		p.attributes(nil)
		p.expect(tAssign, "in an alias")
		sc := p.aliasType(d)
		kind := nkType
		if tmpl {
			kind = nkTypeTemplate
			if w == inClass {
				p.memberTpl[sym] = true
			}
		}
		p.declareOutside(sym, entry{kind: kind, scope: sc}, tmpl)
		p.expect(tSemi, "after an alias")
		*out = append(*out, d)
		return
	}
	for {
		typename := p.accept(kTypename)
		sym := int32(0)
		n, info := p.name(false)
		n.n.Typename = typename
		if typename && info.kind == nkNone {
			info.kind = nkType
		}
		if n.n.Ident != "" {
			sym = p.f.syms.sym(n.n.Ident)
		}
		p.accept(tEllipsis)
		if !p.bad {
			p.declare(sym, info.entry)
		}
		*out = append(*out, &UsingDecl{declNode: declNode{at}, Name: &n.n})
		if !p.accept(tComma) {
			break
		}
	}
	p.expect(tSemi, "after a using declaration")
}

// aliasType parses the type of an alias and returns its scope.
func (p *parser) aliasType(d *AliasDecl) *scope {
	sr := p.specifiers(inTypeID)
	if sr.typ == nil {
		p.expectedType("a type")
		return nil
	}
	dr := p.declarator(sr.typ, declAbstract)
	d.Type = p.vectorOf(dr.typ, sr.specs.Attrs, dr.attrs)
	if d.Type != sr.typ {
		return nil
	}
	return sr.scope
}

// vectorOf returns the type that a typedef or alias names if clang's ext_vector_type(n) stands among its attributes:
// the vector of n components.
func (p *parser) vectorOf(t *TypeExpr, lists ...[]Attr) *TypeExpr {
	for _, list := range lists {
		for i := range list {
			switch a := &list[i]; strings.Trim(a.Name, "_") {
			case "ext_vector_type":
				if len(a.Args) != 1 {
					p.errorAt(a.At, BadAttribute, "ext_vector_type takes the number of components")
					return t
				}
				v := p.newType(a.At, TypeNamed)
				v.Name = &Name{Base: Base{a.At}, Quals: []NamePart{{PartAt: a.At, Ident: "metal"}}, NamePart: NamePart{
					PartAt: a.At, Ident: "vec", HasArgs: true, Args: []TemplateArg{{Type: t}, {X: a.Args[0]}},
				}}
				return v
			case "vector_size":
				p.errorAt(a.At, NotInMetal, "vector_size is not part of the Metal Shading Language: write vec<type, n>")
				return t
			}
		}
	}
	return t
}

// declareOutside declares a name that stands after template <...>: outside the level of its parameters.
func (p *parser) declareOutside(sym int32, e entry, tmpl bool) {
	if !tmpl || p.block == 0 {
		p.declare(sym, e)
		return
	}
	p.level--
	p.declare(sym, e)
	p.level++
}

// tmplCtx says how a declaration stands to a template.
type tmplCtx uint8

const (
	tmplNone tmplCtx = iota
	tmplPrimary
	tmplSpecial     // template <>
	tmplInstantiate // an explicit instantiation
)

// simpleDeclaration parses specifiers and declarators: variables, functions, classes, typedefs.
func (p *parser) simpleDeclaration(w where, tc tmplCtx, out *[]Decl) {
	at := p.base()
	p.pendingTmpl = tc
	sr := p.specifiers(w)
	p.pendingTmpl = tmplNone
	if p.bad {
		return
	}
	if sr.defines != nil {
		p.attachAttrs(&sr)
		_, isEnum := sr.defines.(*EnumDecl) // its names are declared with it, though it may have none
		if isEnum || sr.typ.Kind == TypeNamed || p.kind() == tSemi {
			*out = append(*out, sr.defines)
		}
	}
	if p.kind() == tSemi && (sr.defines != nil || sr.typ == nil || !sr.special() && sr.typ.Kind != TypeStruct) {
		p.emptyDeclaration(w, &sr)
		return
	}
	if sr.typ == nil && !sr.special() {
		p.noType(&sr)
		return
	}
	if w == inBlock && !sr.special() && sr.typ.Kind == TypeAuto && p.bindingFollows() {
		p.binding(&sr, at, out)
		return
	}
	for first := true; !p.bad; first = false {
		var d declr
		switch {
		case sr.special():
			p.specialDeclarator(&sr, &d)
		case w == inClass && p.kind() == tColon: // a bit-field without a name
			d.at, d.typ = p.pos(), sr.typ
		default:
			d = p.declarator(sr.typ, declNamed)
		}
		if p.bad {
			return
		}
		d.attrs = p.attributes(d.attrs)
		if d.fn != nil && !sr.typedef {
			if p.function(w, tc, &sr, &d, first, out) {
				return
			}
		} else if !p.variable(w, tc, &sr, &d, at, out) {
			return
		}
		if p.kind() != tComma {
			break
		}
		p.advance()
	}
	p.expect(tSemi, "after a declaration")
}

// bindingFollows tells whether the names of a structured binding follow auto.
func (p *parser) bindingFollows() bool {
	switch p.kind() {
	case tLBrack:
		return p.peek(1) == tIdent
	case tAnd, tLAnd:
		return p.peek(1) == tLBrack
	}
	return false
}

// binding parses [a, b] = x; after auto, auto & or auto &&.
func (p *parser) binding(sr *specResult, at Base, out *[]Decl) {
	b := &BindingDecl{declNode: declNode{at}}
	v, names, syms := p.boundNames(sr, at)
	b.Var, b.Names = v, names
	if p.kind() == tLParen {
		p.errorf(BadDeclarator, "a structured binding is initialised by = or {}")
		return
	}
	p.initializer(v)
	for _, s := range syms {
		p.declare(s, entry{kind: nkValue})
	}
	*out = append(*out, b)
	p.expect(tSemi, "after a declaration")
}

// boundNames parses [a, b] after auto, and returns the variable without a name that they are parts of.
func (p *parser) boundNames(sr *specResult, at Base) (v *VarDecl, names []*Name, syms []int32) {
	v = &VarDecl{declNode: declNode{at}, Specs: sr.specs, Type: p.pointers(sr.typ)}
	v.Name = &Name{Base: at, NamePart: NamePart{PartAt: at.At, Ident: "(binding)"}}
	p.expect(tLBrack, "before the names of a binding")
	for p.kind() == tIdent {
		n := p.newName()
		n.n = Name{Base: p.base(), NamePart: NamePart{PartAt: p.pos(), Ident: p.tok().text}}
		names, syms = append(names, &n.n), append(syms, p.tok().sym)
		p.advance()
		if !p.accept(tComma) {
			break
		}
	}
	p.expect(tRBrack, "after the names of a binding")
	return v, names, syms
}

// attachAttrs gives a class the attributes that stand before it.
func (p *parser) attachAttrs(sr *specResult) {
	if s, ok := sr.defines.(*StructDecl); ok && len(sr.specs.Attrs) > 0 {
		s.Attrs = append(s.Attrs, sr.specs.Attrs...)
	}
}

// emptyDeclaration handles specifiers followed by a semicolon.
func (p *parser) emptyDeclaration(w where, sr *specResult) {
	if s, ok := sr.defines.(*StructDecl); ok && s.Name == nil && s.Complete {
		if w != inClass && s.Key != "union" {
			p.errorAt(s.At, BadClass, "a %s without a name declares nothing here", s.Key)
			return
		}
		s.Anonymous = true
		for _, m := range s.Members {
			if v, ok := m.(*VarDecl); ok && v.Name != nil {
				p.declare(p.f.syms.sym(v.Name.Ident), entry{kind: nkValue})
			}
		}
	}
	if sr.defines == nil && sr.anything && !sr.specs.Friend {
		p.errorf(BadSpecifiers, "this declares nothing")
		return
	}
	p.advance()
}

// noType reports a declaration without a type.
func (p *parser) noType(sr *specResult) {
	switch k := p.kind(); {
	case k == tIdent && p.tok().sym != 0 && (p.peek(1) == tLParen && sr.anything || p.peek(1) == tAssign && sr.anything):
		p.errorf(UnknownType, "%s has no type", p.tok().name())
	case k == tIdent && p.lookup(p.tok().sym).kind == nkNone || k == tIdent && p.peek(1) == tColonColon:
		p.unknownType()
	case k == kGoto, k == kTry, k == kThrow, k == kNew, k == kDelete:
		p.errorf(NotInMetal, "'%s' is not part of the Metal Shading Language", p.tok().text)
	case k == tTilde:
		p.errorf(NotInMetal, "destructors are not part of the Metal Shading Language")
	case k == tIdent:
		p.errorf(UnknownType, "%s is not a type", p.tok().name())
	default:
		p.errorf(UnexpectedToken, "expected a declaration, found %s", p.tok().name())
	}
}

// unknownType reports the name at hand, which is that of no type.
func (p *parser) unknownType() {
	name := p.nameText()
	if strings.TrimPrefix(name, "metal::") == "sampler" {
		p.errorf(Unsupported, "samplers and textures are not supported: pass a buffer and index it")
		return
	}
	p.errorf(UnknownType, "unknown type name '%s'", name)
}

// nameText returns the name at hand, without template arguments, for a message.
func (p *parser) nameText() string {
	end := p.i
	for end+2 < len(p.toks) && p.toks[end+1].kind == tColonColon && p.toks[end+2].kind == tIdent {
		end += 2
	}
	name := ""
	for _, t := range p.toks[p.i : end+1] {
		name += t.text
	}
	return clip(name)
}

// expectedType reports that there is no type where one must be.
func (p *parser) expectedType(what string) {
	if p.kind() == tIdent {
		p.errorf(UnknownType, "expected %s: '%s' is not known as a type", what, p.nameText())
		return
	}
	p.errorf(UnknownType, "expected %s, found %s", what, p.tok().name())
}

// specialDeclarator reads the declarator of a constructor or a conversion function.
func (p *parser) specialDeclarator(sr *specResult, d *declr) {
	d.at = p.pos()
	n, info := p.name(false)
	d.name, d.info = &n.n, info
	if p.kind() != tLParen {
		p.expect(tLParen, "after the name of a function")
		return
	}
	ret := sr.typ
	if ret == nil {
		ret = p.newType(d.at, TypeBad)
	}
	p.declaratorIn(d, ret, declNamed, n)
}

// variable makes a VarDecl or AliasDecl of a declarator and reads its initialiser.
func (p *parser) variable(w where, tc tmplCtx, sr *specResult, d *declr, at Base, out *[]Decl) bool {
	if sr.special() {
		p.errorAt(d.at, BadDeclarator, "this is no function")
		return false
	}
	if sr.typedef {
		if d.sym == 0 {
			p.errorAt(d.at, BadDeclarator, "a typedef needs a plain name")
			return false
		}
		a := &AliasDecl{declNode: declNode{Base{d.at}}, Name: d.name.Ident}
		a.Type = p.vectorOf(d.typ, sr.specs.Attrs, d.attrs)
		e := entry{kind: nkType}
		if a.Type == sr.typ {
			e.scope = sr.scope
		}
		p.declare(d.sym, e)
		*out = append(*out, a)
		return true
	}
	if w == inClass && d.name == nil && p.accept(tColon) { // a bit-field that only takes room
		v := &VarDecl{declNode: declNode{Base{d.at}}, Specs: sr.specs, Type: d.typ, Field: true}
		v.Bits = p.condExpr()
		*out = append(*out, v)
		return !p.bad
	}
	if d.name == nil {
		p.errorAt(d.at, BadDeclarator, "this declares no name")
		return false
	}
	if p.kind() == tLt && tc != tmplNone {
		p.errorf(BadTemplate, "'%s' is no template", d.name.Ident)
		return false
	}
	v := &VarDecl{declNode: declNode{Base{d.at}}, Specs: sr.specs, Type: d.typ, Name: d.name}
	if len(d.attrs) > 0 {
		v.Specs.Attrs = append(append([]Attr(nil), sr.specs.Attrs...), d.attrs...)
	}
	v.Field = w == inClass && !sr.specs.Static && !sr.specs.Friend
	e := entry{kind: nkValue}
	if tc == tmplPrimary {
		e.kind = nkValueTemplate
		if w == inClass && d.sym != 0 {
			p.memberTpl[d.sym] = true
		}
	}
	if tc != tmplInstantiate {
		p.declareOutside(d.sym, e, tc != tmplNone)
	}
	*out = append(*out, v)
	if v.Field && p.accept(tColon) {
		v.Bits = p.condExpr()
	}
	p.initializer(v)
	v.Specs.Attrs = p.attributes(v.Specs.Attrs)
	return !p.bad
}

// initializer reads a variable's initialiser.
func (p *parser) initializer(v *VarDecl) {
	switch p.kind() {
	case tAssign:
		p.advance()
		v.Style = InitCopy
		v.Init = p.initClause()
	case tLBrace:
		v.Style = InitBrace
		v.Init = p.braceInit()
	case tLParen:
		v.Style = InitDirect
		v.Args = p.callArgs()
		if len(v.Args) == 0 && !p.bad {
			p.errorf(ExpectedExpression, "expected an expression between the parentheses")
		}
	}
}

// function makes a FuncDecl of a declarator and reads its body, now or when the class is complete. It returns true
// if the declaration ends here: a body needs no semicolon.
func (p *parser) function(w where, tc tmplCtx, sr *specResult, d *declr, first bool, out *[]Decl) bool {
	f := &FuncDecl{declNode: declNode{Base{d.at}}, Specs: sr.specs, Name: d.name, Params: d.fn.params}
	f.Variadic, f.Quals, f.LRef, f.RRef = d.fn.variadic, d.fn.quals, d.fn.lref, d.fn.rref
	f.Ret = d.typ.Elem
	if len(d.attrs) > 0 {
		f.Specs.Attrs = append(append([]Attr(nil), sr.specs.Attrs...), d.attrs...)
		for _, a := range d.attrs {
			f.Specs.Kernel = f.Specs.Kernel || a.Name == "kernel"
		}
	}
	switch {
	case sr.ctor:
		f.Kind, f.Ret = FuncConstructor, nil
	case sr.guide:
		f.Kind = FuncGuide
	case d.name.Conv != nil:
		f.Kind, f.Ret = FuncConversion, nil
	case d.name.Op != OpNone:
		f.Kind = FuncOperator
	}
	if d.sym != 0 && tc != tmplInstantiate && tc != tmplSpecial && !sr.specs.Friend {
		e := entry{kind: nkValue}
		if tc == tmplPrimary {
			e.kind = nkValueTemplate
			if w == inClass {
				p.memberTpl[d.sym] = true
			}
		}
		p.declareOutside(d.sym, e, tc != tmplNone)
	}
	*out = append(*out, f)
	if p.kind() == tAssign {
		p.advance()
		switch {
		case p.accept(kDefault):
			f.Default = true
		case p.accept(kDelete):
			f.Delete = true
		default:
			p.errorf(NotInMetal, "virtual functions are not part of the Metal Shading Language")
		}
		return false
	}
	if p.kind() != tLBrace && !(p.kind() == tColon && sr.ctor) {
		if p.kind() == kTry {
			p.errorf(NotInMetal, "exceptions are not part of the Metal Shading Language")
		}
		return false
	}
	if p.block > 0 && p.lateDepth == 0 {
		p.errorf(UnexpectedToken, "a function cannot be defined in another one")
		return true
	}
	if !first || tc == tmplInstantiate {
		p.errorf(UnexpectedToken, "a function's body cannot stand here")
		return true
	}
	if p.lateDepth > 0 {
		p.postpone(f, d)
		return true
	}
	m := p.mark()
	if d.info.qualified && d.info.qual != nil {
		p.scope = p.within(d.info.qual)
		p.level = max(p.level, p.scope.level)
	}
	p.body(f, d.fn.syms)
	p.pop(m)
	return true
}

// body reads the initialiser list and the body of a function.
func (p *parser) body(f *FuncDecl, syms []int32) {
	m := p.push()
	for _, sym := range syms {
		p.declareLocal(sym, entry{kind: nkValue})
	}
	block, loops, switches, noGT, lateDepth, late := p.block, p.loops, p.switches, p.noGT, p.lateDepth, p.late
	p.block, p.loops, p.switches, p.noGT, p.lateDepth, p.late = p.block+1, 0, 0, false, 0, nil
	if p.accept(tColon) {
		f.Inits = p.memberInits()
	}
	if p.kind() == tLBrace && !p.bad {
		f.Body = p.blockStmt()
	} else {
		p.expect(tLBrace, "before the body of a function")
	}
	p.block, p.loops, p.switches, p.noGT, p.lateDepth, p.late = block, loops, switches, noGT, lateDepth, late
	p.pop(m)
}

// memberInits reads a constructor's initialiser list.
func (p *parser) memberInits() (list []MemberInit) {
	for !p.bad {
		n, _ := p.name(false)
		mi := MemberInit{At: n.n.At, Name: &n.n}
		switch p.kind() {
		case tLParen:
			mi.Args = p.callArgs()
		case tLBrace:
			mi.Args, mi.Braced = p.braceInit().Elems, true
		default:
			p.expect(tLParen, "after the name of a member")
			return list
		}
		p.accept(tEllipsis)
		list = append(list, mi)
		if !p.accept(tComma) {
			return list
		}
	}
	return list
}
