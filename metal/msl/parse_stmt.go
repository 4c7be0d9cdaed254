package msl

import "strings"

// stmtParser parses statements.
type stmtParser struct {
	in          *cursor
	scopes      *scopes
	names       *nameParser
	types       *typeParser
	declarators *declaratorParser
	exprs       *exprParser
	decls       *declParser
	classes     *classParser

	around enclosing
}

// enclosing counts the loops and switches around a statement in its function: break and continue leave them.
type enclosing struct{ loops, switches int }

// function parses what belongs to a function's inside: its body, or that of a lambda. What is around the function is
// not around its statements.
func (p *stmtParser) function(parse func()) {
	block, around, noGT, late := p.scopes.block, p.around, p.in.noGT, p.classes.late
	p.scopes.block++
	p.around, p.in.noGT, p.classes.late = enclosing{}, false, postponed{}
	parse()
	p.scopes.block, p.around, p.in.noGT, p.classes.late = block, around, noGT, late
}

// blockStmt parses { statements }. Its names end with it.
func (p *stmtParser) blockStmt() *BlockStmt {
	b := &BlockStmt{stmtNode: stmtNode{p.in.base()}}
	if !p.in.enter() {
		return b
	}
	defer p.in.leave()
	m := p.scopes.push()
	defer p.scopes.pop(m)
	p.in.advance()
	var buf [8]Stmt
	list := buf[:0]
	for p.in.kind() != tRBrace && p.in.kind() != tEOF && !p.in.over {
		at, depth, block, inner := p.in.i, p.in.depth, p.scopes.block, p.scopes.mark()
		around, noGT := p.around, p.in.noGT
		list = p.stmtInto(list)
		if !p.in.bad {
			continue
		}
		if p.in.mute > 0 {
			return b
		}
		p.in.depth, p.scopes.block, p.around, p.in.noGT = depth, block, around, noGT
		inner.locals, inner.usings = len(p.scopes.locals), len(p.scopes.blockUsings) // what is declared stays declared
		p.scopes.scope, p.scopes.level = inner.scope, inner.level
		p.in.recover(at, false)
	}
	b.List = append([]Stmt(nil), list...)
	p.in.expect(tRBrace, "at the end of a block")
	return b
}

// stmtInto parses a statement, labels before it included, and appends them.
func (p *stmtParser) stmtInto(list []Stmt) []Stmt {
	for (p.in.kind() == kCase || p.in.kind() == kDefault) && !p.in.bad {
		list = append(list, p.caseStmt())
		if p.in.kind() == tRBrace {
			return list
		}
	}
	return append(list, p.stmt())
}

// subStmt parses the statement that a condition or loop governs.
func (p *stmtParser) subStmt() Stmt {
	if p.in.kind() == tLBrace {
		return p.blockStmt()
	}
	m := p.scopes.push()
	defer p.scopes.pop(m)
	at := p.in.base()
	list := p.stmtInto(nil)
	if len(list) == 1 {
		if _, ok := list[0].(*CaseStmt); !ok {
			return list[0]
		}
	}
	return &BlockStmt{stmtNode: stmtNode{at}, List: list}
}

// caseStmt parses case x: or default:.
func (p *stmtParser) caseStmt() Stmt {
	c := &CaseStmt{stmtNode: stmtNode{p.in.base()}}
	isCase := p.in.kind() == kCase
	if p.around.switches == 0 {
		p.in.errorf(MisplacedStatement, "%s outside switch", p.in.tok().text)
		return c
	}
	p.in.advance()
	if isCase {
		c.X = p.exprs.condExpr()
		if p.in.accept(tEllipsis) {
			c.Hi = p.exprs.condExpr()
		}
	}
	p.in.expect(tColon, "after case")
	return c
}

// stmt parses one statement.
func (p *stmtParser) stmt() Stmt {
	at := stmtNode{p.in.base()}
	if !p.in.enter() {
		return &EmptyStmt{at}
	}
	defer p.in.leave()
	if p.in.kind() == tLBrack && p.in.peek(1) == tLBrack || p.in.kind() == kAttribute {
		start := p.in.i
		p.types.attributes(nil)
		if p.declStarts() {
			p.in.i = start
			return p.declStmt()
		}
	}
	switch k := p.in.kind(); k {
	case tLBrace:
		return p.blockStmt()
	case tSemi:
		p.in.advance()
		return &EmptyStmt{at}
	case tPragma:
		return p.pragmaStmt()
	case kIf:
		return p.ifStmt()
	case kFor:
		return p.forStmt()
	case kWhile:
		w := &WhileStmt{stmtNode: at, Unroll: p.in.tok().wishOf()}
		p.in.advance()
		m := p.scopes.push()
		defer p.scopes.pop(m)
		_, w.Var, w.Cond = p.condition(false, "while")
		w.Body = p.loopBody()
		return w
	case kDo:
		return p.doStmt()
	case kSwitch:
		return p.switchStmt()
	case kBreak, kContinue:
		if p.around.loops == 0 && (k == kContinue || p.around.switches == 0) {
			p.in.errorf(MisplacedStatement, "%s outside a loop", p.in.tok().text)
			return &EmptyStmt{at}
		}
		p.in.advance()
		p.in.expect(tSemi, "after "+keywords[k-tKeyword])
		if k == kBreak {
			return &BreakStmt{at}
		}
		return &ContinueStmt{at}
	case kReturn:
		r := &ReturnStmt{stmtNode: at}
		p.in.advance()
		if p.in.kind() == tLBrace {
			r.X = p.exprs.braceInit()
		} else if p.in.kind() != tSemi {
			r.X = p.exprs.expr()
		}
		p.in.expect(tSemi, "after return")
		return r
	case kGoto, kTry, kAsm, kAsmGNU:
		p.in.errorf(NotInMetal, "'%s' is not part of the Metal Shading Language", p.in.tok().text)
		return &EmptyStmt{at}
	case tIdent:
		if p.in.peek(1) == tColon {
			p.in.errorf(NotInMetal, "labels are not part of the Metal Shading Language")
			return &EmptyStmt{at}
		}
	}
	if p.declStarts() {
		return p.declStmt()
	}
	e := &ExprStmt{stmtNode: at, X: p.exprs.expr()}
	if !p.in.bad && p.in.kind() != tSemi {
		p.afterExpr()
	}
	p.in.expect(tSemi, "after an expression")
	return e
}

// afterExpr improves the message for `foo x;` where foo is no type.
func (p *stmtParser) afterExpr() {
	prev := p.in.toks[p.in.i-1]
	if p.in.kind() == tIdent && p.in.tok().flags&fBOL == 0 && prev.kind == tIdent &&
		p.scopes.lookup(prev.sym).kind == nkNone {
		p.in.errorAt(p.in.pos()-1, UnknownType, "unknown type name %s", prev.name())
	}
}

// declStarts tells whether a declaration starts here rather than an expression.
func (p *stmtParser) declStarts() bool {
	switch k := p.in.kind(); {
	case k == tIdent:
		n := p.in.peek(1)
		if n != tColonColon && n != tLt {
			if !p.scopes.lookup(p.in.tok().sym).kind.isType() {
				word := p.in.tok().text
				return word == "coherent" && p.in.declWordFollows() || word == "_Static_assert" && n == tLParen
			}
			if n != tLParen && n != tLBrace {
				return true
			}
			return n == tLParen && p.vexing()
		}
		isType, next := false, tEOF
		p.scopes.try(func() bool {
			_, info := p.names.name(false)
			isType, next = info.kind.isType(), p.in.kind()
			return false
		})
		return isType && (next != tLParen && next != tLBrace || next == tLParen && p.vexing())
	case isBasicType(k):
		n := p.in.peek(1)
		return n != tLParen && n != tLBrace || n == tLParen && p.vexing()
	case k == kTypename || k == kDecltype || k == tColonColon:
		return p.vexing()
	}
	switch p.in.kind() {
	case kAuto, kConst, kConstexpr, kVolatile, kDevice, kConstant, kThread, kThreadgroup, kThreadgroupImageblock,
		kRayData, kObjectData, kStatic, kStruct, kClass, kUnion, kEnum, kTypedef, kUsing, kStaticAssert, kExtern,
		kInline, kInlineGNU, kNamespace, kRegister, kAlignas, kThreadLocal, kTemplate, kRestrict, kKernel:
		return true
	}
	return false
}

// vexing decides whether T(...) at hand declares something: it does if it can.
func (p *stmtParser) vexing() bool {
	start := p.in.i
	yes := p.scopes.try(func() bool {
		sr := p.types.specifiers(inTypeID)
		if sr.typ == nil {
			return false
		}
		d := p.declarators.declarator(sr.typ, declNamed)
		if d.name == nil || d.sym == 0 {
			return false
		}
		switch p.in.kind() {
		case tSemi, tComma, tAssign, tLBrace, tLParen, tColon, tRParen:
			return true
		}
		return false
	})
	p.in.i = start
	return yes
}

// declStmt parses a declaration as a statement.
func (p *stmtParser) declStmt() Stmt {
	d := &DeclStmt{stmtNode: stmtNode{p.in.base()}}
	if p.in.kind() == kTemplate {
		p.in.errorf(BadTemplate, "a template cannot stand in a function: is a '}' missing before it?")
		return d
	}
	p.decls.declaration(inBlock, &d.Decls)
	return d
}

// condition parses (init; cond) or (cond) of if, while and switch; cond may declare a variable.
func (p *stmtParser) condition(init bool, word string) (first Stmt, v *VarDecl, x Expr) {
	if !p.in.expect(tLParen, "after "+word) {
		return nil, nil, p.exprs.badExpr()
	}
	if init && p.declStarts() {
		var decls []Decl
		at := stmtNode{p.in.base()}
		isInit := p.scopes.try(func() bool {
			var tmp []Decl
			p.decls.simpleDeclaration(inBlock, tmplNone, &tmp)
			return p.in.toks[p.in.i-1].kind == tSemi
		})
		if isInit {
			p.in.i = p.in.find(at.At)
			p.decls.simpleDeclaration(inBlock, tmplNone, &decls)
			first = &DeclStmt{stmtNode: at, Decls: decls}
		}
	}
	if p.condDeclares() {
		v = p.condVar()
	} else {
		x = p.exprs.expr()
		if init && p.in.kind() == tSemi && first == nil {
			first = &ExprStmt{stmtNode: stmtNode{Base{x.Pos()}}, X: x}
			p.in.advance()
			if p.condDeclares() {
				v, x = p.condVar(), nil
			} else {
				x = p.exprs.expr()
			}
		}
	}
	p.in.expect(tRParen, "after the condition")
	return first, v, x
}

// condDeclares reports whether a condition declares a variable: int(i) starts like a declaration of i, but no
// initialiser follows.
func (p *stmtParser) condDeclares() bool {
	if !p.declStarts() {
		return false
	}
	isExpr := false
	p.scopes.try(func() bool {
		p.exprs.expr()
		isExpr = !p.in.bad && (p.in.kind() == tRParen || p.in.kind() == tSemi)
		return false
	})
	return !isExpr
}

// condVar parses the variable that a condition declares.
func (p *stmtParser) condVar() *VarDecl {
	sr := p.types.specifiers(inBlock)
	v := &VarDecl{declNode: declNode{p.in.base()}, Specs: sr.specs}
	if sr.typ == nil {
		p.types.noType(&sr)
		return v
	}
	d := p.declarators.declarator(sr.typ, declNamed)
	v.At, v.Type, v.Name = d.at, d.typ, d.name
	if d.sym == 0 || d.fn != nil {
		p.in.errorAt(d.at, BadDeclarator, "a condition declares one variable")
		return v
	}
	p.scopes.declare(d.sym, entry{kind: nkValue})
	if p.in.kind() != tAssign && p.in.kind() != tLBrace {
		p.in.expect(tAssign, "after the variable of a condition")
		return v
	}
	p.decls.initializer(v)
	return v
}

// ifStmt parses if; a chain of else ifs is parsed in a loop, as it may be longer than statements may be deep.
func (p *stmtParser) ifStmt() Stmt {
	var first, last *IfStmt
	m := p.scopes.push()
	defer p.scopes.pop(m)
	for n := 0; ; n++ {
		if n > maxChain {
			p.in.tooDeep("more than %d else ifs", maxChain)
		}
		s := &IfStmt{stmtNode: stmtNode{p.in.base()}}
		if first == nil {
			first = s
		} else {
			last.Else = s
		}
		last = s
		p.in.advance()
		s.Constexpr = p.in.accept(kConstexpr)
		s.Init, s.Var, s.Cond = p.condition(true, "if")
		if p.in.bad {
			return first
		}
		p.types.attributes(nil)
		s.Then = p.subStmt()
		if p.in.bad || !p.in.accept(kElse) {
			return first
		}
		if p.in.kind() != kIf {
			p.types.attributes(nil)
			s.Else = p.subStmt()
			return first
		}
	}
}

// forStmt parses for.
func (p *stmtParser) forStmt() Stmt {
	f := &ForStmt{stmtNode: stmtNode{p.in.base()}, Unroll: p.in.tok().wishOf()}
	p.in.advance()
	if !p.in.expect(tLParen, "after for") {
		return f
	}
	m := p.scopes.push()
	defer p.scopes.pop(m)
	at := stmtNode{p.in.base()}
	switch {
	case p.in.kind() == tSemi:
		p.in.advance()
	case p.declStarts():
		if p.in.rangeFor() {
			return p.rangeForStmt(f.stmtNode, f.Unroll)
		}
		f.Init = p.declStmt()
	default:
		f.Init = &ExprStmt{stmtNode: at, X: p.exprs.expr()}
		p.in.expect(tSemi, "after the first part of for")
	}
	if p.in.bad {
		return f
	}
	if p.in.kind() != tSemi {
		if p.declStarts() {
			f.Var = p.condVar()
		} else {
			f.Cond = p.exprs.expr()
		}
	}
	p.in.expect(tSemi, "after the condition of for")
	if p.in.kind() != tRParen {
		f.Post = p.exprs.expr()
	}
	p.in.expect(tRParen, "after for (...")
	f.Body = p.loopBody()
	return f
}

// rangeForStmt parses for (T x : range), from the declaration on.
func (p *stmtParser) rangeForStmt(at stmtNode, unroll uint8) Stmt {
	f := &RangeForStmt{stmtNode: at, Unroll: unroll}
	sr := p.types.specifiers(inBlock)
	if sr.typ == nil {
		p.types.noType(&sr)
		return f
	}
	var syms []int32
	if sr.typ.Kind == TypeAuto && p.in.bindingFollows() {
		f.Var, f.Names, syms = p.decls.boundNames(&sr, p.in.base())
	} else {
		d := p.declarators.declarator(sr.typ, declNamed)
		f.Var = &VarDecl{declNode: declNode{Base{d.at}}, Specs: sr.specs, Type: d.typ, Name: d.name}
		if d.sym == 0 {
			p.in.errorAt(d.at, BadDeclarator, "for declares one variable")
			return f
		}
		syms = append(syms, d.sym)
	}
	p.in.expect(tColon, "after the variable of for")
	f.Range = p.exprs.initClause()
	for _, s := range syms {
		p.scopes.declare(s, entry{kind: nkValue})
	}
	p.in.expect(tRParen, "after for (...")
	f.Body = p.loopBody()
	return f
}

func (p *stmtParser) loopBody() Stmt {
	if p.in.bad {
		return &EmptyStmt{stmtNode{p.in.base()}}
	}
	p.around.loops++
	p.types.attributes(nil)
	s := p.subStmt()
	p.around.loops--
	return s
}

func (p *stmtParser) doStmt() Stmt {
	d := &DoStmt{stmtNode: stmtNode{p.in.base()}, Unroll: p.in.tok().wishOf()}
	p.in.advance()
	d.Body = p.loopBody()
	if !p.in.expect(kWhile, "after the body of do") || !p.in.expect(tLParen, "after while") {
		return d
	}
	d.Cond = p.exprs.expr()
	p.in.expect(tRParen, "after the condition")
	p.in.expect(tSemi, "after do ... while (...)")
	return d
}

func (p *stmtParser) switchStmt() Stmt {
	s := &SwitchStmt{stmtNode: stmtNode{p.in.base()}}
	p.in.advance()
	m := p.scopes.push()
	defer p.scopes.pop(m)
	s.Init, s.Var, s.Cond = p.condition(true, "switch")
	if p.in.bad {
		return s
	}
	p.around.switches++
	body := p.subStmt()
	p.around.switches--
	b, ok := body.(*BlockStmt)
	if !ok {
		b = &BlockStmt{stmtNode: stmtNode{Base{body.Pos()}}, List: []Stmt{body}}
	}
	s.Body = b
	return s
}

// pragmaStmt makes a statement of a pragma's token.
func (p *stmtParser) pragmaStmt() *PragmaStmt {
	s := &PragmaStmt{stmtNode: stmtNode{p.in.base()}}
	s.Name, s.Value, _ = strings.Cut(p.in.tok().text, "=")
	p.in.advance()
	return s
}
