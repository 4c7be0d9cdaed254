package msl

// nameParser reads names, qualified and with template arguments.
type nameParser struct {
	in          *cursor
	declarators *declaratorParser
	exprs       *exprParser
	nodes       *nodes
	scopes      *scopes
	types       *typeParser

	typename bool             // typename was read: an unknown name followed by < is a template's
	memo     map[int]memoArgs // by the index of their <
}

// memoArgs are template arguments that have been read.
type memoArgs struct {
	args []TemplateArg
	end  int
}

// nameInfo is what the parser knows of a name it has read.
type nameInfo struct {
	entry
	qualified bool
	qual      *scope // the scope that the qualifiers name, nil if it is not known
}

// name reads a possibly qualified name. member is set after . and ->, where the first part is not looked up.
func (p *nameParser) name(member bool) (*nameNode, nameInfo) {
	n := p.nodes.newName()
	n.n.At = p.in.pos()
	n.e.At, n.e.Name = n.n.At, &n.n
	var info nameInfo
	typename := p.typename
	p.typename = false
	if p.in.accept(tColonColon) {
		n.n.Global, info.qualified, info.qual = true, true, p.in.f.global
	}
	for {
		part := &n.n.NamePart
		*part = NamePart{PartAt: p.in.pos()}
		if p.in.kind() == kTemplate && info.qualified {
			p.in.advance()
			part.Template = true
		}
		info.entry = entry{}
		switch t := p.in.tok(); t.kind {
		case tIdent:
			part.Ident = t.text
			switch {
			case info.qualified && info.qual != nil:
				info.entry, _ = p.scopes.member(info.qual, t.sym, 0)
			case !info.qualified && !member:
				info.entry = p.scopes.lookup(t.sym)
			}
			sym := t.sym
			p.in.advance()
			if p.in.kind() == tLt && (typename || p.templateFollows(part, info, sym, member)) {
				part.Args, part.HasArgs = p.templateArgs(), true
				if info.kind == nkNone && member {
					info.kind = nkValueTemplate
				}
			}
		case kOperator:
			p.operatorName(part)
			return n, info
		case kDecltype:
			if info.qualified || member {
				p.in.errorf(UnexpectedToken, "decltype starts a name, or is none")
				return n, info
			}
			p.in.advance()
			p.in.expect(tLParen, "after decltype")
			part.Decltype = p.exprs.expr()
			p.in.expect(tRParen, "after the operand of decltype")
		case tTilde:
			p.in.errorf(NotInMetal, "destructors are not part of the Metal Shading Language")
			return n, info
		default:
			p.in.errorf(UnexpectedToken, "expected a name, found %s", t.name())
			return n, info
		}
		if p.in.bad || p.in.kind() != tColonColon || !p.in.nameGoesOn() {
			return n, info
		}
		p.in.advance()
		n.n.Quals = append(n.n.Quals, *part)
		info.qualified, info.qual, member, typename = true, info.scope, false, false
	}
}

// templateFollows decides whether the < at hand starts template arguments.
func (p *nameParser) templateFollows(part *NamePart, info nameInfo, sym int32, member bool) bool {
	switch {
	case part.Template, info.kind == nkTypeTemplate, info.kind == nkValueTemplate:
		return true
	case info.kind != nkNone:
		return false
	case member && p.scopes.lookup(sym).kind == nkTypeTemplate: // x.Base<T>::f, and nothing else
		return p.scopes.try(func() bool {
			p.templateArgs()
			return p.in.kind() == tColonColon
		}) && p.in.rewindTo(part)
	case member:
		return p.scopes.isMemberTemplate(sym) && p.scopes.try(func() bool {
			p.templateArgs()
			ok := p.in.kind() == tLParen
			return ok
		}) && p.in.rewindTo(part)
	}
	// A name that is not known, as of a template that is not declared: C++ says less-than. If what follows can only be
	// a list of types, say template, so that the message is about the name.
	switch k := p.in.peek(1); {
	case isBasicType(k), k == kDevice, k == kConst, k == kThread, k == kThreadgroup, k == kConstant, k == kTypename:
		return p.in.peek(2) != tLParen && p.in.peek(2) != tLBrace
	case k == tIdent && !info.qualified:
		return p.scopes.lookup(p.in.toks[p.in.i+1].sym).kind.isType() && (p.in.peek(2) == tGt || p.in.peek(2) == tComma)
	}
	return false
}

// templateArgs reads template arguments from < to >. They are remembered, so that trying them is cheap.
func (p *nameParser) templateArgs() []TemplateArg {
	start := p.in.i
	if m, ok := p.memo[start]; ok {
		p.in.i = m.end
		return m.args
	}
	if !p.in.enter() {
		return nil
	}
	defer p.in.leave()
	p.in.advance()
	noGT := p.in.noGT
	p.in.noGT = true
	var args []TemplateArg
	for p.in.kind() != tGt && !p.in.bad {
		args = append(args, p.templateArg())
		if !p.in.accept(tComma) {
			break
		}
	}
	p.in.noGT = noGT
	p.in.expect(tGt, "after the template arguments")
	if !p.in.bad {
		if p.memo == nil {
			p.memo = map[int]memoArgs{}
		}
		p.memo[start] = memoArgs{args: args, end: p.in.i}
	}
	return args
}

func (p *nameParser) templateArg() (a TemplateArg) {
	if p.typeStarts() {
		ok := p.scopes.try(func() bool {
			a.Type = p.types.typeID()
			a.Pack = p.in.accept(tEllipsis)
			return p.in.kind() == tComma || p.in.kind() == tGt
		})
		if ok {
			return a
		}
		a = TemplateArg{}
	}
	a.X = p.exprs.condExpr()
	a.Pack = p.in.accept(tEllipsis)
	return a
}

var operatorTokens = map[tok]Operator{
	tAdd: OperatorAdd, tSub: OperatorSub, tMul: OperatorMul, tDiv: OperatorDiv, tRem: OperatorRem, tAnd: OperatorAnd,
	tOr: OperatorOr, tXor: OperatorXor, tShl: OperatorShl, tLAnd: OperatorLAnd, tLOr: OperatorLOr, tEq: OperatorEq,
	tNe: OperatorNe, tLt: OperatorLt, tGt: OperatorGt, tLe: OperatorLe, tGe: OperatorGe, tComma: OperatorComma,
	tTilde: OperatorNot, tNot: OperatorLNot, tInc: OperatorInc, tDec: OperatorDec, tAssign: OperatorAssign,
	tAddAssign: OperatorAddAssign, tSubAssign: OperatorSubAssign, tMulAssign: OperatorMulAssign,
	tDivAssign: OperatorDivAssign, tRemAssign: OperatorRemAssign, tAndAssign: OperatorAndAssign,
	tOrAssign: OperatorOrAssign, tXorAssign: OperatorXorAssign, tShlAssign: OperatorShlAssign, tArrow: OperatorArrow,
}

// operatorName reads operator+, operator(), operator[] or operator T.
func (p *nameParser) operatorName(part *NamePart) {
	p.in.advance()
	switch k := p.in.kind(); k {
	case tLParen, tLBrack:
		part.Operator = OperatorCall
		closing := tRParen
		if k == tLBrack {
			part.Operator, closing = OperatorIndex, tRBrack
		}
		p.in.advance()
		p.in.expect(closing, "in the name of an operator")
		return
	case tString:
		p.in.errorf(NotInMetal, "literal operators are not part of the Metal Shading Language")
		return
	case kNew, kDelete:
		p.in.errorf(NotInMetal, "operator %s is not part of the Metal Shading Language", p.in.tok().text)
		return
	case tGt:
		switch n := p.in.shiftLength(); n {
		case 3:
			part.Operator = OperatorShrAssign
			p.in.i += 2
		case 2:
			part.Operator = OperatorShr
			p.in.i++
		default:
			part.Operator = OperatorGt
		}
		p.in.advance()
		return
	default:
		if op, ok := operatorTokens[k]; ok {
			part.Operator = op
			p.in.advance()
			return
		}
	}
	sr := p.types.specifiers(inConversion)
	if sr.typ == nil {
		p.in.errorf(UnexpectedToken, "expected an operator or a type after 'operator', found %s", p.in.tok().name())
		return
	}
	part.Conv = p.declarators.pointers(sr.typ)
}

// typeStarts tells whether a type starts at the current token.
func (p *nameParser) typeStarts() bool {
	k := p.in.kind()
	switch {
	case k == tIdent:
		if n := p.in.peek(1); n != tColonColon && n != tLt {
			return p.scopes.lookup(p.in.tok().sym).kind.isType() || p.in.tok().text == "coherent" && p.in.declWordFollows()
		}
		return p.nameIsType()
	case k == tColonColon, k == kDecltype:
		return p.nameIsType() || k == kDecltype
	case isBasicType(k):
		return true
	}
	switch k {
	case kAuto, kConst, kVolatile, kDevice, kConstant, kThread, kThreadgroup, kThreadgroupImageblock, kRayData,
		kObjectData, kStruct, kClass, kUnion, kEnum, kTypename, kRestrict, kRestrictGNU:
		return true
	}
	return false
}

// nameIsType tells whether the name at the current token is that of a type.
func (p *nameParser) nameIsType() bool {
	yes := false
	p.scopes.try(func() bool {
		_, info := p.name(false)
		yes = info.kind.isType() && !p.in.bad
		return false
	})
	return yes
}

// isBasicType tells whether a keyword is (part of) the name of a basic type.
func isBasicType(k tok) bool {
	switch k {
	case kVoid, kBool, kChar, kShort, kInt, kLong, kFloat, kHalf, kBfloat, kDouble, kSigned, kUnsigned:
		return true
	}
	return false
}

// className reads a class's name. A plain one is not looked up as C++ values hide types.
func (p *nameParser) className(sym int32) (*nameNode, nameInfo) {
	if sym == 0 {
		return p.name(false)
	}
	n := p.nodes.newName()
	n.n = Name{Base: p.in.base(), NamePart: NamePart{PartAt: p.in.pos(), Ident: p.in.tok().text}}
	p.in.advance()
	e := p.scopes.lookup(sym)
	if !e.kind.isType() {
		e = entry{}
	}
	return n, nameInfo{entry: e}
}

// nameIsValue tells whether decltype(x)::name stands at hand.
func (p *nameParser) nameIsValue() bool {
	yes := false
	p.scopes.try(func() bool {
		_, info := p.name(false)
		yes = info.qualified && !info.kind.isType() && p.in.kind() != tLBrace
		return false
	})
	return yes
}

// typeName reads a qualified name or one with template arguments if it is that of a type, and returns nil otherwise.
func (p *nameParser) typeName(sr *specResult) *nameNode {
	var n *nameNode
	known := false // the name is a type's, whatever is wrong with its arguments
	ok := p.scopes.try(func() bool {
		var info nameInfo
		n, info = p.name(false)
		known, sr.scope = info.kind.isType(), info.scope
		return known
	})
	if ok {
		return n
	}
	if !known {
		return nil
	}
	n, _ = p.name(false) // again, to report the error
	return n
}
