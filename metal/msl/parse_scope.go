package msl

// nameKind is what the parser knows of a name: enough to tell types, templates and values apart.
type nameKind uint8

const (
	nkNone          nameKind = iota // not declared, or dependent
	nkValue                         // a variable, function, field, enumerator
	nkValueTemplate                 // a function or variable template
	nkType
	nkTypeTemplate // a class or alias template
	nkNamespace
)

func (k nameKind) isType() bool { return k == nkType || k == nkTypeTemplate }

// entry is what a name stands for.
type entry struct {
	kind  nameKind
	scope *scope // of a namespace, class or scoped enumeration; nil if there is none or it is not known
}

// scope is the names of a namespace, class or enumeration. Those of blocks, parameters and template parameters are
// parser.locals. The scopes of a parsed file are frozen: a unit on top of it extends a namespace by an overlay.
type scope struct {
	parent *scope
	lower  *scope // an overlay: what it extends
	owner  *File
	level  int32 // the number of block and class levels around
	ns     bool
	names  map[int32]entry // by symbol
	usings []*scope        // using directives and inline namespaces
	bases  []*scope        // base classes; for a class template, its specialisations as well
}

// local is a name of a block, a parameter or a template parameter.
type local struct {
	sym   int32
	prev  int32 // index plus one of the local of the same name that this one hides
	level int32
	e     entry
}

// scopes are the names that are known where the parser is.
type scopes struct {
	in          *cursor
	scope       *scope
	level       int32
	locals      []local
	bind        []int32 // by symbol: the index in locals, plus one
	blockUsings []*scope
	overlay     map[*scope]*scope // by namespace of the parent
	block       int               // >0: in a function's body
	memberTpl   map[int32]bool    // names of member templates
	work        int               // tokens read in vain
}

// maxUsing bounds chains of using directives and bases, which may be cyclic.
const maxUsing = 12

// member finds a name in a scope, in what it extends, its bases and its using directives.
func (p *scopes) member(s *scope, sym int32, depth int) (entry, bool) {
	if depth > maxUsing {
		return entry{}, false
	}
	if o := p.overlay[s]; o != nil {
		s = o
	}
	for q := s; q != nil; q = q.lower {
		if e, ok := q.names[sym]; ok {
			return e, true
		}
	}
	for q := s; q != nil; q = q.lower {
		for _, b := range q.bases {
			if e, ok := p.member(b, sym, depth+1); ok {
				return e, true
			}
		}
		for _, u := range q.usings {
			if e, ok := p.member(u, sym, depth+1); ok {
				return e, true
			}
		}
	}
	return entry{}, false
}

// lookup finds an unqualified name from the inside out.
func (p *scopes) lookup(sym int32) entry {
	var l *local
	if int(sym) < len(p.bind) && p.bind[sym] != 0 {
		l = &p.locals[p.bind[sym]-1]
	}
	for s := p.scope; s != nil; s = s.parent {
		if l != nil && l.level > s.level {
			return l.e
		}
		if e, ok := p.member(s, sym, 0); ok {
			return e
		}
		if s.ns {
			for _, u := range p.blockUsings {
				if e, ok := p.member(u, sym, 0); ok {
					return e
				}
			}
		}
	}
	if l != nil {
		return l.e
	}
	return entry{}
}

// mark is a state of the scopes to return to.
type mark struct {
	scope          *scope
	level          int32
	locals, usings int
}

func (p *scopes) mark() mark { return mark{p.scope, p.level, len(p.locals), len(p.blockUsings)} }

// push opens a level for local names.
func (p *scopes) push() mark {
	m := p.mark()
	p.level++
	return m
}

// pop returns to an earlier state.
func (p *scopes) pop(m mark) {
	for n := len(p.locals); n > m.locals; n-- {
		l := &p.locals[n-1]
		p.bind[l.sym] = l.prev
	}
	p.locals = p.locals[:m.locals]
	p.blockUsings = p.blockUsings[:m.usings]
	p.scope, p.level = m.scope, m.level
}

// declareLocal declares a parameter or a name of a block.
func (p *scopes) declareLocal(sym int32, e entry) {
	if sym == 0 {
		return
	}
	for int(sym) >= len(p.bind) {
		p.bind = append(p.bind, make([]int32, int(sym)-len(p.bind)+256)...)
	}
	p.locals = append(p.locals, local{sym: sym, prev: p.bind[sym], level: p.level, e: e})
	p.bind[sym] = int32(len(p.locals))
}

// declare declares a name where the parser is: in a block, or else in the namespace or class.
func (p *scopes) declare(sym int32, e entry) {
	if sym == 0 || p.in.mute > 0 {
		return
	}
	if p.block > 0 {
		p.declareLocal(sym, e)
		return
	}
	if p.scope.owner != p.in.f {
		return // a class of the prelude, entered to define a member
	}
	if p.scope.names == nil {
		p.scope.names = map[int32]entry{}
	}
	if old, ok := p.scope.names[sym]; ok && old.kind == nkValueTemplate && e.kind == nkValue {
		return // overloads: one of them is a template
	}
	p.scope.names[sym] = e
}

// within is the scope that the inside of a definition with a qualified name stands in. Of a namespace of the prelude it
// is that with the unit around it, whose names are to be found there too.
func (p *scopes) within(qual *scope) *scope {
	switch {
	case qual.owner == p.in.f:
		return qual
	case p.overlay[qual] != nil:
		return p.overlay[qual]
	}
	return &scope{parent: p.scope, lower: qual, owner: p.in.f, ns: qual.ns}
}

// openNamespace enters the namespace sym of the current one, making it or an overlay of it if need be.
func (p *scopes) openNamespace(sym int32, inline bool) {
	for q := p.scope; q != nil; q = q.lower {
		e, ok := q.names[sym]
		if !ok || e.kind != nkNamespace || e.scope == nil {
			continue
		}
		if o := p.overlay[e.scope]; o != nil {
			p.scope = o
			return
		}
		if e.scope.owner == p.in.f {
			p.scope = e.scope
			return
		}
		o := &scope{parent: p.scope, lower: e.scope, owner: p.in.f, ns: true}
		if p.overlay == nil {
			p.overlay = map[*scope]*scope{}
		}
		p.overlay[e.scope] = o
		p.declare(sym, entry{kind: nkNamespace, scope: o})
		p.scope = o
		return
	}
	s := &scope{parent: p.scope, owner: p.in.f, ns: true}
	if sym == 0 || inline {
		p.scope.usings = append(p.scope.usings, s)
	}
	p.declare(sym, entry{kind: nkNamespace, scope: s})
	p.scope = s
}

// newGlobal makes the global scope of a unit: on top of its parent's, or with the predeclared names.
func (p *scopes) newGlobal() *scope {
	g := &scope{owner: p.in.f, ns: true, names: map[int32]entry{}}
	if par := p.in.f.Parent; par != nil {
		g.lower = par.global
		return g
	}
	metal := &scope{parent: g, owner: p.in.f, ns: true, names: map[int32]entry{}}
	for name := range builtinTypes {
		if sym := p.in.f.syms.sym(name); sym > int32(len(keywords)) {
			g.names[sym] = entry{kind: nkType}
			metal.names[sym] = entry{kind: nkType}
		}
	}
	for name := range builtinTemplates {
		sym := p.in.f.syms.sym(name)
		g.names[sym] = entry{kind: nkTypeTemplate}
		metal.names[sym] = entry{kind: nkTypeTemplate}
	}
	g.names[p.in.f.syms.sym("metal")] = entry{kind: nkNamespace, scope: metal}
	for _, name := range []string{"fast", "precise"} {
		metal.names[p.in.f.syms.sym(name)] = entry{
			kind: nkNamespace, scope: &scope{parent: metal, owner: p.in.f, ns: true, names: map[int32]entry{}},
		}
	}
	return g
}

// try runs parse without reporting errors. If parse returns false or there was an error, nothing has happened.
func (p *scopes) try(parse func() bool) bool {
	if p.in.bad {
		return false
	}
	start, m, depth, noGT, block := p.in.i, p.mark(), p.in.depth, p.in.noGT, p.block
	p.in.mute++
	ok := parse() && !p.in.bad
	p.in.mute--
	p.in.bad = p.in.over
	p.pop(m)
	p.in.depth, p.in.noGT, p.block = depth, noGT, block
	p.work += p.in.i - start + 1
	if p.work > min(40*len(p.in.toks), 4<<20)+100000 {
		p.in.tooDeep("the text is too complex: its declarations cannot be told from its expressions")
		return false
	}
	if p.in.over {
		return false
	}
	if !ok {
		p.in.i = start
	}
	return ok
}

// declaredHere tells whether sym was declared in the scope at hand with the scope sc: a forward declaration.
func (p *scopes) declaredHere(sym int32, sc *scope) bool {
	if p.block > 0 {
		return p.bind[sym] != 0 && p.locals[p.bind[sym]-1].level == p.level && p.lookup(sym).scope == sc
	}
	return p.scope.names[sym].scope == sc
}

// declareOutside declares a name that stands after template <...>: outside the level of its parameters.
func (p *scopes) declareOutside(sym int32, e entry, tmpl bool) {
	if !tmpl || p.block == 0 {
		p.declare(sym, e)
		return
	}
	p.level--
	p.declare(sym, e)
	p.level++
}

func (p *scopes) lookupTemplate() bool {
	switch p.lookup(p.in.tok().sym).kind {
	case nkTypeTemplate, nkValueTemplate:
		return true
	}
	return false
}

func (p *scopes) isMemberTemplate(sym int32) bool {
	for f := p.in.f; f != nil; f = f.Parent {
		if f.memberTpl[sym] {
			return true
		}
	}
	return false
}
