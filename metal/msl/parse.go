package msl

import "fmt"

// Limits of the parser.
const (
	maxNest  = 300  // levels of expressions, statements, types and classes within one another
	maxChain = 5000 // operators of one level, else-ifs, ?: of one expression
)

// parser turns the tokens of a unit into declarations. It keeps track of which names are types, templates and values,
// as C++ needs to be parsed at all; it does not check that names exist.
type parser struct {
	f      *File
	toks   []token
	i      int // the current token
	errs   *ErrorList
	bad    bool            // an error was found in the statement or declaration at hand: further ones are not reported
	told   map[string]bool // words about which errors have notes
	mute   int             // >0: trying something: errors only set bad
	noSemi bool            // the error is a missing semicolon
	over   bool            // a limit was hit: the parser has gone to the end

	scope       *scope
	level       int32
	locals      []local
	bind        []int32 // by symbol: the index in locals, plus one
	blockUsings []*scope
	overlay     map[*scope]*scope

	pendingTmpl tmplCtx // of the declaration whose specifiers come next
	block       int     // >0: in a function's body
	depth       int
	noGT        bool // in template arguments: > ends the expression
	typename    bool // typename was read: an unknown name followed by < is a template's
	loops       int
	switches    int
	work        int // tokens read in vain

	class     classCtx
	late      []lateBody
	lateDepth int // classes around, within a function's body
	lateBase  int
	memo      map[int]memoArgs
	memberTpl map[int32]bool // names of member templates

	names []nameNode // slabs
	types []TypeExpr
	bins  []BinaryExpr
	slab  int // names in the last slab: small texts get small slabs
}

// nameNode is a NameExpr with its Name: the most frequent node.
type nameNode struct {
	e NameExpr
	n Name
}

type memoArgs struct {
	args []TemplateArg
	end  int
}

// Parse preprocesses and parses a unit. All errors of its preprocessing and syntax are in the list; the file is not nil
// even then, for Errorf. Names are not checked: an undeclared one parses as a value.
func Parse(u Unit) (*File, ErrorList) {
	f := &File{Parent: u.Parent}
	var errs ErrorList
	var par *symtab
	if u.Parent != nil {
		par = u.Parent.syms
		f.base = u.Parent.base + Pos(len(u.Parent.toks))
		f.srcBase = u.Parent.srcBase + len(u.Parent.srcs)
		f.fileBase = u.Parent.fileBase + len(u.Parent.files)
	}
	f.syms = newSymtab(par)
	pp := newPreproc(f, &u, &errs)
	pp.run(&u)
	p := &parser{f: f, toks: f.toks, errs: &errs, over: pp.dead}
	p.memberTpl = map[int32]bool{}
	f.memberTpl = p.memberTpl
	f.global = p.newGlobal()
	p.scope = f.global
	p.bind = make([]int32, f.syms.count()+1)
	if p.over {
		p.i = len(p.toks) - 1
	}
	for p.kind() != tEOF {
		at := p.i
		p.topLevel(&f.Decls)
		if p.i == at && p.kind() != tEOF {
			p.errorf(UnexpectedToken, "unexpected %s", p.tok().name())
			p.bad = false
			p.i++
		}
	}
	return f, errs
}

// topLevel parses one declaration of a namespace and recovers from errors in it.
func (p *parser) topLevel(out *[]Decl) {
	m, at := p.mark(), p.i
	if p.kind() == tRBrace {
		p.errorf(UnexpectedToken, "'}' without '{'")
		p.bad = false
		p.advance()
		return
	}
	p.declaration(inNamespace, out)
	p.pop(m)
	if p.bad {
		p.block, p.depth, p.noGT, p.loops, p.switches, p.lateDepth, p.late = 0, 0, false, 0, 0, 0, nil
		p.recover(at, true)
	}
}

// recover skips to where the next statement or declaration may start, after an error in the one that started at from.
func (p *parser) recover(from int, top bool) {
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
func (p *parser) leaveParens(from int) bool {
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

func (p *parser) tok() *token { return &p.toks[p.i] }
func (p *parser) kind() tok   { return p.toks[p.i].kind }
func (p *parser) pos() Pos    { return p.f.base + Pos(p.i) + 1 }
func (p *parser) base() Base  { return Base{p.pos()} }

// peek returns the kind of the token n after the current one.
func (p *parser) peek(n int) tok {
	if p.i+n < len(p.toks) {
		return p.toks[p.i+n].kind
	}
	return tEOF
}

func (p *parser) advance() {
	if p.i < len(p.toks)-1 {
		p.i++
	}
}

// accept reads a token if it is of kind k.
func (p *parser) accept(k tok) bool {
	if p.toks[p.i].kind == k {
		p.advance()
		return true
	}
	return false
}

// expect reads a token of kind k, or reports what it found in the context given: "after the condition".
func (p *parser) expect(k tok, context string) bool {
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
func (p *parser) report(e func() *Error) {
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
func (p *parser) giveUp() {
	p.over = true
	p.i = len(p.toks) - 1
}

// errorf reports an error at the current token.
func (p *parser) errorf(code Code, format string, args ...any) {
	p.errorAt(p.pos(), code, format, args...)
}

func (p *parser) errorAt(at Pos, code Code, format string, args ...any) {
	p.report(func() *Error { return p.hinted(p.f.Errorf(code, at, format, args...)) })
}

// errorAfter reports an error right after the token before the current one, where something is missing.
func (p *parser) errorAfter(code Code, format string, args ...any) {
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
func (p *parser) enter() bool {
	if p.depth++; p.depth <= maxNest {
		return true
	}
	p.tooDeep("this nests more than %d levels deep", maxNest)
	return false
}

func (p *parser) leave() { p.depth-- }

func (p *parser) tooDeep(format string, args ...any) {
	mute := p.mute
	p.mute = 0 // what nests too deeply does so however it is read
	p.errorf(TooDeep, format, args...)
	p.mute = mute
	p.bad = p.bad || mute > 0
	p.giveUp()
}

// try runs parse without reporting errors. If parse returns false or there was an error, nothing has happened.
func (p *parser) try(parse func() bool) bool {
	if p.bad {
		return false
	}
	start, m, depth, noGT, block, loops, switches := p.i, p.mark(), p.depth, p.noGT, p.block, p.loops, p.switches
	p.mute++
	ok := parse() && !p.bad
	p.mute--
	p.bad = p.over
	p.pop(m)
	p.depth, p.noGT, p.block, p.loops, p.switches = depth, noGT, block, loops, switches
	p.work += p.i - start + 1
	if p.work > min(40*len(p.toks), 4<<20)+100000 {
		p.tooDeep("the text is too complex: its declarations cannot be told from its expressions")
		return false
	}
	if p.over {
		return false
	}
	if !ok {
		p.i = start
	}
	return ok
}

// skipBalanced skips from the opening bracket at the current token past its partner; false if there is none.
func (p *parser) skipBalanced() bool {
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

// newName allocates a NameExpr's name.
func (p *parser) newName() *nameNode {
	if len(p.names) == 0 {
		p.slab = min(p.slab+8, 64)
		p.names = make([]nameNode, p.slab)
	}
	n := &p.names[0]
	p.names = p.names[1:]
	return n
}

// newType allocates a type at a place.
func (p *parser) newType(at Pos, kind TypeKind) *TypeExpr {
	if len(p.types) == 0 {
		p.types = make([]TypeExpr, max(p.slab/2, 8))
	}
	t := &p.types[0]
	p.types = p.types[1:]
	t.At, t.Kind = at, kind
	return t
}
