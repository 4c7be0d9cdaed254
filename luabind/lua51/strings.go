package lua51

import (
	"math"
	"reflect"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// boundStrings replaces the functions of the string library whose work or result has no bound.
func (s *State) boundStrings() {
	lib := s.library(lua.StringLibName)
	s.Method(lib, "rep", s.stringRep)
	s.Method(lib, "find", func(L *lua.LState) int { return s.stringFind(L, true) })
	s.Method(lib, "match", func(L *lua.LState) int { return s.stringFind(L, false) })
	lib.RawSetString("gfind", s.Method(lib, "gmatch", s.stringGMatch))
	s.Method(lib, "gsub", s.stringGSub)
	s.Method(lib, "format", s.stringFormat)
	s.bytewise(lib, "upper", func(piece []byte) {
		for i, c := range piece {
			if 'a' <= c && c <= 'z' {
				piece[i] = c - 'a' + 'A'
			}
		}
	})
	s.bytewise(lib, "lower", func(piece []byte) {
		for i, c := range piece {
			if 'A' <= c && c <= 'Z' {
				piece[i] = c - 'A' + 'a'
			}
		}
	})
	s.bytewise(lib, "reverse", nil)
	if s.opt.Limits.Memory > 0 { // what they make is charged, as what functions made by Func give
		for _, name := range []string{"sub", "char"} {
			s.Method(lib, name, lib.RawGetString(name).(*lua.LFunction).GFunction)
		}
		s.L.SetGlobal("tostring", s.Through(s.L.GetGlobal("tostring").(*lua.LFunction).GFunction))
	}
	s.limitResults(lib, "byte", "string.byte", func(L *lua.LState) (int, int) {
		return L.OptInt(2, 1), L.OptInt(3, L.OptInt(2, 1))
	}, func(L *lua.LState) int { return len(L.CheckString(1)) })
}

// bytewise is a function of the string library that changes each byte, or reverses their order where change is nil.
// gopher-lua's change what is no ASCII, also texts that are no UTF-8.
func (s *State) bytewise(lib *lua.LTable, name string, change func(piece []byte)) {
	s.Method(lib, name, func(L *lua.LState) int {
		text := L.CheckString(1)
		s.Charge(stringBytes + 2*int64(len(text)))
		var out strings.Builder
		out.Grow(len(text))
		piece := make([]byte, min(len(text), pollEvery))
		for at := 0; at < len(text); at += len(piece) {
			s.poll()
			piece = piece[:min(len(piece), len(text)-at)]
			if change != nil {
				copy(piece, text[at:])
				change(piece)
			} else {
				copy(piece, text[len(text)-at-len(piece):])
				slices.Reverse(piece)
			}
			out.Write(piece)
		}
		L.Push(lua.LString(out.String()))
		return 1
	})
}

func (s *State) stringRep(L *lua.LState) int {
	text, n := L.CheckString(1), float64(L.CheckNumber(2))
	if len(text) == 0 || !(n >= 1) { // NaN too
		L.Push(lua.LString(""))
		return 1
	}
	if float64(len(text))*n > maxString {
		s.fail("string.rep: %v times %d bytes are more than %d", n, len(text), maxString)
	}
	s.Charge(int64(float64(len(text)) * n))
	L.Push(lua.LString(strings.Repeat(text, int(n))))
	return 1
}

// patternKey is what parsePattern is given.
type patternKey struct {
	text    string
	anchors bool
}

const (
	patternBytes = 64   // of an item, of which a pattern has at most one for each of its bytes
	longPattern  = 1024 // bytes of patterns that are not kept
)

// pattern is a pattern argument, read before or now.
func (s *State) pattern(text string, anchors bool) *pattern {
	const most = 256 // patterns kept
	k := patternKey{text, anchors}
	if p := s.patterns[k]; p != nil {
		return p
	}
	s.Charge(patternBytes * int64(len(text)))
	p, err := parsePattern(text, anchors)
	if err != nil {
		s.L.RaiseError("%s", err.Error())
	}
	if len(text) > longPattern {
		return p
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

// matchingBytes is what an iterator of gmatch takes beside its text.
var matchingBytes = int64(reflect.TypeFor[matching]().Size())

func (s *State) stringGMatch(L *lua.LState) int {
	text := L.CheckString(1)
	m := &matching{pattern: s.pattern(L.CheckString(2), false), text: text, poll: s.poll}
	at := 0
	L.Push(s.Func(func(L *lua.LState) int {
		from, to := m.find(at)
		if from < 0 {
			at = len(m.text) + 1
			return 0
		}
		if at = to; to == from {
			at++
		}
		return pushCaptures(L, m, from, to, true)
	}, lua.LString(text), s.Weigh(matchingBytes)))
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
	out := s.longText("string.gsub")
	defer out.end()
	at, count := 0, 0
	for count < most {
		m.step()
		end := m.at(at)
		if end >= 0 {
			count++
			s.replacement(out, m, at, end, repl)
		}
		switch {
		case end > at:
			at = end
		case at < len(text):
			out.addByte(text[at])
			at++
		default:
			at++
		}
		if at > len(text) || m.anchored {
			break
		}
	}
	if at < len(text) {
		out.add(text[at:])
	}
	L.Push(out.value())
	L.Push(lua.LNumber(count))
	return 2
}

// replacement writes what stands for a match.
func (s *State) replacement(out *longText, m *matching, from, to int, repl lua.LValue) {
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
		out.add(v.String())
	default:
		if lua.LVAsBool(v) {
			s.fail("invalid replacement value (a %s)", v.Type())
		}
		out.add(whole)
	}
}

// template writes a replacement string, in which %0 to %9 are captures.
func (s *State) template(out *longText, m *matching, whole, text string) {
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c != '%' || i+1 == len(text) {
			out.addByte(c)
			continue
		}
		i++
		switch c = text[i]; {
		case !isDigit(c):
			out.addByte(c)
		case c == '0' || c == '1' && m.captures == 0:
			out.add(whole)
		case int(c-'0') > m.captures:
			s.fail("invalid capture index %%%c", c)
		default:
			out.add(captureValue(m, int(c-'1')).String())
		}
	}
}
