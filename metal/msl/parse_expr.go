package msl

// binaryPrec is the precedence of a binary operator, 0 for other tokens; from || to *.
var binaryPrec = [tKeyword + 1]int8{
	tLOr: 1, tLAnd: 2, tOr: 3, tXor: 4, tAnd: 5, tEq: 6, tNe: 6, tLt: 7, tGt: 7, tLe: 7, tGe: 7, tShl: 8,
	tAdd: 9, tSub: 9, tMul: 10, tDiv: 10, tRem: 10,
}

const shiftPrec = 8

var binaryOps = [tKeyword]Op{
	tLOr: OpLOr, tLAnd: OpLAnd, tOr: OpOr, tXor: OpXor, tAnd: OpAnd, tEq: OpEq, tNe: OpNe, tLt: OpLt, tGt: OpGt,
	tLe: OpLe, tGe: OpGe, tShl: OpShl, tAdd: OpAdd, tSub: OpSub, tMul: OpMul, tDiv: OpDiv, tRem: OpRem,
}

var assignTokens = map[tok]Op{
	tAssign: OpNone, tAddAssign: OpAdd, tSubAssign: OpSub, tMulAssign: OpMul, tDivAssign: OpDiv, tRemAssign: OpRem,
	tAndAssign: OpAnd, tOrAssign: OpOr, tXorAssign: OpXor, tShlAssign: OpShl,
}

// expr parses an expression, commas included.
func (p *parser) expr() Expr {
	x := p.assignExpr()
	for n := 0; p.kind() == tComma && p.peek(1) != tEllipsis && !p.bad; n++ {
		if n > maxChain {
			p.tooDeep("more than %d operators in one expression", maxChain)
		}
		at := p.pos()
		p.advance()
		x = p.newBinary(at, OpComma, x, p.assignExpr())
	}
	return x
}

func (p *parser) newBinary(at Pos, op Op, x, y Expr) Expr {
	if len(p.bins) == 0 {
		p.bins = make([]BinaryExpr, max(p.slab/2, 8))
	}
	b := &p.bins[0]
	p.bins = p.bins[1:]
	b.At, b.Op, b.X, b.Y = at, op, x, y
	return b
}

// assignExpr parses an expression without commas.
func (p *parser) assignExpr() Expr {
	if p.kind() == kThrow {
		p.errorf(NotInMetal, "exceptions are not part of the Metal Shading Language")
	}
	x := p.condExpr()
	k := p.kind()
	if k < tAssign || k > tShrAssign {
		return x
	}
	at, op := p.pos(), OpNone
	if k == tGt {
		if p.noGT || p.shiftLength() != 3 {
			return x
		}
		p.i += 2
		op = OpShr
	} else {
		var ok bool
		if op, ok = assignTokens[k]; !ok {
			return x
		}
	}
	if !p.enter() {
		return x
	}
	defer p.leave()
	p.advance()
	a := &AssignExpr{exprNode: exprNode{Base{at}}, Op: op, X: x}
	a.Y = p.initClause()
	return a
}

// condExpr parses an expression without commas and assignments, such as a constant.
func (p *parser) condExpr() Expr {
	x := p.binary(1)
	if p.kind() != tQuestion || p.bad {
		return x
	}
	// A chain a ? b : c ? d : e is parsed in a loop: it may be longer than expressions may be deep.
	first := &CondExpr{exprNode: exprNode{p.base()}, Cond: x}
	last := first
	for n := 0; ; n++ {
		if n > maxChain {
			p.tooDeep("more than %d ?: in one expression", maxChain)
		}
		p.advance()
		noGT := p.noGT
		p.noGT = false
		if !p.enter() {
			return first
		}
		if p.kind() != tColon {
			last.X = p.expr()
		}
		p.leave()
		p.noGT = noGT
		p.expect(tColon, "between the values of ?:")
		if p.bad {
			last.Y = p.badExpr()
			return first
		}
		y := p.binary(1)
		if p.kind() == tQuestion && !p.bad {
			next := &CondExpr{exprNode: exprNode{p.base()}, Cond: y}
			last.Y, last = next, next
			continue
		}
		last.Y = y
		if k := p.kind(); k == tAssign || k > tAssign && k <= tShrAssign {
			if op, ok := assignTokens[k]; ok {
				at := p.pos()
				p.advance()
				a := &AssignExpr{exprNode: exprNode{Base{at}}, Op: op, X: y}
				a.Y = p.initClause()
				last.Y = a
			}
		}
		return first
	}
}

// binary parses operands joined by operators of the precedence least and higher.
func (p *parser) binary(least int8) Expr {
	x := p.unary()
	for n := 0; !p.bad; n++ {
		k := p.kind()
		if k >= tKeyword {
			return x
		}
		prec, op, length := binaryPrec[k], binaryOps[k], 1
		if k == tGt {
			if p.noGT {
				return x
			}
			switch length = p.shiftLength(); length {
			case 2:
				prec, op = shiftPrec, OpShr
			case 3:
				return x
			}
		}
		if prec == 0 || prec < least || p.peek(length) == tEllipsis {
			return x
		}
		if n > maxChain {
			p.tooDeep("more than %d operators in one expression", maxChain)
			return x
		}
		at := p.pos()
		p.i += length - 1
		p.advance()
		x = p.newBinary(at, op, x, p.binary(prec+1))
	}
	return x
}

var unaryOps = map[tok]Op{
	tAdd: OpPlus, tSub: OpNeg, tTilde: OpNot, tNot: OpLNot, tMul: OpDeref, tAnd: OpAddrOf, tInc: OpInc, tDec: OpDec,
}

// unary parses an operand with its prefix operators and casts.
func (p *parser) unary() Expr {
	switch k := p.kind(); k {
	case tIdent, tNumber:
		return p.postfix(p.primary())
	case tAdd, tSub, tTilde, tNot, tMul, tAnd, tInc, tDec:
		if !p.enter() {
			return p.badExpr()
		}
		defer p.leave()
		u := &UnaryExpr{exprNode: exprNode{p.base()}, Op: unaryOps[k]}
		p.advance()
		u.X = p.unary()
		return u
	case tLAnd:
		p.errorf(NotInMetal, "the address of a label is not part of the Metal Shading Language")
		return p.badExpr()
	case kSizeof, kAlignof:
		return p.sizeofExpr()
	case kNew, kDelete, kTypeid, kDynamicCast, kThrow:
		p.errorf(NotInMetal, "'%s' is not part of the Metal Shading Language", p.tok().text)
		return p.badExpr()
	case tLParen:
		if !p.enter() {
			return p.badExpr()
		}
		defer p.leave()
		return p.parenOrCast()
	}
	if !p.enter() {
		return p.badExpr()
	}
	defer p.leave()
	return p.postfix(p.primary())
}

func (p *parser) badExpr() Expr { return &BadExpr{exprNode{p.base()}} }

// parenOrCast parses what starts with a parenthesis: a cast, a fold, or an expression in parentheses.
func (p *parser) parenOrCast() Expr {
	at := p.base()
	p.advance()
	if p.typeStarts() {
		var t *TypeExpr
		ok := p.try(func() bool {
			noGT := p.noGT
			p.noGT = false
			t = p.typeID()
			p.noGT = noGT
			// (float(half(x))) reads as the type of a function, to which nothing is cast.
			return p.accept(tRParen) && t.Kind != TypeFunc
		})
		if ok {
			c := &CastExpr{exprNode: exprNode{at}, Kind: CastC, Type: t}
			if p.kind() == tLBrace {
				c.X = p.braceInit()
				return p.postfix(c)
			}
			c.X = p.unary()
			return c
		}
	}
	noGT := p.noGT
	p.noGT = false
	var x Expr
	if p.kind() == tLBrace {
		x = p.stmtExpr(at)
	} else {
		x = p.parenBody(at)
	}
	p.noGT = noGT
	p.expect(tRParen, "to close a parenthesis")
	return p.postfix(x)
}

// stmtExpr parses { statements } in parentheses.
func (p *parser) stmtExpr(at Base) Expr {
	if p.block == 0 {
		p.errorf(MisplacedStatement, "statements in parentheses stand outside a function")
		return p.badExpr()
	}
	return &StmtExpr{exprNode{at}, p.blockStmt()}
}

// parenBody parses what stands in parentheses, which may be a fold.
func (p *parser) parenBody(at Base) Expr {
	if p.accept(tEllipsis) {
		f := &FoldExpr{exprNode: exprNode{at}}
		f.Op = p.foldOp()
		f.Y = p.unary()
		return f
	}
	x := p.expr()
	if next := p.foldLength(); next > 0 && p.peek(next) == tEllipsis {
		f := &FoldExpr{exprNode: exprNode{at}, X: x}
		f.Op = p.foldOp()
		p.advance()
		if p.kind() != tRParen {
			again := p.foldOp()
			if again != f.Op && !p.bad {
				p.errorf(UnexpectedToken, "the two operators of a fold differ: '%s' and '%s'", f.Op, again)
			}
			f.Y = p.unary()
		}
		return f
	}
	e := &ParenExpr{exprNode: exprNode{at}, X: x}
	return e
}

// foldLength returns how many tokens the binary operator at hand has, 0 if there is none.
func (p *parser) foldLength() int {
	switch k := p.kind(); {
	case k == tComma:
		return 1
	case k == tGt:
		return p.shiftLength()
	case k < tKeyword && binaryPrec[k] > 0:
		return 1
	}
	return 0
}

// foldOp reads the operator of a fold.
func (p *parser) foldOp() Op {
	n := p.foldLength()
	op := OpComma
	switch {
	case n == 0 || n == 3:
		p.errorf(ExpectedExpression, "expected an operator beside '...', found %s", p.tok().name())
		return OpNone
	case n == 2:
		op = OpShr
	case p.kind() != tComma:
		op = binaryOps[p.kind()]
	}
	p.i += n - 1
	p.advance()
	return op
}

// sizeofExpr parses sizeof and alignof.
func (p *parser) sizeofExpr() Expr {
	if !p.enter() {
		return p.badExpr()
	}
	defer p.leave()
	s := &SizeofExpr{exprNode: exprNode{p.base()}, Align: p.kind() == kAlignof}
	p.advance()
	if p.accept(tEllipsis) {
		p.expect(tLParen, "after sizeof...")
		s.Pack = p.tok().text
		p.expect(tIdent, "after sizeof...(")
		p.expect(tRParen, "after the operand of sizeof...")
		return s
	}
	if p.kind() == tLParen && p.typeAfterParen() {
		ok := p.try(func() bool {
			p.advance()
			noGT := p.noGT
			p.noGT = false
			s.Type = p.typeID()
			p.noGT = noGT
			return p.accept(tRParen)
		})
		if ok {
			return s
		}
		s.Type = nil
	}
	s.X = p.unary()
	return s
}

// postfix parses calls, indices and members after x.
func (p *parser) postfix(x Expr) Expr {
	for n := 0; !p.bad; n++ {
		if n > maxChain {
			p.tooDeep("more than %d operators in one expression", maxChain)
		}
		at := p.base()
		switch k := p.kind(); k {
		case tLParen:
			c := &CallExpr{exprNode: exprNode{Base{x.Pos()}}, Fun: x}
			c.Args = p.callArgs()
			x = c
		case tLBrack:
			if !p.enter() {
				return x
			}
			p.advance()
			noGT := p.noGT
			p.noGT = false
			i := &IndexExpr{exprNode: exprNode{at}, X: x}
			if p.kind() == tLBrace { // a list, for an operator[] of a class
				i.Index = p.braceInit()
			} else {
				i.Index = p.expr()
			}
			p.noGT = noGT
			p.leave()
			p.expect(tRBrack, "after an index")
			x = i
		case tDot, tArrow:
			p.advance()
			m := &MemberExpr{exprNode: exprNode{at}, X: x, Arrow: k == tArrow}
			m.Name = p.memberName()
			x = m
		case tDotStar, tArrowStar:
			p.errorf(NotInMetal, "pointers to members are not part of the Metal Shading Language")
		case tInc, tDec:
			p.advance()
			u := &PostfixExpr{exprNode: exprNode{at}, Op: unaryOps[k], X: x}
			x = u
		default:
			return x
		}
	}
	return x
}

// memberName reads the name after . or ->.
func (p *parser) memberName() *Name {
	if p.kind() == kTemplate {
		at := p.pos()
		p.advance()
		n := p.newName()
		n.n.At = at
		n.n.NamePart = NamePart{PartAt: p.pos(), Ident: p.tok().text, Template: true}
		if !p.expectName() {
			return &n.n
		}
		if p.kind() == tLt {
			n.n.Args, n.n.HasArgs = p.templateArgs(), true
		}
		return &n.n
	}
	if p.kind() == tIdent && p.peek(1) != tLt && p.peek(1) != tColonColon {
		n := p.newName()
		n.n = Name{Base: p.base(), NamePart: NamePart{PartAt: p.pos(), Ident: p.tok().text}}
		p.advance()
		return &n.n
	}
	n, _ := p.name(true)
	return &n.n
}

func (p *parser) expectName() bool {
	if p.kind() == tIdent {
		p.advance()
		return true
	}
	p.errorf(UnexpectedToken, "expected a name, found %s", p.tok().name())
	return false
}

// callArgs reads arguments from ( to ).
func (p *parser) callArgs() []Expr {
	if !p.enter() {
		return nil
	}
	p.advance()
	noGT := p.noGT
	p.noGT = false
	var args []Expr
	if p.kind() != tRParen {
		args = p.initClauses(tRParen)
	}
	p.noGT = noGT
	p.leave()
	p.expect(tRParen, "after the arguments")
	return args
}

// initClauses reads expressions and braced lists up to the token end.
func (p *parser) initClauses(end tok) []Expr {
	var buf [4]Expr
	args := buf[:0]
	for !p.bad {
		var x Expr
		if end == tRBrace && p.designatorFollows() {
			x = p.designated()
		} else {
			x = p.initClause()
		}
		if p.kind() == tEllipsis {
			pack := &PackExpr{exprNode: exprNode{p.base()}, X: x}
			p.advance()
			x = pack
		}
		args = append(args, x)
		if !p.accept(tComma) || end == tRBrace && p.kind() == tRBrace {
			break
		}
	}
	return append([]Expr(nil), args...)
}

// designatorFollows tells whether .name = x or [i] = x follows in a braced list.
func (p *parser) designatorFollows() bool {
	switch p.kind() {
	case tDot:
		return p.peek(1) == tIdent
	case tLBrack:
		depth := 0
		for i := p.i; i+1 < len(p.toks); i++ {
			switch p.toks[i].kind {
			case tLBrack, tLParen, tLBrace:
				depth++
			case tRBrack, tRParen, tRBrace:
				if depth--; depth == 0 {
					return p.toks[i+1].kind == tAssign
				}
			case tSemi, tEOF:
				return false
			}
		}
	}
	return false
}

// designated parses .name = x or [i] = x.
func (p *parser) designated() Expr {
	d := &DesignatedExpr{exprNode: exprNode{p.base()}}
	if p.accept(tDot) {
		d.Field = p.tok().text
		p.advance()
	} else {
		p.advance()
		d.Index = p.condExpr()
		if p.accept(tEllipsis) {
			d.Last = p.condExpr()
		}
		p.expect(tRBrack, "after the index of an element")
	}
	if p.kind() != tLBrace {
		p.expect(tAssign, "after a designator")
	}
	d.X = p.initClause()
	return d
}

// initClause parses an expression without commas, or a braced list.
func (p *parser) initClause() Expr {
	if p.kind() == tLBrace {
		return p.braceInit()
	}
	return p.assignExpr()
}

// braceInit parses {a, b, ...}.
func (p *parser) braceInit() *InitList {
	l := &InitList{exprNode: exprNode{p.base()}}
	if !p.enter() {
		return l
	}
	defer p.leave()
	p.advance()
	noGT := p.noGT
	p.noGT = false
	if p.kind() != tRBrace {
		l.Elems = p.initClauses(tRBrace)
	}
	p.noGT = noGT
	p.expect(tRBrace, "at the end of a list")
	return l
}
