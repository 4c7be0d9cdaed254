package msl

import "fmt"

// cursor reads the tokens of a unit and reports what is wrong with them.
type cursor struct {
	f      *File
	toks   []token
	i      int // the current token
	errs   *ErrorList
	bad    bool            // an error was found in the statement or declaration at hand: further ones are not reported
	told   map[string]bool // words about which errors have notes
	mute   int             // >0: trying something: errors only set bad
	noSemi bool            // the error is a missing semicolon
	over   bool            // a limit was hit: the parser has gone to the end
	depth  int             // levels of nesting
	noGT   bool            // in template arguments: > ends the expression

	declared func(sym int32) bool // reports whether a name is known, for hints
}

// recover skips to where the next statement or declaration may start, after an error in the one that started at from.
func (p *cursor) recover(from int, top bool) {
	noSemi := p.noSemi
	p.bad, p.noSemi = false, false
	if p.i > from && noSemi && p.toks[p.i].flags&fBOL != 0 {
		return // the semicolon is missing at the end of a line
	}
	if p.toks[from].kind == kFor && p.leaveParens(from) {
		return
	}
	if p.i == from {
		p.advance()
	} else if k := p.toks[p.i-1].kind; (k == tSemi || k == tRBrace) && !top {
		return
	}
	depth := 0
	for {
		switch k := p.kind(); k {
		case tEOF:
			return
		case tSemi:
			if depth == 0 {
				p.advance()
				return
			}
		case tLBrace:
			depth++
		case tRBrace:
			if depth == 0 {
				if top {
					p.advance()
					if p.kind() == tSemi {
						p.advance()
					}
				}
				return
			}
			if depth--; depth == 0 {
				p.advance()
				if p.kind() == tSemi {
					p.advance()
				}
				return
			}
		case kTemplate, kKernel, kNamespace, kStruct, kTypedef, kUsing:
			if top && depth == 0 && p.toks[p.i].flags&fBOL != 0 {
				return
			}
		}
		p.advance()
	}
}

// leaveParens goes past the parenthesis that is open at the current token of the statement that starts at from, as the
// semicolons of for (;;) end nothing. It returns false if none is open.
func (p *cursor) leaveParens(from int) bool {
	depth := 0
	for _, t := range p.toks[from:p.i] {
		switch t.kind {
		case tLParen:
			depth++
		case tRParen:
			depth--
		}
	}
	if depth <= 0 {
		return false
	}
	for ; depth > 0; p.advance() {
		switch p.kind() {
		case tLParen:
			depth++
		case tRParen:
			depth--
		case tEOF, tLBrace, tRBrace:
			return true
		}
	}
	return true
}

func (p *cursor) tok() *token { return &p.toks[p.i] }
func (p *cursor) kind() tok   { return p.toks[p.i].kind }
func (p *cursor) pos() Pos    { return p.f.base + Pos(p.i) + 1 }
func (p *cursor) base() Base  { return Base{p.pos()} }

// peek returns the kind of the token n after the current one.
func (p *cursor) peek(n int) tok {
	if p.i+n < len(p.toks) {
		return p.toks[p.i+n].kind
	}
	return tEOF
}

func (p *cursor) advance() {
	if p.i < len(p.toks)-1 {
		p.i++
	}
}

// accept reads a token if it is of kind k.
func (p *cursor) accept(k tok) bool {
	if p.toks[p.i].kind == k {
		p.advance()
		return true
	}
	return false
}

// expect reads a token of kind k, or reports what it found in the context given: "after the condition".
func (p *cursor) expect(k tok, context string) bool {
	if p.accept(k) {
		return true
	}
	if p.bad {
		return false
	}
	if p.kind() == tPragma {
		p.errorf(MisplacedPragma, "a floating-point pragma stands here, in the middle of a declaration or an expression")
		return false
	}
	want := punctText[k]
	if want == "" && k >= tKeyword {
		want = keywords[k-tKeyword]
	}
	p.errorAfter(UnexpectedToken, "expected '%s' %s, found %s", want, context, p.tok().name())
	p.noSemi = k == tSemi
	return false
}

// report adds an error unless another one of the same statement was.
func (p *cursor) report(e func() *Error) {
	if p.bad {
		return
	}
	p.bad, p.noSemi = true, false
	if p.mute > 0 || p.over {
		return
	}
	if !p.errs.Add(e()) {
		p.giveUp()
	}
}

// giveUp goes to the end of the text.
func (p *cursor) giveUp() {
	p.over = true
	p.i = len(p.toks) - 1
}

// errorf reports an error at the current token.
func (p *cursor) errorf(code Code, format string, args ...any) {
	p.errorAt(p.pos(), code, format, args...)
}

func (p *cursor) errorAt(at Pos, code Code, format string, args ...any) {
	p.report(func() *Error { return p.hinted(p.f.Errorf(code, at, format, args...)) })
}

// errorAfter reports an error right after the token before the current one, where something is missing.
func (p *cursor) errorAfter(code Code, format string, args ...any) {
	if p.i == 0 || p.toks[p.i-1].mac != 0 || p.toks[p.i-1].kind == tPragma {
		p.errorf(code, format, args...)
		return
	}
	p.report(func() *Error {
		t := p.toks[p.i-1]
		t.off += uint32(len(t.text))
		loc := p.f.locate(&t)
		return p.hinted(&Error{
			Code: code, Pos: loc.Pos, File: loc.File, Msg: fmt.Sprintf(format, args...), Excerpt: loc.Excerpt(),
		})
	})
}

// enter counts a level of nesting; it returns false, having reported it, when there are too many.
func (p *cursor) enter() bool {
	if p.depth++; p.depth <= maxNest {
		return true
	}
	p.tooDeep("this nests more than %d levels deep", maxNest)
	return false
}

func (p *cursor) leave() { p.depth-- }

func (p *cursor) tooDeep(format string, args ...any) {
	mute := p.mute
	p.mute = 0 // what nests too deeply does so however it is read
	p.errorf(TooDeep, format, args...)
	p.mute = mute
	p.bad = p.bad || mute > 0
	p.giveUp()
}

// skipBalanced skips from the opening bracket at the current token past its partner; false if there is none.
func (p *cursor) skipBalanced() bool {
	depth := 0
	for {
		switch p.kind() {
		case tLParen, tLBrack, tLBrace:
			depth++
		case tRParen, tRBrack, tRBrace:
			if depth--; depth == 0 {
				p.advance()
				return true
			}
		case tEOF:
			return false
		}
		p.advance()
	}
}

// basesFollow tells whether the colon at hand starts a base list.
func (p *cursor) basesFollow() bool {
	switch p.peek(1) {
	case kPublic, kPrivate, kProtected, tIdent, tColonColon, kTypename, kVirtual:
		return true
	}
	return false
}

// bindingFollows tells whether the names of a structured binding follow auto.
func (p *cursor) bindingFollows() bool {
	switch p.kind() {
	case tLBrack:
		return p.peek(1) == tIdent
	case tAnd, tLAnd:
		return p.peek(1) == tLBrack
	}
	return false
}

// nameText returns the name at hand, without template arguments, for a message.
func (p *cursor) nameText() string {
	end := p.i
	for end+2 < len(p.toks) && p.toks[end+1].kind == tColonColon && p.toks[end+2].kind == tIdent {
		end += 2
	}
	name := ""
	for _, t := range p.toks[p.i : end+1] {
		name += t.text
	}
	return clip(name)
}

// notAName says of a keyword that stands where the name is missed that it can be none.
func (p *cursor) notAName() string {
	if p.i == 0 || p.kind() >= tKeyword || p.toks[p.i-1].kind < tKeyword {
		return ""
	}
	return ": " + p.toks[p.i-1].name() + " cannot be one"
}

func (p *cursor) expectName() bool {
	if p.kind() == tIdent {
		p.advance()
		return true
	}
	p.errorf(UnexpectedToken, "expected a name, found %s", p.tok().name())
	return false
}

// designatorFollows tells whether .name = x or [i] = x follows in a braced list.
func (p *cursor) designatorFollows() bool {
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

// nameGoesOn tells whether a :: is followed by another part of the name.
func (p *cursor) nameGoesOn() bool {
	switch p.peek(1) {
	case tIdent, kOperator, kTemplate, tTilde:
		return true
	}
	return false
}

// rewindTo goes back to the < after a part whose arguments have been tried.
func (p *cursor) rewindTo(part *NamePart) bool {
	for p.f.base+Pos(p.i)+1 > part.PartAt+1 {
		p.i--
	}
	return true
}

// shiftLength returns how many tokens at the current > belong together: 2 for >>, 3 for >>=, else 1.
func (p *cursor) shiftLength() int {
	if p.tok().flags&fJoin == 0 || p.peek(1) != tGt {
		return 1
	}
	if p.toks[p.i+1].flags&fJoin != 0 && p.peek(2) == tAssign {
		return 3
	}
	return 2
}

// find returns the index of the token at a place of this unit.
func (p *cursor) find(at Pos) int { return int(at - p.f.base - 1) }

// rangeFor tells whether a declaration at hand is that of for (T x : range).
func (p *cursor) rangeFor() bool {
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

// declWordFollows tells whether the token after the current one continues a declaration's specifiers.
func (p *cursor) declWordFollows() bool {
	switch k := p.peek(1); k {
	case kDevice, kConst, kVolatile, kThreadgroup:
		return true
	}
	return false
}

// declWordHere tells whether the current token starts a declaration and cannot continue one after a class.
func (p *cursor) declWordHere() bool {
	switch k := p.kind(); k {
	case kKernel, kTemplate, kStruct, kClass, kUnion, kEnum, kNamespace, kUsing, kTypedef, kInline, kStaticAssert:
		return true
	default:
		return isBasicType(k)
	}
}
