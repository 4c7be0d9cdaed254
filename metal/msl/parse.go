package msl

// Limits of the parser.
const (
	maxNest  = 300  // levels of expressions, statements, types and classes within one another
	maxChain = 5000 // operators of one level, else-ifs, ?: of one expression
)

// parser turns the tokens of a unit into declarations. Its parts keep track of which names are types, templates and
// values, as C++ needs to be parsed at all; they do not check that names exist.
type parser struct {
	in          cursor
	scopes      scopes
	nodes       nodes
	names       nameParser
	types       typeParser
	declarators declaratorParser
	exprs       exprParser
	stmts       stmtParser
	decls       declParser
	classes     classParser
}

// newParser returns a parser whose parts know one another.
func newParser(f *File, errs *ErrorList, over bool) *parser {
	p := &parser{in: cursor{f: f, toks: f.toks, errs: errs, over: over}}
	in := &p.in
	p.scopes = scopes{in: in, memberTpl: map[int32]bool{}}
	f.memberTpl, f.global = p.scopes.memberTpl, p.scopes.newGlobal()
	p.scopes.scope, p.scopes.bind = f.global, make([]int32, f.syms.count()+1)
	in.declared = func(sym int32) bool { return p.scopes.lookup(sym).kind != nkNone }
	p.names = nameParser{
		in: in, declarators: &p.declarators, exprs: &p.exprs, nodes: &p.nodes, scopes: &p.scopes,
		types: &p.types,
	}
	p.types = typeParser{
		in: in, classes: &p.classes, declarators: &p.declarators, exprs: &p.exprs, names: &p.names,
		nodes: &p.nodes, scopes: &p.scopes,
	}
	p.declarators = declaratorParser{
		in: in, exprs: &p.exprs, names: &p.names, nodes: &p.nodes, scopes: &p.scopes, types: &p.types,
	}
	p.exprs = exprParser{
		in: in, declarators: &p.declarators, names: &p.names, nodes: &p.nodes, scopes: &p.scopes,
		stmts: &p.stmts, types: &p.types,
	}
	p.stmts = stmtParser{
		in: in, scopes: &p.scopes, names: &p.names, types: &p.types, declarators: &p.declarators,
		exprs: &p.exprs, decls: &p.decls, classes: &p.classes,
	}
	p.decls = declParser{
		in: in, classes: &p.classes, declarators: &p.declarators, exprs: &p.exprs, names: &p.names,
		nodes: &p.nodes, scopes: &p.scopes, stmts: &p.stmts, types: &p.types,
	}
	p.classes = classParser{
		in: in, decls: &p.decls, exprs: &p.exprs, names: &p.names, nodes: &p.nodes, scopes: &p.scopes,
		types: &p.types,
	}
	return p
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
	p := newParser(f, &errs, pp.dead)
	if p.in.over {
		p.in.i = len(p.in.toks) - 1
	}
	for p.in.kind() != tEOF {
		at := p.in.i
		p.topLevel(&f.Decls)
		if p.in.i == at && p.in.kind() != tEOF {
			p.in.errorf(UnexpectedToken, "unexpected %s", p.in.tok().name())
			p.in.bad = false
			p.in.i++
		}
	}
	return f, errs
}

// topLevel parses one declaration of a namespace and recovers from errors in it.
func (p *parser) topLevel(out *[]Decl) {
	m, at := p.scopes.mark(), p.in.i
	if p.in.kind() == tRBrace {
		p.in.errorf(UnexpectedToken, "'}' without '{'")
		p.in.bad = false
		p.in.advance()
		return
	}
	p.decls.declaration(inNamespace, out)
	p.scopes.pop(m)
	if p.in.bad {
		p.decls.reset()
		p.in.depth = 0
		p.in.recover(at, true)
	}
}
