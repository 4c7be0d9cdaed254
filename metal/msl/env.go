package msl

import (
	"cmp"
	"slices"
)

// entKind says what an entity is.
type entKind uint8

const (
	eVar       entKind = iota // a variable, parameter or reference
	eFunc                     // functions of one name, templates among them
	eType                     // a type
	eTemplate                 // a template of classes, aliases or variables
	eNamespace                // a namespace
	eConst                    // an enumerator or a template's value argument
	ePack                     // a template's or a function's parameter pack
)

// entity is what a name stands for. Those of a prelude are shared by all compilations and never change; what is
// computed for them (types, values) is kept in maps of the compiler.
type entity struct {
	kind entKind
	name string
	env  *env // where it is declared
	at   Pos

	val   value    // eVar: of a local; eConst
	vdecl *VarDecl // eVar at namespace or class scope: evaluated when first used
	local bool     // eVar: val is set
	isRef bool     // eVar: declared as a reference
	addr  bool     // eConst: the name stands for the address of val

	funcs   []*funcEnt // eFunc
	builtin *builtin   // eFunc: a predeclared function of that name as well
	fast    uint8      // of builtin: reached through metal::fast or metal::precise

	ty     qtype // eType, resolved
	alias  *AliasDecl
	class  *ClassDecl
	hidden *entity // a class of the same name as this function
	enum   *EnumDecl

	tmpl *tmplInfo // eTemplate
	ns   *env      // eNamespace

	boundArgs []boundArg // ePack: a template's
	vals      []value    // ePack: a function's
}

// funcEnt is one function or function template.
type funcEnt struct {
	decl   *FuncDecl
	env    *env          // what encloses it
	tmpl   *TemplateDecl // nil if it is no template
	specs  []*funcEnt    // explicit specialisations
	class  *classInfo    // the class of a method
	ofUnit bool          // of the unit, not of the prelude
	// noContract says that #pragma clang fp contract(off) was in effect.
	noContract bool
	lambda     *lambdaInfo
}

// tmplInfo is a class, alias or variable template.
type tmplInfo struct {
	name  string
	decl  *TemplateDecl // the primary template; nil until it is declared
	env   *env
	specs []*TemplateDecl // partial and full specialisations
	built string          // of a predeclared class template: vec, atomic, ...
}

// envKind says what an env is the scope of.
type envKind uint8

const (
	envBlock envKind = iota
	envTemplate
	envClass
	envNamespace
	envFunc
)

// env is a scope. Lookup goes from the innermost outwards.
type env struct {
	kind   envKind
	name   string // of a namespace
	up     *env
	names  map[string]*entity
	list   []*entity // blocks and templates: few names
	using  []*env    // using namespace
	frozen *env      // the same namespace in the prelude
	class  *classInfo
	this   *value // envFunc of a method
	metal  uint8  // 1: namespace metal, 2: metal::fast, 3: metal::precise
}

// put declares an entity; it returns the one of that name that this very scope had before.
func (e *env) put(x *entity) *entity {
	x.env = e
	if e.kind == envBlock || e.kind == envTemplate || e.kind == envFunc {
		old := e.own(x.name)
		e.list = append(e.list, x)
		switch n := len(e.list); {
		case n == manyNames:
			e.names = map[string]*entity{}
			for _, y := range e.list {
				e.names[y.name] = y
			}
		case n > manyNames:
			e.names[x.name] = x
		}
		return old
	}
	old := e.names[x.name]
	if e.names == nil {
		e.names = map[string]*entity{}
	}
	e.names[x.name] = x
	return old
}

// manyNames is how many names of a block are searched one by one.
const manyNames = 24

// own returns the entity of this scope alone.
func (e *env) own(name string) *entity {
	if e.names != nil {
		return e.names[name]
	}
	for i := len(e.list) - 1; i >= 0; i-- {
		if e.list[i].name == name {
			return e.list[i]
		}
	}
	return nil
}

// find looks a name up in a scope and what belongs to it: its part in the prelude, its using directives, its base
// classes.
func (c *compiler) find(e *env, name string, depth int) *entity {
	x := e.own(name)
	if o := c.overlay[e]; o != nil {
		x = mergeEntities(x, o.own(name))
	}
	if e.frozen != nil && (x == nil || x.kind == eFunc) {
		x = mergeEntities(x, c.find(e.frozen, name, depth))
	}
	if e.metal != 0 && (x == nil || x.kind == eFunc) {
		if b := builtins[name]; b != nil {
			x = mergeEntities(x, &entity{kind: eFunc, name: name, env: e, builtin: b, fast: e.metal - 1})
		} else if x == nil && e.metal == 1 && name == "vec" {
			return predeclared(name)
		}
	}
	if depth < 8 && (x == nil || x.kind == eFunc) {
		for _, u := range e.using {
			if u != e {
				x = mergeEntities(x, c.find(u, name, depth+1))
			}
		}
	}
	if x == nil && e.class != nil {
		for _, b := range e.class.bases {
			if b.kind == tClass && depth < 32 {
				if y := c.find(b.class.scope, name, depth+1); y != nil {
					return y
				}
			}
		}
	}
	return x
}

// mergeEntities joins two results of a lookup: functions of one name overload each other, otherwise the first wins.
func mergeEntities(x, y *entity) *entity {
	switch {
	case x == nil:
		return y
	case y == nil || y == x || x.kind != eFunc || y.kind != eFunc:
		return x
	}
	m := &entity{
		kind: eFunc, name: x.name, env: x.env, at: x.at, builtin: x.builtin, fast: x.fast, hidden: cmp.Or(x.hidden, y.hidden),
	}
	m.funcs = append(m.funcs, x.funcs...)
	for _, f := range y.funcs {
		if !slices.Contains(x.funcs, f) {
			m.funcs = append(m.funcs, f)
		}
	}
	if m.builtin == nil {
		m.builtin, m.fast = y.builtin, y.fast
	}
	return m
}

func (c *compiler) lookup(e *env, name string) *entity {
	for ; e != nil; e = e.up {
		if x := c.find(e, name, 0); x != nil {
			return x
		}
	}
	return predeclared(name)
}

var predeclaredEnts = makePredeclared()

func makePredeclared() map[string]*entity {
	m := map[string]*entity{}
	for name, t := range builtinTypes {
		m[name] = &entity{kind: eType, name: name, ty: qt(t)}
	}
	for name := range builtinTemplates {
		m[name] = &entity{kind: eTemplate, name: name, tmpl: &tmplInfo{name: name, built: name}}
	}
	return m
}

// predeclared returns what a name means that no declaration makes: a builtin type or class template.
func predeclared(name string) *entity { return predeclaredEnts[name] }

// namespaceOf returns the namespace that a scope belongs to.
func (e *env) namespaceOf() *env {
	for e != nil && e.kind != envNamespace {
		e = e.up
	}
	return e
}

// nearest collects the name that is nearest to a misspelt one.
type nearest struct {
	name, best string
	dist       int
}

func (s *nearest) try(n string) {
	if d := editDistance(s.name, n, s.dist+1); d < s.dist || d == s.dist && s.best != "" && n < s.best {
		s.best, s.dist = n, d
	}
}

// visit tries the names of a scope and of those it uses.
func (s *nearest) visit(e *env, depth int) {
	for n := range e.names {
		s.try(n)
	}
	for _, x := range e.list {
		s.try(x.name)
	}
	if e.class != nil {
		for i := range e.class.fields {
			s.try(e.class.fields[i].name)
		}
	}
	if e.frozen != nil {
		s.visit(e.frozen, depth)
	}
	if e.metal == 1 {
		for n := range builtins {
			s.try(n)
		}
	}
	if depth < 3 {
		for _, u := range e.using {
			s.visit(u, depth+1)
		}
	}
}

func near(name string) *nearest { return &nearest{name: name, dist: 1 + len(name)/3} }

// editDistance is the number of insertions, deletions, changes and swaps of neighbours from a to b, or limit if it is
// at least that.
func editDistance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit || len(b) == 0 {
		return limit
	}
	rows := make([]int, 3*(len(b)+1))
	before, last, row := rows[:len(b)+1], rows[len(b)+1:2*len(b)+2], rows[2*len(b)+2:]
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, row = last, row, before
		row[0] = i
		least := i
		for j := 1; j <= len(b); j++ {
			d := last[j-1]
			if a[i-1] != b[j-1] {
				d = 1 + min(d, last[j], row[j-1])
			}
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, before[j-2]+1)
			}
			row[j] = d
			least = min(least, d)
		}
		if least >= limit {
			return limit
		}
	}
	return min(row[len(b)], limit)
}

func quoteName(s string) string { return "'" + s + "'" }
