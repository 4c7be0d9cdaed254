package msl

import "strings"

// declaratorParser reads declarators: what is around a declared name.
type declaratorParser struct {
	in     *cursor
	exprs  *exprParser
	names  *nameParser
	nodes  *nodes
	scopes *scopes
	types  *typeParser
}

// declMode says whether a declarator must, may or must not have a name.
type declMode uint8

const (
	declNamed declMode = iota
	declMaybe
	declAbstract
)

// declared is what a declarator declares.
type declared struct {
	at    Pos
	name  *Name
	sym   int32
	info  nameInfo
	typ   *TypeExpr
	pack  bool
	fn    *fnSuffix // set if the name is directly followed by parameters
	attrs []Attr
}

// fnSuffix is what follows the name of a function.
type fnSuffix struct {
	params   []*ParamDecl
	quals    Quals
	trailing *TypeExpr
	syms     []int32
}

// pointers reads * & && with their qualifiers.
func (p *declaratorParser) pointers(t *TypeExpr) *TypeExpr {
	for n := 0; !p.in.bad; n++ {
		at := p.in.pos()
		switch p.in.kind() {
		case tMul:
			p.in.advance()
			ptr := p.nodes.newType(at, TypePointer)
			ptr.Elem = t
			for p.types.qualifier(&ptr.Quals) {
			}
			t = ptr
		case tAnd, tLAnd:
			ref := p.nodes.newType(at, TypeReference)
			ref.Elem, ref.RValue = t, p.in.kind() == tLAnd
			p.in.advance()
			for p.types.qualifier(&ref.Quals) {
			}
			t = ref
		default:
			if p.in.kind() == tIdent && p.in.peek(1) == tColonColon && p.in.peek(2) == tMul {
				p.in.errorf(NotInMetal, "pointers to members are not part of the Metal Shading Language")
			}
			return t
		}
		if n > maxNest {
			p.in.tooDeep("more than %d pointers on pointers", maxNest)
		}
	}
	return t
}

// declarator reads a declarator of a thing whose type, so far, is base.
func (p *declaratorParser) declarator(base *TypeExpr, mode declMode) (d declared) {
	d.at = p.in.pos()
	d.typ = base
	p.declaratorIn(&d, base, mode, nil)
	return d
}

// declaratorIn reads a declarator. ready is given for constructors and conversion functions, whose names have been
// read.
func (p *declaratorParser) declaratorIn(d *declared, base *TypeExpr, mode declMode, ready *nameNode) {
	if !p.in.enter() {
		return
	}
	defer p.in.leave()
	if ready == nil {
		base = p.pointers(base)
	}
	if p.in.kind() == tEllipsis && mode == declMaybe && !d.pack {
		p.in.advance()
		d.pack = true
	}
	inner := -1
	switch {
	case ready != nil:
	case p.in.kind() == tLParen && p.nestedDeclarator(mode):
		open := p.in.i
		if !p.in.skipBalanced() {
			p.in.errorf(BadDeclarator, "'(' without ')' in a declaration")
			return
		}
		end := p.in.i
		p.in.i = open + 1
		base = p.spaced(base)
		inner, p.in.i = p.in.i, end
	case mode != declAbstract && (p.in.kind() == tIdent || p.in.kind() == tColonColon || p.in.kind() == kOperator):
		d.at = p.in.pos()
		if p.in.kind() == tIdent && p.in.peek(1) != tColonColon && p.in.peek(1) != tLt {
			d.sym = p.in.tok().sym
			n := p.nodes.newName()
			n.n = Name{Base: p.in.base(), NamePart: NamePart{PartAt: d.at, Ident: p.in.tok().text}}
			d.name = &n.n
			p.in.advance()
		} else {
			d.sym = p.declaratorName(d)
		}
	case mode == declNamed:
		if p.in.kind() == tTilde {
			p.in.errorf(NotInMetal, "destructors are not part of the Metal Shading Language")
		} else {
			p.in.errorf(BadDeclarator, "expected a name to declare, found %s%s", p.in.tok().name(), p.in.notAName())
		}
		return
	}
	direct := inner < 0 && (d.name != nil || ready != nil)
	if direct {
		d.attrs = p.types.attributes(d.attrs)
	}
	typ := p.suffixes(d, base, mode, direct)
	if inner >= 0 && !p.in.bad {
		end := p.in.i
		p.in.i = inner
		p.declaratorIn(d, typ, mode, nil)
		p.in.expect(tRParen, "in a declaration")
		if p.in.bad {
			return
		}
		p.in.i = end
		return
	}
	d.typ = typ
}

// spaced reads the address space of what a pointer or reference in parentheses leads to, float (device *p)[4]: it is
// that of the type before the parenthesis.
func (p *declaratorParser) spaced(t *TypeExpr) *TypeExpr {
	if spaceKeywords[p.in.kind()] == SpaceNone {
		return t
	}
	own := *t
	for spaceKeywords[p.in.kind()] != SpaceNone {
		p.types.qualifier(&own.Quals)
	}
	return &own
}

// declaratorName reads a qualified or operator name, or one with template arguments.
func (p *declaratorParser) declaratorName(d *declared) int32 {
	if p.in.kind() == tIdent && p.in.peek(1) == tLt && !p.scopes.lookupTemplate() {
		// A new variable before a less-than: an error that the caller reports.
		n := p.nodes.newName()
		n.n = Name{Base: p.in.base(), NamePart: NamePart{PartAt: p.in.pos(), Ident: p.in.tok().text}}
		d.name = &n.n
		sym := p.in.tok().sym
		p.in.advance()
		return sym
	}
	n, info := p.names.name(false)
	d.name, d.info = &n.n, info
	return 0
}

// nestedDeclarator decides whether the parenthesis at hand encloses a declarator: (*p), (&r)[4], (f).
func (p *declaratorParser) nestedDeclarator(mode declMode) bool {
	words := 0
	for spaceKeywords[p.in.peek(1+words)] != SpaceNone {
		words++
	}
	switch p.in.peek(1 + words) {
	case tMul, tAnd, tLAnd:
		return true
	case tLParen:
		return words == 0 && mode != declAbstract
	case tIdent:
		if words > 0 {
			return false
		}
		if mode == declNamed {
			return true
		}
		return mode == declMaybe && !p.scopes.lookup(p.in.toks[p.in.i+1].sym).kind.isType()
	}
	return false
}

// suffixes reads [n] and (parameters) after a name and returns the type they make of t.
func (p *declaratorParser) suffixes(d *declared, t *TypeExpr, mode declMode, direct bool) *TypeExpr {
	if p.in.bad {
		return t
	}
	at := p.in.pos()
	switch p.in.kind() {
	case tLBrack:
		if p.in.peek(1) == tLBrack { // an attribute
			return t
		}
		if !p.in.enter() {
			return t
		}
		defer p.in.leave()
		arr := p.nodes.newType(at, TypeArray)
		p.in.advance()
		if p.in.kind() != tRBrack {
			noGT := p.in.noGT
			p.in.noGT = false
			arr.X = p.exprs.expr()
			p.in.noGT = noGT
		}
		if !p.in.accept(tRBrack) && !p.in.bad {
			p.in.errorAfter(BadDeclarator, "expected ']' after the size of an array, found %s", p.in.tok().name())
		}
		arr.Elem = p.suffixes(d, t, mode, false)
		return arr
	case tLParen:
		if mode != declAbstract && direct && !p.paramsFollow(mode) {
			return t
		}
		if mode == declAbstract && p.in.peek(1) != tRParen && !p.typeAfterParen() {
			return t
		}
		if mode == declMaybe && !direct && d.name == nil && p.in.peek(1) != tRParen && !p.typeAfterParen() {
			return t
		}
		fn := &fnSuffix{}
		ft := p.nodes.newType(at, TypeFunc)
		p.fnParams(d, fn, direct)
		ft.Elem, ft.Params, ft.Quals = t, fn.params, fn.quals
		if fn.trailing != nil {
			ft.Elem = fn.trailing
		}
		if direct {
			d.fn = fn
		}
		return ft
	}
	return t
}

func (p *declaratorParser) typeAfterParen() bool {
	p.in.i++
	ok := p.names.typeStarts() || p.in.kind() == tEllipsis
	p.in.i--
	return ok
}

// paramsFollow decides whether the parenthesis after a declared name holds parameters rather than an initialiser.
func (p *declaratorParser) paramsFollow(mode declMode) bool {
	if mode == declMaybe {
		return true
	}
	switch p.in.peek(1) {
	case tRParen, tEllipsis, kConst, kVoid, kDevice, kConstant, kThread, kThreadgroup, kStruct:
		return true
	case tLBrack:
		return p.in.peek(2) == tLBrack
	}
	if !p.typeAfterParen() {
		// A parameter of an unknown type: `void f(foo x)`, `void f(foo *x)`.
		if p.scopes.block > 0 || p.in.peek(1) != tIdent {
			return false
		}
		switch p.in.peek(2) {
		case tIdent:
			return true
		case tMul, tAnd:
			end := p.in.peek(4)
			return p.in.peek(3) == tIdent && (end == tComma || end == tRParen) &&
				p.scopes.lookup(p.in.toks[p.in.i+1].sym).kind == nkNone
		}
		return false
	}
	if p.scopes.block == 0 && p.in.peek(2) != tLParen && p.in.peek(2) != tLBrace {
		return true
	}
	// In a block, or for something like float4 v(float(x), 1): parameters if they can be.
	start := p.in.i
	yes := p.scopes.try(func() bool {
		fn := &fnSuffix{}
		p.fnParams(&declared{}, fn, false)
		return p.in.kind() == tSemi || p.in.kind() == tLBrace || p.in.kind() == tComma || p.in.kind() == tColon
	})
	p.in.i = start
	return yes
}

// fnParams reads (parameters) and what belongs to a function's type after them.
func (p *declaratorParser) fnParams(d *declared, fn *fnSuffix, direct bool) {
	m := p.scopes.push()
	defer p.scopes.pop(m)
	if direct && d.info.qualified && d.info.qual != nil && p.scopes.block == 0 {
		p.scopes.scope = d.info.qual
		p.scopes.level = max(p.scopes.level, p.scopes.scope.level+1)
	}
	noGT := p.in.noGT
	p.in.noGT = false
	p.in.advance()
	for p.in.kind() != tRParen && !p.in.bad {
		if p.in.kind() == tEllipsis {
			p.in.advance()
			break
		}
		prm, sym := p.param()
		if prm == nil {
			break
		}
		if prm.Type.Kind == TypeBasic && prm.Type.Basic == "void" && prm.Name == "" && len(fn.params) == 0 &&
			p.in.kind() == tRParen {
			break
		}
		fn.params = append(fn.params, prm)
		fn.syms = append(fn.syms, sym)
		p.scopes.declareLocal(sym, entry{kind: nkValue})
		if p.in.kind() == tEllipsis {
			continue
		}
		if !p.in.accept(tComma) {
			break
		}
		if p.in.kind() == tRParen {
			p.in.errorf(UnexpectedToken, "expected a parameter after ',', found ')'")
		}
	}
	p.in.noGT = noGT
	p.in.expect(tRParen, "after the parameters")
	for p.types.qualifier(&fn.quals) {
	}
	if direct && (p.in.kind() == tAnd || p.in.kind() == tLAnd) { // a method for objects or for temporaries: both here
		p.in.advance()
	}
	if p.in.accept(kNoexcept) && p.in.kind() == tLParen {
		p.in.skipBalanced()
	}
	if p.in.kind() == kThrow {
		p.in.errorf(NotInMetal, "exceptions are not part of the Metal Shading Language")
	}
	if direct {
		d.attrs = p.types.attributes(d.attrs)
	}
	for p.in.kind() == tIdent && (p.in.tok().text == "override" || p.in.tok().text == "final") {
		p.in.errorf(NotInMetal, "virtual functions are not part of the Metal Shading Language")
	}
	if p.in.accept(tArrow) {
		fn.trailing = p.trailingType()
	}
}

// trailingType reads the type after ->.
func (p *declaratorParser) trailingType() *TypeExpr {
	t := p.types.typeID()
	t.Trailing = true
	return t
}

// param reads one parameter; nil after an error.
func (p *declaratorParser) param() (*ParamDecl, int32) {
	at := p.in.pos()
	attrs := p.types.attributes(nil)
	sr := p.types.specifiers(inParam)
	if p.in.bad {
		return nil, 0
	}
	if sr.typ == nil {
		if p.in.kind() == tIdent {
			p.types.unknownType()
		} else {
			p.in.errorf(UnexpectedToken, "expected a parameter, found %s", p.in.tok().name())
		}
		return nil, 0
	}
	d := p.declarator(sr.typ, declMaybe)
	prm := &ParamDecl{Type: d.typ, Attrs: append(append(attrs, sr.specs.Attrs...), d.attrs...)}
	prm.At = at
	if d.name != nil {
		if len(d.name.Quals) > 0 || d.name.HasArgs || d.name.Ident == "" {
			p.in.errorAt(d.at, BadDeclarator, "this cannot be the name of a parameter")
			return nil, 0
		}
		prm.Name = d.name.Ident
		prm.At = d.at
	}
	prm.Attrs = p.types.attributes(prm.Attrs)
	if p.in.accept(tAssign) {
		prm.Default = p.exprs.initClause()
		prm.Attrs = p.types.attributes(prm.Attrs)
	}
	if d.pack {
		t := *prm.Type
		t.Pack = true
		prm.Type = &t
	}
	return prm, d.sym
}

// vectorOf returns the type that a typedef or alias names if clang's ext_vector_type(n) stands among its attributes:
// the vector of n components.
func (p *declaratorParser) vectorOf(t *TypeExpr, lists ...[]Attr) *TypeExpr {
	for _, list := range lists {
		for i := range list {
			switch a := &list[i]; strings.Trim(a.Name, "_") {
			case "ext_vector_type":
				if len(a.Args) != 1 {
					p.in.errorAt(a.At, BadAttribute, "ext_vector_type takes the number of components")
					return t
				}
				v := p.nodes.newType(a.At, TypeNamed)
				v.Name = &Name{Base: Base{a.At}, Quals: []NamePart{{PartAt: a.At, Ident: "metal"}}, NamePart: NamePart{
					PartAt: a.At, Ident: "vec", HasArgs: true, Args: []TemplateArg{{Type: t}, {X: a.Args[0]}},
				}}
				return v
			case "vector_size":
				p.in.errorAt(a.At, NotInMetal, "vector_size is not part of the Metal Shading Language: write vec<type, n>")
				return t
			}
		}
	}
	return t
}
