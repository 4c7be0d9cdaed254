package msl

// classCtx is the class whose members are being parsed.
type classCtx struct {
	sym int32 // its name
}

// lateBody is the body of a method: C++ parses it when the class is complete.
type lateBody struct {
	f      *FuncDecl
	start  int
	syms   []int32
	scope  *scope
	level  int32
	block  int
	class  classCtx
	locals []local
}

// postpone skips a method's initialiser list and body, to be parsed at the end of the outermost class.
func (p *parser) postpone(f *FuncDecl, d *declr) {
	p.late = append(p.late, lateBody{
		f: f, start: p.i, syms: d.fn.syms, scope: p.scope, level: p.level, block: p.block, class: p.class,
		locals: append([]local(nil), p.locals[p.lateBase:]...),
	})
	if p.accept(tColon) {
		for {
			for p.kind() == tIdent || p.kind() == tColonColon {
				p.advance()
			}
			if p.kind() == tLt {
				p.templateArgs()
			}
			if p.bad || p.kind() != tLParen && p.kind() != tLBrace || !p.skipBalanced() {
				p.expect(tLParen, "after the name of a member")
				return
			}
			p.accept(tEllipsis)
			if !p.accept(tComma) {
				break
			}
		}
	}
	if p.kind() != tLBrace {
		p.expect(tLBrace, "before the body of a function")
		return
	}
	if !p.skipBalanced() {
		p.errorf(UnexpectedToken, "expected '}' at the end of a function, found the end of the text")
	}
}

// parseLate parses the postponed bodies.
func (p *parser) parseLate(list []lateBody) {
	end := p.i
	for i := range list {
		l := &list[i]
		m, class, block, bad := p.mark(), p.class, p.block, p.bad
		for _, x := range l.locals {
			p.level = x.level
			p.declareLocal(x.sym, x.e)
		}
		p.i, p.bad, p.scope, p.level, p.block, p.class = l.start, false, l.scope, l.level, l.block, l.class
		p.body(l.f, l.syms)
		if p.over {
			return
		}
		p.pop(m)
		p.class, p.block, p.bad = class, block, bad
	}
	p.i = end
}

// classSpecifier reads struct X, or its definition.
func (p *parser) classSpecifier(sr *specResult, w where) {
	tc := p.pendingTmpl
	p.pendingTmpl = tmplNone
	s := &StructDecl{declNode: declNode{p.base()}, Key: p.tok().text}
	at := p.pos()
	p.advance()
	s.Attrs = p.attributes(nil)
	var info nameInfo
	sym := int32(0)
	if p.kind() == tIdent || p.kind() == tColonColon {
		s.At = p.pos()
		if p.peek(1) != tLt && p.peek(1) != tColonColon {
			sym = p.tok().sym
		}
		n, i := p.className(sym)
		s.Name, info = &n.n, i
	}
	if p.bad {
		return
	}
	if p.kind() == tIdent && p.tok().text == "final" && (p.peek(1) == tLBrace || p.peek(1) == tColon) {
		p.advance()
	}
	defines := p.kind() == tLBrace || p.kind() == tColon && w != inParam && w != inTypeID && p.peek(1) != tColon
	if w == inClass && p.kind() == tColon && !p.basesFollow() {
		defines = false // a bit-field of type struct X
	}
	if s.Name == nil && !defines {
		p.errorf(BadClass, "a %s needs a name or a body", s.Key)
		return
	}
	var sc *scope
	if old := info.scope; !defines || old != nil && sym != 0 && old.owner == p.f && tc != tmplSpecial &&
		p.declaredHere(sym, old) {
		sc = old
	}
	if defines && sc == nil || p.kind() == tSemi && sym != 0 && sc == nil {
		sc = &scope{owner: p.f}
	}
	declares := defines || p.kind() == tSemi && !sr.specs.Friend
	if declares && sym != 0 {
		kind := nkType
		if tc == tmplPrimary {
			kind = nkTypeTemplate
			if w == inClass {
				p.memberTpl[sym] = true
			}
		}
		p.declareOutside(sym, entry{kind: kind, scope: sc}, tc != tmplNone)
	}
	sr.scope = sc
	if defines {
		p.classBody(s, sc, info)
		if p.kind() == kAttribute {
			s.Attrs = p.attributes(s.Attrs)
		}
		if sym == 0 && info.scope != nil && info.scope.owner == p.f && info.scope != sc {
			info.scope.bases = append(info.scope.bases, sc) // a specialisation: its members may be the only ones
		}
	}
	if declares {
		sr.defines = s
	}
	if s.Name == nil {
		sr.typ = p.newType(at, TypeStruct)
		sr.typ.Struct = s
		return
	}
	sr.typ = p.newType(at, TypeNamed)
	sr.typ.Name, sr.typ.Tag = s.Name, true
}

// className reads a class's name. A plain one is not looked up as C++ values hide types.
func (p *parser) className(sym int32) (*nameNode, nameInfo) {
	if sym == 0 {
		return p.name(false)
	}
	n := p.newName()
	n.n = Name{Base: p.base(), NamePart: NamePart{PartAt: p.pos(), Ident: p.tok().text}}
	p.advance()
	e := p.lookup(sym)
	if !e.kind.isType() {
		e = entry{}
	}
	return n, nameInfo{entry: e}
}

// declaredHere tells whether sym was declared in the scope at hand with the scope sc: a forward declaration.
func (p *parser) declaredHere(sym int32, sc *scope) bool {
	if p.block > 0 {
		return p.bind[sym] != 0 && p.locals[p.bind[sym]-1].level == p.level && p.lookup(sym).scope == sc
	}
	return p.scope.names[sym].scope == sc
}

// basesFollow tells whether the colon at hand starts a base list.
func (p *parser) basesFollow() bool {
	switch p.peek(1) {
	case kPublic, kPrivate, kProtected, tIdent, tColonColon, kTypename, kVirtual:
		return true
	}
	return false
}

// classBody reads the base list and the members of a class.
func (p *parser) classBody(s *StructDecl, sc *scope, info nameInfo) {
	if !p.enter() {
		return
	}
	defer p.leave()
	s.Complete = true
	if p.accept(tColon) {
		p.bases(s, sc)
	}
	if !p.expect(tLBrace, "after the name of a "+s.Key) {
		return
	}
	m, class, block := p.mark(), p.class, p.block
	outer, outerBase := p.late, p.lateBase
	if p.lateDepth == 0 {
		p.late, p.lateBase = nil, len(p.locals)
	}
	p.lateDepth++
	p.level++
	sc.parent, sc.level = p.scope, p.level
	if info.qualified && info.qual != nil && sc.parent != info.qual {
		sc.parent = p.within(info.qual)
	}
	p.scope, p.block, p.class = sc, 0, classCtx{}
	if s.Name != nil && s.Name.Ident != "" {
		p.class.sym = p.f.syms.sym(s.Name.Ident)
	}
	for p.kind() != tRBrace && p.kind() != tEOF && !p.over {
		at, inner, lateDepth, cls := p.i, p.mark(), p.lateDepth, p.class
		p.classMember(s)
		p.pop(inner)
		if p.bad && !p.over {
			p.block, p.noGT, p.lateDepth, p.class = 0, false, lateDepth, cls
			p.recover(at, false)
		}
	}
	p.lateDepth--
	p.expect(tRBrace, "at the end of a "+s.Key)
	if p.lateDepth == 0 {
		list := p.late
		p.parseLate(list)
		p.late, p.lateBase = outer, outerBase
	}
	p.pop(m)
	p.class, p.block = class, block
	s.Attrs = p.attributes(s.Attrs)
}

// bases reads the base classes.
func (p *parser) bases(s *StructDecl, sc *scope) {
	for !p.bad {
		var b BaseClass
		for p.kind() == kPublic || p.kind() == kPrivate || p.kind() == kProtected || p.kind() == kVirtual {
			if p.kind() == kVirtual {
				p.errorf(NotInMetal, "virtual base classes are not part of the Metal Shading Language")
				return
			}
			b.Access = p.tok().text
			p.advance()
		}
		sr := p.specifiers(inTypeID)
		if sr.typ == nil {
			p.expectedType("a base class")
			return
		}
		b.Type = sr.typ
		b.Type.Pack = p.accept(tEllipsis)
		if sr.scope != nil {
			sc.bases = append(sc.bases, sr.scope)
		}
		s.Bases = append(s.Bases, b)
		if !p.accept(tComma) {
			return
		}
	}
}

// classMember parses one member declaration.
func (p *parser) classMember(s *StructDecl) {
	switch k := p.kind(); k {
	case kPublic, kProtected, kPrivate:
		s.Members = append(s.Members, &AccessDecl{declNode: declNode{p.base()}, Access: p.tok().text})
		p.advance()
		p.expect(tColon, "after "+keywords[k-tKeyword])
	case tTilde:
		p.errorf(NotInMetal, "destructors are not part of the Metal Shading Language")
	case kNamespace:
		p.errorf(UnexpectedToken, "a namespace cannot stand in a class")
	case tPragma:
		p.errorf(MisplacedPragma, "a floating-point pragma cannot stand among the members of a class")
	default:
		p.declaration(inClass, &s.Members)
	}
}

// enumSpecifier reads enum X, or its definition.
func (p *parser) enumSpecifier(sr *specResult, w where) {
	e := &EnumDecl{declNode: declNode{p.base()}}
	at := p.pos()
	p.advance()
	if p.accept(kClass) || p.accept(kStruct) {
		e.Scoped = true
	}
	p.attributes(nil)
	sym := int32(0)
	if p.kind() == tIdent || p.kind() == tColonColon {
		e.At = p.pos()
		if p.peek(1) != tColonColon {
			sym = p.tok().sym
			n, info := p.className(sym)
			e.Name, sr.scope = &n.n, info.scope
		} else {
			n, info := p.name(false)
			e.Name, sr.scope = &n.n, info.scope
		}
	}
	if p.kind() == tColon && (p.peek(1) != tNumber) {
		p.advance()
		under := p.specifiers(inTypeID)
		if under.typ == nil {
			p.expectedType("the underlying type of an enumeration")
			return
		}
		e.Underlying = under.typ
	}
	if p.bad {
		return
	}
	e.Complete = p.kind() == tLBrace
	if e.Name == nil && !e.Complete {
		p.errorf(BadClass, "an enumeration needs a name or a body")
		return
	}
	if e.Complete || p.kind() == tSemi {
		if sr.scope == nil || e.Complete {
			sr.scope = &scope{parent: p.scope, owner: p.f, level: p.level, names: map[int32]entry{}}
		}
		p.declare(sym, entry{kind: nkType, scope: sr.scope})
		sr.defines = e
	}
	if e.Complete {
		p.enumerators(e, sr.scope)
	}
	if e.Name == nil {
		sr.typ = p.newType(at, TypeEnum)
		sr.typ.Enum = e
		return
	}
	sr.typ = p.newType(at, TypeNamed)
	sr.typ.Name, sr.typ.Tag = e.Name, true
}

// enumerators reads the body of an enumeration.
func (p *parser) enumerators(e *EnumDecl, sc *scope) {
	p.advance()
	for p.kind() != tRBrace && !p.bad {
		t := p.tok()
		if t.kind != tIdent {
			p.errorf(BadClass, "expected the name of an enumerator, found %s", t.name())
			return
		}
		v := Enumerator{At: p.pos(), Name: t.text}
		sym := t.sym
		p.advance()
		p.attributes(nil)
		if p.accept(tAssign) {
			v.X = p.condExpr()
		}
		sc.names[sym] = entry{kind: nkValue}
		if !e.Scoped {
			p.declare(sym, entry{kind: nkValue})
		}
		e.Values = append(e.Values, v)
		if !p.accept(tComma) {
			break
		}
	}
	p.expect(tRBrace, "at the end of an enumeration")
}
