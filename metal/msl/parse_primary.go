package msl

import "strings"

// primary parses a literal, a name, a construction, a cast with a keyword, or a lambda.
func (p *parser) primary() Expr {
	at := p.base()
	switch k := p.kind(); k {
	case tIdent:
		return p.nameExpr()
	case tNumber:
		return p.numberLit()
	case tChar:
		return p.charLit()
	case tString:
		return p.stringLit()
	case kTrue, kFalse:
		p.advance()
		return &BoolLit{exprNode{at}, k == kTrue}
	case kNullptr:
		p.advance()
		return &NullptrLit{exprNode{at}}
	case kThis:
		p.advance()
		return &ThisExpr{exprNode{at}}
	case tColonColon, kOperator:
		return p.nameExpr()
	case kDecltype:
		if p.nameIsValue() {
			n, _ := p.name(false)
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
		p.errorf(MisplacedPragma, "a floating-point pragma stands here, in the middle of an expression")
	case tLBrace:
		p.errorf(ExpectedExpression, "a list in braces cannot stand here")
	default:
		if isBasicType(k) {
			return p.construct()
		}
		if k == kAuto {
			p.errorf(TypeAsValue, "auto is no value")
			break
		}
		if p.i > 0 {
			p.errorf(ExpectedExpression, "expected an expression after '%s', found %s", clip(p.toks[p.i-1].text),
				p.tok().name())
			break
		}
		p.errorf(ExpectedExpression, "expected an expression, found %s", p.tok().name())
	}
	return p.badExpr()
}

// nameIsValue tells whether decltype(x)::name stands at hand.
func (p *parser) nameIsValue() bool {
	yes := false
	p.try(func() bool {
		_, info := p.name(false)
		yes = info.qualified && !info.kind.isType() && p.kind() != tLBrace
		return false
	})
	return yes
}

// nameExpr parses a name: a value, or a type that is constructed.
func (p *parser) nameExpr() Expr {
	if p.kind() == tIdent && p.peek(1) != tColonColon && p.peek(1) != tLt {
		if e := p.lookup(p.tok().sym); !e.kind.isType() {
			if text := p.tok().text; e.kind == nkNone && p.peek(1) == tLParen && strings.HasPrefix(text, "__is_") {
				return p.trait()
			}
			n := p.newName()
			at := p.pos()
			n.n.At, n.n.PartAt, n.n.Ident = at, at, p.tok().text
			n.e.At, n.e.Name = at, &n.n
			p.advance()
			return &n.e
		}
		return p.construct()
	}
	n, info := p.name(false)
	if !info.kind.isType() || p.bad {
		return &n.e
	}
	t := p.newType(n.n.At, TypeNamed)
	t.Name = &n.n
	return p.constructOf(t)
}

// trait parses __is_empty(T).
func (p *parser) trait() Expr {
	t := &TraitExpr{exprNode: exprNode{p.base()}, Name: p.tok().text}
	p.advance()
	p.advance()
	noGT := p.noGT
	p.noGT = false
	for !p.bad {
		t.Types = append(t.Types, p.typeID())
		if !p.accept(tComma) {
			break
		}
	}
	p.noGT = noGT
	p.expect(tRParen, "after the types of "+t.Name)
	return t
}

// construct parses T(args) or T{args}.
func (p *parser) construct() Expr {
	at := p.pos()
	var sr specResult
	if isBasicType(p.kind()) {
		var b basicSet
		for isBasicType(p.kind()) {
			b.add(p.kind())
			p.advance()
		}
		sr.typ = p.newType(at, TypeBasic)
		if sr.typ.Basic = b.name(); sr.typ.Basic == "" {
			p.errorAt(at, BadSpecifiers, "%s", b.problem())
		}
	} else {
		ok := p.typeSpecifier(&sr, inTypeID)
		if !ok || sr.typ == nil {
			if !p.bad {
				p.errorAt(at, ExpectedExpression, "expected an expression, found %s", p.f.token(at).name())
			}
			return p.badExpr()
		}
	}
	return p.constructOf(sr.typ)
}

func (p *parser) constructOf(t *TypeExpr) Expr {
	c := &ConstructExpr{exprNode: exprNode{Base{t.At}}, Type: t}
	switch p.kind() {
	case tLParen:
		c.Args = p.callArgs()
	case tLBrace:
		c.Args, c.Braced = p.braceInit().Elems, true
	default:
		p.errorAt(t.At, TypeAsValue, "'%s' is a type: expected '(' or '{' after it, found %s",
			clip(p.f.token(t.At).text), p.tok().name())
	}
	return c
}

var castKeywords = map[tok]CastKind{
	kStaticCast: CastStatic, kReinterpretCast: CastReinterpret, kConstCast: CastConst, kAsType: CastAsType,
}

// namedCast parses static_cast<T>(x) and its like.
func (p *parser) namedCast() Expr {
	c := &CastExpr{exprNode: exprNode{p.base()}, Kind: castKeywords[p.kind()]}
	word := p.tok().text
	p.advance()
	if !p.expect(tLt, "after "+word) {
		return c
	}
	noGT := p.noGT
	p.noGT = true
	c.Type = p.typeID()
	p.noGT = false
	if p.expect(tGt, "after the type of "+word) && p.expect(tLParen, "after "+word+"<...>") {
		c.X = p.expr()
		p.expect(tRParen, "after the operand of "+word)
	}
	p.noGT = noGT
	if c.X == nil {
		c.X = p.badExpr()
	}
	return c
}

func (p *parser) numberLit() Expr {
	at := exprNode{p.base()}
	text := p.tok().text
	n, msg := parseNumber(text)
	if msg != "" {
		p.errorf(BadNumber, "%s", msg)
		p.advance()
		return &BadExpr{at}
	}
	p.advance()
	if n.float {
		return &FloatLit{exprNode: at, Value: n.f, Text: n.text, Suffix: n.suffix}
	}
	return &IntLit{exprNode: at, Value: n.i, Decimal: n.decimal, Unsigned: n.unsigned, Long: n.long}
}

func (p *parser) charLit() Expr {
	at := exprNode{p.base()}
	b, msg := unescape(trimQuotes(p.tok().text))
	if msg == "" && len(b) == 0 {
		msg = "a character literal needs a character"
	}
	if msg == "" && len(b) > 4 {
		msg = "a character literal has at most four characters"
	}
	if msg != "" {
		p.errorf(BadLiteral, "%s: %s", p.tok().name(), msg)
	}
	p.advance()
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
func (p *parser) stringLit() *StringLit {
	s := &StringLit{exprNode: exprNode{p.base()}}
	for p.kind() == tString {
		b, msg := unescape(trimQuotes(p.tok().text))
		if msg != "" {
			p.errorf(BadLiteral, "%s: %s", p.tok().name(), msg)
		}
		s.Value += string(b)
		p.advance()
	}
	return s
}

// lambda parses [captures](parameters) -> T { body }.
func (p *parser) lambda() Expr {
	l := &LambdaExpr{exprNode: exprNode{p.base()}}
	p.advance()
	for p.kind() != tRBrack && !p.bad {
		p.capture(l)
		if !p.accept(tComma) {
			break
		}
	}
	if !p.expect(tRBrack, "after the captures of a lambda") {
		return l
	}
	m := p.push()
	defer p.pop(m)
	for _, c := range l.Captures {
		if c.Init != nil {
			p.declareLocal(p.f.syms.sym(c.Name), entry{kind: nkValue})
		}
	}
	fn := &fnSuffix{}
	if p.kind() == tLParen {
		p.fnParams(&declr{}, fn, false)
	}
	l.Params, l.Ret = fn.params, fn.trailing
	p.attributes(nil)
	if p.accept(kMutable) {
		l.Mutable = true
	}
	p.accept(kConstexpr)
	if l.Ret == nil && p.accept(tArrow) {
		l.Ret = p.trailingType()
	}
	for _, sym := range fn.syms {
		p.declareLocal(sym, entry{kind: nkValue})
	}
	if p.kind() != tLBrace || p.bad {
		p.expect(tLBrace, "before the body of a lambda")
		return l
	}
	loops, switches, noGT, block, lateDepth := p.loops, p.switches, p.noGT, p.block, p.lateDepth
	late, base := p.late, p.lateBase
	p.loops, p.switches, p.noGT, p.lateDepth, p.late = 0, 0, false, 0, nil
	p.block++
	l.Body = p.blockStmt()
	p.loops, p.switches, p.noGT, p.block, p.lateDepth = loops, switches, noGT, block, lateDepth
	p.late, p.lateBase = late, base
	return l
}

// capture reads one entry of a lambda's captures.
func (p *parser) capture(l *LambdaExpr) {
	c := Capture{At: p.pos()}
	switch k := p.kind(); {
	case k == tAnd && (p.peek(1) == tRBrack || p.peek(1) == tComma):
		p.advance()
		l.ByRef = true
		return
	case k == tAssign:
		p.advance()
		l.ByValue = true
		return
	case k == kThis:
		p.advance()
		c.Name = "this"
	case k == tMul && p.peek(1) == kThis:
		p.i += 2
		c.Name = "this"
	default:
		c.ByRef = p.accept(tAnd)
		c.Name = p.tok().text
		if !p.expectName() {
			return
		}
		switch p.kind() {
		case tAssign:
			p.advance()
			c.Init = p.initClause()
		case tLBrace:
			c.Init = p.braceInit()
		case tLParen:
			if args := p.callArgs(); len(args) == 1 {
				c.Init = args[0]
			}
		}
		p.accept(tEllipsis)
	}
	l.Captures = append(l.Captures, c)
}
