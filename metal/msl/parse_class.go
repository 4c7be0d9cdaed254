package msl

// classParser parses classes and enumerations.
type classParser struct {
	in     *cursor
	decls  *declParser
	exprs  *exprParser
	names  *nameParser
	nodes  *nodes
	scopes *scopes
	types  *typeParser

	pendingTmpl tmplCtx // of the declaration whose specifiers come next
	class       int32   // the symbol of the class whose members are being parsed, 0 if it has none
	late        postponed
}

// postponed are the bodies to parse when the outermost class is complete.
type postponed struct {
	bodies []lateBody
	depth  int // classes around, within a function's body
	base   int // how many locals there were before the outermost class
}

// lateBody is the body of a method: C++ parses it when the class is complete.
type lateBody struct {
	f      *FuncDecl
	start  int
	syms   []int32
	scope  *scope
	level  int32
	block  int
	class  int32
	locals []local
}

// postpone skips a method's initialiser list and body, to be parsed at the end of the outermost class.
func (p *classParser) postpone(f *FuncDecl, d *declared) {
	p.late.bodies = append(p.late.bodies, lateBody{
		f: f, start: p.in.i, syms: d.fn.syms, class: p.class,
		scope: p.scopes.scope, level: p.scopes.level, block: p.scopes.block,
		locals: append([]local(nil), p.scopes.locals[p.late.base:]...),
	})
	if p.in.accept(tColon) {
		for {
			for p.in.kind() == tIdent || p.in.kind() == tColonColon {
				p.in.advance()
			}
			if p.in.kind() == tLt {
				p.names.templateArgs()
			}
			if p.in.bad || p.in.kind() != tLParen && p.in.kind() != tLBrace || !p.in.skipBalanced() {
				p.in.expect(tLParen, "after the name of a member")
				return
			}
			p.in.accept(tEllipsis)
			if !p.in.accept(tComma) {
				break
			}
		}
	}
	if p.in.kind() != tLBrace {
		p.in.expect(tLBrace, "before the body of a function")
		return
	}
	if !p.in.skipBalanced() {
		p.in.errorf(UnexpectedToken, "expected '}' at the end of a function, found the end of the text")
	}
}

// parseLate parses the postponed bodies.
func (p *classParser) parseLate(list []lateBody) {
	end := p.in.i
	for i := range list {
		l := &list[i]
		m, class, block, bad := p.scopes.mark(), p.class, p.scopes.block, p.in.bad
		for _, x := range l.locals {
			p.scopes.level = x.level
			p.scopes.declareLocal(x.sym, x.e)
		}
		p.in.i, p.in.bad, p.class = l.start, false, l.class
		p.scopes.scope, p.scopes.level, p.scopes.block = l.scope, l.level, l.block
		p.decls.body(l.f, l.syms)
		if p.in.over {
			return
		}
		p.scopes.pop(m)
		p.class, p.scopes.block, p.in.bad = class, block, bad
	}
	p.in.i = end
}

// classSpecifier reads struct X, or its definition.
func (p *classParser) classSpecifier(sr *specResult, w where) {
	tc := p.pendingTmpl
	p.pendingTmpl = tmplNone
	s := &ClassDecl{declNode: declNode{p.in.base()}, Key: p.in.tok().text}
	at := p.in.pos()
	p.in.advance()
	s.Attrs = p.types.attributes(nil)
	var info nameInfo
	sym := int32(0)
	if p.in.kind() == tIdent || p.in.kind() == tColonColon {
		s.At = p.in.pos()
		if p.in.peek(1) != tLt && p.in.peek(1) != tColonColon {
			sym = p.in.tok().sym
		}
		n, i := p.names.className(sym)
		s.Name, info = &n.n, i
	}
	if p.in.bad {
		return
	}
	if p.in.kind() == tIdent && p.in.tok().text == "final" && (p.in.peek(1) == tLBrace || p.in.peek(1) == tColon) {
		p.in.advance()
	}
	defines := p.in.kind() == tLBrace || p.in.kind() == tColon && w != inParam && w != inTypeID && p.in.peek(1) != tColon
	if w == inClass && p.in.kind() == tColon && !p.in.basesFollow() {
		defines = false // a bit-field of type struct X
	}
	if s.Name == nil && !defines {
		p.in.errorf(BadClass, "a %s needs a name or a body", s.Key)
		return
	}
	var sc *scope
	if old := info.scope; !defines || old != nil && sym != 0 && old.owner == p.in.f && tc != tmplSpecial &&
		p.scopes.declaredHere(sym, old) {
		sc = old
	}
	if defines && sc == nil || p.in.kind() == tSemi && sym != 0 && sc == nil {
		sc = &scope{owner: p.in.f}
	}
	declares := defines || p.in.kind() == tSemi && !sr.specs.Friend
	if declares && sym != 0 {
		kind := nkType
		if tc == tmplPrimary {
			kind = nkTypeTemplate
			if w == inClass {
				p.scopes.memberTpl[sym] = true
			}
		}
		p.scopes.declareOutside(sym, entry{kind: kind, scope: sc}, tc != tmplNone)
	}
	sr.scope = sc
	if defines {
		p.classBody(s, sc, info)
		if p.in.kind() == kAttribute {
			s.Attrs = p.types.attributes(s.Attrs)
		}
		if sym == 0 && info.scope != nil && info.scope.owner == p.in.f && info.scope != sc {
			info.scope.bases = append(info.scope.bases, sc) // a specialisation: its members may be the only ones
		}
	}
	if declares {
		sr.defines = s
	}
	if s.Name == nil {
		sr.typ = p.nodes.newType(at, TypeClass)
		sr.typ.Class = s
		return
	}
	sr.typ = p.nodes.newType(at, TypeNamed)
	sr.typ.Name = s.Name
}

// classBody reads the base list and the members of a class.
func (p *classParser) classBody(s *ClassDecl, sc *scope, info nameInfo) {
	if !p.in.enter() {
		return
	}
	defer p.in.leave()
	s.Complete = true
	if p.in.accept(tColon) {
		p.bases(s, sc)
	}
	if !p.in.expect(tLBrace, "after the name of a "+s.Key) {
		return
	}
	m, class, block := p.scopes.mark(), p.class, p.scopes.block
	outer := p.late
	if p.late.depth == 0 {
		p.late = postponed{base: len(p.scopes.locals)}
	}
	p.late.depth++
	p.scopes.level++
	sc.parent, sc.level = p.scopes.scope, p.scopes.level
	if info.qualified && info.qual != nil && sc.parent != info.qual {
		sc.parent = p.scopes.within(info.qual)
	}
	p.scopes.scope, p.scopes.block, p.class = sc, 0, 0
	if s.Name != nil && s.Name.Ident != "" {
		p.class = p.in.f.syms.sym(s.Name.Ident)
	}
	for p.in.kind() != tRBrace && p.in.kind() != tEOF && !p.in.over {
		at, inner, depth, cls := p.in.i, p.scopes.mark(), p.late.depth, p.class
		p.classMember(s)
		p.scopes.pop(inner)
		if p.in.bad && !p.in.over {
			p.scopes.block, p.in.noGT, p.late.depth, p.class = 0, false, depth, cls
			p.in.recover(at, false)
		}
	}
	p.late.depth--
	p.in.expect(tRBrace, "at the end of a "+s.Key)
	if p.late.depth == 0 {
		p.parseLate(p.late.bodies)
		p.late = outer
	}
	p.scopes.pop(m)
	p.class, p.scopes.block = class, block
	s.Attrs = p.types.attributes(s.Attrs)
}

// bases reads the base classes.
func (p *classParser) bases(s *ClassDecl, sc *scope) {
	for !p.in.bad {
		var b BaseClass
		for p.in.kind() == kPublic || p.in.kind() == kPrivate || p.in.kind() == kProtected || p.in.kind() == kVirtual {
			if p.in.kind() == kVirtual {
				p.in.errorf(NotInMetal, "virtual base classes are not part of the Metal Shading Language")
				return
			}
			b.Access = p.in.tok().text
			p.in.advance()
		}
		sr := p.types.specifiers(inTypeID)
		if sr.typ == nil {
			p.types.expectedType("a base class")
			return
		}
		b.Type = sr.typ
		b.Type.Pack = p.in.accept(tEllipsis)
		if sr.scope != nil {
			sc.bases = append(sc.bases, sr.scope)
		}
		s.Bases = append(s.Bases, b)
		if !p.in.accept(tComma) {
			return
		}
	}
}

// classMember parses one member declaration.
func (p *classParser) classMember(s *ClassDecl) {
	switch k := p.in.kind(); k {
	case kPublic, kProtected, kPrivate:
		s.Members = append(s.Members, &AccessDecl{declNode: declNode{p.in.base()}, Access: p.in.tok().text})
		p.in.advance()
		p.in.expect(tColon, "after "+keywords[k-tKeyword])
	case tTilde:
		p.in.errorf(NotInMetal, "destructors are not part of the Metal Shading Language")
	case kNamespace:
		p.in.errorf(UnexpectedToken, "a namespace cannot stand in a class")
	case tPragma:
		p.in.errorf(MisplacedPragma, "a floating-point pragma cannot stand among the members of a class")
	default:
		p.decls.declaration(inClass, &s.Members)
	}
}

// enumSpecifier reads enum X, or its definition.
func (p *classParser) enumSpecifier(sr *specResult, w where) {
	e := &EnumDecl{declNode: declNode{p.in.base()}}
	at := p.in.pos()
	p.in.advance()
	if p.in.accept(kClass) || p.in.accept(kStruct) {
		e.Scoped = true
	}
	p.types.attributes(nil)
	sym := int32(0)
	if p.in.kind() == tIdent || p.in.kind() == tColonColon {
		e.At = p.in.pos()
		if p.in.peek(1) != tColonColon {
			sym = p.in.tok().sym
			n, info := p.names.className(sym)
			e.Name, sr.scope = &n.n, info.scope
		} else {
			n, info := p.names.name(false)
			e.Name, sr.scope = &n.n, info.scope
		}
	}
	if p.in.kind() == tColon && (p.in.peek(1) != tNumber) {
		p.in.advance()
		under := p.types.specifiers(inTypeID)
		if under.typ == nil {
			p.types.expectedType("the underlying type of an enumeration")
			return
		}
		e.Underlying = under.typ
	}
	if p.in.bad {
		return
	}
	e.Complete = p.in.kind() == tLBrace
	if e.Name == nil && !e.Complete {
		p.in.errorf(BadClass, "an enumeration needs a name or a body")
		return
	}
	if e.Complete || p.in.kind() == tSemi {
		if sr.scope == nil || e.Complete {
			sr.scope = &scope{parent: p.scopes.scope, owner: p.in.f, level: p.scopes.level, names: map[int32]entry{}}
		}
		p.scopes.declare(sym, entry{kind: nkType, scope: sr.scope})
		sr.defines = e
	}
	if e.Complete {
		p.enumerators(e, sr.scope)
	}
	if e.Name == nil {
		sr.typ = p.nodes.newType(at, TypeEnum)
		sr.typ.Enum = e
		return
	}
	sr.typ = p.nodes.newType(at, TypeNamed)
	sr.typ.Name = e.Name
}

// enumerators reads the body of an enumeration.
func (p *classParser) enumerators(e *EnumDecl, sc *scope) {
	p.in.advance()
	for p.in.kind() != tRBrace && !p.in.bad {
		t := p.in.tok()
		if t.kind != tIdent {
			p.in.errorf(BadClass, "expected the name of an enumerator, found %s", t.name())
			return
		}
		v := Enumerator{At: p.in.pos(), Name: t.text}
		sym := t.sym
		p.in.advance()
		p.types.attributes(nil)
		if p.in.accept(tAssign) {
			v.X = p.exprs.condExpr()
		}
		sc.names[sym] = entry{kind: nkValue}
		if !e.Scoped {
			p.scopes.declare(sym, entry{kind: nkValue})
		}
		e.Values = append(e.Values, v)
		if !p.in.accept(tComma) {
			break
		}
	}
	p.in.expect(tRBrace, "at the end of an enumeration")
}
