package msl

import "strings"

// primary parses a literal, a name, a construction, a cast with a keyword, or a lambda.
func (p *exprParser) primary() Expr {
	at := p.in.base()
	switch k := p.in.kind(); k {
	case tIdent:
		return p.nameExpr()
	case tNumber:
		return p.numberLit()
	case tChar:
		return p.charLit()
	case tString:
		return p.stringLit()
	case kTrue, kFalse:
		p.in.advance()
		return &BoolLit{exprNode{at}, k == kTrue}
	case kNullptr:
		p.in.advance()
		return &NullptrLit{exprNode{at}}
	case kThis:
		p.in.advance()
		return &ThisExpr{exprNode{at}}
	case tColonColon, kOperator:
		return p.nameExpr()
	case kDecltype:
		if p.names.nameIsValue() {
			n, _ := p.names.name(false)
			return &n.e
		}
		return p.construct()
	case kTypename, kStruct, kClass, kUnion, kEnum:
		return p.construct()
	case kStaticCast, kReinterpretCast, kConstCast, kAsType:
		return p.namedCast()
	case tLBrack:
		return p.lambda()
	case tPragma:
		p.in.errorf(MisplacedPragma, "a floating-point pragma stands here, in the middle of an expression")
	case tLBrace:
		p.in.errorf(ExpectedExpression, "a list in braces cannot stand here")
	default:
		if isBasicType(k) {
			return p.construct()
		}
		if k == kAuto {
			p.in.errorf(TypeAsValue, "auto is no value")
			break
		}
		if p.in.i > 0 {
			p.in.errorf(ExpectedExpression, "expected an expression after '%s', found %s", clip(p.in.toks[p.in.i-1].text),
				p.in.tok().name())
			break
		}
		p.in.errorf(ExpectedExpression, "expected an expression, found %s", p.in.tok().name())
	}
	return p.badExpr()
}

// nameExpr parses a name: a value, or a type that is constructed.
func (p *exprParser) nameExpr() Expr {
	if p.in.kind() == tIdent && p.in.peek(1) != tColonColon && p.in.peek(1) != tLt {
		if e := p.scopes.lookup(p.in.tok().sym); !e.kind.isType() {
			if text := p.in.tok().text; e.kind == nkNone && p.in.peek(1) == tLParen && strings.HasPrefix(text, "__is_") {
				return p.trait()
			}
			n := p.nodes.newName()
			at := p.in.pos()
			n.n.At, n.n.PartAt, n.n.Ident = at, at, p.in.tok().text
			n.e.At, n.e.Name = at, &n.n
			p.in.advance()
			return &n.e
		}
		return p.construct()
	}
	n, info := p.names.name(false)
	if !info.kind.isType() || p.in.bad {
		return &n.e
	}
	t := p.nodes.newType(n.n.At, TypeNamed)
	t.Name = &n.n
	return p.constructOf(t)
}

// trait parses __is_empty(T).
func (p *exprParser) trait() Expr {
	t := &TraitExpr{exprNode: exprNode{p.in.base()}, Name: p.in.tok().text}
	p.in.advance()
	p.in.advance()
	noGT := p.in.noGT
	p.in.noGT = false
	for !p.in.bad {
		t.Types = append(t.Types, p.types.typeID())
		if !p.in.accept(tComma) {
			break
		}
	}
	p.in.noGT = noGT
	p.in.expect(tRParen, "after the types of "+t.Name)
	return t
}

// construct parses T(args) or T{args}.
func (p *exprParser) construct() Expr {
	at := p.in.pos()
	var sr specResult
	if isBasicType(p.in.kind()) {
		var b basicSet
		for isBasicType(p.in.kind()) {
			b.add(p.in.kind())
			p.in.advance()
		}
		sr.typ = p.nodes.newType(at, TypeBasic)
		if sr.typ.Basic = b.name(); sr.typ.Basic == "" {
			p.in.errorAt(at, BadSpecifiers, "%s", b.problem())
		}
	} else {
		ok := p.types.typeSpecifier(&sr, inTypeID)
		if !ok || sr.typ == nil {
			if !p.in.bad {
				p.in.errorAt(at, ExpectedExpression, "expected an expression, found %s", p.in.f.token(at).name())
			}
			return p.badExpr()
		}
	}
	return p.constructOf(sr.typ)
}

func (p *exprParser) constructOf(t *TypeExpr) Expr {
	c := &ConstructExpr{exprNode: exprNode{Base{t.At}}, Type: t}
	switch p.in.kind() {
	case tLParen:
		c.Args = p.callArgs()
	case tLBrace:
		c.Args, c.Braced = p.braceInit().Elems, true
	default:
		p.in.errorAt(t.At, TypeAsValue, "'%s' is a type: expected '(' or '{' after it, found %s",
			clip(p.in.f.token(t.At).text), p.in.tok().name())
	}
	return c
}

var castKeywords = map[tok]CastKind{
	kStaticCast: CastStatic, kReinterpretCast: CastReinterpret, kConstCast: CastConst, kAsType: CastAsType,
}

// namedCast parses static_cast<T>(x) and its like.
func (p *exprParser) namedCast() Expr {
	c := &CastExpr{exprNode: exprNode{p.in.base()}, Kind: castKeywords[p.in.kind()]}
	word := p.in.tok().text
	p.in.advance()
	if !p.in.expect(tLt, "after "+word) {
		return c
	}
	noGT := p.in.noGT
	p.in.noGT = true
	c.Type = p.types.typeID()
	p.in.noGT = false
	if p.in.expect(tGt, "after the type of "+word) && p.in.expect(tLParen, "after "+word+"<...>") {
		c.X = p.expr()
		p.in.expect(tRParen, "after the operand of "+word)
	}
	p.in.noGT = noGT
	if c.X == nil {
		c.X = p.badExpr()
	}
	return c
}

func (p *exprParser) numberLit() Expr {
	at := exprNode{p.in.base()}
	text := p.in.tok().text
	n, msg := parseNumber(text)
	if msg != "" {
		p.in.errorf(BadNumber, "%s", msg)
		p.in.advance()
		return &BadExpr{at}
	}
	p.in.advance()
	if n.float {
		return &FloatLit{exprNode: at, Value: n.f, Text: n.text, Suffix: n.suffix}
	}
	return &IntLit{exprNode: at, Value: n.i, Decimal: n.decimal, Unsigned: n.unsigned, Long: n.long}
}

func (p *exprParser) charLit() Expr {
	at := exprNode{p.in.base()}
	b, msg := unescape(trimQuotes(p.in.tok().text))
	if msg == "" && len(b) == 0 {
		msg = "a character literal needs a character"
	}
	if msg == "" && len(b) > 4 {
		msg = "a character literal has at most four characters"
	}
	if msg != "" {
		p.in.errorf(BadLiteral, "%s: %s", p.in.tok().name(), msg)
	}
	p.in.advance()
	c := &CharLit{exprNode: at, Multi: len(b) > 1}
	v := int32(0)
	for _, x := range b {
		v = v<<8 | int32(x)
	}
	c.Value = int64(v)
	if len(b) == 1 {
		c.Value = int64(int8(b[0]))
	}
	return c
}

// stringLit parses string literals that stand side by side as one.
func (p *exprParser) stringLit() *StringLit {
	s := &StringLit{exprNode: exprNode{p.in.base()}}
	for p.in.kind() == tString {
		b, msg := unescape(trimQuotes(p.in.tok().text))
		if msg != "" {
			p.in.errorf(BadLiteral, "%s: %s", p.in.tok().name(), msg)
		}
		s.Value += string(b)
		p.in.advance()
	}
	return s
}

// lambda parses [captures](parameters) -> T { body }.
func (p *exprParser) lambda() Expr {
	l := &LambdaExpr{exprNode: exprNode{p.in.base()}}
	p.in.advance()
	for p.in.kind() != tRBrack && !p.in.bad {
		p.capture(l)
		if !p.in.accept(tComma) {
			break
		}
	}
	if !p.in.expect(tRBrack, "after the captures of a lambda") {
		return l
	}
	m := p.scopes.push()
	defer p.scopes.pop(m)
	for _, c := range l.Captures {
		if c.Init != nil {
			p.scopes.declareLocal(p.in.f.syms.sym(c.Name), entry{kind: nkValue})
		}
	}
	fn := &fnSuffix{}
	if p.in.kind() == tLParen {
		p.declarators.fnParams(&declared{}, fn, false)
	}
	l.Params, l.Ret = fn.params, fn.trailing
	p.types.attributes(nil)
	if p.in.accept(kMutable) {
		l.Mutable = true
	}
	p.in.accept(kConstexpr)
	if l.Ret == nil && p.in.accept(tArrow) {
		l.Ret = p.declarators.trailingType()
	}
	for _, sym := range fn.syms {
		p.scopes.declareLocal(sym, entry{kind: nkValue})
	}
	if p.in.kind() != tLBrace || p.in.bad {
		p.in.expect(tLBrace, "before the body of a lambda")
		return l
	}
	p.stmts.function(func() { l.Body = p.stmts.blockStmt() })
	return l
}

// capture reads one entry of a lambda's captures.
func (p *exprParser) capture(l *LambdaExpr) {
	c := Capture{At: p.in.pos()}
	switch k := p.in.kind(); {
	case k == tAnd && (p.in.peek(1) == tRBrack || p.in.peek(1) == tComma):
		p.in.advance()
		l.ByRef = true
		return
	case k == tAssign:
		p.in.advance()
		l.ByValue = true
		return
	case k == kThis:
		p.in.advance()
		c.Name = "this"
	case k == tMul && p.in.peek(1) == kThis:
		p.in.i += 2
		c.Name = "this"
	default:
		c.ByRef = p.in.accept(tAnd)
		c.Name = p.in.tok().text
		if !p.in.expectName() {
			return
		}
		switch p.in.kind() {
		case tAssign:
			p.in.advance()
			c.Init = p.initClause()
		case tLBrace:
			c.Init = p.braceInit()
		case tLParen:
			if args := p.callArgs(); len(args) == 1 {
				c.Init = args[0]
			}
		}
		p.in.accept(tEllipsis)
	}
	l.Captures = append(l.Captures, c)
}
