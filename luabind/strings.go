package luabind

import (
	"errors"
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// The context is polled between Lua instructions only, so one call of a library function may not take long: what can
// is bounded, or polls by itself.
const (
	maxString  = 1 << 28 // bytes of the longest string that a library function makes
	maxResults = 1 << 20 // values that unpack and string.byte give
	pollEvery  = 1 << 12
)

// guardLibraries replaces the library functions whose work or result has no bound.
func (s *State) guardLibraries() {
	L := s.L
	if lib, ok := L.GetGlobal(lua.StringLibName).(*lua.LTable); ok {
		s.method(lib, "rep", s.stringRep)
		s.method(lib, "find", func(L *lua.LState) int { return s.stringFind(L, true) })
		s.method(lib, "match", func(L *lua.LState) int { return s.stringFind(L, false) })
		lib.RawSetString("gfind", s.method(lib, "gmatch", s.stringGMatch))
		s.method(lib, "gsub", s.stringGSub)
		s.method(lib, "format", s.stringFormat)
		s.limitResults(lib, "byte", "string.byte", func(L *lua.LState) (int, int) {
			return L.OptInt(2, 1), L.OptInt(3, L.OptInt(2, 1))
		}, func(L *lua.LState) int { return len(L.CheckString(1)) })
	}
	if lib, ok := L.GetGlobal(lua.TabLibName).(*lua.LTable); ok {
		s.method(lib, "concat", s.tableConcat)
		s.method(lib, "sort", s.tableSort)
	}
	s.limitResults(L.G.Global, "unpack", "unpack", func(L *lua.LState) (int, int) {
		return L.OptInt(2, 1), L.OptInt(3, L.CheckTable(1).Len())
	}, nil)
}

// poll ends a library function whose context is done.
func (s *State) poll() {
	if err := s.ctx().Err(); err != nil {
		s.L.RaiseError("%v", err)
	}
}

// fail raises an error at the running Lua line.
func (s *State) fail(format string, v ...any) { s.L.RaiseError("%s", fmt.Sprintf(format, v...)) }

// limitResults refuses calls of a function that would give too many values. of is the size of what it reads, for
// functions that stop there and count negative places from the end.
func (s *State) limitResults(lib *lua.LTable, field, name string, ends func(L *lua.LState) (int, int),
	of func(L *lua.LState) int) {
	plain, ok := lib.RawGetString(field).(*lua.LFunction)
	if !ok {
		return
	}
	s.method(lib, field, func(L *lua.LState) int {
		first, last := ends(L)
		if of != nil {
			n := of(L)
			if first < 0 {
				first = max(first+n+1, 1)
			}
			if last < 0 {
				last += n + 1
			}
			last = min(last, n)
		}
		if last-first >= maxResults {
			s.fail("%s: too many results: from %d to %d", name, first, last)
		}
		return plain.GFunction(L)
	})
}

func (s *State) stringRep(L *lua.LState) int {
	text, n := L.CheckString(1), float64(L.CheckNumber(2))
	if float64(len(text))*n > maxString {
		s.fail("string.rep: %v times %d bytes are more than %d", n, len(text), maxString)
	}
	L.Push(lua.LString(strings.Repeat(text, max(int(n), 0)*min(len(text), 1))))
	return 1
}

// patternKey is what parsePattern is given.
type patternKey struct {
	text    string
	anchors bool
}

// pattern is a pattern argument, read before or now.
func (s *State) pattern(text string, anchors bool) *pattern {
	const most = 256 // patterns kept
	k := patternKey{text, anchors}
	if p := s.patterns[k]; p != nil {
		return p
	}
	p, err := parsePattern(text, anchors)
	if err != nil {
		s.L.RaiseError("%s", err.Error())
	}
	if len(s.patterns) >= most || s.patterns == nil {
		s.patterns = map[patternKey]*pattern{}
	}
	s.patterns[k] = p
	return p
}

// start is find's and match's optional place to begin, counted from 0.
func start(L *lua.LState, n int, text string) int {
	init := L.OptInt(n, 1)
	switch {
	case init > 0:
		init--
	case init < 0:
		init = max(init+len(text), 0)
	}
	return init
}

// stringFind is string.find, or string.match.
func (s *State) stringFind(L *lua.LState, places bool) int {
	text, pat := L.CheckString(1), L.CheckString(2)
	init := min(start(L, 3, text), len(text)) // Lua 5.1 looks at the end where init is past it
	if places && (lua.LVAsBool(L.Get(4)) || !strings.ContainsAny(pat, "^$*+?.([%-")) {
		i := strings.Index(text[init:], pat)
		if i < 0 {
			L.Push(lua.LNil)
			return 1
		}
		L.Push(lua.LNumber(init + i + 1))
		L.Push(lua.LNumber(init + i + len(pat)))
		return 2
	}
	m := &matching{pattern: s.pattern(pat, true), text: text, poll: s.poll}
	from, to := m.find(init)
	if from < 0 {
		L.Push(lua.LNil)
		return 1
	}
	if !places {
		return pushCaptures(L, m, from, to, true)
	}
	L.Push(lua.LNumber(from + 1))
	L.Push(lua.LNumber(to))
	return 2 + pushCaptures(L, m, from, to, false)
}

// pushCaptures pushes a match's captures; whole: the match itself where it has none.
func pushCaptures(L *lua.LState, m *matching, from, to int, whole bool) int {
	if m.captures == 0 && whole {
		L.Push(lua.LString(m.text[from:to]))
		return 1
	}
	for i := range m.captures {
		L.Push(captureValue(m, i))
	}
	return m.captures
}

func captureValue(m *matching, i int) lua.LValue {
	if c := m.captured[i]; c.end < 0 {
		return lua.LNumber(c.start + 1)
	}
	return lua.LString(m.capture(i))
}

func (s *State) stringGMatch(L *lua.LState) int {
	m := &matching{pattern: s.pattern(L.CheckString(2), false), text: L.CheckString(1), poll: s.poll}
	at := 0
	L.Push(s.fn(func(L *lua.LState) int {
		from, to := m.find(at)
		if from < 0 {
			at = len(m.text) + 1
			return 0
		}
		if at = to; to == from {
			at++
		}
		return pushCaptures(L, m, from, to, true)
	}))
	return 1
}

func (s *State) stringGSub(L *lua.LState) int {
	text := L.CheckString(1)
	m := &matching{pattern: s.pattern(L.CheckString(2), true), text: text, poll: s.poll}
	repl := L.Get(3)
	switch repl.Type() {
	case lua.LTString, lua.LTNumber, lua.LTFunction, lua.LTTable:
	default:
		L.ArgError(3, "string/function/table expected")
	}
	most := L.OptInt(4, math.MaxInt)
	var out strings.Builder
	at, count := 0, 0
	for count < most {
		m.step()
		end := m.at(at)
		if end >= 0 {
			count++
			s.replacement(&out, m, at, end, repl)
		}
		switch {
		case end > at:
			at = end
		case at < len(text):
			out.WriteByte(text[at])
			at++
		default:
			at++
		}
		if at > len(text) || m.anchored {
			break
		}
		if out.Len() > maxString {
			s.fail("string.gsub: the result has more than %d bytes", maxString)
		}
	}
	if at < len(text) {
		out.WriteString(text[at:])
	}
	L.Push(lua.LString(out.String()))
	L.Push(lua.LNumber(count))
	return 2
}

// replacement writes what stands for a match.
func (s *State) replacement(out *strings.Builder, m *matching, from, to int, repl lua.LValue) {
	L := s.L
	whole := m.text[from:to]
	first := lua.LValue(lua.LString(whole))
	if m.captures > 0 {
		first = captureValue(m, 0)
	}
	var v lua.LValue
	switch r := repl.(type) {
	case *lua.LFunction:
		L.Push(r)
		n := pushCaptures(L, m, from, to, true)
		L.Call(n, 1)
		v = L.Get(-1)
		L.Pop(1)
	case *lua.LTable:
		v = L.GetTable(r, first)
	default:
		s.template(out, m, whole, r.String())
		return
	}
	switch v := v.(type) {
	case lua.LString, lua.LNumber:
		out.WriteString(v.String())
	default:
		if lua.LVAsBool(v) {
			s.fail("invalid replacement value (a %s)", v.Type())
		}
		out.WriteString(whole)
	}
}

// template writes a replacement string, in which %0 to %9 are captures.
func (s *State) template(out *strings.Builder, m *matching, whole, text string) {
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c != '%' || i+1 == len(text) {
			out.WriteByte(c)
			continue
		}
		i++
		switch c = text[i]; {
		case !isDigit(c):
			out.WriteByte(c)
		case c == '0' || c == '1' && m.captures == 0:
			out.WriteString(whole)
		case int(c-'0') > m.captures:
			s.fail("invalid capture index %%%c", c)
		default:
			out.WriteString(captureValue(m, int(c-'1')).String())
		}
	}
}

// stringFormat is string.format with C's defaults and rounding.
func (s *State) stringFormat(L *lua.LState) int {
	text := L.CheckString(1)
	var out strings.Builder
	arg := 1
	for {
		i := strings.IndexByte(text, '%')
		if i < 0 {
			out.WriteString(text)
			break
		}
		out.WriteString(text[:i])
		text = text[i+1:]
		if strings.HasPrefix(text, "%") {
			out.WriteByte('%')
			text = text[1:]
			continue
		}
		spec, err := readDirective(text)
		if err != nil {
			L.RaiseError("%s", err.Error())
		}
		text = text[spec.length:]
		arg++
		out.WriteString(s.formatted(L, arg, spec))
		if out.Len() > maxString {
			s.fail("string.format: the result has more than %d bytes", maxString)
		}
	}
	L.Push(lua.LString(out.String()))
	return 1
}

// directive is a conversion of string.format: flags, width, precision (-1: none) and verb.
type directive struct {
	flags            string
	width, precision int
	verb             byte
	length           int
}

func readDirective(text string) (d directive, err error) {
	i := 0
	for i < len(text) && strings.IndexByte("-+ #0", text[i]) >= 0 {
		i++
	}
	d.flags = text[:i]
	digits := func() int {
		n, first := 0, i
		for i < len(text) && isDigit(text[i]) && i-first < 3 {
			n = 10*n + int(text[i]-'0')
			i++
		}
		if i-first > 2 {
			err = errors.New("invalid format (width or precision too long)")
		}
		return n
	}
	d.width, d.precision = digits(), -1
	if i < len(text) && text[i] == '.' {
		i++
		d.precision = digits()
	}
	switch {
	case err != nil:
	case len(d.flags) > 5:
		err = errors.New("invalid format (repeated flags)")
	case i == len(text):
		err = errors.New("invalid format (ends with '%')")
	default:
		d.verb, d.length = text[i], i+1
	}
	return d, err
}

// formatted is one converted argument.
func (s *State) formatted(L *lua.LState, arg int, d directive) string {
	has := func(flag string) bool { return strings.Contains(d.flags, flag) }
	pad := func(text string) string {
		if fill := d.width - len(text); fill > 0 && has("-") {
			text += strings.Repeat(" ", fill)
		} else if fill > 0 {
			text = strings.Repeat(" ", fill) + text
		}
		return text
	}
	// The verb's own flags: padding with blanks is pad's.
	layout := func(precision int, verb string) string {
		f := "%" + strings.NewReplacer("-", "").Replace(d.flags)
		if has("0") && !has("-") && d.width > 0 {
			f += strconv.Itoa(d.width)
		} else {
			f = strings.ReplaceAll(f, "0", "")
		}
		if precision >= 0 {
			f += "." + strconv.Itoa(precision)
		}
		return f + verb
	}
	switch d.verb {
	case 'c':
		return pad(string([]byte{byte(L.CheckInt(arg))}))
	case 'd', 'i':
		return pad(fmt.Sprintf(layout(d.precision, "d"), int64(L.CheckNumber(arg))))
	case 'u', 'o', 'x', 'X':
		verb := strings.ReplaceAll(string(rune(d.verb)), "u", "d")
		v := float64(L.CheckNumber(arg))
		n := uint64(int64(v))
		if v >= 1<<63 {
			n = uint64(v)
		}
		return pad(fmt.Sprintf(layout(d.precision, verb), n))
	case 'e', 'E', 'f', 'g', 'G':
		v := float64(L.CheckNumber(arg))
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return pad(strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%"+strings.Trim(d.flags, "-#0 ")+"f", v), "+")))
		}
		precision := d.precision
		if precision < 0 {
			precision = 6
		}
		return pad(fmt.Sprintf(layout(precision, string(rune(d.verb))), v))
	case 'q':
		return quoted(L.CheckString(arg))
	case 's':
		if arg > L.GetTop() {
			L.ArgError(arg, "string expected, got no value")
		}
		text := textOf(L, L.Get(arg))
		if d.precision >= 0 && d.precision < len(text) {
			text = text[:d.precision]
		}
		return pad(text)
	}
	L.RaiseError("invalid option '%%%c' to 'format'", d.verb)
	return ""
}

// quoted is a string as Lua reads it.
func quoted(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(text) {
		switch c := text[i]; c {
		case '"', '\\', '\n':
			b.WriteByte('\\')
			b.WriteByte(c)
		case '\r':
			b.WriteString("\\r")
		case 0:
			b.WriteString("\\000")
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func (s *State) tableConcat(L *lua.LState) int {
	t, sep := L.CheckTable(1), L.OptString(2, "")
	first, last := L.OptInt(3, 1), L.OptInt(4, t.Len())
	var b strings.Builder
	for i := first; i <= last; i++ {
		v := t.RawGetInt(i)
		switch v.(type) {
		case lua.LString, lua.LNumber:
		default:
			s.fail("invalid value (%s) at index %d in table for 'concat'", v.Type(), i)
		}
		b.WriteString(v.String())
		if i < last {
			b.WriteString(sep)
		}
		if b.Len() > maxString {
			s.fail("table.concat: the result has more than %d bytes", maxString)
		}
		if i%pollEvery == 0 {
			s.poll()
		}
	}
	L.Push(lua.LString(b.String()))
	return 1
}

// tableSort is table.sort. A comparison that fails leaves the table as it was.
func (s *State) tableSort(L *lua.LState) int {
	t := L.CheckTable(1)
	var before *lua.LFunction
	if L.Get(2) != lua.LNil {
		before = L.CheckFunction(2)
	}
	list := make([]lua.LValue, t.Len())
	for i := range list {
		list[i] = t.RawGetInt(i + 1)
	}
	compared := 0
	sort.Slice(list, func(i, j int) bool {
		if compared++; compared%pollEvery == 0 {
			s.poll()
		}
		if before == nil {
			return less(L, list[i], list[j])
		}
		L.Push(before)
		L.Push(list[i])
		L.Push(list[j])
		L.Call(2, 1)
		yes := lua.LVAsBool(L.Get(-1))
		L.Pop(1)
		return yes
	})
	for i, v := range list {
		t.RawSetInt(i+1, v)
	}
	return 0
}

// less is Lua's a < b.
func less(L *lua.LState, a, b lua.LValue) bool {
	if x, ok := a.(lua.LString); ok {
		if y, ok := b.(lua.LString); ok {
			return x < y
		}
	}
	return L.LessThan(a, b)
}
