package msl

import (
	"strconv"
	"strings"
)

func (p *preproc) setMacro(sym int32, m *macro) {
	for int(sym) >= len(p.f.macroOf) {
		p.f.macroOf = append(p.f.macroOf, nil)
	}
	p.f.macroOf[sym] = m
	if m != nil && m.builtin == 0 {
		p.f.macros = append(p.f.macros, m)
		m.index = int32(len(p.f.macros))
	}
}

func (p *preproc) macro(sym int32) *macro {
	if int(sym) < len(p.f.macroOf) {
		return p.f.macroOf[sym]
	}
	return nil
}

// expand replaces the macro that t names, if it names one, by what it stands for: on p.pend, for rescanning.
func (p *preproc) expand(t ptok) bool {
	m := p.macro(t.sym)
	if m == nil || t.hide.has(m) {
		return false
	}
	if m.builtin != 0 {
		p.pend = append(p.pend, ptok{token: p.builtinMacro(m, t.token)})
		return true
	}
	if t.hide != nil && t.hide.n >= maxHide {
		p.die(&t.token, "macros nest more than %d deep: the innermost is '%s'", maxHide, m.name)
		return true
	}
	if !m.function {
		p.push(m, t, nil, t.hide.add(m))
		return true
	}
	if !p.atParen() {
		return false
	}
	args, closing, ok := p.args(m, t)
	if !ok {
		if !p.dead { // the name stands for the call, so that there is no second error about what is missing
			t.hide = t.hide.add(m)
			p.pend = append(p.pend, t)
		}
		return true
	}
	p.push(m, t, args, t.hide.intersect(closing.hide).add(m))
	return true
}

func (p *preproc) builtinMacro(m *macro, t token) token {
	switch m.builtin {
	case 'L':
		t.kind, t.text = tNumber, strconv.Itoa(int(p.f.source(t.src).position(t.off).Line))
	case 'F':
		t.kind, t.text = tString, strconv.Quote(p.f.fileName(p.f.source(t.src).position(t.off).File))
	default:
		t.kind, t.text = tNumber, strconv.Itoa(p.counter)
		p.counter++
	}
	t.sym = 0
	return t
}

// atParen tells whether the next token is an opening parenthesis, without reading it.
func (p *preproc) atParen() bool {
	if n := len(p.pend); n > 0 {
		return p.pend[n-1].kind == tLParen
	}
	if p.isolated > 0 {
		return false
	}
	pos, bol, fail := p.scan.pos, p.scan.bol, p.scan.fail
	p.scan.fail = nil
	t := p.scan.next()
	p.scan.pos, p.scan.bol, p.scan.fail = pos, bol, fail
	return t.kind == tLParen
}

// raw returns the next token, not expanded.
func (p *preproc) raw() ptok {
	if n := len(p.pend); n > 0 {
		t := p.pend[n-1]
		p.pend = p.pend[:n-1]
		return t
	}
	if p.isolated > 0 {
		return ptok{}
	}
	return ptok{token: p.scanNext()}
}

// args reads the arguments of a macro call, and the closing parenthesis.
func (p *preproc) args(m *macro, use ptok) (args [][]ptok, closing ptok, ok bool) {
	p.raw() // the opening parenthesis
	depth := 0
	var arg []ptok
	for {
		t := p.raw()
		switch t.kind {
		case tEOF:
			p.errorf(MacroCall, &use.token, "the call of macro '%s' has no closing parenthesis", m.name)
			return nil, t, false
		case tLParen:
			depth++
		case tRParen:
			depth--
			if depth >= 0 {
				break
			}
			if len(args) > 0 || len(arg) > 0 || len(m.params) > 0 {
				args = append(args, arg)
			}
			return p.checkArgs(m, use, args, t)
		case tComma:
			if depth == 0 && (!m.variadic || len(args) < len(m.params)-1) {
				args = append(args, arg)
				arg = nil
				continue
			}
		}
		if p.work++; p.work > maxWork {
			p.die(&use.token, "macro expansion needs more than %d steps", maxWork)
			return nil, t, false
		}
		arg = append(arg, t)
	}
}

func (p *preproc) checkArgs(m *macro, use ptok, args [][]ptok, closing ptok) ([][]ptok, ptok, bool) {
	want := len(m.params)
	if m.variadic && len(args) == want-1 {
		args = append(args, nil)
	}
	if len(args) != want {
		most := ""
		if m.variadic {
			want--
			most = " or more"
		}
		p.errorf(MacroCall, &use.token, "macro '%s' takes %d%s arguments, not %d", m.name, want, most, len(args))
		return nil, closing, false
	}
	return args, closing, true
}

// push substitutes a macro's arguments and puts the result on p.pend.
func (p *preproc) push(m *macro, use ptok, args [][]ptok, hs *hideSet) {
	var list []ptok
	if args == nil && !m.function && !m.hasPaste() {
		list = make([]ptok, 0, len(m.body))
		for i := range m.body {
			list = append(list, ptok{token: p.made(m, i, use), hide: hs})
		}
	} else {
		list = p.substitute(m, use, args)
		for i := range list {
			list[i].hide = list[i].hide.union(hs)
		}
	}
	if len(list) > 0 {
		list[0].flags = list[0].flags&^fSpace | use.flags&fSpace
	}
	if p.work += len(list) + 1; p.work > maxWork || len(p.pend)+len(list) > maxTokens {
		p.die(&use.token, "macro expansion needs more than %d steps", maxWork)
		return
	}
	for i := len(list) - 1; i >= 0; i-- {
		p.pend = append(p.pend, list[i])
	}
}

func (m *macro) hasPaste() bool {
	for i := range m.body {
		if m.body[i].kind == tHashHash {
			return true
		}
	}
	return false
}

// made returns the token i of m's body as its use makes it.
func (p *preproc) made(m *macro, i int, use ptok) token {
	t := m.body[i]
	t.flags &^= fBOL
	t.src, t.off, t.mac = use.src, use.off, use.mac
	if t.mac == 0 {
		t.mac = m.index
	}
	return t
}

// substitute returns m's body with the arguments in place of the parameters, # and ## done.
func (p *preproc) substitute(m *macro, use ptok, args [][]ptok) (out []ptok) {
	expanded := make([][]ptok, len(args))
	done := make([]bool, len(args))
	param := func(i int) int {
		if i < len(m.body) && m.param != nil {
			return int(m.param[i])
		}
		return -1
	}
	for i := 0; i < len(m.body) && !p.dead; i++ {
		t := &m.body[i]
		if t.kind == tIdent && t.sym == p.symVAOpt && m.variadic {
			end := m.optEnd(i)
			if rest := args[len(args)-1]; len(rest) > 0 && end > i {
				part := *m
				part.body, part.param = m.body[i+2:end], m.param[i+2:end]
				out = append(out, p.substitute(&part, use, args)...)
			}
			i = max(end, i)
			continue
		}
		switch k := param(i); {
		case t.kind == tHash && m.function && param(i+1) >= 0:
			i++
			out = append(out, p.stringify(args[param(i)], p.made(m, i-1, use)))
		case t.kind == tHashHash && i > 0 && i+1 < len(m.body):
			i++
			var rhs []ptok
			switch k := param(i); {
			case k >= 0:
				rhs = append(rhs, args[k]...)
				if m.variadic && k == len(m.params)-1 && len(out) > 0 && out[len(out)-1].kind == tComma {
					// GNU: a comma before ## __VA_ARGS__ goes away when there are none.
					if len(rhs) == 0 {
						out = out[:len(out)-1]
					}
					out = append(out, rhs...)
					continue
				}
			case m.body[i].kind == tHash && param(i+1) >= 0:
				i++
				rhs = append(rhs, p.stringify(args[param(i)], p.made(m, i-1, use)))
			default:
				rhs = []ptok{{token: p.made(m, i, use)}}
			}
			out = p.paste(m, use, out, rhs, i)
		case k >= 0:
			// An operand of ## is not expanded.
			if i+1 < len(m.body) && m.body[i+1].kind == tHashHash {
				out = appendArg(out, args[k], t.flags)
				if len(args[k]) == 0 {
					i = p.emptyLeft(m, i, &out, use, args)
				}
				continue
			}
			if !done[k] {
				expanded[k], done[k] = p.expandArg(args[k], use), true
			}
			out = appendArg(out, expanded[k], t.flags)
		default:
			out = append(out, ptok{token: p.made(m, i, use)})
		}
		if len(out) > maxTokens {
			p.die(&use.token, "macro expansion makes more than %d tokens", maxTokens)
		}
	}
	return out
}

// optEnd returns the index of the parenthesis that closes __VA_OPT__( at i, -1 if there is none.
func (m *macro) optEnd(i int) int {
	depth := 0
	for j := i + 1; j < len(m.body); j++ {
		switch m.body[j].kind {
		case tLParen:
			depth++
		case tRParen:
			if depth--; depth == 0 {
				return j
			}
		}
		if depth == 0 {
			return -1
		}
	}
	return -1
}

// emptyLeft handles "empty ## right" at the parameter i: the result is the right side, not expanded.
func (p *preproc) emptyLeft(m *macro, i int, out *[]ptok, use ptok, args [][]ptok) int {
	for i+2 < len(m.body) && m.body[i+1].kind == tHashHash {
		i += 2
		k := -1
		if m.param != nil {
			k = int(m.param[i])
		}
		if k < 0 {
			if m.body[i].kind == tHash && m.function && i+1 < len(m.body) && m.param[i+1] >= 0 {
				i++
				*out = append(*out, p.stringify(args[m.param[i]], p.made(m, i-1, use)))
				return i
			}
			*out = append(*out, ptok{token: p.made(m, i, use)})
			return i
		}
		if len(args[k]) > 0 {
			*out = appendArg(*out, args[k], m.body[i].flags)
			return i
		}
	}
	return i
}

func appendArg(out, arg []ptok, flags uint8) []ptok {
	n := len(out)
	out = append(out, arg...)
	if len(out) > n {
		out[n].flags = out[n].flags&^fSpace | flags&fSpace
	}
	return out
}

// expandArg expands an argument as if it were all there is.
func (p *preproc) expandArg(arg []ptok, use ptok) (out []ptok) {
	if p.isolated >= maxArgs {
		p.die(&use.token, "macro calls nest more than %d deep in arguments", maxArgs)
		return nil
	}
	found := false
	for i := range arg {
		if arg[i].kind == tIdent && p.macro(arg[i].sym) != nil {
			found = true
			break
		}
	}
	if !found {
		return arg
	}
	saved := p.pend
	p.pend = make([]ptok, 0, len(arg)+16)
	for i := len(arg) - 1; i >= 0; i-- {
		p.pend = append(p.pend, arg[i])
	}
	p.isolated++
	for len(p.pend) > 0 && !p.dead {
		n := len(p.pend) - 1
		t := p.pend[n]
		p.pend = p.pend[:n]
		if t.kind != tIdent || !p.expand(t) {
			out = append(out, t)
			if p.work++; p.work > maxWork {
				p.die(&use.token, "macro expansion needs more than %d steps", maxWork)
			}
		}
	}
	p.isolated--
	p.pend = saved
	if p.dead {
		p.pend = p.pend[:0]
	}
	return out
}

// stringify makes the string that # gives.
func (p *preproc) stringify(arg []ptok, at token) ptok {
	var b strings.Builder
	b.WriteByte('"')
	for i := range arg {
		t := &arg[i]
		if i > 0 && t.flags&(fSpace|fBOL) != 0 {
			b.WriteByte(' ')
		}
		if t.kind == tString || t.kind == tChar {
			for j := 0; j < len(t.text); j++ {
				if c := t.text[j]; c == '"' || c == '\\' {
					b.WriteByte('\\')
				}
				b.WriteByte(t.text[j])
			}
		} else {
			b.WriteString(t.text)
		}
		if b.Len() > maxText {
			p.die(&at, "# makes a string of more than %d bytes", maxText)
			break
		}
	}
	b.WriteByte('"')
	p.work += b.Len() / 16
	at.kind, at.text, at.sym = tString, b.String(), 0
	return ptok{token: at}
}

// paste joins the last token of out and the first of rhs into one, and appends the rest of rhs.
func (p *preproc) paste(m *macro, use ptok, out, rhs []ptok, i int) []ptok {
	if len(rhs) == 0 {
		return out
	}
	if len(out) == 0 {
		return append(out, rhs...)
	}
	l, r := out[len(out)-1], rhs[0]
	text := l.text + r.text
	if len(text) > maxText {
		p.die(&use.token, "## makes a token of more than %d bytes", maxText)
		return out
	}
	p.work += len(text) / 16
	sc := scanner{text: text, syms: p.syms}
	t := sc.next()
	if sc.pos != len(text) || t.kind == tOther || t.kind == tEOF || text == "" || strings.HasPrefix(text, "//") ||
		strings.HasPrefix(text, "/*") {
		p.errorf(BadPaste, &use.token, "## in macro '%s' joins '%s' and '%s': that is no token", m.name,
			clip(l.text), clip(r.text))
		return append(out, rhs...)
	}
	at := p.made(m, i, use)
	t.src, t.off, t.mac, t.flags = at.src, at.off, at.mac, l.flags
	out[len(out)-1] = ptok{token: t, hide: l.hide.intersect(r.hide)}
	return append(out, rhs[1:]...)
}
