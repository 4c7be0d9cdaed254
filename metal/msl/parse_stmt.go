package msl

import "strings"

// blockStmt parses { statements }. Its names end with it.
func (p *parser) blockStmt() *BlockStmt {
	b := &BlockStmt{stmtNode: stmtNode{p.base()}}
	if !p.enter() {
		return b
	}
	defer p.leave()
	m := p.push()
	defer p.pop(m)
	p.advance()
	var buf [8]Stmt
	list := buf[:0]
	for p.kind() != tRBrace && p.kind() != tEOF && !p.over {
		at, depth, block, inner := p.i, p.depth, p.block, p.mark()
		loops, switches, noGT := p.loops, p.switches, p.noGT
		list = p.stmtInto(list)
		if !p.bad {
			continue
		}
		if p.mute > 0 {
			return b
		}
		p.depth, p.block, p.loops, p.switches, p.noGT = depth, block, loops, switches, noGT
		inner.locals, inner.usings = len(p.locals), len(p.blockUsings) // what is declared stays declared
		p.scope, p.level = inner.scope, inner.level
		p.recover(at, false)
	}
	b.List = append([]Stmt(nil), list...)
	b.End = p.pos()
	p.expect(tRBrace, "at the end of a block")
	return b
}

// stmtInto parses a statement, labels before it included, and appends them.
func (p *parser) stmtInto(list []Stmt) []Stmt {
	for (p.kind() == kCase || p.kind() == kDefault) && !p.bad {
		list = append(list, p.caseStmt())
		if p.kind() == tRBrace {
			return list
		}
	}
	return append(list, p.stmt())
}

// subStmt parses the statement that a condition or loop governs.
func (p *parser) subStmt() Stmt {
	if p.kind() == tLBrace {
		return p.blockStmt()
	}
	m := p.push()
	defer p.pop(m)
	at := p.base()
	list := p.stmtInto(nil)
	if len(list) == 1 {
		if _, ok := list[0].(*CaseStmt); !ok {
			return list[0]
		}
	}
	return &BlockStmt{stmtNode: stmtNode{at}, List: list, End: p.pos()}
}

// caseStmt parses case x: or default:.
func (p *parser) caseStmt() Stmt {
	c := &CaseStmt{stmtNode: stmtNode{p.base()}}
	isCase := p.kind() == kCase
	if p.switches == 0 {
		p.errorf(MisplacedStatement, "%s outside switch", p.tok().text)
		return c
	}
	p.advance()
	if isCase {
		c.X = p.condExpr()
		if p.accept(tEllipsis) {
			c.Hi = p.condExpr()
		}
	}
	p.expect(tColon, "after case")
	return c
}

// stmt parses one statement.
func (p *parser) stmt() Stmt {
	at := stmtNode{p.base()}
	if !p.enter() {
		return &EmptyStmt{at}
	}
	defer p.leave()
	if p.kind() == tLBrack && p.peek(1) == tLBrack || p.kind() == kAttribute {
		start := p.i
		p.attributes(nil)
		if p.declStarts() {
			p.i = start
			return p.declStmt()
		}
	}
	switch k := p.kind(); k {
	case tLBrace:
		return p.blockStmt()
	case tSemi:
		p.advance()
		return &EmptyStmt{at}
	case tPragma:
		return p.pragmaStmt()
	case kIf:
		return p.ifStmt()
	case kFor:
		return p.forStmt()
	case kWhile:
		w := &WhileStmt{stmtNode: at, Unroll: p.tok().wishOf()}
		p.advance()
		m := p.push()
		defer p.pop(m)
		_, w.Var, w.Cond = p.condition(false, "while")
		w.Body = p.loopBody()
		return w
	case kDo:
		return p.doStmt()
	case kSwitch:
		return p.switchStmt()
	case kBreak, kContinue:
		if p.loops == 0 && (k == kContinue || p.switches == 0) {
			p.errorf(MisplacedStatement, "%s outside a loop", p.tok().text)
			return &EmptyStmt{at}
		}
		p.advance()
		p.expect(tSemi, "after "+keywords[k-tKeyword])
		if k == kBreak {
			return &BreakStmt{at}
		}
		return &ContinueStmt{at}
	case kReturn:
		r := &ReturnStmt{stmtNode: at}
		p.advance()
		if p.kind() == tLBrace {
			r.X = p.braceInit()
		} else if p.kind() != tSemi {
			r.X = p.expr()
		}
		p.expect(tSemi, "after return")
		return r
	case kGoto, kTry, kAsm, kAsmGNU:
		p.errorf(NotInMetal, "'%s' is not part of the Metal Shading Language", p.tok().text)
		return &EmptyStmt{at}
	case tIdent:
		if p.peek(1) == tColon {
			p.errorf(NotInMetal, "labels are not part of the Metal Shading Language")
			return &EmptyStmt{at}
		}
	}
	if p.declStarts() {
		return p.declStmt()
	}
	e := &ExprStmt{stmtNode: at, X: p.expr()}
	if !p.bad && p.kind() != tSemi {
		p.afterExpr()
	}
	p.expect(tSemi, "after an expression")
	return e
}

// afterExpr improves the message for `foo x;` where foo is no type.
func (p *parser) afterExpr() {
	prev := p.toks[p.i-1]
	if p.kind() == tIdent && prev.kind == tIdent && p.lookup(prev.sym).kind == nkNone && p.tok().flags&fBOL == 0 {
		p.errorAt(p.pos()-1, UnknownType, "unknown type name %s", prev.name())
	}
}

// declStarts tells whether a declaration starts here rather than an expression.
func (p *parser) declStarts() bool {
	switch k := p.kind(); {
	case k == tIdent:
		n := p.peek(1)
		if n != tColonColon && n != tLt {
			if !p.lookup(p.tok().sym).kind.isType() {
				return p.tok().text == "coherent" && p.declWordFollows() || p.tok().text == "_Static_assert" && n == tLParen
			}
			if n != tLParen && n != tLBrace {
				return true
			}
			return n == tLParen && p.vexing()
		}
		isType, next := false, tEOF
		p.try(func() bool {
			_, info := p.name(false)
			isType, next = info.kind.isType(), p.kind()
			return false
		})
		return isType && (next != tLParen && next != tLBrace || next == tLParen && p.vexing())
	case isBasicType(k):
		n := p.peek(1)
		return n != tLParen && n != tLBrace || n == tLParen && p.vexing()
	case k == kTypename || k == kDecltype || k == tColonColon:
		return p.vexing()
	}
	switch p.kind() {
	case kAuto, kConst, kConstexpr, kVolatile, kDevice, kConstant, kThread, kThreadgroup, kThreadgroupImageblock,
		kRayData, kObjectData, kStatic, kStruct, kClass, kUnion, kEnum, kTypedef, kUsing, kStaticAssert, kExtern,
		kInline, kInlineGNU, kNamespace, kRegister, kAlignas, kThreadLocal, kTemplate, kRestrict, kKernel:
		return true
	}
	return false
}

// vexing decides whether T(...) at hand declares something: it does if it can.
func (p *parser) vexing() bool {
	start := p.i
	yes := p.try(func() bool {
		sr := p.specifiers(inTypeID)
		if sr.typ == nil {
			return false
		}
		d := p.declarator(sr.typ, declNamed)
		if d.name == nil || d.sym == 0 {
			return false
		}
		switch p.kind() {
		case tSemi, tComma, tAssign, tLBrace, tLParen, tColon, tRParen:
			return true
		}
		return false
	})
	p.i = start
	return yes
}

// declStmt parses a declaration as a statement.
func (p *parser) declStmt() Stmt {
	d := &DeclStmt{stmtNode: stmtNode{p.base()}}
	if p.kind() == kTemplate {
		p.errorf(BadTemplate, "a template cannot stand in a function: is a '}' missing before it?")
		return d
	}
	p.declaration(inBlock, &d.Decls)
	return d
}

// condition parses (init; cond) or (cond) of if, while and switch; cond may declare a variable.
func (p *parser) condition(init bool, word string) (first Stmt, v *VarDecl, x Expr) {
	if !p.expect(tLParen, "after "+word) {
		return nil, nil, p.badExpr()
	}
	if init && p.declStarts() {
		var decls []Decl
		at := stmtNode{p.base()}
		isInit := p.try(func() bool {
			var tmp []Decl
			p.simpleDeclaration(inBlock, tmplNone, &tmp)
			return p.toks[p.i-1].kind == tSemi
		})
		if isInit {
			p.i = p.find(at.At)
			p.simpleDeclaration(inBlock, tmplNone, &decls)
			first = &DeclStmt{stmtNode: at, Decls: decls}
		}
	}
	if p.condDeclares() {
		v = p.condVar()
	} else {
		x = p.expr()
		if init && p.kind() == tSemi && first == nil {
			first = &ExprStmt{stmtNode: stmtNode{Base{x.Pos()}}, X: x}
			p.advance()
			if p.condDeclares() {
				v, x = p.condVar(), nil
			} else {
				x = p.expr()
			}
		}
	}
	p.expect(tRParen, "after the condition")
	return first, v, x
}

// find returns the index of the token at a place of this unit.
func (p *parser) find(at Pos) int { return int(at - p.f.base - 1) }

// condDeclares reports whether a condition declares a variable: int(i) starts like a declaration of i, but no
// initialiser follows.
func (p *parser) condDeclares() bool {
	if !p.declStarts() {
		return false
	}
	isExpr := false
	p.try(func() bool {
		p.expr()
		isExpr = !p.bad && (p.kind() == tRParen || p.kind() == tSemi)
		return false
	})
	return !isExpr
}

// condVar parses the variable that a condition declares.
func (p *parser) condVar() *VarDecl {
	sr := p.specifiers(inBlock)
	v := &VarDecl{declNode: declNode{p.base()}, Specs: sr.specs}
	if sr.typ == nil {
		p.noType(&sr)
		return v
	}
	d := p.declarator(sr.typ, declNamed)
	v.At, v.Type, v.Name = d.at, d.typ, d.name
	if d.sym == 0 || d.fn != nil {
		p.errorAt(d.at, BadDeclarator, "a condition declares one variable")
		return v
	}
	p.declare(d.sym, entry{kind: nkValue})
	if p.kind() != tAssign && p.kind() != tLBrace {
		p.expect(tAssign, "after the variable of a condition")
		return v
	}
	p.initializer(v)
	return v
}

// ifStmt parses if; a chain of else ifs is parsed in a loop, as it may be longer than statements may be deep.
func (p *parser) ifStmt() Stmt {
	var first, last *IfStmt
	m := p.push()
	defer p.pop(m)
	for n := 0; ; n++ {
		if n > maxChain {
			p.tooDeep("more than %d else ifs", maxChain)
		}
		s := &IfStmt{stmtNode: stmtNode{p.base()}}
		if first == nil {
			first = s
		} else {
			last.Else = s
		}
		last = s
		p.advance()
		s.Constexpr = p.accept(kConstexpr)
		s.Init, s.Var, s.Cond = p.condition(true, "if")
		if p.bad {
			return first
		}
		p.attributes(nil)
		s.Then = p.subStmt()
		if p.bad || !p.accept(kElse) {
			return first
		}
		if p.kind() != kIf {
			p.attributes(nil)
			s.Else = p.subStmt()
			return first
		}
	}
}

// forStmt parses for.
func (p *parser) forStmt() Stmt {
	f := &ForStmt{stmtNode: stmtNode{p.base()}, Unroll: p.tok().wishOf()}
	p.advance()
	if !p.expect(tLParen, "after for") {
		return f
	}
	m := p.push()
	defer p.pop(m)
	at := stmtNode{p.base()}
	switch {
	case p.kind() == tSemi:
		p.advance()
	case p.declStarts():
		if p.rangeFor() {
			return p.rangeForStmt(f.stmtNode, f.Unroll)
		}
		f.Init = p.declStmt()
	default:
		f.Init = &ExprStmt{stmtNode: at, X: p.expr()}
		p.expect(tSemi, "after the first part of for")
	}
	if p.bad {
		return f
	}
	if p.kind() != tSemi {
		if p.declStarts() {
			f.Var = p.condVar()
		} else {
			f.Cond = p.expr()
		}
	}
	p.expect(tSemi, "after the condition of for")
	if p.kind() != tRParen {
		f.Post = p.expr()
	}
	p.expect(tRParen, "after for (...")
	f.Body = p.loopBody()
	return f
}

// rangeFor tells whether a declaration at hand is that of for (T x : range).
func (p *parser) rangeFor() bool {
	depth := 0
	for i := p.i; i < len(p.toks); i++ {
		switch p.toks[i].kind {
		case tLParen, tLBrack, tLBrace:
			depth++
		case tRParen, tRBrack, tRBrace:
			if depth--; depth < 0 {
				return false
			}
		case tSemi, tQuestion, tAssign, tEOF:
			if depth == 0 {
				return false
			}
		case tColon:
			if depth == 0 {
				return true
			}
		}
	}
	return false
}

// rangeForStmt parses for (T x : range), from the declaration on.
func (p *parser) rangeForStmt(at stmtNode, unroll uint8) Stmt {
	f := &RangeForStmt{stmtNode: at, Unroll: unroll}
	sr := p.specifiers(inBlock)
	if sr.typ == nil {
		p.noType(&sr)
		return f
	}
	var syms []int32
	if sr.typ.Kind == TypeAuto && p.bindingFollows() {
		f.Var, f.Names, syms = p.boundNames(&sr, p.base())
	} else {
		d := p.declarator(sr.typ, declNamed)
		f.Var = &VarDecl{declNode: declNode{Base{d.at}}, Specs: sr.specs, Type: d.typ, Name: d.name}
		if d.sym == 0 {
			p.errorAt(d.at, BadDeclarator, "for declares one variable")
			return f
		}
		syms = append(syms, d.sym)
	}
	p.expect(tColon, "after the variable of for")
	f.Range = p.initClause()
	for _, s := range syms {
		p.declare(s, entry{kind: nkValue})
	}
	p.expect(tRParen, "after for (...")
	f.Body = p.loopBody()
	return f
}

func (p *parser) loopBody() Stmt {
	if p.bad {
		return &EmptyStmt{stmtNode{p.base()}}
	}
	p.loops++
	p.attributes(nil)
	s := p.subStmt()
	p.loops--
	return s
}

func (p *parser) doStmt() Stmt {
	d := &DoStmt{stmtNode: stmtNode{p.base()}, Unroll: p.tok().wishOf()}
	p.advance()
	d.Body = p.loopBody()
	if !p.expect(kWhile, "after the body of do") || !p.expect(tLParen, "after while") {
		return d
	}
	d.Cond = p.expr()
	p.expect(tRParen, "after the condition")
	p.expect(tSemi, "after do ... while (...)")
	return d
}

func (p *parser) switchStmt() Stmt {
	s := &SwitchStmt{stmtNode: stmtNode{p.base()}}
	p.advance()
	m := p.push()
	defer p.pop(m)
	s.Init, s.Var, s.Cond = p.condition(true, "switch")
	if p.bad {
		return s
	}
	p.switches++
	body := p.subStmt()
	p.switches--
	b, ok := body.(*BlockStmt)
	if !ok {
		b = &BlockStmt{stmtNode: stmtNode{Base{body.Pos()}}, List: []Stmt{body}, End: p.pos()}
	}
	s.Body = b
	return s
}

// pragmaStmt makes a statement of a pragma's token.
func (p *parser) pragmaStmt() *PragmaStmt {
	s := &PragmaStmt{stmtNode: stmtNode{p.base()}}
	s.Name, s.Value, _ = strings.Cut(p.tok().text, "=")
	p.advance()
	return s
}
