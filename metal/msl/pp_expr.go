package msl

import "strings"

// ppVal is a value of an #if expression: 64 bits, signed or not.
type ppVal struct {
	v        int64
	unsigned bool
}

// ppExpr evaluates an #if expression.
type ppExpr struct {
	p     *preproc
	d     *token
	list  []token
	depth int
	bad   bool
}

// condition evaluates the expression of #if or #elif. Errors count as false.
func (p *preproc) condition(d *token, rest []token) bool {
	list, ok := p.resolveDefined(d, rest)
	if !ok {
		return false
	}
	e := &ppExpr{p: p, d: d, list: p.expandTokens(list)}
	if len(e.list) == 0 {
		e.fail(d, "#%s needs an expression", d.text)
		return false
	}
	v := e.cond(true)
	if !e.bad && len(e.list) > 0 {
		e.fail(&e.list[0], "unexpected %s in #%s", e.list[0].name(), d.text)
	}
	return !e.bad && v.v != 0
}

// resolveDefined replaces defined X, __has_include(...) and the like by numbers.
func (p *preproc) resolveDefined(d *token, list []token) (out []token, ok bool) {
	number := func(at token, yes bool) {
		at.kind, at.sym, at.text = tNumber, 0, "0"
		if yes {
			at.text = "1"
		}
		out = append(out, at)
	}
	for i := 0; i < len(list); i++ {
		t := list[i]
		switch {
		case t.kind == tIdent && t.sym == p.symDefined:
			paren := i+1 < len(list) && list[i+1].kind == tLParen
			if paren {
				i++
			}
			i++
			if i >= len(list) || list[i].kind != tIdent || paren && (i+1 >= len(list) || list[i+1].kind != tRParen) {
				p.errorf(BadIfExpression, &t, "defined needs the name of a macro")
				return nil, false
			}
			number(t, p.macro(list[i].sym) != nil || list[i].sym == p.symHasInclude)
			if paren {
				i++
			}
		case t.kind == tIdent && strings.HasPrefix(t.text, "__has_") && p.macro(t.sym) == nil:
			j, depth := i+1, 0
			for ; j < len(list); j++ {
				if list[j].kind == tLParen {
					depth++
				} else if list[j].kind == tRParen {
					if depth--; depth == 0 {
						break
					}
				}
			}
			if j >= len(list) || list[i+1].kind != tLParen {
				p.errorf(BadIfExpression, &t, "%s needs an argument in parentheses", t.text)
				return nil, false
			}
			yes := false
			if t.sym == p.symHasInclude {
				name, ok := p.includeName(d, list[i+2:j])
				if !ok {
					return nil, false
				}
				yes = metalHeaders[strings.TrimSuffix(name, ".h")]
				if !yes && p.include != nil {
					_, yes = p.include(name)
				}
			}
			number(t, yes)
			i = j
		default:
			out = append(out, t)
		}
	}
	return out, true
}

func (e *ppExpr) fail(t *token, format string, args ...any) {
	if !e.bad {
		e.p.errorf(BadIfExpression, t, format, args...)
	}
	e.bad = true
}

func (e *ppExpr) peek() tok {
	if len(e.list) == 0 || e.bad {
		return tEOF
	}
	if t := &e.list[0]; t.kind == tIdent {
		t.kind = alternative(t.sym)
	}
	return e.list[0].kind
}

func (e *ppExpr) take() token {
	t := e.list[0]
	e.list = e.list[1:]
	return t
}

// cond parses a conditional expression. eval is false where C does not evaluate: nothing there is an error.
func (e *ppExpr) cond(eval bool) ppVal {
	if e.depth++; e.depth > maxExpr {
		e.fail(e.d, "the expression nests more than %d deep", maxExpr)
		return ppVal{}
	}
	defer func() { e.depth-- }()
	c := e.binary(1, eval)
	if e.peek() != tQuestion {
		return c
	}
	e.take()
	x := e.cond(eval && c.v != 0)
	if e.peek() != tColon {
		e.fail(e.d, "expected ':' in #%s", e.d.text)
		return ppVal{}
	}
	e.take()
	y := e.cond(eval && c.v == 0)
	unsigned := x.unsigned || y.unsigned
	if c.v == 0 {
		x = y
	}
	x.unsigned = unsigned
	return x
}

var ppPrec = map[tok]int{
	tLOr: 1, tLAnd: 2, tOr: 3, tXor: 4, tAnd: 5, tEq: 6, tNe: 6, tLt: 7, tGt: 7, tLe: 7, tGe: 7, tShl: 8, tShr: 8,
	tAdd: 9, tSub: 9, tMul: 10, tDiv: 10, tRem: 10,
}

func (e *ppExpr) binary(least int, eval bool) ppVal {
	x := e.unary(eval)
	for {
		k := e.peek()
		prec := ppPrec[k]
		if prec < least || prec == 0 {
			return x
		}
		t := e.take()
		evalY := eval && !(k == tLAnd && x.v == 0) && !(k == tLOr && x.v != 0)
		y := e.binary(prec+1, evalY)
		x = e.apply(&t, x, y, evalY)
	}
}

func ppBool(b bool) ppVal {
	if b {
		return ppVal{v: 1}
	}
	return ppVal{}
}

func (e *ppExpr) apply(t *token, x, y ppVal, eval bool) ppVal {
	u := x.unsigned || y.unsigned
	switch t.kind {
	case tLOr:
		return ppBool(x.v != 0 || y.v != 0)
	case tLAnd:
		return ppBool(x.v != 0 && y.v != 0)
	case tOr:
		return ppVal{x.v | y.v, u}
	case tXor:
		return ppVal{x.v ^ y.v, u}
	case tAnd:
		return ppVal{x.v & y.v, u}
	case tEq:
		return ppBool(x.v == y.v)
	case tNe:
		return ppBool(x.v != y.v)
	case tLt:
		return ppBool(ppLess(x, y, u))
	case tGt:
		return ppBool(ppLess(y, x, u))
	case tLe:
		return ppBool(!ppLess(y, x, u))
	case tGe:
		return ppBool(!ppLess(x, y, u))
	case tShl:
		return ppVal{x.v << (uint64(y.v) & 63), x.unsigned}
	case tShr:
		if x.unsigned {
			return ppVal{int64(uint64(x.v) >> (uint64(y.v) & 63)), true}
		}
		return ppVal{x.v >> (uint64(y.v) & 63), false}
	case tAdd:
		return ppVal{x.v + y.v, u}
	case tSub:
		return ppVal{x.v - y.v, u}
	case tMul:
		return ppVal{x.v * y.v, u}
	}
	if y.v == 0 {
		if eval {
			e.fail(t, "division by zero in #%s", e.d.text)
		}
		return ppVal{0, u}
	}
	switch {
	case u && t.kind == tDiv:
		return ppVal{int64(uint64(x.v) / uint64(y.v)), true}
	case u:
		return ppVal{int64(uint64(x.v) % uint64(y.v)), true}
	case y.v == -1 && t.kind == tDiv:
		return ppVal{-x.v, false}
	case y.v == -1:
		return ppVal{}
	case t.kind == tDiv:
		return ppVal{x.v / y.v, false}
	}
	return ppVal{x.v % y.v, false}
}

func ppLess(x, y ppVal, unsigned bool) bool {
	if unsigned {
		return uint64(x.v) < uint64(y.v)
	}
	return x.v < y.v
}

func (e *ppExpr) unary(eval bool) ppVal {
	var ops []tok
	for {
		switch k := e.peek(); k {
		case tNot, tTilde, tSub, tAdd:
			e.take()
			ops = append(ops, k)
			continue
		}
		break
	}
	v := e.primary(eval)
	for i := len(ops) - 1; i >= 0; i-- {
		switch ops[i] {
		case tNot:
			v = ppBool(v.v == 0)
		case tTilde:
			v.v = ^v.v
		case tSub:
			v.v = -v.v
		}
	}
	return v
}

func (e *ppExpr) primary(eval bool) ppVal {
	k := e.peek()
	if k == tEOF {
		e.fail(e.d, "the expression of #%s is not complete", e.d.text)
		return ppVal{}
	}
	t := e.take()
	switch k {
	case tLParen:
		v := e.cond(eval)
		if e.peek() != tRParen {
			e.fail(&t, "'(' without ')' in #%s", e.d.text)
			return ppVal{}
		}
		e.take()
		return v
	case tNumber:
		n, msg := parseNumber(t.text)
		if msg == "" && n.float {
			msg = "'" + clip(t.text) + "' is not an integer"
		}
		if msg != "" {
			e.fail(&t, "%s", msg)
			return ppVal{}
		}
		return ppVal{int64(n.i), n.unsigned || n.i > 1<<63-1}
	case tChar:
		b, msg := unescape(trimQuotes(t.text))
		if msg != "" || len(b) == 0 {
			e.fail(&t, "bad character literal %s", t.name())
			return ppVal{}
		}
		return ppVal{v: int64(int8(b[len(b)-1]))}
	case tIdent:
		return ppBool(t.text == "true")
	}
	e.fail(&t, "unexpected %s in #%s", t.name(), e.d.text)
	return ppVal{}
}
