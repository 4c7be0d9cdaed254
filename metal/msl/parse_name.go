package msl

// nameInfo is what the parser knows of a name it has read.
type nameInfo struct {
	entry
	qualified bool
	qual      *scope // the scope that the qualifiers name, nil if it is not known
}

// name reads a possibly qualified name. member is set after . and ->, where the first part is not looked up.
func (p *parser) name(member bool) (*nameNode, nameInfo) {
	n := p.newName()
	n.n.At = p.pos()
	n.e.At, n.e.Name = n.n.At, &n.n
	var info nameInfo
	typename := p.typename
	p.typename = false
	if p.accept(tColonColon) {
		n.n.Global, info.qualified, info.qual = true, true, p.f.global
	}
	for {
		part := &n.n.NamePart
		*part = NamePart{PartAt: p.pos()}
		if p.kind() == kTemplate && info.qualified {
			p.advance()
			part.Template = true
		}
		info.entry = entry{}
		switch t := p.tok(); t.kind {
		case tIdent:
			part.Ident = t.text
			switch {
			case info.qualified && info.qual != nil:
				info.entry, _ = p.member(info.qual, t.sym, 0)
			case !info.qualified && !member:
				info.entry = p.lookup(t.sym)
			}
			sym := t.sym
			p.advance()
			if p.kind() == tLt && (typename || p.templateFollows(part, info, sym, member)) {
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
				p.errorf(UnexpectedToken, "decltype starts a name, or is none")
				return n, info
			}
			p.advance()
			p.expect(tLParen, "after decltype")
			part.Decltype = p.expr()
			p.expect(tRParen, "after the operand of decltype")
		case tTilde:
			p.errorf(NotInMetal, "destructors are not part of the Metal Shading Language")
			return n, info
		default:
			p.errorf(UnexpectedToken, "expected a name, found %s", t.name())
			return n, info
		}
		if p.bad || p.kind() != tColonColon || !p.nameGoesOn() {
			return n, info
		}
		p.advance()
		n.n.Quals = append(n.n.Quals, *part)
		info.qualified, info.qual, member, typename = true, info.scope, false, false
	}
}

// nameGoesOn tells whether a :: is followed by another part of the name.
func (p *parser) nameGoesOn() bool {
	switch p.peek(1) {
	case tIdent, kOperator, kTemplate, tTilde:
		return true
	}
	return false
}

// templateFollows decides whether the < at hand starts template arguments.
func (p *parser) templateFollows(part *NamePart, info nameInfo, sym int32, member bool) bool {
	switch {
	case part.Template, info.kind == nkTypeTemplate, info.kind == nkValueTemplate:
		return true
	case info.kind != nkNone:
		return false
	case member && p.lookup(sym).kind == nkTypeTemplate: // x.Base<T>::f, and nothing else
		return p.try(func() bool {
			p.templateArgs()
			return p.kind() == tColonColon
		}) && p.rewindTo(part)
	case member:
		return p.isMemberTemplate(sym) && p.try(func() bool {
			p.templateArgs()
			ok := p.kind() == tLParen
			return ok
		}) && p.rewindTo(part)
	}
	// A name that is not known, as of a template that is not declared: C++ says less-than. If what follows can only be
	// a list of types, say template, so that the message is about the name.
	switch k := p.peek(1); {
	case isBasicType(k), k == kDevice, k == kConst, k == kThread, k == kThreadgroup, k == kConstant, k == kTypename:
		return p.peek(2) != tLParen && p.peek(2) != tLBrace
	case k == tIdent && !info.qualified:
		return p.lookup(p.toks[p.i+1].sym).kind.isType() && (p.peek(2) == tGt || p.peek(2) == tComma)
	}
	return false
}

// rewindTo goes back to the < after a part whose arguments have been tried.
func (p *parser) rewindTo(part *NamePart) bool {
	for p.f.base+Pos(p.i)+1 > part.PartAt+1 {
		p.i--
	}
	return true
}

func (p *parser) isMemberTemplate(sym int32) bool {
	for f := p.f; f != nil; f = f.Parent {
		if f.memberTpl[sym] {
			return true
		}
	}
	return false
}

// templateArgs reads template arguments from < to >. They are remembered, so that trying them is cheap.
func (p *parser) templateArgs() []TemplateArg {
	start := p.i
	if m, ok := p.memo[start]; ok {
		p.i = m.end
		return m.args
	}
	if !p.enter() {
		return nil
	}
	defer p.leave()
	p.advance()
	noGT := p.noGT
	p.noGT = true
	var args []TemplateArg
	for p.kind() != tGt && !p.bad {
		args = append(args, p.templateArg())
		if !p.accept(tComma) {
			break
		}
	}
	p.noGT = noGT
	p.expect(tGt, "after the template arguments")
	if !p.bad {
		if p.memo == nil {
			p.memo = map[int]memoArgs{}
		}
		p.memo[start] = memoArgs{args: args, end: p.i}
	}
	return args
}

func (p *parser) templateArg() (a TemplateArg) {
	if p.typeStarts() {
		ok := p.try(func() bool {
			a.Type = p.typeID()
			a.Pack = p.accept(tEllipsis)
			return p.kind() == tComma || p.kind() == tGt
		})
		if ok {
			return a
		}
		a = TemplateArg{}
	}
	a.X = p.condExpr()
	a.Pack = p.accept(tEllipsis)
	return a
}

var operatorTokens = map[tok]Op{
	tAdd: OpAdd, tSub: OpSub, tMul: OpMul, tDiv: OpDiv, tRem: OpRem, tAnd: OpAnd, tOr: OpOr, tXor: OpXor,
	tShl: OpShl, tLAnd: OpLAnd, tLOr: OpLOr, tEq: OpEq, tNe: OpNe, tLt: OpLt, tGt: OpGt, tLe: OpLe, tGe: OpGe,
	tComma: OpComma, tTilde: OpNot, tNot: OpLNot, tInc: OpInc, tDec: OpDec, tAssign: OpAssign,
	tAddAssign: OpAddAssign, tSubAssign: OpSubAssign, tMulAssign: OpMulAssign, tDivAssign: OpDivAssign,
	tRemAssign: OpRemAssign, tAndAssign: OpAndAssign, tOrAssign: OpOrAssign, tXorAssign: OpXorAssign,
	tShlAssign: OpShlAssign, tArrow: OpArrow,
}

// operatorName reads operator+, operator(), operator[] or operator T.
func (p *parser) operatorName(part *NamePart) {
	p.advance()
	switch k := p.kind(); k {
	case tLParen, tLBrack:
		part.Op = OpCall
		closing := tRParen
		if k == tLBrack {
			part.Op, closing = OpIndex, tRBrack
		}
		p.advance()
		p.expect(closing, "in the name of an operator")
		return
	case tString:
		p.errorf(NotInMetal, "literal operators are not part of the Metal Shading Language")
		return
	case kNew, kDelete:
		p.errorf(NotInMetal, "operator %s is not part of the Metal Shading Language", p.tok().text)
		return
	case tGt:
		switch n := p.shiftLength(); n {
		case 3:
			part.Op = OpShrAssign
			p.i += 2
		case 2:
			part.Op = OpShr
			p.i++
		default:
			part.Op = OpGt
		}
		p.advance()
		return
	default:
		if op, ok := operatorTokens[k]; ok {
			part.Op = op
			p.advance()
			return
		}
	}
	sr := p.specifiers(inConversion)
	if sr.typ == nil {
		p.errorf(UnexpectedToken, "expected an operator or a type after 'operator', found %s", p.tok().name())
		return
	}
	part.Conv = p.pointers(sr.typ)
}

// shiftLength returns how many tokens at the current > belong together: 2 for >>, 3 for >>=, else 1.
func (p *parser) shiftLength() int {
	if p.tok().flags&fJoin == 0 || p.peek(1) != tGt {
		return 1
	}
	if p.toks[p.i+1].flags&fJoin != 0 && p.peek(2) == tAssign {
		return 3
	}
	return 2
}

// typeStarts tells whether a type starts at the current token.
func (p *parser) typeStarts() bool {
	k := p.kind()
	switch {
	case k == tIdent:
		if n := p.peek(1); n != tColonColon && n != tLt {
			return p.lookup(p.tok().sym).kind.isType() || p.tok().text == "coherent" && p.declWordFollows()
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
func (p *parser) nameIsType() bool {
	yes := false
	p.try(func() bool {
		_, info := p.name(false)
		yes = info.kind.isType() && !p.bad
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
