package msl

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Limits of the preprocessor: errors instead of endless work on macros that multiply.
const (
	maxTokens  = 1 << 19   // in the result of a unit
	maxWork    = 1 << 20   // tokens made and moved by macro expansion
	maxHide    = 512       // macros expanded within one another
	maxArgs    = 200       // macro calls nested in arguments
	maxText    = 64 << 10  // bytes of a token made by # or ##
	maxInclude = 64        // includes within one another
	maxSources = 1000      // texts of a unit
	maxFiles   = 1000      // names
	maxCond    = 1000      // #if within one another
	maxExpr    = 200       // parentheses and operators within one another in #if
	maxLine    = 1<<31 - 1 // the largest line that #line may name
)

// ptok is a token under macro expansion.
type ptok struct {
	token
	hide *hideSet
}

// hideSet is the macros that a token came from, which it does not name any more.
type hideSet struct {
	m    *macro
	next *hideSet
	n    int
}

func (h *hideSet) has(m *macro) bool {
	for ; h != nil; h = h.next {
		if h.m == m {
			return true
		}
	}
	return false
}

func (h *hideSet) add(m *macro) *hideSet {
	if h.has(m) {
		return h
	}
	n := 1
	if h != nil {
		n += h.n
	}
	return &hideSet{m: m, next: h, n: n}
}

func (h *hideSet) union(o *hideSet) *hideSet {
	if h == nil || h == o {
		return o
	}
	for ; o != nil; o = o.next {
		h = h.add(o.m)
	}
	return h
}

func (h *hideSet) intersect(o *hideSet) *hideSet {
	if h == o {
		return h
	}
	var r *hideSet
	for ; h != nil; h = h.next {
		if o.has(h.m) {
			r = r.add(h.m)
		}
	}
	return r
}

// macro is a macro.
type macro struct {
	name     string
	builtin  byte // 'L' __LINE__, 'F' __FILE__, 'C' __COUNTER__
	function bool
	variadic bool
	params   []int32 // symbols
	body     []token
	param    []int16 // for each token of body: the index of the parameter it names, or -1
	index    int32   // in File.macros, plus one
	src      uint16
	off      uint32
}

func (m *macro) note(f *File) string {
	s := f.source(m.src)
	if s == nil || m.index == 0 {
		return ""
	}
	pos := s.position(m.off)
	name := f.fileName(pos.File)
	return fmt.Sprintf("in the expansion of macro '%s', defined at %s:%d:%d", m.name, name, pos.Line, pos.Col)
}

// cond is an open #if.
type cond struct {
	taken    bool // a branch has been taken
	elseSeen bool
	at       token
}

// inclusion is an #include in progress.
type inclusion struct {
	scan  *scanner
	conds int
}

// preproc turns the texts of a unit into one sequence of tokens.
type preproc struct {
	f          *File
	include    func(string) (string, bool)
	syms       *symtab
	scan       *scanner
	inclusions []inclusion
	conds      []cond
	condBase   int    // conds of the including texts
	pend       []ptok // to be read before the scanner goes on, the last one first
	isolated   int    // >0: reading a macro argument: the end of pend is the end
	out        []token
	work       int
	counter    int
	dead       bool // a limit was hit: nothing more is read
	included   map[string]bool
	errs       *ErrorList
	wish       uint8 // what a pragma right before asks of a loop

	symDefined, symVAArgs, symVAOpt, symHasInclude, symPragma int32
}

func newPreproc(f *File, u *Unit, errs *ErrorList) *preproc {
	p := &preproc{f: f, include: u.Include, syms: f.syms, errs: errs, included: map[string]bool{}}
	p.symDefined = p.syms.sym("defined")
	p.symVAArgs = p.syms.sym("__VA_ARGS__")
	p.symVAOpt = p.syms.sym("__VA_OPT__")
	p.symHasInclude = p.syms.sym("__has_include")
	p.symPragma = p.syms.sym("_Pragma")
	if f.Parent != nil {
		par := f.Parent
		f.macros = par.macros[:len(par.macros):len(par.macros)]
		f.macroOf = append(make([]*macro, 0, len(par.macroOf)+256), par.macroOf...)
		return p
	}
	for i, name := range []string{"__LINE__", "__FILE__", "__COUNTER__"} {
		p.setMacro(p.syms.sym(name), &macro{name: name, builtin: "LFC"[i]})
	}
	return p
}

// predefined are the macros of a unit without a parent.
const predefined = `#define __METAL__ 1
#define __METAL_VERSION__ 310
#define __METAL_MACOS__ 1
#define __METAL_USE_FAST_MATH__ 0
#define __HAVE_BFLOAT__ 1
#define __cplusplus 201402L
#define METAL_FUNC inline __attribute__((__always_inline__))
#define METAL_CONST static constant constexpr
`

// run preprocesses the unit.
func (p *preproc) run(u *Unit) {
	size := 0
	for _, s := range u.Sources {
		size += len(s.Text)
	}
	p.out = make([]token, 0, min(size/4+16, 1<<16))
	if p.f.Parent == nil {
		p.text("predefined", predefined)
	}
	if len(u.Defines) > 0 {
		var b strings.Builder
		for _, d := range u.Defines {
			fmt.Fprintf(&b, "#define %s %s\n", oneLine(d.Name), oneLine(d.Text))
		}
		p.text("defines", b.String())
	}
	for _, s := range u.Sources {
		p.text(s.Name, s.Text)
	}
	if len(p.f.srcs) == 0 {
		p.text("source", "")
	}
	end := token{src: uint16(p.f.srcBase + len(p.f.srcs) - 1)}
	end.off = uint32(len(p.f.srcs[len(p.f.srcs)-1].text))
	p.out = append(p.out, end)
	p.f.toks = p.out
}

func oneLine(s string) string { return strings.NewReplacer("\n", " ", "\r", " ", "\\", " ").Replace(s) }

// open makes a scanner of a new text; nil if there are too many or it is too long.
func (p *preproc) open(name, text string, at *token) *scanner {
	fail := func(code Code, format string, args ...any) {
		if at != nil {
			p.errorf(code, at, format, args...)
			return
		}
		p.errs.Add(&Error{Code: code, File: name, Msg: fmt.Sprintf(format, args...)})
	}
	if len(text) > maxSource {
		fail(TooMuchText, "the text has %d bytes: the limit is %d", len(text), maxSource)
		return nil
	}
	file, ok := p.f.fileIndex(name)
	if !ok || len(p.f.srcs) >= maxSources || p.f.srcBase+len(p.f.srcs) >= 1<<16 {
		fail(TooMuchText, "more than %d texts and file names", maxSources)
		return nil
	}
	s := newSource(name, text, file)
	p.f.srcs = append(p.f.srcs, s)
	sc := &scanner{text: s.text, src: uint16(p.f.srcBase + len(p.f.srcs) - 1), bol: true, syms: p.syms}
	sc.fail = func(code Code, off int, format string, args ...any) {
		p.errorf(code, &token{src: sc.src, off: uint32(off)}, format, args...)
	}
	return sc
}

// text preprocesses one text.
func (p *preproc) text(name, text string) {
	if p.dead {
		return
	}
	if p.scan = p.open(name, text, nil); p.scan == nil {
		p.dead = true
		return
	}
	p.conds, p.condBase, p.pend = p.conds[:0], 0, p.pend[:0]
	for !p.dead {
		if n := len(p.pend); n > 0 {
			t := p.pend[n-1]
			p.pend = p.pend[:n-1]
			if t.kind != tIdent || !p.expand(t) {
				p.emit(&t.token)
			}
			continue
		}
		t := p.scanNext()
		if t.kind == tEOF {
			return
		}
		if t.kind == tIdent && int(t.sym) < len(p.f.macroOf) && p.f.macroOf[t.sym] != nil && p.expand(ptok{token: t}) {
			continue
		}
		p.emit(&t)
	}
}

// emit appends a token to the result.
func (p *preproc) emit(t *token) {
	if len(p.out) >= maxTokens {
		p.die(t, "more than %d tokens after preprocessing", maxTokens)
		return
	}
	switch t.kind {
	case tIdent:
		if t.sym <= int32(len(keywords)) {
			t.kind = tKeyword + tok(t.sym) - 1
		} else if k := alternative(t.sym); k != tIdent {
			t.kind, t.sym = k, 0
		}
		if p.wish != wishNone && (t.kind == kFor || t.kind == kWhile || t.kind == kDo) {
			t.flags |= wishFlags[p.wish]
		}
	case tShr, tShrAssign:
		first := *t
		first.kind, first.text, first.flags = tGt, ">", first.flags|fJoin
		p.out = append(p.out, first)
		second := *t
		second.off++
		second.kind, second.text, second.flags = tGt, ">", 0
		if t.kind == tShrAssign {
			second.flags = fJoin
			p.out = append(p.out, second)
			second.off++
			second.kind, second.text, second.flags = tAssign, "=", 0
		}
		p.out = append(p.out, second)
		return
	case tRParen:
		if n := len(p.out); n >= 3 && p.out[n-1].kind == tString && p.out[n-2].kind == tLParen &&
			p.out[n-3].sym == p.symPragma && p.out[n-3].kind == tIdent {
			p.pragmaOperator(n - 3)
			return
		}
	case tHash, tHashHash:
		p.errorf(StrayToken, t, "stray '%s'", t.text)
		return
	case tOther:
		if utf8.ValidString(t.text) {
			p.errorf(BadCharacter, t, "unexpected character %q", t.text)
		} else {
			p.errorf(BadCharacter, t, "the byte 0x%02x is not valid UTF-8", t.text[0])
		}
		return
	}
	p.wish = wishNone
	p.out = append(p.out, *t)
}

// scanNext returns the next token that no macro made, having obeyed the directives before it.
func (p *preproc) scanNext() token {
	for {
		t := p.scan.next()
		switch {
		case t.kind == tHash && t.flags&fBOL != 0 && !p.dead:
			p.directive(t)
		case t.kind == tEOF:
			for _, c := range p.conds[p.condBase:] {
				p.errorf(UnbalancedIf, &c.at, "#if without #endif")
			}
			p.conds = p.conds[:p.condBase]
			n := len(p.inclusions)
			if n == 0 || p.dead {
				return t
			}
			p.scan, p.condBase = p.inclusions[n-1].scan, p.inclusions[n-1].conds
			p.inclusions = p.inclusions[:n-1]
		default:
			return t
		}
	}
}

// errorf reports an error at a token.
func (p *preproc) errorf(code Code, t *token, format string, args ...any) {
	loc := p.f.locate(t)
	ok := p.errs.Add(&Error{
		Code: code, Pos: loc.Pos, File: loc.File, Msg: fmt.Sprintf(format, args...), Note: loc.Note, Excerpt: loc.Excerpt(),
	})
	if !ok {
		p.dead = true
	}
}

// die reports that a limit is exceeded and ends preprocessing.
func (p *preproc) die(t *token, format string, args ...any) {
	if !p.dead {
		p.errorf(TooMuchText, t, format, args...)
	}
	p.dead = true
	p.pend = p.pend[:0]
}
