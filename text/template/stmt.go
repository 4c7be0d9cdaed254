package template

import "slices"

func (r *run) exec(body []stmt) {
	for _, s := range body {
		r.step()
		s.exec(r)
		if r.ctl != goesOn {
			return
		}
	}
}

// eval is e.eval with the place for errors.
func (r *run) eval(e expr) any {
	r.step()
	r.pos = e.at()
	v := e.eval(r)
	r.pos = e.at()
	return v
}

func (s *textStmt) exec(r *run) { r.write(s.text) }

func (s *outputStmt) exec(r *run) { r.write(r.text(r.eval(s.of))) }

func (s *printStmt) exec(r *run) {
	for _, e := range s.of {
		r.write(r.text(r.eval(e)))
	}
}

func (s *blockStmt) exec(r *run) {
	outer := r.scope
	for !s.scoped && r.scope.parent.parent != nil {
		r.scope = r.scope.parent
	}
	r.inner(func() { r.exec(s.body) })
	r.scope = outer
}

func (s *ifStmt) exec(r *run) {
	for i, test := range s.tests {
		if r.truth(r.eval(test)) {
			r.exec(s.bodies[i])
			return
		}
	}
	r.exec(s.other)
}

func (s *setStmt) exec(r *run) { r.assign(s.target, r.eval(s.value)) }

func (s *setBlock) exec(r *run) {
	r.inner(func() {
		r.piped = r.capture(func() { r.exec(s.body) })
		if s.filter != nil {
			r.piped = r.eval(s.filter)
		}
	})
	r.assign(s.target, r.piped)
}

func (s *filterBlock) exec(r *run) {
	var text string
	r.inner(func() {
		r.piped = r.capture(func() { r.exec(s.body) })
		text = r.text(r.eval(s.filter))
	})
	r.write(text)
}

func (s *withStmt) exec(r *run) {
	values := make([]any, len(s.values))
	for i, v := range s.values {
		values[i] = r.eval(v)
	}
	r.inner(func() {
		for i, t := range s.targets {
			r.assign(t, values[i])
		}
		r.exec(s.body)
	})
}

func (s *generationStmt) exec(r *run) {
	from := r.main.Len()
	var text string
	r.inner(func() { text = r.capture(func() { r.exec(s.body) }) })
	r.write(text)
	r.spans = append(r.spans, Span{from, from + len(text)})
}

func (s *loopControl) exec(r *run) {
	r.ctl = continues
	if s.stop {
		r.ctl = breaks
	}
}

func (s *macroStmt) exec(r *run) { r.scope.set(s.name, &macro{s, r.scope, s.name}) }

func (s *callBlock) exec(r *run) {
	block := &macro{s.block, r.scope, "caller"}
	r.pos = s.at()
	f := r.eval(s.call.f)
	c := r.arguments(s.call.args)
	c.names = append(c.names, "caller")
	c.values = append(c.values, block)
	r.write(r.text(r.call(f, c)))
}

// assign gives a value to a name, to several, or to an attribute of a namespace.
func (r *run) assign(target expr, value any) {
	switch t := target.(type) {
	case *variable:
		r.scope.set(t.name, value)
	case *nsTarget:
		ns, ok := r.look(t.name).(*namespace)
		r.pos = t.at()
		if !ok {
			r.fail("cannot assign attribute on non-namespace object")
		}
		r.checkAttribute(t.attr)
		r.alloc(itemBytes)
		ns.attrs.Set(t.attr, value)
	case *listExpr:
		items := r.items(value)
		if len(items) < len(t.items) {
			r.fail("not enough values to unpack (expected %d, got %d)", len(t.items), len(items))
		} else if len(items) > len(t.items) {
			r.fail("too many values to unpack (expected %d)", len(t.items))
		}
		for i, x := range t.items {
			r.assign(x, items[i])
		}
	}
}

// checkAttribute refuses names that begin with an underscore, as transformers does.
func (r *run) checkAttribute(name string) {
	if len(name) > 0 && name[0] == '_' {
		r.fail("chat templates cannot store underscore-prefixed attributes on a namespace, but got '%s'", name)
	}
}

// loop is the variable loop.
type loop struct {
	stmt    *forStmt
	scope   *scope
	items   []any
	index   int
	depth   int
	changed any // what changed() was called with; nil before
}

func (s *forStmt) exec(r *run) {
	over := r.eval(s.over)
	r.write(r.loop(s, over, 0, r.scope))
}

// loop runs a loop and returns what it writes; in the outermost loop it writes at once.
func (r *run) loop(s *forStmt, over any, depth int, outer *scope) string {
	defer r.enter()()
	saved := r.scope
	r.scope = outer
	defer func() { r.scope = saved }()
	items := r.items(over)
	if s.test != nil {
		items = slices.DeleteFunc(slices.Clone(items), func(item any) bool {
			keep := false
			r.inner(func() {
				r.assign(s.target, item)
				keep = r.truth(r.eval(s.test))
			})
			return !keep
		})
	}
	run := func() {
		l := &loop{stmt: s, scope: outer, items: items, depth: depth}
		for i, item := range items {
			r.step()
			l.index = i
			r.inner(func() {
				r.scope.set("loop", l)
				r.assign(s.target, item)
				r.exec(s.body)
			})
			if r.ctl == breaks {
				r.ctl = goesOn
				break
			}
			r.ctl = goesOn
		}
		if len(items) == 0 {
			r.inner(func() { r.exec(s.other) })
		}
	}
	if depth > 0 {
		return r.capture(run)
	}
	run()
	return ""
}

// macro is a macro, or the body of a call block.
type macro struct {
	stmt  *macroStmt
	scope *scope // where it was made
	name  string
}

// invoke runs a macro.
func (m *macro) invoke(r *run, c call) string {
	defer r.enter()()
	s := m.stmt
	inside := &scope{parent: m.scope}
	extra := NewList()
	extra.kind = "tuple"
	kwargs := NewDict()
	for i, v := range c.args {
		if i < len(s.params) {
			inside.set(s.params[i], v)
		} else {
			extra.Items = append(extra.Items, v)
		}
	}
	hasCaller := slices.Contains(s.params, "caller")
	for i, n := range c.names {
		switch at := slices.Index(s.params, n); {
		case at >= 0 && at < len(c.args):
			r.fail("macro '%s' got multiple values for argument '%s'", s.name, n)
		case at >= 0:
			inside.set(n, c.values[i])
		case n == "caller" && s.caller:
			inside.set(n, c.values[i])
			hasCaller = true
		case s.kwargs && n != "caller":
			kwargs.Set(n, c.values[i])
		case n == "caller":
			r.fail("macro '%s' was invoked with two values for the special caller argument, or does not use it", s.name)
		default:
			r.fail("macro '%s' takes no keyword argument '%s'", s.name, n)
		}
	}
	if len(extra.Items) > 0 && !s.varargs {
		r.fail("macro '%s' takes not more than %d argument(s)", s.name, len(s.params))
	}
	if s.caller && !hasCaller {
		inside.set("caller", undefined{name: "caller", hint: "No caller defined"})
	}
	inside.set("varargs", extra)
	inside.set("kwargs", kwargs)
	saved, pos, ctl := r.scope, r.pos, r.ctl
	r.scope, r.ctl = inside, goesOn
	m.defaults(r, inside)
	text := r.capture(func() { r.exec(s.body) })
	r.scope, r.pos, r.ctl = saved, pos, ctl
	return text
}

// defaults sets the parameters that were not given.
func (m *macro) defaults(r *run, inside *scope) {
	s := m.stmt
	for i, p := range s.params {
		if _, given := inside.vars[p]; given {
			continue
		}
		d := i - (len(s.params) - len(s.defaults))
		if d >= 0 {
			inside.set(p, r.eval(s.defaults[d]))
		} else {
			inside.set(p, undefined{name: p, hint: "parameter '" + p + "' was not provided"})
		}
	}
}
