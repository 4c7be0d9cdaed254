package msl

// declMode says whether a declarator must, may or must not have a name.
type declMode uint8

const (
	declNamed declMode = iota
	declMaybe
	declAbstract
)

// declr is what a declarator declares.
type declr struct {
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
	params     []*ParamDecl
	variadic   bool
	quals      Quals
	lref, rref bool
	trailing   *TypeExpr
	syms       []int32
}

// pointers reads * & && with their qualifiers.
func (p *parser) pointers(t *TypeExpr) *TypeExpr {
	for n := 0; !p.bad; n++ {
		at := p.pos()
		switch p.kind() {
		case tMul:
			p.advance()
			ptr := p.newType(at, TypePointer)
			ptr.Elem = t
			for p.qualifier(&ptr.Quals) {
			}
			t = ptr
		case tAnd, tLAnd:
			ref := p.newType(at, TypeReference)
			ref.Elem, ref.RValue = t, p.kind() == tLAnd
			p.advance()
			for p.qualifier(&ref.Quals) {
			}
			t = ref
		default:
			if p.kind() == tIdent && p.peek(1) == tColonColon && p.peek(2) == tMul {
				p.errorf(NotInMetal, "pointers to members are not part of the Metal Shading Language")
			}
			return t
		}
		if n > maxNest {
			p.tooDeep("more than %d pointers on pointers", maxNest)
		}
	}
	return t
}

// declarator reads a declarator of a thing whose type, so far, is base.
func (p *parser) declarator(base *TypeExpr, mode declMode) (d declr) {
	d.at = p.pos()
	d.typ = base
	p.declaratorIn(&d, base, mode, nil)
	return d
}

// notAName says of a keyword that stands where the name is missed that it can be none.
func (p *parser) notAName() string {
	if p.i == 0 || p.kind() >= tKeyword || p.toks[p.i-1].kind < tKeyword {
		return ""
	}
	return ": " + p.toks[p.i-1].name() + " cannot be one"
}

// declaratorIn reads a declarator. ready is given for constructors and conversion functions, whose names have been
// read.
func (p *parser) declaratorIn(d *declr, base *TypeExpr, mode declMode, ready *nameNode) {
	if !p.enter() {
		return
	}
	defer p.leave()
	if ready == nil {
		base = p.pointers(base)
	}
	if p.kind() == tEllipsis && mode == declMaybe && !d.pack {
		p.advance()
		d.pack = true
	}
	inner := -1
	switch {
	case ready != nil:
	case p.kind() == tLParen && p.nestedDeclarator(mode):
		inner = p.i
		if !p.skipBalanced() {
			p.errorf(BadDeclarator, "'(' without ')' in a declaration")
			return
		}
	case mode != declAbstract && (p.kind() == tIdent || p.kind() == tColonColon || p.kind() == kOperator):
		d.at = p.pos()
		if p.kind() == tIdent && p.peek(1) != tColonColon && p.peek(1) != tLt {
			d.sym = p.tok().sym
			n := p.newName()
			n.n = Name{Base: p.base(), NamePart: NamePart{PartAt: d.at, Ident: p.tok().text}}
			d.name = &n.n
			p.advance()
		} else {
			d.sym = p.declaratorName(d)
		}
	case mode == declNamed:
		if p.kind() == tTilde {
			p.errorf(NotInMetal, "destructors are not part of the Metal Shading Language")
		} else {
			p.errorf(BadDeclarator, "expected a name to declare, found %s%s", p.tok().name(), p.notAName())
		}
		return
	}
	direct := inner < 0 && (d.name != nil || ready != nil)
	if direct {
		d.attrs = p.attributes(d.attrs)
	}
	typ := p.suffixes(d, base, mode, direct)
	if inner >= 0 && !p.bad {
		end := p.i
		p.i = inner + 1
		p.declaratorIn(d, typ, mode, nil)
		p.expect(tRParen, "in a declaration")
		if p.bad {
			return
		}
		p.i = end
		return
	}
	d.typ = typ
}

// declaratorName reads a qualified or operator name, or one with template arguments.
func (p *parser) declaratorName(d *declr) int32 {
	if p.kind() == tIdent && p.peek(1) == tLt && !p.lookupTemplate() {
		// A new variable before a less-than: an error that the caller reports.
		n := p.newName()
		n.n = Name{Base: p.base(), NamePart: NamePart{PartAt: p.pos(), Ident: p.tok().text}}
		d.name = &n.n
		sym := p.tok().sym
		p.advance()
		return sym
	}
	n, info := p.name(false)
	d.name, d.info = &n.n, info
	return 0
}

func (p *parser) lookupTemplate() bool {
	switch p.lookup(p.tok().sym).kind {
	case nkTypeTemplate, nkValueTemplate:
		return true
	}
	return false
}

// nestedDeclarator decides whether the parenthesis at hand encloses a declarator: (*p), (&r)[4], (f).
func (p *parser) nestedDeclarator(mode declMode) bool {
	switch p.peek(1) {
	case tMul, tAnd, tLAnd:
		return true
	case tLParen:
		return mode != declAbstract
	case tIdent:
		if mode == declNamed {
			return true
		}
		return mode == declMaybe && !p.lookup(p.toks[p.i+1].sym).kind.isType()
	}
	return false
}

// suffixes reads [n] and (parameters) after a name and returns the type they make of t.
func (p *parser) suffixes(d *declr, t *TypeExpr, mode declMode, direct bool) *TypeExpr {
	if p.bad {
		return t
	}
	at := p.pos()
	switch p.kind() {
	case tLBrack:
		if p.peek(1) == tLBrack { // an attribute
			return t
		}
		if !p.enter() {
			return t
		}
		defer p.leave()
		arr := p.newType(at, TypeArray)
		p.advance()
		if p.kind() != tRBrack {
			noGT := p.noGT
			p.noGT = false
			arr.X = p.expr()
			p.noGT = noGT
		}
		if !p.accept(tRBrack) && !p.bad {
			p.errorAfter(BadDeclarator, "expected ']' after the size of an array, found %s", p.tok().name())
		}
		arr.Elem = p.suffixes(d, t, mode, false)
		return arr
	case tLParen:
		if mode != declAbstract && direct && !p.paramsFollow(mode) {
			return t
		}
		if mode == declAbstract && p.peek(1) != tRParen && !p.typeAfterParen() {
			return t
		}
		if mode == declMaybe && !direct && d.name == nil && p.peek(1) != tRParen && !p.typeAfterParen() {
			return t
		}
		fn := &fnSuffix{}
		ft := p.newType(at, TypeFunc)
		p.fnParams(d, fn, direct)
		ft.Elem, ft.Params, ft.Variadic, ft.Quals = t, fn.params, fn.variadic, fn.quals
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

func (p *parser) typeAfterParen() bool {
	p.i++
	ok := p.typeStarts() || p.kind() == tEllipsis
	p.i--
	return ok
}

// paramsFollow decides whether the parenthesis after a declared name holds parameters rather than an initialiser.
func (p *parser) paramsFollow(mode declMode) bool {
	if mode == declMaybe {
		return true
	}
	switch p.peek(1) {
	case tRParen, tEllipsis, kConst, kVoid, kDevice, kConstant, kThread, kThreadgroup, kStruct:
		return true
	case tLBrack:
		return p.peek(2) == tLBrack
	}
	if !p.typeAfterParen() {
		// A parameter of an unknown type: `void f(foo x)`, `void f(foo *x)`.
		return p.block == 0 && p.peek(1) == tIdent && (p.peek(2) == tIdent ||
			(p.peek(2) == tMul || p.peek(2) == tAnd) && p.peek(3) == tIdent && (p.peek(4) == tComma || p.peek(4) == tRParen) &&
				p.lookup(p.toks[p.i+1].sym).kind == nkNone)
	}
	if p.block == 0 && p.peek(2) != tLParen && p.peek(2) != tLBrace {
		return true
	}
	// In a block, or for something like float4 v(float(x), 1): parameters if they can be.
	start := p.i
	yes := p.try(func() bool {
		fn := &fnSuffix{}
		p.fnParams(&declr{}, fn, false)
		return p.kind() == tSemi || p.kind() == tLBrace || p.kind() == tComma || p.kind() == tColon
	})
	p.i = start
	return yes
}

// fnParams reads (parameters) and what belongs to a function's type after them.
func (p *parser) fnParams(d *declr, fn *fnSuffix, direct bool) {
	m := p.push()
	defer p.pop(m)
	if direct && d.info.qualified && d.info.qual != nil && p.block == 0 {
		p.scope = d.info.qual
		p.level = max(p.level, p.scope.level+1)
	}
	noGT := p.noGT
	p.noGT = false
	p.advance()
	for p.kind() != tRParen && !p.bad {
		if p.kind() == tEllipsis {
			p.advance()
			fn.variadic = true
			break
		}
		prm, sym := p.param()
		if prm == nil {
			break
		}
		if prm.Type.Kind == TypeBasic && prm.Type.Basic == "void" && prm.Name == "" && len(fn.params) == 0 &&
			p.kind() == tRParen {
			break
		}
		fn.params = append(fn.params, prm)
		fn.syms = append(fn.syms, sym)
		p.declareLocal(sym, entry{kind: nkValue})
		if p.kind() == tEllipsis {
			continue
		}
		if !p.accept(tComma) {
			break
		}
		if p.kind() == tRParen {
			p.errorf(UnexpectedToken, "expected a parameter after ',', found ')'")
		}
	}
	p.noGT = noGT
	p.expect(tRParen, "after the parameters")
	for p.qualifier(&fn.quals) {
	}
	if p.kind() == tAnd && direct {
		p.advance()
		fn.lref = true
	} else if p.kind() == tLAnd && direct {
		p.advance()
		fn.rref = true
	}
	if p.accept(kNoexcept) && p.kind() == tLParen {
		p.skipBalanced()
	}
	if p.kind() == kThrow {
		p.errorf(NotInMetal, "exceptions are not part of the Metal Shading Language")
	}
	if direct {
		d.attrs = p.attributes(d.attrs)
	}
	for p.kind() == tIdent && (p.tok().text == "override" || p.tok().text == "final") {
		p.errorf(NotInMetal, "virtual functions are not part of the Metal Shading Language")
	}
	if p.accept(tArrow) {
		fn.trailing = p.trailingType()
	}
}

// trailingType reads the type after ->.
func (p *parser) trailingType() *TypeExpr {
	t := p.typeID()
	t.Trailing = true
	return t
}

// param reads one parameter; nil after an error.
func (p *parser) param() (*ParamDecl, int32) {
	at := p.pos()
	attrs := p.attributes(nil)
	sr := p.specifiers(inParam)
	if p.bad {
		return nil, 0
	}
	if sr.typ == nil {
		if p.kind() == tIdent {
			p.unknownType()
		} else {
			p.errorf(UnexpectedToken, "expected a parameter, found %s", p.tok().name())
		}
		return nil, 0
	}
	d := p.declarator(sr.typ, declMaybe)
	prm := &ParamDecl{Type: d.typ, Attrs: append(append(attrs, sr.specs.Attrs...), d.attrs...)}
	prm.At = at
	if d.name != nil {
		if len(d.name.Quals) > 0 || d.name.HasArgs || d.name.Ident == "" {
			p.errorAt(d.at, BadDeclarator, "this cannot be the name of a parameter")
			return nil, 0
		}
		prm.Name = d.name.Ident
		prm.At = d.at
	}
	prm.Attrs = p.attributes(prm.Attrs)
	if p.accept(tAssign) {
		prm.Default = p.initClause()
		prm.Attrs = p.attributes(prm.Attrs)
	}
	if d.pack {
		t := *prm.Type
		t.Pack = true
		prm.Type = &t
	}
	return prm, d.sym
}
