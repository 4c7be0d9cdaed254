package msl

import (
	"slices"
	"strings"
)

// hintFor says what to write instead of a name that nothing declares, "" if there is nothing particular to say.
func hintFor(name string) string {
	if h := hintOf(name); h != "" {
		return h
	}
	if b := builtins[name+"_explicit"]; b != nil {
		return "write " + name + "_explicit, with memory_order_relaxed as its last argument"
	}
	for _, suffix := range []string{"_shape", "_strides", "_ndim"} {
		if base, ok := strings.CutSuffix(name, suffix); ok && base != "" {
			return "metal_kernel declares it for an input named '" + base + "'"
		}
	}
	return ""
}

// hintOf says what to write instead of a word, as a name or where the grammar has no place for it.
func hintOf(word string) string {
	if h := hints[word]; h != "" {
		return h
	}
	for _, n := range []string{"8", "16"} {
		if e, ok := strings.CutSuffix(word, n); ok && slices.Contains(vecElems, e) {
			return "Metal reserves it: write vec<" + e + ", " + n + ">"
		}
	}
	return ""
}

// hidesEnd reports whether a text is a comment that holds the end of a statement: it was meant as a division.
func hidesEnd(s string) bool {
	s, comment := strings.CutPrefix(s, "//")
	return comment && strings.ContainsAny(s, ";})")
}

// with returns a set with a word more; the set may be nil.
func with(set map[string]bool, word string) map[string]bool {
	if set == nil {
		set = map[string]bool{}
	}
	set[word] = true
	return set
}

// usageOf returns ": write f(a, b)" for a builtin, or nothing.
func usageOf(name string) string {
	u := usage[name]
	if u == "" && strings.HasPrefix(name, "atomic_fetch_") {
		u = name + "(p, v, memory_order_relaxed)"
	}
	if u == "" {
		return ""
	}
	return ": write " + u
}

// vectorHint says how a vector becomes what is needed, such as the index of a thread in a grid of one dimension.
func vectorHint(from, to *ctype) string {
	switch {
	case from.kind != tVec:
		return ""
	case to.isScalar():
		return ": name a component, such as .x"
	case to.kind == tVec && to.n < from.n && to.n <= 4:
		return ": name the components, ." + "xyzw"[:to.n]
	}
	return ""
}

// wideHint says how the components of a vector are named that have no letter.
func wideHint(t *ctype) string {
	if t.isWide() {
		return ", and [i] for each of its components"
	}
	return ""
}

// spaceHint says how a pointer is declared that points to the memory of another one.
func spaceHint(s Space) string {
	if s = s.normal(); s == SpaceNone {
		return ""
	}
	return ": write " + s.String() + " before its type, or auto"
}

// indexHint says how to make an index of a value that is none.
func indexHint(t *ctype) string {
	if t.isScalar() {
		return ": write uint(...) around it"
	}
	return vectorHint(t, typeInt)
}

// nearOf is the end of a message about a name that should be one of a list.
func nearOf(name string, list ...string) string {
	s := near(name)
	for _, n := range list {
		s.try(n)
	}
	return meant(s.best)
}

// plural returns "1 argument", "2 arguments".
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return itoa(n) + " " + what + "s"
}

// syntaxHint looks at the line of an error, up to where it stands, for the mistakes that syntax errors come from.
func (p *cursor) syntaxHint() string {
	at := p.toks[p.i]
	from := p.i
	for n := 0; from > 0 && p.toks[from-1].src == at.src && n < 20; n++ {
		if p.toks[from].flags&fBOL != 0 && from < p.i {
			break
		}
		if k := p.toks[from-1].kind; k == tSemi || k == tLBrace || k == tRBrace { // of the statement, no other
			break
		}
		from--
	}
	var last *token
	for i := from; i <= p.i+2 && i < len(p.toks); i++ {
		t := &p.toks[i]
		if t.kind == tIdent && (!p.declared(t.sym) || t.text == "mem_flags") {
			if h := hintOf(t.text); h != "" && !p.told[t.text] {
				p.told = with(p.told, t.text)
				return "'" + clip(t.text) + "': " + h
			}
		}
		if i < p.i {
			last = t
		}
	}
	if last == nil || last.mac != 0 {
		return ""
	}
	loc := p.f.locate(last)
	end := int(loc.Col) - 1 + len(last.text)
	if at.kind == kIf && end <= len(loc.Text) {
		return "a choice between values is written c ? a : b"
	}
	if end <= len(loc.Text) && hidesEnd(strings.TrimSpace(loc.Text[end:])) {
		return "// starts a comment; integers are divided by /, and floor(a / b) rounds floats down"
	}
	return ""
}

// hinted adds a syntax hint to an error that has no note yet.
func (p *cursor) hinted(e *Error) *Error {
	if e.Note == "" {
		e.Note = p.syntaxHint()
	}
	return e
}
