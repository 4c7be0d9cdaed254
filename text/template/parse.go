package template

import (
	"slices"
	"strings"
)

// maxSource bounds the source of a template, in bytes.
const maxSource = 1 << 20

// maxDepth bounds how deep a template is nested as it is written.
const maxDepth = 200

// Template is a template that has been read. It never changes, so several goroutines can render it at once.
type Template struct {
	source string
	body   []stmt
}

// Parse reads a template. An error is an *Error.
func Parse(source string) (t *Template, err error) {
	defer func() {
		if e, ok := recover().(*Error); ok {
			err = e
		} else if e != nil {
			panic(e)
		}
	}()
	if len(source) > maxSource {
		return nil, &Error{Line: 1, Column: 1, Message: "a template has at most 1 MiB"}
	}
	source = strings.ToValidUTF8(source, "\uFFFD")
	source = strings.ReplaceAll(strings.ReplaceAll(source, "\r\n", "\n"), "\r", "\n")
	source = strings.TrimSuffix(source, "\n")
	p := &parser{source: source, tokens: lex(source)}
	body := p.statements(nil)
	if len(p.unknown) > 0 {
		p.fail(p.unknown[0].pos, "%s", p.unknown[0].message)
	}
	return &Template{source, body}, nil
}

type parser struct {
	source string
	tokens []lexeme
	next   int
	depth  int
	open   []string // the tags that wait for their end
	loops  int
	blocks []string   // names
	macro  *macroStmt // that is being read
	// Filters and tests that there are not, so far. They are errors as soon as a template is read, but for those right
	// in an if, which are when they run: templates ask there whether they have them.
	unknown []unknown
}

// unknown is a filter or a test that there is not.
type unknown struct {
	pos     int
	message string
	settled bool // it is an error
}

// mayBeUnknown takes back what was found within an if.
func (p *parser) mayBeUnknown(from int) {
	left := slices.DeleteFunc(p.unknown[from:], func(u unknown) bool { return !u.settled })
	p.unknown = append(p.unknown[:from], left...)
}

// settle says that what was found within a loop, a macro or the like is an error, though it be within an if.
func (p *parser) settle(from int) {
	for i := range p.unknown[from:] {
		p.unknown[from+i].settled = true
	}
}

func (p *parser) current() lexeme { return p.tokens[p.next] }

func (p *parser) peek() lexeme { return p.tokens[min(p.next+1, len(p.tokens)-1)] }

func (p *parser) advance() lexeme {
	t := p.tokens[p.next]
	p.next = min(p.next+1, len(p.tokens)-1)
	return t
}

func (p *parser) fail(pos int, format string, args ...any) {
	panic(errorAt(p.source, pos, format, args...))
}

// is reports whether the current token is this operator or word.
func (p *parser) is(kind tokenKind, text string) bool {
	t := p.current()
	return t.kind == kind && t.text == text
}

func (p *parser) skip(kind tokenKind, text string) bool {
	if p.is(kind, text) {
		p.advance()
		return true
	}
	return false
}

// describe is how messages call a token.
func describe(t lexeme) string {
	switch t.kind {
	case endOfText:
		return "end of template"
	case blockEnd, variableEnd:
		return "end of tag " + t.text
	case stringToken:
		return "a text"
	}
	return "'" + t.text + "'"
}

func (p *parser) expect(kind tokenKind, text string) lexeme {
	t := p.current()
	if t.kind != kind || text != "" && t.text != text {
		want := "'" + text + "'"
		switch {
		case kind == blockEnd:
			want = "end of tag %}"
		case kind == variableEnd:
			want = "end of tag }}"
		case text == "":
			want = "a name"
		}
		p.fail(t.pos, "expected %s, got %s", want, describe(t))
	}
	return p.advance()
}

// deeper counts nesting; the caller defers what it returns.
func (p *parser) deeper() func() {
	if p.depth++; p.depth > maxDepth {
		p.fail(p.current().pos, "the template is nested more than %d deep", maxDepth)
	}
	return func() { p.depth-- }
}

// maxChain bounds how many operators, attributes or filters follow each other.
const maxChain = 5000

// longer counts the members of a chain.
func (p *parser) longer(n *int) {
	if *n++; *n > maxChain {
		p.fail(p.current().pos, "an expression has more than %d parts", maxChain)
	}
}

// statements reads up to one of the tags in ends, whose name is then the current token, or up to the end of the
// template.
func (p *parser) statements(ends []string) []stmt {
	defer p.deeper()()
	var body []stmt
	for {
		switch t := p.current(); t.kind {
		case data:
			p.advance()
			body = append(body, &textStmt{t.text})
		case variableBegin:
			p.advance()
			body = append(body, &outputStmt{p.tuple(tupleOptions{conditional: true})})
			p.expect(variableEnd, "")
		case blockBegin:
			p.advance()
			word := p.current()
			if word.kind != name {
				p.fail(word.pos, "tag name expected, got %s", describe(word))
			}
			if slices.Contains(ends, word.text) {
				return body
			}
			body = append(body, p.statement(word))
			p.expect(blockEnd, "")
		default:
			if ends != nil {
				p.fail(t.pos, "unexpected end of template: expected %s for the tag '%s'", strings.Join(ends, " or "),
					p.open[len(p.open)-1])
			}
			return body
		}
	}
}

// body reads the end of the current tag, and statements up to an end tag, whose name it takes.
func (p *parser) body(ends ...string) (body []stmt, end string) {
	p.skip(operator, ":")
	p.expect(blockEnd, "")
	body = p.statements(ends)
	return body, p.advance().text
}

func (p *parser) statement(word lexeme) stmt {
	p.open = append(p.open, word.text)
	defer func() { p.open = p.open[:len(p.open)-1] }()
	p.advance()
	switch word.text {
	case "for":
		return p.forLoop(word)
	case "if":
		return p.ifTag()
	case "set":
		return p.set()
	case "with":
		return p.with()
	case "macro":
		return p.macroTag(word)
	case "call":
		return p.callTag(word)
	case "filter":
		defer p.settle(len(p.unknown))
		f := p.filters(nil, true)
		body, _ := p.body("endfilter")
		return &filterBlock{f.(*filterExpr), body}
	case "generation":
		defer p.settle(len(p.unknown))
		body, _ := p.body("endgeneration")
		return &generationStmt{body}
	case "print":
		print := &printStmt{}
		for n := 0; p.current().kind != blockEnd; p.longer(&n) {
			if n > 0 {
				p.expect(operator, ",")
			}
			print.of = append(print.of, p.expression(true))
		}
		return print
	case "block":
		return p.block(word)
	case "break", "continue":
		if p.loops == 0 {
			p.fail(word.pos, "'%s' outside of a loop", word.text)
		}
		return &loopControl{word.text == "break"}
	case "extends", "include", "import", "from", "autoescape", "do", "trans", "debug":
		p.fail(word.pos, "the tag '%s' is not supported in chat templates", word.text)
	}
	if len(p.open) > 1 {
		p.fail(word.pos, "unknown tag '%s' within '%s'", word.text, p.open[len(p.open)-2])
	}
	p.fail(word.pos, "unknown tag '%s'", word.text)
	return nil
}

func (p *parser) forLoop(word lexeme) stmt {
	f := &forStmt{place: place(word.pos)}
	f.target = p.target("in")
	p.expect(name, "in")
	f.over = p.tuple(tupleOptions{end: "recursive"})
	defer p.settle(len(p.unknown))
	if p.skip(name, "if") {
		f.test = p.expression(true)
	}
	f.recursive = p.skip(name, "recursive")
	p.loops++
	body, end := p.body("endfor", "else")
	p.loops--
	f.body = body
	if end == "else" {
		f.other, _ = p.body("endfor")
	}
	return f
}

func (p *parser) ifTag() stmt {
	f := &ifStmt{}
	defer p.mayBeUnknown(len(p.unknown))
	for {
		f.tests = append(f.tests, p.tuple(tupleOptions{}))
		body, end := p.body("elif", "else", "endif")
		f.bodies = append(f.bodies, body)
		switch end {
		case "elif":
			continue
		case "else":
			f.other, _ = p.body("endif")
		}
		return f
	}
}

func (p *parser) set() stmt {
	target := p.targetWith(tupleOptions{simple: true, namespace: true})
	if p.skip(operator, "=") {
		return &setStmt{target, p.tuple(tupleOptions{conditional: true})}
	}
	defer p.settle(len(p.unknown))
	var filter *filterExpr
	if p.is(operator, "|") {
		filter = p.filters(nil, false).(*filterExpr)
	}
	body, _ := p.body("endset")
	return &setBlock{target, filter, body}
}

// block reads a block. Nothing can replace it here, so that it stands where it is; but it sees no variables of loops.
func (p *parser) block(word lexeme) stmt {
	title := p.expect(name, "")
	if slices.Contains(p.blocks, title.text) {
		p.fail(title.pos, "block '%s' defined twice", title.text)
	}
	p.blocks = append(p.blocks, title.text)
	b := &blockStmt{scoped: p.skip(name, "scoped")}
	loops := p.loops
	p.loops = 0
	defer p.settle(len(p.unknown))
	b.body, _ = p.body("endblock")
	p.loops = loops
	p.skip(name, title.text)
	return b
}

func (p *parser) with() stmt {
	w := &withStmt{}
	for p.current().kind != blockEnd {
		if len(w.targets) > 0 {
			p.expect(operator, ",")
		}
		w.targets = append(w.targets, p.target(""))
		p.expect(operator, "=")
		w.values = append(w.values, p.expression(true))
	}
	defer p.settle(len(p.unknown))
	w.body, _ = p.body("endwith")
	return w
}

// target reads what an assignment goes to, up to a word.
func (p *parser) target(end string) expr {
	return p.targetWith(tupleOptions{simple: true, end: end})
}

func (p *parser) targetWith(o tupleOptions) expr {
	pos := p.current().pos
	t := p.tuple(o)
	if !assignable(t) {
		p.fail(pos, "cannot assign to this")
	}
	return t
}

func assignable(t expr) bool {
	switch t := t.(type) {
	case *variable, *nsTarget:
		return true
	case *listExpr:
		return t.tuple && !slices.ContainsFunc(t.items, func(e expr) bool { return !assignable(e) })
	}
	return false
}

// signature reads the parameters of a macro.
func (p *parser) signature(m *macroStmt) {
	p.expect(operator, "(")
	for !p.is(operator, ")") {
		if len(m.params) > 0 {
			p.expect(operator, ",")
		}
		param := p.expect(name, "")
		if slices.Contains(m.params, param.text) {
			p.fail(param.pos, "the parameter '%s' is there twice", param.text)
		}
		m.params = append(m.params, param.text)
		if p.skip(operator, "=") {
			m.defaults = append(m.defaults, p.expression(true))
		} else if m.defaults != nil {
			p.fail(param.pos, "non-default argument follows default argument")
		}
	}
	p.advance()
}

func (p *parser) macroTag(word lexeme) stmt {
	m := &macroStmt{place: place(word.pos)}
	m.name = p.expect(name, "").text
	defer p.settle(len(p.unknown))
	p.signature(m)
	p.macroBody(m, "endmacro")
	return m
}

func (p *parser) macroBody(m *macroStmt, end string) {
	outer, loops := p.macro, p.loops
	p.macro, p.loops = m, 0
	m.body, _ = p.body(end)
	p.macro, p.loops = outer, loops
}

func (p *parser) callTag(word lexeme) stmt {
	block := &macroStmt{place: place(word.pos), name: "caller"}
	if p.is(operator, "(") {
		p.signature(block)
	}
	pos := p.current().pos
	c, ok := p.expression(true).(*callExpr)
	if !ok {
		p.fail(pos, "expected call")
	}
	outer := p.macro
	defer p.settle(len(p.unknown))
	p.macroBody(block, "endcall")
	if outer != nil { // names within the block belong to the macro around it, too
		outer.caller = outer.caller || block.caller
	}
	return &callBlock{place(word.pos), c, block}
}
