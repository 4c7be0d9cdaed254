package msl

// declParser parses declarations.
type declParser struct {
	in          *cursor
	classes     *classParser
	declarators *declaratorParser
	exprs       *exprParser
	names       *nameParser
	nodes       *nodes
	scopes      *scopes
	stmts       *stmtParser
	types       *typeParser
}

// declaration parses a declaration and appends what it declares, several VarDecls for `int a, *b;`.
func (p *declParser) declaration(w where, out *[]Decl) {
	if !p.in.enter() {
		return
	}
	defer p.in.leave()
	switch p.in.kind() {
	case tSemi:
		p.in.advance()
		return
	case tPragma:
		*out = append(*out, p.stmts.pragmaStmt())
		return
	case kTemplate:
		p.template(w, out)
		return
	case kExtern:
		if p.in.peek(1) == kTemplate {
			at := p.in.base()
			p.in.i += 2
			p.instantiation(at, true, w, out)
			return
		}
		if p.in.peek(1) == tString && p.scopes.block == 0 && w == inNamespace {
			p.linkage(out)
			return
		}
	case kInline:
		if p.in.peek(1) == kNamespace {
			p.in.advance()
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
		p.in.errorf(NotInMetal, "inline assembly is not part of the Metal Shading Language")
		return
	case tIdent:
		if p.in.tok().text == "_Static_assert" {
			*out = append(*out, p.staticAssert())
			return
		}
		if (p.in.tok().text == "concept" || p.in.tok().text == "requires") && p.scopes.lookup(p.in.tok().sym).kind == nkNone {
			p.in.errorf(NotInMetal, "concepts are not part of the Metal Shading Language")
			return
		}
	}
	p.simpleDeclaration(w, tmplNone, out)
}

// staticAssert parses static_assert(cond, "text");
func (p *declParser) staticAssert() Decl {
	d := &StaticAssertDecl{declNode: declNode{p.in.base()}}
	p.in.advance()
	p.in.expect(tLParen, "after static_assert")
	d.Cond = p.exprs.condExpr()
	if p.in.accept(tComma) {
		if p.in.kind() != tString {
			p.in.errorf(UnexpectedToken, "the message of static_assert is not a string")
			return d
		}
		d.Msg = p.exprs.stringLit().Value
	}
	p.in.expect(tRParen, "after static_assert's operands")
	p.in.expect(tSemi, "after static_assert")
	return d
}

// namespace parses a namespace or a namespace alias.
func (p *declParser) namespace(inline bool, out *[]Decl) {
	d := &NamespaceDecl{declNode: declNode{p.in.base()}, Inline: inline}
	p.in.advance()
	p.types.attributes(nil)
	sym := int32(0)
	if p.in.kind() == tIdent {
		d.Name, sym = p.in.tok().text, p.in.tok().sym
		p.in.advance()
	}
	if sym != 0 && p.in.accept(tAssign) {
		a := &NamespaceAliasDecl{declNode: d.declNode, Name: d.Name}
		n, info := p.names.name(false)
		if info.kind != nkNamespace && !p.in.bad {
			p.in.errorAt(n.n.At, UnknownNamespace, "'%s' is no namespace", n.n.Ident)
		}
		a.Target = &n.n
		p.scopes.declare(sym, info.entry)
		p.in.expect(tSemi, "after a namespace alias")
		*out = append(*out, a)
		return
	}
	if p.scopes.block > 0 {
		p.in.errorf(UnexpectedToken, "a namespace cannot be defined in a function")
		return
	}
	m := p.scopes.mark()
	p.scopes.openNamespace(sym, inline)
	defer p.scopes.pop(m)
	if sym != 0 && p.in.kind() == tColonColon { // namespace a::b {} or a::inline b
		inner := p.in.peek(1) == kInline
		if inner {
			p.in.advance()
		}
		p.namespace(inner, &d.Decls)
		*out = append(*out, d)
		return
	}
	if !p.in.expect(tLBrace, "after the name of a namespace") {
		return
	}
	*out = append(*out, d)
	p.declarations(&d.Decls)
	p.in.expect(tRBrace, "at the end of a namespace")
}

// linkage parses extern "C" before a declaration or several in braces. It says how the linker calls them, which is no
// part of what they mean, and opens no scope.
func (p *declParser) linkage(out *[]Decl) {
	p.in.advance()
	if s := p.exprs.stringLit().Value; s != "C" && s != "C++" {
		p.in.errorf(BadSpecifiers, "there is extern \"C\" and extern \"C++\", and no extern %q", clip(s))
		return
	}
	if p.in.accept(tLBrace) {
		p.declarations(out)
		p.in.expect(tRBrace, "at the end of extern \"C\"")
		return
	}
	p.declaration(inNamespace, out)
}

// declarations parses declarations up to the brace that ends a namespace.
func (p *declParser) declarations(out *[]Decl) {
	for p.in.kind() != tRBrace && p.in.kind() != tEOF && !p.in.over {
		at, inner := p.in.i, p.scopes.mark()
		p.declaration(inNamespace, out)
		p.scopes.pop(inner)
		if p.in.bad {
			depth := p.in.depth
			p.reset()
			p.in.depth = depth
			p.in.recover(at, false)
		}
	}
}

// reset forgets the state of function bodies and classes, after an error.
func (p *declParser) reset() {
	p.scopes.block, p.in.noGT, p.stmts.around, p.classes.late, p.classes.class = 0, false, enclosing{}, postponed{}, 0
}

// using parses a using directive, a using declaration or an alias; tmpl is set after template <...>.
func (p *declParser) using(w where, tmpl bool, out *[]Decl) {
	at := p.in.base()
	p.in.advance()
	if p.in.accept(kNamespace) {
		n, info := p.names.name(false)
		if !p.in.bad && (info.kind != nkNamespace || info.scope == nil) {
			p.in.errorAt(n.n.At, UnknownNamespace, "'%s' is no namespace", n.n.Ident)
			return
		}
		if p.scopes.block > 0 {
			p.scopes.blockUsings = append(p.scopes.blockUsings, info.scope)
		} else if p.scopes.scope.owner == p.in.f && info.scope != p.scopes.scope {
			p.scopes.scope.usings = append(p.scopes.scope.usings, info.scope)
		}
		p.types.attributes(nil)
		p.in.expect(tSemi, "after using namespace")
		*out = append(*out, &UsingDirectiveDecl{declNode: declNode{at}, Name: &n.n})
		return
	}
	if p.in.kind() == tIdent && (p.in.peek(1) == tAssign || p.in.peek(1) == tLBrack) {
		d := &AliasDecl{declNode: declNode{at}, Name: p.in.tok().text}
		sym := p.in.tok().sym
		p.in.advance()
		p.types.attributes(nil)
		p.in.expect(tAssign, "in an alias")
		sc := p.aliasType(d)
		kind := nkType
		if tmpl {
			kind = nkTypeTemplate
			if w == inClass {
				p.scopes.memberTpl[sym] = true
			}
		}
		p.scopes.declareOutside(sym, entry{kind: kind, scope: sc}, tmpl)
		p.in.expect(tSemi, "after an alias")
		*out = append(*out, d)
		return
	}
	for {
		typename := p.in.accept(kTypename)
		sym := int32(0)
		n, info := p.names.name(false)
		n.n.Typename = typename
		if typename && info.kind == nkNone {
			info.kind = nkType
		}
		if n.n.Ident != "" {
			sym = p.in.f.syms.sym(n.n.Ident)
		}
		p.in.accept(tEllipsis)
		if !p.in.bad {
			p.scopes.declare(sym, info.entry)
		}
		*out = append(*out, &UsingDecl{declNode: declNode{at}, Name: &n.n})
		if !p.in.accept(tComma) {
			break
		}
	}
	p.in.expect(tSemi, "after a using declaration")
}

// aliasType parses the type of an alias and returns its scope.
func (p *declParser) aliasType(d *AliasDecl) *scope {
	sr := p.types.specifiers(inTypeID)
	if sr.typ == nil {
		p.types.expectedType("a type")
		return nil
	}
	dr := p.declarators.declarator(sr.typ, declAbstract)
	d.Type = p.declarators.vectorOf(dr.typ, sr.specs.Attrs, dr.attrs)
	if d.Type != sr.typ {
		return nil
	}
	return sr.scope
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
func (p *declParser) simpleDeclaration(w where, tc tmplCtx, out *[]Decl) {
	at := p.in.base()
	p.classes.pendingTmpl = tc
	sr := p.types.specifiers(w)
	p.classes.pendingTmpl = tmplNone
	if p.in.bad {
		return
	}
	if sr.defines != nil {
		p.attachAttrs(&sr)
		_, isEnum := sr.defines.(*EnumDecl) // its names are declared with it, though it may have none
		if isEnum || sr.typ.Kind == TypeNamed || p.in.kind() == tSemi {
			*out = append(*out, sr.defines)
		}
	}
	if p.in.kind() == tSemi && (sr.defines != nil || sr.typ == nil || !sr.special() && sr.typ.Kind != TypeClass) {
		p.emptyDeclaration(w, &sr)
		return
	}
	if sr.typ == nil && !sr.special() {
		p.types.noType(&sr)
		return
	}
	if w == inBlock && !sr.special() && sr.typ.Kind == TypeAuto && p.in.bindingFollows() {
		p.binding(&sr, at, out)
		return
	}
	for first := true; !p.in.bad; first = false {
		var d declared
		switch {
		case sr.special():
			p.specialDeclarator(&sr, &d)
		case w == inClass && p.in.kind() == tColon: // a bit-field without a name
			d.at, d.typ = p.in.pos(), sr.typ
		default:
			d = p.declarators.declarator(sr.typ, declNamed)
		}
		if p.in.bad {
			return
		}
		d.attrs = p.types.attributes(d.attrs)
		if d.fn != nil && !sr.typedef {
			if p.function(w, tc, &sr, &d, first, out) {
				return
			}
		} else if !p.variable(w, tc, &sr, &d, at, out) {
			return
		}
		if p.in.kind() != tComma {
			break
		}
		p.in.advance()
	}
	p.in.expect(tSemi, "after a declaration")
}

// binding parses [a, b] = x; after auto, auto & or auto &&.
func (p *declParser) binding(sr *specResult, at Base, out *[]Decl) {
	b := &BindingDecl{declNode: declNode{at}}
	v, names, syms := p.boundNames(sr, at)
	b.Var, b.Names = v, names
	if p.in.kind() == tLParen {
		p.in.errorf(BadDeclarator, "a structured binding is initialised by = or {}")
		return
	}
	p.initializer(v)
	for _, s := range syms {
		p.scopes.declare(s, entry{kind: nkValue})
	}
	*out = append(*out, b)
	p.in.expect(tSemi, "after a declaration")
}

// boundNames parses [a, b] after auto, and returns the variable without a name that they are parts of.
func (p *declParser) boundNames(sr *specResult, at Base) (v *VarDecl, names []*Name, syms []int32) {
	v = &VarDecl{declNode: declNode{at}, Specs: sr.specs, Type: p.declarators.pointers(sr.typ)}
	v.Name = &Name{Base: at, NamePart: NamePart{PartAt: at.At, Ident: "(binding)"}}
	p.in.expect(tLBrack, "before the names of a binding")
	for p.in.kind() == tIdent {
		n := p.nodes.newName()
		n.n = Name{Base: p.in.base(), NamePart: NamePart{PartAt: p.in.pos(), Ident: p.in.tok().text}}
		names, syms = append(names, &n.n), append(syms, p.in.tok().sym)
		p.in.advance()
		if !p.in.accept(tComma) {
			break
		}
	}
	p.in.expect(tRBrack, "after the names of a binding")
	return v, names, syms
}

// attachAttrs gives a class the attributes that stand before it.
func (p *declParser) attachAttrs(sr *specResult) {
	if s, ok := sr.defines.(*ClassDecl); ok && len(sr.specs.Attrs) > 0 {
		s.Attrs = append(s.Attrs, sr.specs.Attrs...)
	}
}

// emptyDeclaration handles specifiers followed by a semicolon.
func (p *declParser) emptyDeclaration(w where, sr *specResult) {
	if s, ok := sr.defines.(*ClassDecl); ok && s.Name == nil && s.Complete {
		if w != inClass && s.Key != "union" {
			p.in.errorAt(s.At, BadClass, "a %s without a name declares nothing here", s.Key)
			return
		}
		s.Anonymous = true
		for _, m := range s.Members {
			if v, ok := m.(*VarDecl); ok && v.Name != nil {
				p.scopes.declare(p.in.f.syms.sym(v.Name.Ident), entry{kind: nkValue})
			}
		}
	}
	if sr.defines == nil && sr.anything && !sr.specs.Friend {
		p.in.errorf(BadSpecifiers, "this declares nothing")
		return
	}
	p.in.advance()
}

// specialDeclarator reads the declarator of a constructor or a conversion function.
func (p *declParser) specialDeclarator(sr *specResult, d *declared) {
	d.at = p.in.pos()
	n, info := p.names.name(false)
	d.name, d.info = &n.n, info
	if p.in.kind() != tLParen {
		p.in.expect(tLParen, "after the name of a function")
		return
	}
	ret := sr.typ
	if ret == nil {
		ret = p.nodes.newType(d.at, TypeBad)
	}
	p.declarators.declaratorIn(d, ret, declNamed, n)
}

// variable makes a VarDecl or AliasDecl of a declarator and reads its initialiser.
func (p *declParser) variable(w where, tc tmplCtx, sr *specResult, d *declared, at Base, out *[]Decl) bool {
	if sr.special() {
		p.in.errorAt(d.at, BadDeclarator, "this is no function")
		return false
	}
	if sr.typedef {
		if d.sym == 0 {
			p.in.errorAt(d.at, BadDeclarator, "a typedef needs a plain name")
			return false
		}
		a := &AliasDecl{declNode: declNode{Base{d.at}}, Name: d.name.Ident}
		a.Type = p.declarators.vectorOf(d.typ, sr.specs.Attrs, d.attrs)
		e := entry{kind: nkType}
		if a.Type == sr.typ {
			e.scope = sr.scope
		}
		p.scopes.declare(d.sym, e)
		*out = append(*out, a)
		return true
	}
	if w == inClass && d.name == nil && p.in.accept(tColon) { // a bit-field that only takes room
		v := &VarDecl{declNode: declNode{Base{d.at}}, Specs: sr.specs, Type: d.typ, Field: true}
		v.Bits = p.exprs.condExpr()
		*out = append(*out, v)
		return !p.in.bad
	}
	if d.name == nil {
		p.in.errorAt(d.at, BadDeclarator, "this declares no name")
		return false
	}
	if p.in.kind() == tLt && tc != tmplNone {
		p.in.errorf(BadTemplate, "'%s' is no template", d.name.Ident)
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
			p.scopes.memberTpl[d.sym] = true
		}
	}
	if tc != tmplInstantiate {
		p.scopes.declareOutside(d.sym, e, tc != tmplNone)
	}
	*out = append(*out, v)
	if v.Field && p.in.accept(tColon) {
		v.Bits = p.exprs.condExpr()
	}
	p.initializer(v)
	v.Specs.Attrs = p.types.attributes(v.Specs.Attrs)
	return !p.in.bad
}

// initializer reads a variable's initialiser.
func (p *declParser) initializer(v *VarDecl) {
	switch p.in.kind() {
	case tAssign:
		p.in.advance()
		v.Style = InitCopy
		v.Init = p.exprs.initClause()
	case tLBrace:
		v.Style = InitBrace
		v.Init = p.exprs.braceInit()
	case tLParen:
		v.Style = InitDirect
		v.Args = p.exprs.callArgs()
		if len(v.Args) == 0 && !p.in.bad {
			p.in.errorf(ExpectedExpression, "expected an expression between the parentheses")
		}
	}
}

// function makes a FuncDecl of a declarator and reads its body, now or when the class is complete. It returns true
// if the declaration ends here: a body needs no semicolon.
func (p *declParser) function(w where, tc tmplCtx, sr *specResult, d *declared, first bool, out *[]Decl) bool {
	f := &FuncDecl{declNode: declNode{Base{d.at}}, Specs: sr.specs, Name: d.name, Params: d.fn.params}
	f.Quals = d.fn.quals
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
	case d.name.Operator != NoOperator:
		f.Kind = FuncOperator
	}
	if d.sym != 0 && tc != tmplInstantiate && tc != tmplSpecial && !sr.specs.Friend {
		e := entry{kind: nkValue}
		if tc == tmplPrimary {
			e.kind = nkValueTemplate
			if w == inClass {
				p.scopes.memberTpl[d.sym] = true
			}
		}
		p.scopes.declareOutside(d.sym, e, tc != tmplNone)
	}
	*out = append(*out, f)
	if p.in.kind() == tAssign {
		p.in.advance()
		switch {
		case p.in.accept(kDefault):
			f.Default = true
		case p.in.accept(kDelete):
			f.Delete = true
		default:
			p.in.errorf(NotInMetal, "virtual functions are not part of the Metal Shading Language")
		}
		return false
	}
	if p.in.kind() != tLBrace && !(p.in.kind() == tColon && sr.ctor) {
		if p.in.kind() == kTry {
			p.in.errorf(NotInMetal, "exceptions are not part of the Metal Shading Language")
		}
		return false
	}
	if p.scopes.block > 0 && p.classes.late.depth == 0 {
		p.in.errorf(UnexpectedToken, "a function cannot be defined in another one")
		return true
	}
	if !first || tc == tmplInstantiate {
		p.in.errorf(UnexpectedToken, "a function's body cannot stand here")
		return true
	}
	if p.classes.late.depth > 0 {
		p.classes.postpone(f, d)
		return true
	}
	m := p.scopes.mark()
	if d.info.qualified && d.info.qual != nil {
		p.scopes.scope = p.scopes.within(d.info.qual)
		p.scopes.level = max(p.scopes.level, p.scopes.scope.level)
	}
	p.body(f, d.fn.syms)
	p.scopes.pop(m)
	return true
}

// body reads the initialiser list and the body of a function.
func (p *declParser) body(f *FuncDecl, syms []int32) {
	m := p.scopes.push()
	for _, sym := range syms {
		p.scopes.declareLocal(sym, entry{kind: nkValue})
	}
	p.stmts.function(func() {
		if p.in.accept(tColon) {
			f.Inits = p.memberInits()
		}
		if p.in.kind() == tLBrace && !p.in.bad {
			f.Body = p.stmts.blockStmt()
		} else {
			p.in.expect(tLBrace, "before the body of a function")
		}
	})
	p.scopes.pop(m)
}

// memberInits reads a constructor's initialiser list.
func (p *declParser) memberInits() (list []MemberInit) {
	for !p.in.bad {
		n, _ := p.names.name(false)
		mi := MemberInit{At: n.n.At, Name: &n.n}
		switch p.in.kind() {
		case tLParen:
			mi.Args = p.exprs.callArgs()
		case tLBrace:
			mi.Args, mi.Braced = p.exprs.braceInit().Elems, true
		default:
			p.in.expect(tLParen, "after the name of a member")
			return list
		}
		p.in.accept(tEllipsis)
		list = append(list, mi)
		if !p.in.accept(tComma) {
			return list
		}
	}
	return list
}
