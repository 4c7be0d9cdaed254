package msl

import (
	"strconv"
	"strings"
)

// line returns the tokens up to the end of the line.
func (p *preproc) line() (list []token) {
	for {
		pos, bol, fail := p.scan.pos, p.scan.bol, p.scan.fail
		p.scan.fail = nil
		t := p.scan.next()
		p.scan.fail = fail
		if t.flags&fBOL != 0 {
			p.scan.pos, p.scan.bol = pos, bol
			return list
		}
		if (t.kind == tString || t.kind == tChar) && !(len(list) > 0 && list[0].text == "error") {
			// Again, with its errors: the first time it might have been on the next line.
			p.scan.pos, p.scan.bol = pos, bol
			t = p.scan.next()
		}
		list = append(list, t)
	}
}

// directive obeys the directive that starts at the # given.
func (p *preproc) directive(hash token) {
	list := p.line()
	if len(list) == 0 {
		return
	}
	d, rest := list[0], list[1:]
	if d.kind == tNumber {
		p.lineDirective(&d, list)
		return
	}
	switch d.text {
	case "define":
		p.define(&d, rest)
	case "undef":
		if sym := p.macroName(&d, rest); sym != 0 {
			p.setMacro(sym, nil)
			p.noMore(&d, rest[1:])
		}
	case "if":
		p.open1(&d, p.condition(&d, rest))
	case "ifdef", "ifndef":
		sym := p.macroName(&d, rest)
		if sym != 0 {
			p.noMore(&d, rest[1:])
		}
		p.open1(&d, sym != 0 && (p.macro(sym) != nil) == (d.text == "ifdef"))
	case "elif", "else":
		n := len(p.conds)
		if n == p.condBase {
			p.errorf(UnbalancedIf, &d, "#%s without #if", d.text)
			return
		}
		c := &p.conds[n-1]
		if c.elseSeen {
			p.errorf(UnbalancedIf, &d, "#%s after #else", d.text)
		}
		c.elseSeen = c.elseSeen || d.text == "else"
		p.skip()
	case "endif":
		if len(p.conds) == p.condBase {
			p.errorf(UnbalancedIf, &d, "#endif without #if")
			return
		}
		p.noMore(&d, rest)
		p.conds = p.conds[:len(p.conds)-1]
	case "error":
		p.errorf(ErrorDirective, &d, "#error%s", p.restOfLine(&d))
	case "warning", "ident", "sccs", "import_module":
	case "line":
		p.lineDirective(&d, p.expandTokens(rest))
	case "include", "import":
		p.includeDirective(&d, rest)
	case "pragma":
		p.pragma(&hash, rest)
	default:
		p.errorf(UnknownDirective, &d, "unknown directive #%s", clip(d.text))
	}
}

// restOfLine returns the text of a directive's line after its name.
func (p *preproc) restOfLine(d *token) string {
	text := p.scan.text[int(d.off)+len(d.text):]
	if n := strings.IndexByte(text, '\n'); n >= 0 {
		text = text[:n]
	}
	return strings.TrimRight(clip(text), " \t\r")
}

func (p *preproc) noMore(d *token, rest []token) {
	if len(rest) > 0 {
		p.errorf(BadDirective, &rest[0], "unexpected %s after #%s", rest[0].name(), d.text)
	}
}

// macroName returns the symbol of the macro that a directive names, 0 after an error.
func (p *preproc) macroName(d *token, rest []token) int32 {
	if len(rest) == 0 || rest[0].kind != tIdent {
		p.errorf(BadDirective, d, "#%s needs the name of a macro", d.text)
		return 0
	}
	if rest[0].sym == p.symDefined {
		p.errorf(BadDirective, &rest[0], "'defined' cannot be a macro")
		return 0
	}
	return rest[0].sym
}

// define obeys #define.
func (p *preproc) define(d *token, rest []token) {
	sym := p.macroName(d, rest)
	if sym == 0 {
		return
	}
	m := &macro{name: rest[0].text, src: rest[0].src, off: rest[0].off}
	rest = rest[1:]
	if len(rest) > 0 && rest[0].kind == tLParen && rest[0].flags&fSpace == 0 {
		m.function = true
		var ok bool
		if rest, ok = p.params(m, rest); !ok {
			return
		}
	}
	m.body = append([]token(nil), rest...)
	if !p.checkBody(m) {
		return
	}
	p.setMacro(sym, m)
}

// params reads the parameters of a function macro; rest starts at its opening parenthesis.
func (p *preproc) params(m *macro, rest []token) ([]token, bool) {
	open := rest[0]
	rest = rest[1:]
	if len(rest) > 0 && rest[0].kind == tRParen {
		return rest[1:], true
	}
	for len(rest) > 1 {
		t, next := rest[0], rest[1]
		switch {
		case t.kind == tEllipsis:
			m.variadic = true
			m.params = append(m.params, p.symVAArgs)
		case t.kind == tIdent && next.kind == tEllipsis && len(rest) > 2: // GNU: args...
			m.variadic = true
			m.params = append(m.params, t.sym)
			rest = rest[1:]
			next = rest[1]
		case t.kind == tIdent:
			for _, q := range m.params {
				if q == t.sym {
					p.errorf(BadDirective, &t, "macro parameter '%s' occurs twice", t.text)
					return nil, false
				}
			}
			m.params = append(m.params, t.sym)
		default:
			p.errorf(BadDirective, &t, "%s is no macro parameter", t.name())
			return nil, false
		}
		rest = rest[2:]
		if next.kind == tRParen {
			return rest, true
		}
		if next.kind != tComma || m.variadic {
			p.errorf(BadDirective, &next, "expected ',' or ')' in the parameters of a macro, not %s", next.name())
			return nil, false
		}
	}
	p.errorf(BadDirective, &open, "the parameters of macro '%s' have no closing parenthesis", m.name)
	return nil, false
}

// checkBody finds the parameters in a macro's body and checks # and ##.
func (p *preproc) checkBody(m *macro) bool {
	if len(m.params) > 0 {
		m.param = make([]int16, len(m.body))
	}
	for i := range m.body {
		t := &m.body[i]
		if m.param != nil {
			m.param[i] = -1
			if t.kind == tIdent {
				for k, sym := range m.params {
					if sym == t.sym {
						m.param[i] = int16(k)
					}
				}
			}
		}
		if t.kind == tIdent && t.sym == p.symVAArgs && (m.param == nil || m.param[i] < 0) {
			p.errorf(BadDirective, t, "__VA_ARGS__ stands for the ... of a macro: '%s' has none", m.name)
			return false
		}
		if t.kind == tIdent && t.sym == p.symVAOpt && m.variadic && m.optEnd(i) < 0 {
			p.errorf(BadDirective, t, "__VA_OPT__ needs ( and ) around what depends on the arguments")
			return false
		}
	}
	for i := range m.body {
		t := &m.body[i]
		if t.kind == tHashHash && (i == 0 || i == len(m.body)-1) {
			p.errorf(BadDirective, t, "## stands between two tokens")
			return false
		}
		if t.kind == tHash && m.function && (i+1 >= len(m.body) || m.param == nil || m.param[i+1] < 0) {
			p.errorf(BadDirective, t, "# stands before a parameter of macro '%s'", m.name)
			return false
		}
	}
	return true
}

// open1 opens a conditional group.
func (p *preproc) open1(d *token, taken bool) {
	if len(p.conds) >= maxCond {
		p.die(d, "#if nests more than %d deep", maxCond)
		return
	}
	p.conds = append(p.conds, cond{taken: taken, at: *d})
	if !taken {
		p.skip()
	}
}

// skip skips groups up to the one to read: a true #elif, an #else if nothing was taken, or what follows #endif.
func (p *preproc) skip() {
	fail := p.scan.fail
	nested := 0
	for {
		p.scan.fail = nil
		t := p.scan.next()
		if t.kind == tEOF {
			p.scan.fail = fail
			p.scan.pos, p.scan.bol = len(p.scan.text), true
			return
		}
		if t.kind != tHash || t.flags&fBOL == 0 {
			continue
		}
		pos, bol := p.scan.pos, p.scan.bol
		d := p.scan.next()
		if d.flags&fBOL != 0 {
			p.scan.pos, p.scan.bol = pos, bol
			continue
		}
		p.scan.fail = fail
		c := &p.conds[len(p.conds)-1]
		switch d.text {
		case "if", "ifdef", "ifndef":
			nested++
		case "elif", "else":
			if nested > 0 {
				continue
			}
			if c.elseSeen {
				p.errorf(UnbalancedIf, &d, "#%s after #else", d.text)
			}
			rest := p.line()
			if d.text == "else" {
				c.elseSeen = true
				p.noMore(&d, rest)
			}
			if !c.taken && (d.text == "else" || p.condition(&d, rest)) {
				c.taken = true
				return
			}
		case "endif":
			if nested > 0 {
				nested--
				continue
			}
			p.noMore(&d, p.line())
			p.conds = p.conds[:len(p.conds)-1]
			return
		}
	}
}

// expandTokens returns the tokens of a directive with macros expanded.
func (p *preproc) expandTokens(list []token) []token {
	arg := make([]ptok, len(list))
	for i := range list {
		arg[i].token = list[i]
	}
	var use ptok
	if len(list) > 0 {
		use = arg[0]
	}
	out := p.expandArg(arg, use)
	res := make([]token, len(out))
	for i := range out {
		res[i] = out[i].token
	}
	return res
}

// lineDirective obeys #line N "file" and # N "file".
func (p *preproc) lineDirective(d *token, rest []token) {
	if len(rest) == 0 || rest[0].kind != tNumber {
		p.errorf(BadDirective, d, "#line needs a line number")
		return
	}
	n, err := strconv.ParseUint(strings.ReplaceAll(rest[0].text, "'", ""), 10, 32)
	if err != nil || n > maxLine {
		p.errorf(BadDirective, &rest[0], "'%s' is no line number", clip(rest[0].text))
		return
	}
	s := p.f.source(d.src)
	file := s.position(d.off).File
	if len(rest) > 1 {
		name, msg := "", "not a name in quotes"
		if rest[1].kind == tString {
			var b []byte
			b, msg = unescape(trimQuotes(rest[1].text))
			name = string(b)
		}
		if msg != "" {
			p.errorf(BadDirective, &rest[1], "%s is no file name: %s", rest[1].name(), msg)
			return
		}
		var ok bool
		if file, ok = p.f.fileIndex(name); !ok {
			p.die(&rest[1], "more than %d file names", maxFiles)
			return
		}
		if rest[0].text != d.text { // GNU's form may have flags
			p.noMore(d, rest[2:])
		}
	}
	phys, _ := s.physical(uint32(min(p.scan.pos, len(p.scan.text))))
	s.maps = append(s.maps, lineMark{phys: phys + 1, line: uint32(n), file: file})
}

// trimQuotes takes the quotes off a literal, the last of which may be missing.
func trimQuotes(s string) string {
	q := s[:1]
	return strings.TrimSuffix(s[1:], q)
}

// metalHeaders are the headers whose names are there anyway.
var metalHeaders = map[string]bool{
	"metal_stdlib": true, "metal_types": true, "metal_config": true, "metal_math": true, "metal_common": true,
	"metal_integer": true, "metal_relational": true, "metal_geometric": true, "metal_matrix": true,
	"metal_numeric": true, "metal_limits": true, "metal_type_traits": true, "metal_array": true, "metal_atomic": true,
	"metal_compute": true, "metal_simdgroup": true, "metal_simdgroup_matrix": true, "metal_quadgroup": true,
	"metal_pack": true, "metal_extended_vector": true, "metal_packed_vector": true, "metal_logging": true,
	"metal_texture": true, "metal_graphics": true, "metal_function_constant": true, "metal_uniform": true,
	"metal_assert": true, "metal_initializer_list": true, "metal_tuple": true, "metal_utility": true,
	"metal_functional": true, "metal_iterator": true, "metal_memory": true, "metal_new": true, "metal_half": true,
	"simd/simd": true, "simd/vector_types": true, "simd/matrix_types": true,
	"metal_cstdint": true, "metal_stdint": true, "metal_vector": true, "metal_bfloat": true,
}

// refusedHeaders are headers of Metal, or the folders of frameworks, whose declarations msl has not.
var refusedHeaders = map[string]string{
	"metal_tensor":                 "tensors; pass buffers, and multiply with simdgroup_matrix",
	"metal_cooperative_tensor":     "tensors; pass buffers, and multiply with simdgroup_matrix",
	"MetalPerformancePrimitives":   "Apple's operations on tensors; multiply with simdgroup_matrix",
	"MetalPerformanceShaders":      "what Apple's ray tracing takes; declare structures of your own",
	"metal_raytracing":             "ray tracing; intersect in the kernel",
	"metal_mesh":                   "mesh shaders; msl compiles kernels",
	"metal_imageblocks":            "imageblocks; use threadgroup memory",
	"metal_command_buffer":         "commands of the GPU's own making",
	"metal_visible_function_table": "tables of functions; write a switch",
}

// includeName returns the name of an #include and the tokens after it; ok is false after an error.
func (p *preproc) includeName(d *token, rest []token) (name string, ok bool) {
	if len(rest) > 0 && rest[0].kind == tIdent {
		rest = p.expandTokens(rest)
	}
	if len(rest) == 1 && rest[0].kind == tString {
		return trimQuotes(rest[0].text), true
	}
	if len(rest) > 2 && rest[0].kind == tLt && rest[len(rest)-1].kind == tGt {
		var b strings.Builder
		for _, t := range rest[1 : len(rest)-1] {
			b.WriteString(t.text)
		}
		return b.String(), true
	}
	p.errorf(BadDirective, d, "#%s needs a name in <> or quotes", d.text)
	return "", false
}

func (p *preproc) includeDirective(d *token, rest []token) {
	name, ok := p.includeName(d, rest)
	if !ok || metalHeaders[strings.TrimSuffix(name, ".h")] || p.included[name] {
		return
	}
	if first, _, _ := strings.Cut(name, "/"); refusedHeaders[first] != "" {
		p.errorf(IncludeNotFound, d, "'%s' is not supported: it declares %s", clip(name), refusedHeaders[first])
		return
	}
	if p.include == nil {
		p.errorf(IncludeNotFound, d, "'%s' is no Metal header, and there are no others here: leave it out", clip(name))
		return
	}
	text, ok := p.include(name)
	if !ok {
		p.errorf(IncludeNotFound, d, "'%s' is no Metal header, and was not found", clip(name))
		return
	}
	if len(p.inclusions) >= maxInclude {
		p.die(d, "#include nests more than %d deep", maxInclude)
		return
	}
	p.included[name] = true
	sc := p.open(name, text, d)
	if sc == nil {
		return
	}
	p.inclusions = append(p.inclusions, inclusion{scan: p.scan, conds: p.condBase})
	p.scan, p.condBase = sc, len(p.conds)
}
