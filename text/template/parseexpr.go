package template

import (
	"slices"
	"strconv"
	"strings"
)

// tupleOptions say what a place takes where several expressions can stand, with commas between.
type tupleOptions struct {
	conditional bool   // a if b else c
	simple      bool   // names and literals only: the target of an assignment
	namespace   bool   // ns.attr as a target
	end         string // a word that ends the tuple
	parentheses bool   // there are parentheses around: it can be empty
}

// tuple reads an expression, or several with commas, which make a tuple.
func (p *parser) tuple(o tupleOptions) expr {
	pos := p.current().pos
	var items []expr
	isTuple := false
	for {
		if len(items) > 0 {
			p.expect(operator, ",")
		}
		t := p.current()
		if t.kind == variableEnd || t.kind == blockEnd || p.is(operator, ")") || o.end != "" && p.is(name, o.end) {
			break
		}
		if o.simple {
			items = append(items, p.primary(o.namespace))
		} else {
			items = append(items, p.expression(o.conditional))
		}
		if !p.is(operator, ",") {
			break
		}
		isTuple = true
	}
	if !isTuple {
		if len(items) > 0 {
			return items[0]
		}
		if !o.parentheses {
			p.fail(p.current().pos, "expected an expression, got %s", describe(p.current()))
		}
	}
	return &listExpr{place(pos), items, true}
}

func (p *parser) expression(conditional bool) expr {
	defer p.deeper()()
	before := len(p.unknown)
	e := p.or()
	for n := 0; conditional && p.is(name, "if"); p.longer(&n) {
		pos := p.advance().pos
		c := &condExpr{place: place(pos), then: e, test: p.or()}
		if p.skip(name, "else") {
			c.other = p.expression(true)
		}
		p.mayBeUnknown(before)
		e = c
	}
	return e
}

func (p *parser) or() expr {
	left := p.and()
	for n := 0; p.is(name, "or"); p.longer(&n) {
		pos := p.advance().pos
		left = &logicExpr{place(pos), true, left, p.and()}
	}
	return left
}

func (p *parser) and() expr {
	left := p.not()
	for n := 0; p.is(name, "and"); p.longer(&n) {
		pos := p.advance().pos
		left = &logicExpr{place(pos), false, left, p.not()}
	}
	return left
}

func (p *parser) not() expr {
	if p.is(name, "not") {
		defer p.deeper()()
		pos := p.advance().pos
		return &notExpr{place(pos), p.not()}
	}
	return p.compare()
}

func (p *parser) compare() expr {
	first := p.sum()
	c := &compareExpr{place: place(p.current().pos), first: first}
	for {
		t := p.current()
		switch {
		case t.kind == operator && slices.Contains([]string{"==", "!=", "<", "<=", ">", ">="}, t.text):
			p.advance()
			c.ops = append(c.ops, t.text)
		case p.skip(name, "in"):
			c.ops = append(c.ops, "in")
		case p.is(name, "not") && p.peek().kind == name && p.peek().text == "in":
			p.advance()
			p.advance()
			c.ops = append(c.ops, "not in")
		case c.ops == nil:
			return first
		default:
			return c
		}
		c.rest = append(c.rest, p.sum())
	}
}

// binary reads operators of one rank, from left to right.
func (p *parser) binary(operand func() expr, ops ...string) expr {
	left := operand()
	for n := 0; p.current().kind == operator && slices.Contains(ops, p.current().text); p.longer(&n) {
		t := p.advance()
		left = &binaryExpr{place(t.pos), t.text, left, operand()}
	}
	return left
}

func (p *parser) sum() expr { return p.binary(p.concat, "+", "-") }

func (p *parser) concat() expr {
	first := p.product()
	if !p.is(operator, "~") {
		return first
	}
	c := &concatExpr{place(p.current().pos), []expr{first}}
	for p.skip(operator, "~") {
		c.parts = append(c.parts, p.product())
	}
	return c
}

func (p *parser) product() expr { return p.binary(p.power, "*", "/", "//", "%") }

func (p *parser) power() expr { return p.binary(func() expr { return p.unary(true) }, "**") }

func (p *parser) unary(filters bool) expr {
	var e expr
	t := p.current()
	if p.is(operator, "-") || p.is(operator, "+") {
		defer p.deeper()()
		p.advance()
		e = &signExpr{place(t.pos), t.text == "-", p.unary(false)}
	} else {
		e = p.primary(false)
	}
	e = p.postfix(e)
	for n := 0; filters; p.longer(&n) {
		switch {
		case p.is(operator, "|"):
			e = p.filters(e, false)
		case p.is(name, "is"):
			e = p.test(e)
		case p.is(operator, "("):
			e = p.call(e)
		default:
			return e
		}
	}
	return e
}

func (p *parser) primary(namespace bool) expr {
	t := p.advance()
	pos := place(t.pos)
	switch {
	case t.kind == name:
		switch {
		case t.text == "true" || t.text == "True":
			return &constant{pos, true}
		case t.text == "false" || t.text == "False":
			return &constant{pos, false}
		case t.text == "none" || t.text == "None":
			return &constant{pos, nil}
		case namespace && p.skip(operator, "."):
			return &nsTarget{pos, t.text, p.expect(name, "").text}
		}
		p.noteName(t.text)
		return &variable{pos, t.text}
	case t.kind == stringToken:
		var text strings.Builder
		text.WriteString(t.text)
		for p.current().kind == stringToken {
			text.WriteString(p.advance().text)
		}
		return &constant{pos, text.String()}
	case t.kind == integerToken:
		base := 10
		if len(t.text) > 1 && t.text[0] == '0' && strings.ContainsRune("xXbBoO", rune(t.text[1])) {
			base = 0
		}
		n, err := strconv.ParseInt(t.text, base, 64)
		if err != nil {
			p.fail(t.pos, "the integer %s does not fit into 64 bits", t.text)
		}
		return &constant{pos, n}
	case t.kind == floatToken:
		f, _ := strconv.ParseFloat(t.text, 64)
		return &constant{pos, f}
	case t.kind == operator && t.text == "(":
		defer p.deeper()()
		e := p.tuple(tupleOptions{conditional: true, parentheses: true})
		p.expect(operator, ")")
		return e
	case t.kind == operator && t.text == "[":
		l := &listExpr{place: pos}
		p.list("]", func() { l.items = append(l.items, p.expression(true)) })
		return l
	case t.kind == operator && t.text == "{":
		d := &dictExpr{place: pos}
		p.list("}", func() {
			d.keys = append(d.keys, p.expression(true))
			p.expect(operator, ":")
			d.values = append(d.values, p.expression(true))
		})
		return d
	}
	p.fail(t.pos, "unexpected %s", describe(t))
	return nil
}

// noteName remembers that a macro uses the names that only macros have.
func (p *parser) noteName(text string) {
	if p.macro != nil {
		p.macro.caller = p.macro.caller || text == "caller"
		p.macro.varargs = p.macro.varargs || text == "varargs"
		p.macro.kwargs = p.macro.kwargs || text == "kwargs"
	}
}

// list reads items with commas between up to a bracket.
func (p *parser) list(end string, item func()) {
	for first := true; !p.is(operator, end); first = false {
		if !first {
			p.expect(operator, ",")
			if p.is(operator, end) {
				break
			}
		}
		item()
	}
	p.advance()
}

func (p *parser) postfix(e expr) expr {
	for n := 0; ; p.longer(&n) {
		pos := place(p.current().pos)
		switch {
		case p.skip(operator, "."):
			t := p.advance()
			switch t.kind {
			case name:
				e = &attribute{pos, e, t.text}
			case integerToken:
				n, err := strconv.ParseInt(t.text, 10, 64)
				if err != nil {
					p.fail(t.pos, "the integer %s does not fit into 64 bits", t.text)
				}
				e = &subscript{pos, e, &constant{pos, n}}
			default:
				p.fail(t.pos, "expected name or number, got %s", describe(t))
			}
		case p.skip(operator, "["):
			var items []expr
			p.list("]", func() { items = append(items, p.index()) })
			if len(items) == 1 {
				e = &subscript{pos, e, items[0]}
			} else {
				e = &subscript{pos, e, &listExpr{pos, items, true}}
			}
		case p.is(operator, "("):
			e = p.call(e)
		default:
			return e
		}
	}
}

// index reads an index or a slice.
func (p *parser) index() expr {
	s := &sliceExpr{place: place(p.current().pos)}
	if !p.is(operator, ":") {
		e := p.expression(true)
		if !p.is(operator, ":") {
			return e
		}
		s.from = e
	}
	p.advance()
	part := func() expr {
		if p.is(operator, ":") || p.is(operator, "]") || p.is(operator, ",") {
			return nil
		}
		return p.expression(true)
	}
	s.to = part()
	if p.skip(operator, ":") {
		s.step = part()
	}
	return s
}

func (p *parser) call(f expr) expr {
	return &callExpr{place(p.current().pos), f, p.arguments()}
}

func (p *parser) arguments() (a arguments) {
	open := p.expect(operator, "(")
	check := func(ok bool) {
		if !ok {
			p.fail(open.pos, "invalid syntax for function call expression")
		}
	}
	p.list(")", func() {
		t := p.current()
		switch {
		case p.skip(operator, "*"):
			check(a.star == nil && a.stars == nil)
			a.star = p.expression(true)
		case p.skip(operator, "**"):
			check(a.stars == nil)
			a.stars = p.expression(true)
		case t.kind == name && p.peek().kind == operator && p.peek().text == "=":
			check(a.stars == nil && !slices.Contains(a.names, t.text))
			p.advance()
			p.advance()
			a.names = append(a.names, t.text)
			a.values = append(a.values, p.expression(true))
		default:
			check(a.star == nil && a.stars == nil && a.names == nil)
			a.args = append(a.args, p.expression(true))
		}
	})
	return a
}

// filters reads filters with their arguments; started says that the bar is not there.
func (p *parser) filters(e expr, started bool) expr {
	for n := 0; started || p.skip(operator, "|"); p.longer(&n) {
		started = false
		t := p.expect(name, "")
		f := &filterExpr{place: place(t.pos), of: e, name: t.text, f: filterTable[t.text]}
		if f.f == nil {
			p.unknown = append(p.unknown, unknown{pos: t.pos, message: noFilter(t.text)})
		}
		if p.is(operator, "(") {
			f.args = p.arguments()
		}
		e = f
	}
	return e
}

func (p *parser) test(e expr) expr {
	pos := place(p.advance().pos)
	not := p.skip(name, "not")
	t := p.expect(name, "")
	x := &testExpr{place: pos, of: e, name: t.text, f: testTable[t.text]}
	if x.f == nil {
		p.unknown = append(p.unknown, unknown{pos: t.pos, message: "there is no test named '" + t.text + "'"})
	}
	switch n := p.current(); {
	case p.is(operator, "("):
		x.args = p.arguments()
	case n.kind == name && (n.text == "else" || n.text == "or" || n.text == "and"):
	case p.is(name, "is"):
		p.fail(n.pos, "tests cannot be chained with is")
	case n.kind == name || n.kind == stringToken || n.kind == integerToken || n.kind == floatToken,
		p.is(operator, "["), p.is(operator, "{"):
		x.args.args = []expr{p.postfix(p.primary(false))}
	}
	if not {
		return &notExpr{pos, x}
	}
	return x
}
