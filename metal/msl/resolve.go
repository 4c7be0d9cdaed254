package msl

// resolver finds what names mean in a scope, and makes types and template arguments of what is written there.
type resolver struct {
	c       *compiler
	env     *env
	at      *Pos       // the place at hand, for messages
	gen     *generator // made when it is needed, see eval
	depth   int        // of instantiations around, where there is no generator yet
	badQual bool       // resolveQuiet has reported a wrong qualifier
}

// resolverIn returns a resolver for a scope outside functions.
func (c *compiler) resolverIn(e *env) *resolver {
	return &resolver{c: c, env: e, at: new(Pos), depth: c.depth}
}

// eval returns the generator that evaluates the expressions of the scope.
func (rs *resolver) eval() *generator {
	if rs.gen == nil {
		connect(rs.c, rs, emitter{exec: true}).nest.depth = rs.depth * 8
	}
	return rs.gen
}

// lookup finds an unqualified name from the current scope outwards, nil if there is none.
func (rs *resolver) lookup(name string) *entity { return rs.c.lookup(rs.env, name) }

// suggest returns the name in scope that is nearest to a misspelt one, "" if none is near.
func (rs *resolver) suggest(name string) string {
	s := near(name)
	for e := rs.env; e != nil; e = e.up {
		s.visit(e, 0)
	}
	for n := range positionAttrs { // metal_kernel declares those that a body names
		if n != name {
			s.try(n)
		}
	}
	for n := range predeclaredEnts {
		s.try(n)
	}
	return s.best
}

// suggestIn is suggest for the members of a namespace or class.
func suggestIn(e *env, name string) string {
	s := near(name)
	s.visit(e, 0)
	return s.best
}

// resolveEntity finds what a possibly qualified name stands for. It reports a name that does not exist and returns
// nil.
func (rs *resolver) resolveEntity(n *Name) *entity {
	x := rs.resolveQuiet(n)
	if x == nil {
		if rs.badQual {
			rs.badQual = false
			return nil
		}
		rs.undeclared(n)
	}
	return x
}

// resolveQuiet is resolveEntity without a message for the last part; a wrong qualifier is reported, and sets badQual.
func (rs *resolver) resolveQuiet(n *Name) *entity {
	return withArgs(rs.resolveName(n), &n.NamePart)
}

func (rs *resolver) resolveName(n *Name) *entity {
	key := n.Ident
	if key == "" {
		switch {
		case n.Conv != nil:
			key = "(conversion)"
		case n.Operator != NoOperator:
			key = operatorKey(n.Operator)
		}
	}
	if len(n.Quals) == 0 {
		if !n.Global {
			return rs.lookup(key)
		}
		e := rs.env
		for e.up != nil {
			e = e.up
		}
		return rs.c.find(e, key, 0)
	}
	e := rs.qualEnv(n)
	if e == nil {
		rs.badQual = true
		return nil
	}
	x := rs.c.find(e, key, 0)
	if x == nil && e.kind == envNamespace {
		if p := predeclared(key); p != nil && e.metal == 1 {
			return p
		}
		for f := e.frozen; f != nil; f = f.frozen {
			if p := predeclared(key); p != nil && f.metal == 1 {
				return p
			}
		}
	}
	return x
}

// withArgs makes a class's own name the template again where template arguments follow it: they may be other ones.
func withArgs(x *entity, p *NamePart) *entity {
	if x != nil && x.kind == eType && p.HasArgs && x.tmpl != nil {
		return &entity{kind: eTemplate, name: x.name, tmpl: x.tmpl, env: x.env}
	}
	return x
}

// qualEnv resolves the qualifiers of a name to a namespace or class; nil after an error.
func (rs *resolver) qualEnv(n *Name) *env {
	var e *env
	for i := range n.Quals {
		p := &n.Quals[i]
		var x *entity
		switch {
		case p.Decltype != nil:
			t := rs.eval().exprs.decltype(p.Decltype).noRef()
			if e = rs.classEnv(t.T, n); e == nil {
				return nil
			}
			continue
		case e == nil && n.Global:
			root := rs.env
			for root.up != nil {
				root = root.up
			}
			x = rs.c.find(root, p.Ident, 0)
		case e == nil:
			x = rs.lookup(p.Ident)
		default:
			x = rs.c.find(e, p.Ident, 0)
		}
		if x == nil {
			if i == 0 && p.Ident == "std" {
				rs.c.errorf(Undeclared, p.PartAt, "'std' is not declared: %s", rs.stdHint(n.Ident))
			} else {
				rs.notDeclared(p.Ident, p.PartAt)
			}
			return nil
		}
		if x.kind == eNamespace {
			e = x.ns
			continue
		}
		t, ok := rs.entityType(withArgs(x, p), &Name{Base: n.Base, NamePart: *p})
		if !ok {
			rs.c.errorf(NotAType, p.PartAt, "'%s' is neither a namespace nor a class", p.Ident)
			return nil
		}
		if t.T.kind == tBad {
			return nil
		}
		if e = rs.classEnv(t.noRef().T, n); e == nil {
			return nil
		}
	}
	return e
}

// classEnv returns the scope of a class or enumeration that is followed by ::.
func (rs *resolver) classEnv(t *ctype, n *Name) *env {
	switch t.kind {
	case tClass:
		rs.c.declareMembers(t.class)
		rs.c.complete(t.class)
		return t.class.scope
	case tEnum:
		return t.enum.scope
	case tBad:
		return nil
	}
	rs.c.errorf(NotAType, n.Pos(), "%s has no members that :: could name", t)
	return nil
}

func (rs *resolver) undeclared(n *Name) {
	name := n.Ident
	if name == "" && n.Operator != NoOperator {
		name = operatorKey(n.Operator)
	}
	if len(n.Quals) > 0 {
		text := ""
		if e := rs.qualEnv(n); e != nil {
			text = meant(suggestIn(e, name))
		}
		rs.c.errorf(Undeclared, n.Pos(), "'%s' does not exist in '%s'%s", name, qualText(n.Quals), text)
		return
	}
	rs.notDeclared(name, n.Pos())
}

// notDeclared reports a name, with what to write instead if that is known or can be guessed.
// Each name is reported once a kernel.
func (rs *resolver) notDeclared(name string, at Pos) {
	if c := rs.c; c.errs == &c.list {
		if c.missing[name] {
			c.hidden++
			return
		}
		c.missing[name] = true
	}
	if h := hintFor(name); h != "" {
		rs.c.errorf(Undeclared, at, "'%s' is not declared: %s", name, h)
		return
	}
	rs.c.errorf(Undeclared, at, "'%s' is not declared%s", name, meant(rs.suggest(name)))
}

// stdHint says what to write instead of std::name.
func (rs *resolver) stdHint(name string) string {
	if metal := rs.c.lookup(rs.env, "metal"); metal != nil && metal.kind == eNamespace && name != "" {
		if rs.c.find(metal.ns, name, 0) != nil || predeclared(name) != nil {
			return "write metal::" + name
		}
	}
	return hints["std"]
}

// meant is the end of a message about a misspelt name.
func meant(near string) string {
	if near == "" {
		return ""
	}
	return ": did you mean '" + near + "'?"
}

func nameText(n *Name) string {
	s := ""
	if len(n.Quals) > 0 {
		s = qualText(n.Quals) + "::"
	}
	if n.Ident == "" && n.Operator != NoOperator {
		return s + operatorKey(n.Operator)
	}
	return s + n.Ident
}

func qualText(parts []NamePart) string {
	s := ""
	for i, p := range parts {
		if i > 0 {
			s += "::"
		}
		s += p.Ident
	}
	return s
}

// thisObject returns the object of the method being expanded.
func (rs *resolver) thisObject() (value, bool) {
	for e := rs.env; e != nil; e = e.up {
		if e.this != nil {
			return *e.this, true
		}
	}
	return badValue, false
}

// enclosingInstance returns the innermost class in scope that is an instance of the template.
func (rs *resolver) enclosingInstance(tm *tmplInfo) *classInfo {
	for e := rs.env; e != nil; e = e.up {
		if e.kind == envClass && e.class != nil && e.class.name == tm.name && e.class.args != nil {
			return e.class
		}
	}
	return nil
}
