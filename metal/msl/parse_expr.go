package msl

// exprParser parses expressions.
type exprParser struct {
	in          *cursor
	declarators *declaratorParser
	names       *nameParser
	nodes       *nodes
	scopes      *scopes
	stmts       *stmtParser
	types       *typeParser
}

// binaryPrec is the precedence of a binary operator, 0 for other tokens; from || to *.
var binaryPrec = [tKeyword + 1]int8{
	tLOr: 1, tLAnd: 2, tOr: 3, tXor: 4, tAnd: 5, tEq: 6, tNe: 6, tLt: 7, tGt: 7, tLe: 7, tGe: 7, tShl: 8,
	tAdd: 9, tSub: 9, tMul: 10, tDiv: 10, tRem: 10,
}

const shiftPrec = 8

var binaryOperators = [tKeyword]Operator{
	tLOr: OperatorLOr, tLAnd: OperatorLAnd, tOr: OperatorOr, tXor: OperatorXor, tAnd: OperatorAnd, tEq: OperatorEq,
	tNe: OperatorNe, tLt: OperatorLt, tGt: OperatorGt, tLe: OperatorLe, tGe: OperatorGe, tShl: OperatorShl,
	tAdd: OperatorAdd, tSub: OperatorSub, tMul: OperatorMul, tDiv: OperatorDiv, tRem: OperatorRem,
}

var assignTokens = map[tok]Operator{
	tAssign: NoOperator, tAddAssign: OperatorAdd, tSubAssign: OperatorSub, tMulAssign: OperatorMul,
	tDivAssign: OperatorDiv, tRemAssign: OperatorRem, tAndAssign: OperatorAnd, tOrAssign: OperatorOr,
	tXorAssign: OperatorXor, tShlAssign: OperatorShl,
}

// expr parses an expression, commas included.
func (p *exprParser) expr() Expr {
	x := p.assignExpr()
	for n := 0; p.in.kind() == tComma && p.in.peek(1) != tEllipsis && !p.in.bad; n++ {
		if n > maxChain {
			p.in.tooDeep("more than %d operators in one expression", maxChain)
		}
		at := p.in.pos()
		p.in.advance()
		x = p.nodes.newBinary(at, OperatorComma, x, p.assignExpr())
	}
	return x
}

// assignExpr parses an expression without commas.
func (p *exprParser) assignExpr() Expr {
	if p.in.kind() == kThrow {
		p.in.errorf(NotInMetal, "exceptions are not part of the Metal Shading Language")
	}
	x := p.condExpr()
	k := p.in.kind()
	if k < tAssign || k > tShrAssign {
		return x
	}
	at, op := p.in.pos(), NoOperator
	if k == tGt {
		if p.in.noGT || p.in.shiftLength() != 3 {
			return x
		}
		p.in.i += 2
		op = OperatorShr
	} else {
		var ok bool
		if op, ok = assignTokens[k]; !ok {
			return x
		}
	}
	if !p.in.enter() {
		return x
	}
	defer p.in.leave()
	p.in.advance()
	a := &AssignExpr{exprNode: exprNode{Base{at}}, Operator: op, X: x}
	a.Y = p.initClause()
	return a
}

// condExpr parses an expression without commas and assignments, such as a constant.
func (p *exprParser) condExpr() Expr {
	x := p.binary(1)
	if p.in.kind() != tQuestion || p.in.bad {
		return x
	}
	// A chain a ? b : c ? d : e is parsed in a loop: it may be longer than expressions may be deep.
	first := &CondExpr{exprNode: exprNode{p.in.base()}, Cond: x}
	last := first
	for n := 0; ; n++ {
		if n > maxChain {
			p.in.tooDeep("more than %d ?: in one expression", maxChain)
		}
		p.in.advance()
		noGT := p.in.noGT
		p.in.noGT = false
		if !p.in.enter() {
			return first
		}
		if p.in.kind() != tColon {
			last.X = p.expr()
		}
		p.in.leave()
		p.in.noGT = noGT
		p.in.expect(tColon, "between the values of ?:")
		if p.in.bad {
			last.Y = p.badExpr()
			return first
		}
		y := p.binary(1)
		if p.in.kind() == tQuestion && !p.in.bad {
			next := &CondExpr{exprNode: exprNode{p.in.base()}, Cond: y}
			last.Y, last = next, next
			continue
		}
		last.Y = y
		if k := p.in.kind(); k == tAssign || k > tAssign && k <= tShrAssign {
			if op, ok := assignTokens[k]; ok {
				at := p.in.pos()
				p.in.advance()
				a := &AssignExpr{exprNode: exprNode{Base{at}}, Operator: op, X: y}
				a.Y = p.initClause()
				last.Y = a
			}
		}
		return first
	}
}

// binary parses operands joined by operators of the precedence least and higher.
func (p *exprParser) binary(least int8) Expr {
	x := p.unary()
	for n := 0; !p.in.bad; n++ {
		k := p.in.kind()
		if k >= tKeyword {
			return x
		}
		prec, op, length := binaryPrec[k], binaryOperators[k], 1
		if k == tGt {
			if p.in.noGT {
				return x
			}
			switch length = p.in.shiftLength(); length {
			case 2:
				prec, op = shiftPrec, OperatorShr
			case 3:
				return x
			}
		}
		if prec == 0 || prec < least || p.in.peek(length) == tEllipsis {
			return x
		}
		if n > maxChain {
			p.in.tooDeep("more than %d operators in one expression", maxChain)
			return x
		}
		at := p.in.pos()
		p.in.i += length - 1
		p.in.advance()
		x = p.nodes.newBinary(at, op, x, p.binary(prec+1))
	}
	return x
}

var unaryOperators = map[tok]Operator{
	tAdd: OperatorPlus, tSub: OperatorNeg, tTilde: OperatorNot, tNot: OperatorLNot, tMul: OperatorDeref,
	tAnd: OperatorAddrOf, tInc: OperatorInc, tDec: OperatorDec,
}

// unary parses an operand with its prefix operators and casts.
func (p *exprParser) unary() Expr {
	switch k := p.in.kind(); k {
	case tIdent, tNumber:
		return p.postfix(p.primary())
	case tAdd, tSub, tTilde, tNot, tMul, tAnd, tInc, tDec:
		if !p.in.enter() {
			return p.badExpr()
		}
		defer p.in.leave()
		u := &UnaryExpr{exprNode: exprNode{p.in.base()}, Operator: unaryOperators[k]}
		p.in.advance()
		u.X = p.unary()
		return u
	case tLAnd:
		p.in.errorf(NotInMetal, "the address of a label is not part of the Metal Shading Language")
		return p.badExpr()
	case kSizeof, kAlignof:
		return p.sizeofExpr()
	case kNew, kDelete, kTypeid, kDynamicCast, kThrow:
		p.in.errorf(NotInMetal, "'%s' is not part of the Metal Shading Language", p.in.tok().text)
		return p.badExpr()
	case tLParen:
		if !p.in.enter() {
			return p.badExpr()
		}
		defer p.in.leave()
		return p.parenOrCast()
	}
	if !p.in.enter() {
		return p.badExpr()
	}
	defer p.in.leave()
	return p.postfix(p.primary())
}

func (p *exprParser) badExpr() Expr { return &BadExpr{exprNode{p.in.base()}} }

// parenOrCast parses what starts with a parenthesis: a cast, a fold, or an expression in parentheses.
func (p *exprParser) parenOrCast() Expr {
	at := p.in.base()
	p.in.advance()
	if p.names.typeStarts() {
		var t *TypeExpr
		ok := p.scopes.try(func() bool {
			noGT := p.in.noGT
			p.in.noGT = false
			t = p.types.typeID()
			p.in.noGT = noGT
			// (float(half(x))) reads as the type of a function, to which nothing is cast.
			return p.in.accept(tRParen) && t.Kind != TypeFunc
		})
		if ok {
			c := &CastExpr{exprNode: exprNode{at}, Kind: CastC, Type: t}
			if p.in.kind() == tLBrace {
				c.X = p.braceInit()
				return p.postfix(c)
			}
			c.X = p.unary()
			return c
		}
	}
	noGT := p.in.noGT
	p.in.noGT = false
	var x Expr
	if p.in.kind() == tLBrace {
		x = p.stmtExpr(at)
	} else {
		x = p.parenBody(at)
	}
	p.in.noGT = noGT
	p.in.expect(tRParen, "to close a parenthesis")
	return p.postfix(x)
}

// stmtExpr parses { statements } in parentheses.
func (p *exprParser) stmtExpr(at Base) Expr {
	if p.scopes.block == 0 {
		p.in.errorf(MisplacedStatement, "statements in parentheses stand outside a function")
		return p.badExpr()
	}
	return &StmtExpr{exprNode{at}, p.stmts.blockStmt()}
}

// parenBody parses what stands in parentheses, which may be a fold.
func (p *exprParser) parenBody(at Base) Expr {
	if p.in.accept(tEllipsis) {
		f := &FoldExpr{exprNode: exprNode{at}}
		f.Operator = p.foldOperator()
		f.Y = p.unary()
		return f
	}
	x := p.expr()
	if next := p.foldLength(); next > 0 && p.in.peek(next) == tEllipsis {
		f := &FoldExpr{exprNode: exprNode{at}, X: x}
		f.Operator = p.foldOperator()
		p.in.advance()
		if p.in.kind() != tRParen {
			again := p.foldOperator()
			if again != f.Operator && !p.in.bad {
				p.in.errorf(UnexpectedToken, "the two operators of a fold differ: '%s' and '%s'", f.Operator, again)
			}
			f.Y = p.unary()
		}
		return f
	}
	e := &ParenExpr{exprNode: exprNode{at}, X: x}
	return e
}

// foldLength returns how many tokens the binary operator at hand has, 0 if there is none.
func (p *exprParser) foldLength() int {
	switch k := p.in.kind(); {
	case k == tComma:
		return 1
	case k == tGt:
		return p.in.shiftLength()
	case k < tKeyword && binaryPrec[k] > 0:
		return 1
	}
	return 0
}

// foldOperator reads the operator of a fold.
func (p *exprParser) foldOperator() Operator {
	n := p.foldLength()
	op := OperatorComma
	switch {
	case n == 0 || n == 3:
		p.in.errorf(ExpectedExpression, "expected an operator beside '...', found %s", p.in.tok().name())
		return NoOperator
	case n == 2:
		op = OperatorShr
	case p.in.kind() != tComma:
		op = binaryOperators[p.in.kind()]
	}
	p.in.i += n - 1
	p.in.advance()
	return op
}

// sizeofExpr parses sizeof and alignof.
func (p *exprParser) sizeofExpr() Expr {
	if !p.in.enter() {
		return p.badExpr()
	}
	defer p.in.leave()
	s := &SizeofExpr{exprNode: exprNode{p.in.base()}, Align: p.in.kind() == kAlignof}
	p.in.advance()
	if p.in.accept(tEllipsis) {
		p.in.expect(tLParen, "after sizeof...")
		s.Pack = p.in.tok().text
		p.in.expect(tIdent, "after sizeof...(")
		p.in.expect(tRParen, "after the operand of sizeof...")
		return s
	}
	if p.in.kind() == tLParen && p.declarators.typeAfterParen() {
		ok := p.scopes.try(func() bool {
			p.in.advance()
			noGT := p.in.noGT
			p.in.noGT = false
			s.Type = p.types.typeID()
			p.in.noGT = noGT
			return p.in.accept(tRParen)
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
func (p *exprParser) postfix(x Expr) Expr {
	for n := 0; !p.in.bad; n++ {
		if n > maxChain {
			p.in.tooDeep("more than %d operators in one expression", maxChain)
		}
		at := p.in.base()
		switch k := p.in.kind(); k {
		case tLParen:
			c := &CallExpr{exprNode: exprNode{Base{x.Pos()}}, Fun: x}
			c.Args = p.callArgs()
			x = c
		case tLBrack:
			if !p.in.enter() {
				return x
			}
			p.in.advance()
			noGT := p.in.noGT
			p.in.noGT = false
			i := &IndexExpr{exprNode: exprNode{at}, X: x}
			if p.in.kind() == tLBrace { // a list, for an operator[] of a class
				i.Index = p.braceInit()
			} else {
				i.Index = p.expr()
			}
			p.in.noGT = noGT
			p.in.leave()
			p.in.expect(tRBrack, "after an index")
			x = i
		case tDot, tArrow:
			p.in.advance()
			m := &MemberExpr{exprNode: exprNode{at}, X: x, Arrow: k == tArrow}
			m.Name = p.memberName()
			x = m
		case tDotStar, tArrowStar:
			p.in.errorf(NotInMetal, "pointers to members are not part of the Metal Shading Language")
		case tInc, tDec:
			p.in.advance()
			u := &PostfixExpr{exprNode: exprNode{at}, Operator: unaryOperators[k], X: x}
			x = u
		default:
			return x
		}
	}
	return x
}

// memberName reads the name after . or ->.
func (p *exprParser) memberName() *Name {
	if p.in.kind() == kTemplate {
		at := p.in.pos()
		p.in.advance()
		n := p.nodes.newName()
		n.n.At = at
		n.n.NamePart = NamePart{PartAt: p.in.pos(), Ident: p.in.tok().text, Template: true}
		if !p.in.expectName() {
			return &n.n
		}
		if p.in.kind() == tLt {
			n.n.Args, n.n.HasArgs = p.names.templateArgs(), true
		}
		return &n.n
	}
	if p.in.kind() == tIdent && p.in.peek(1) != tLt && p.in.peek(1) != tColonColon {
		n := p.nodes.newName()
		n.n = Name{Base: p.in.base(), NamePart: NamePart{PartAt: p.in.pos(), Ident: p.in.tok().text}}
		p.in.advance()
		return &n.n
	}
	n, _ := p.names.name(true)
	return &n.n
}

// callArgs reads arguments from ( to ).
func (p *exprParser) callArgs() []Expr {
	if !p.in.enter() {
		return nil
	}
	p.in.advance()
	noGT := p.in.noGT
	p.in.noGT = false
	var args []Expr
	if p.in.kind() != tRParen {
		args = p.initClauses(tRParen)
	}
	p.in.noGT = noGT
	p.in.leave()
	p.in.expect(tRParen, "after the arguments")
	return args
}

// initClauses reads expressions and braced lists up to the token end.
func (p *exprParser) initClauses(end tok) []Expr {
	var buf [4]Expr
	args := buf[:0]
	for !p.in.bad {
		var x Expr
		if end == tRBrace && p.in.designatorFollows() {
			x = p.designated()
		} else {
			x = p.initClause()
		}
		if p.in.kind() == tEllipsis {
			pack := &PackExpr{exprNode: exprNode{p.in.base()}, X: x}
			p.in.advance()
			x = pack
		}
		args = append(args, x)
		if !p.in.accept(tComma) || end == tRBrace && p.in.kind() == tRBrace {
			break
		}
	}
	return append([]Expr(nil), args...)
}

// designated parses .name = x or [i] = x.
func (p *exprParser) designated() Expr {
	d := &DesignatedExpr{exprNode: exprNode{p.in.base()}}
	if p.in.accept(tDot) {
		d.Field = p.in.tok().text
		p.in.advance()
	} else {
		p.in.advance()
		d.Index = p.condExpr()
		if p.in.accept(tEllipsis) {
			d.Last = p.condExpr()
		}
		p.in.expect(tRBrack, "after the index of an element")
	}
	if p.in.kind() != tLBrace {
		p.in.expect(tAssign, "after a designator")
	}
	d.X = p.initClause()
	return d
}

// initClause parses an expression without commas, or a braced list.
func (p *exprParser) initClause() Expr {
	if p.in.kind() == tLBrace {
		return p.braceInit()
	}
	return p.assignExpr()
}

// braceInit parses {a, b, ...}.
func (p *exprParser) braceInit() *InitList {
	l := &InitList{exprNode: exprNode{p.in.base()}}
	if !p.in.enter() {
		return l
	}
	defer p.in.leave()
	p.in.advance()
	noGT := p.in.noGT
	p.in.noGT = false
	if p.in.kind() != tRBrace {
		l.Elems = p.initClauses(tRBrace)
	}
	p.in.noGT = noGT
	p.in.expect(tRBrace, "at the end of a list")
	return l
}
